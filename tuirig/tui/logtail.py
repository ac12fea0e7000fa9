"""Reads what was added to a log file since the last look."""

from __future__ import annotations

from pathlib import Path

FIRST_LOOK = 64 * 1024


class LogTail:
    """Follows a file that grows, is replaced, or does not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._inode: int | None = None
        self._offset = 0

    def read(self) -> tuple[bool, str]:
        """(started over, new text). The first look at a long file begins near its end."""
        try:
            with self.path.open("rb") as file:
                status = file.fileno()
                size = file.seek(0, 2)
                inode = _inode(status)
                fresh = inode != self._inode or size < self._offset
                if fresh:
                    self._inode = inode
                    self._offset = max(0, size - FIRST_LOOK)
                file.seek(self._offset)
                data = file.read(size - self._offset)
        except OSError:
            return False, ""
        end = data.rfind(b"\n") + 1
        self._offset += end
        return fresh, data[:end].decode("utf-8", "replace")


def _inode(descriptor: int) -> int:
    import os

    return os.fstat(descriptor).st_ino
