"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_atomically(path: Path, data: str | bytes) -> None:
    """Write or replace a file and its missing folders. Raises OSError; the old file is then intact.

    A link is followed, so that a linked file stays linked.
    """
    target = Path(os.path.realpath(path))
    temporary = _write_beside(target, data)
    try:
        put_in_place(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def create_atomically(path: Path, data: str | bytes) -> None:
    """Write a new file and its missing folders. Raises FileExistsError where there is one."""
    temporary = _write_beside(path, data)
    try:
        os.link(temporary, path)  # unlike a rename, it never replaces
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if os.path.lexists(path):
            raise FileExistsError(str(path)) from None
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def put_in_place(part: Path, path: Path) -> None:
    """Give a complete, synced file in the same folder its name. Raises OSError; it then stays."""
    os.replace(part, path)
    _sync_folder(path.parent)


def _write_beside(path: Path, data: str | bytes) -> Path:
    """A complete, synced temporary file in the same folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:  # an interrupt leaves no half file behind either
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a power cut."""
    if os.name != "posix":
        return  # a folder can't be opened elsewhere
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
