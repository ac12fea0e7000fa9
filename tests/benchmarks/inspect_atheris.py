"""Coverage-guided fuzzing of the header reader, where atheris installs.

    uv run --with atheris python -m tests.benchmarks.inspect_atheris -runs=100000 -max_len=65536

Anything but a TuirigError is a crash, which libFuzzer writes down and prints.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["tuirig.files"]):
    from tests.benchmarks.inspect_fuzz import ARCHITECTURES, _model
    from tests.files.mutations import plain_header
    from tuirig.errors import TuirigError
    from tuirig.files.inspection import inspection_of

FOLDER = tempfile.mkdtemp()
PATH = Path(FOLDER) / "x.gguf"


def one(data: bytes) -> None:
    """Read and inspect one input."""
    PATH.write_bytes(data)
    try:
        inspection_of(_model(PATH))
    except TuirigError:
        return


if __name__ == "__main__":
    seeds = Path(FOLDER) / "seeds"
    seeds.mkdir()
    for name in ARCHITECTURES:
        (seeds / name).write_bytes(plain_header(name))
    atheris.Setup([*sys.argv, str(seeds)], one)
    atheris.Fuzz()
