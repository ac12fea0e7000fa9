"""The log file of one server start."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from tuirig.locations import log_path

_TAIL_BYTES = 64 << 10


def new_log_path(rig: str) -> Path:
    """Where a start of this rig logs; the log of the start before gets the suffix `.1`.

    Raises OSError.
    """
    path = log_path(rig)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.replace(path.with_name(f"{path.name}.1"))
    return path


class LogFile:
    """Reads while the server writes. Stays with its file when a later start renames it."""

    def __init__(self, path: Path) -> None:
        self.lines: list[str] = []
        self._file = path.open("rb")
        self._read = self._forgotten = 0
        self._unfinished = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def read_on(self) -> bool:
        """Append what is new to lines; whether there was anything."""
        before = self._read
        self.lines += self.new_lines()
        return self._read > before

    def new_lines(self) -> list[str]:
        """What is new, once; none when it is closed."""
        data = b"" if self._file.closed else self._file.read()
        self._read += len(data)
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]

    def forget(self) -> None:
        """Drop the lines read so far; from now on only tail and new_lines are used."""
        self.lines = []
        self._forgotten = self._read

    def tail(self, lines: int, *, since_forgotten: bool = False) -> tuple[str, ...]:
        """The last lines, at most 64 KiB of them; since_forgotten: only those after forget.

        None once it is closed: a request may fail after its server's owner has let go of it.
        """
        if self._file.closed:
            return ()
        size = os.fstat(self._file.fileno()).st_size
        start = max(size - _TAIL_BYTES, self._forgotten if since_forgotten else 0, 0)
        text = os.pread(self._file.fileno(), _TAIL_BYTES, start).decode("utf-8", "replace")
        return tuple(line for line in text.splitlines() if line.strip())[-lines:]
