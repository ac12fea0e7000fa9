"""Headers of model files, remembered by path, size, time and inode, so that a second look is quick.

One small file per model in the cache folder. Blocks: call it in a thread.
"""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import msgspec

from tuirig import locations
from tuirig.files.gguf import Header, parse_header, read_header
from tuirig.files.sources import is_url, opened

#: Rises when Header or what is kept of it changes; older entries then count as unknown.
_FORMAT = 1
_MOST_ENTRIES = 512
_SETTLED_NS = 1_000_000_000


class _Entry(msgspec.Struct, frozen=True):
    format: int
    path: str
    stamp: tuple[int, int, int]
    header: Header


def header_of(reference: str | Path) -> Header:
    """The header of a file, from the cache if the file is still the same; of a URL, read anew.

    Raises what `read_header` raises.
    """
    if isinstance(reference, str) and is_url(reference):
        return read_header(reference)
    path = os.path.realpath(os.path.expanduser(reference))
    entry_path = _entry_path(path)
    known = _remembered(entry_path, path)
    if known is not None:
        return known
    with opened(reference) as source:
        header = parse_header(source)
        stamp = _stamp(path)
    # A file that was written just now could be written again without a new time.
    if (
        stamp is not None
        and stamp[0] == header.file_size
        and time.time_ns() - stamp[1] > _SETTLED_NS
    ):
        _remember(entry_path, _Entry(_FORMAT, path, stamp, header))
    return header


def _stamp(path: str) -> tuple[int, int, int] | None:
    """(size, time in ns, inode), None if it is gone."""
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        return None
    return state.st_size, state.st_mtime_ns, state.st_ino


def _entry_path(path: str) -> Path:
    digest = hashlib.sha256(os.fsencode(path)).hexdigest()
    return locations.cache_folder() / "headers" / digest[:32]


def _remembered(entry_path: Path, path: str) -> Header | None:
    try:
        entry = msgspec.msgpack.decode(entry_path.read_bytes(), type=_Entry)
    except (OSError, msgspec.DecodeError):
        return None  # not there, damaged, or of another version
    if (entry.format, entry.path, entry.stamp) != (_FORMAT, path, _stamp(path)):
        return None
    return entry.header


def _remember(entry_path: Path, entry: _Entry) -> None:
    from tuirig.atomic import write_atomically

    try:
        write_atomically(entry_path, msgspec.msgpack.encode(entry))
        entries = sorted(entry_path.parent.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in entries[:-_MOST_ENTRIES]:
            old.unlink(missing_ok=True)
    except (OSError, UnicodeEncodeError):
        return  # a cache that can't be written costs time, nothing else
