"""Looking at processes, for tests that must leave none behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import psutil

DEADLINE_S = 20.0

#: A program that owns a server as tuirig does; arguments: log, argv. It prints the server's pid.
OWNER = """
import asyncio, sys
from pathlib import Path
from tuirig.hosts.local import LocalHost

async def main():
    async with LocalHost().start(
        sys.argv[2:], {}, label="mine", log_path=Path(sys.argv[1])
    ) as process:
        print(process.pid, flush=True)
        await process.wait()

asyncio.run(main())
"""


async def until(condition: Callable[[], object], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait for a condition; AssertionError naming it after the deadline."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {deadline_s:g} s: {what}"
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def group(pgid: int) -> list[int]:
    """The living processes of a group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == pgid and fields[0] not in "ZX":
            found.append(int(folder.name))
    return found


def read_pid(path: Path) -> int | None:
    """A pid that a script wrote as one line, None until it is there."""
    text = path.read_text() if path.exists() else ""
    return int(text) if text.endswith("\n") else None
