"""A file that grows beside its place until all of it is there and is what it should be."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

from tuirig.errors import TuirigError

_CHUNK = 4 * 1024 * 1024
_POLL_S = 0.2
_KEPT = "free some space and fetch again: what is there already is kept"


class Part:
    """What is there so far, and its sha256. All methods block."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.done = 0
        self.digest = hashlib.sha256()
        self._file = file

    def take_up(self, most: int | None, on_progress: Callable[[int], None]) -> None:
        """Go on with what an earlier try left; longer than `most` bytes, it is something else."""
        if most is not None and os.fstat(self._file.fileno()).st_size > most:
            self.begin_anew()
        self._file.seek(0)
        while chunk := self._file.read(_CHUNK):
            self.digest.update(chunk)
            self.done += len(chunk)
            on_progress(self.done)

    def append(self, data: bytes) -> None:
        """Add what came. Raises TuirigError for a full or failing disk."""
        try:
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            raise disk_error(self.path, error) from None
        self.digest.update(data)
        self.done += len(data)

    def begin_anew(self) -> None:
        """Forget all of it."""
        self._file.truncate(0)
        self._file.seek(0)
        self.digest = hashlib.sha256()
        self.done = 0

    def start(self, count: int) -> bytes:
        """Its first bytes."""
        with open(self.path, "rb") as file:
            return file.read(count)

    def sync(self) -> None:
        """Make sure that it is on the disk."""
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise disk_error(self.path, error) from None


@asynccontextmanager
async def opened_part(path: Path, tell_waiting: Callable[[], None]) -> AsyncIterator[Part]:
    """The part of one path, held alone. What came stays there when the block ends without a name.

    Raises TuirigError where it can't be written.
    """
    while True:
        with _opened(path) as file:
            if _is_ours(file, path):
                part = Part(path, file)
                try:
                    yield part
                finally:
                    if not part.done:
                        _drop(file, path)
                return
        tell_waiting()
        await asyncio.sleep(_POLL_S)


def _opened(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b")
    except OSError as error:
        raise disk_error(path, error) from None


def _is_ours(file: BinaryIO, path: Path) -> bool:
    """Whether the lock was got, and the file has not got its name meanwhile."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except (BlockingIOError, FileNotFoundError):
        return False


def _drop(file: BinaryIO, path: Path) -> None:
    """Remove an empty part."""
    if _is_ours(file, path):
        path.unlink()


def require_room(folder: Path, size: int) -> None:
    """Raises TuirigError where a folder's disk has not that many bytes left."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise TuirigError(
            f"{size / 1e6:.0f} MB are still to come into {folder}; {free / 1e6:.0f} MB are free",
            hint=_KEPT,
        )


def disk_error(path: Path, error: OSError) -> TuirigError:
    """The error for what can't be written."""
    return TuirigError(f"{path} can't be written: {error.strerror or error}", hint=_KEPT)
