"""Running commands, in this process and as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomli_w

from tuirig import locations
from tuirig.cli.main import main
from tuirig.hosts.remembered import RememberedServer
from tuirig.rigs.schema import Rig

TUIRIG = (sys.executable, "-m", "tuirig")


class Ran:
    """What a command answered."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.stderr = stderr

    @property
    def json(self) -> Any:
        """stdout, which has to be one JSON document with its version."""
        document = json.loads(self.stdout)
        assert document["schema"] == 1
        return document


class Commands:
    """`run("rigs", "--json")` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: str) -> Ran:
        self._capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:  # argparse: help, version, usage
            assert isinstance(ended.code, int)
            code = ended.code
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.err
        return Ran(code, captured.out, captured.err)


def spawn(*words: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """A command as a process of its own, without a terminal."""
    import os

    return subprocess.Popen(
        [*TUIRIG, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )


@contextmanager
def running(*words: str, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A spawned command that is killed at the end if the test did not end it."""
    with spawn(*words, env=env) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], text: str) -> list[str]:
    """The lines of stderr up to the first with `text`; AssertionError if it ends before."""
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if text in line:
            return lines
    raise AssertionError(f"{text!r} was not told:\n" + "\n".join(lines))


def save_rig(rig: Rig, folder: Path | None = None) -> Path:
    """Write a rig as a person would; its path. folder: that of the rigs unless given."""
    path = (folder or locations.rigs_folder()) / f"{rig.name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomli_w.dumps(_known(msgspec.to_builtins(rig))))
    return path


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _known(item) for key, item in value.items() if item not in (None, "", {})}
    return [_known(item) for item in value] if isinstance(value, list | tuple) else value


def pid_file() -> RememberedServer | None:
    """The server that a command of this home started, None while there is none."""
    folder = locations.state_folder() / "servers"
    for path in folder.glob("*.json") if folder.is_dir() else ():
        return msgspec.json.decode(path.read_bytes(), type=RememberedServer)
    return None
