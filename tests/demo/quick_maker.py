"""The maker with a recipe for tests: small files, held while a file says so, failing on demand."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path

from tuirig.demo import make, versions
from tuirig.demo.catalog import built_in_rig
from tuirig.errors import MissingError

STARTED = "started.{}"
HOLD = "hold"
FAIL = "QUICK_MAKER_FAILS"
VERSION = "QUICK_MAKER_VERSION"


def recipe(name: str, folder: Path, control: Path) -> make.Steps:
    yield 0.0, "writing small files"
    match os.environ.get(FAIL):
        case "missing":
            raise MissingError("no SmolLM2", hint="go online", evidence=["no network"])
        case "disk":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        case "bug":
            raise AssertionError("a bug")
    rig = built_in_rig(name)
    for file in (rig.target, *rig.drafter):
        if file.path:
            (folder / file.label).write_bytes(b"GGUF")
    (control / STARTED.format(os.getpid())).touch()
    while (control / HOLD).exists():
        time.sleep(0.01)
    yield 0.5, "writing more"


if __name__ == "__main__":
    _, name, workplace, control = sys.argv
    make.RECIPES[name] = lambda folder: recipe(name, folder, Path(control))
    versions.VERSIONS[name] = int(os.environ.get(VERSION, versions.VERSIONS[name]))
    sys.exit(make.main(name, Path(workplace)))
