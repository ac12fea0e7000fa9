"""Size and sha256 of model files, remembered by path, size, time and inode.

Hashing reads the whole file: call it in a thread. Nothing here is needed to serve.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from tuirig import locations
from tuirig.errors import TuirigError
from tuirig.records import FileIdentity
from tuirig.rigs.shards import shards_of

#: Called with bytes done and bytes in all.
OnProgress: TypeAlias = Callable[[int, int], None]
#: [size, mtime in ns, inode] of every shard.
Stamp: TypeAlias = list[list[int]]

_CHUNK = 4 * 1024 * 1024
_lock = threading.Lock()


def identity(
    path: Path,
    *,
    compute: bool,
    on_progress: OnProgress = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> FileIdentity:
    """A model file's name, size in bytes and sha256; of all its shards, in their order.

    compute: hash it if the hash is not remembered; else sha256 is None then, as it is when
    `cancelled()` turned true. Raises TuirigError if the file can't be read or changes meanwhile.
    """
    shards = shards_of(path)
    try:
        stamp = _stamp(shards)
        digest = _remembered(path, stamp)
        if digest is None and compute:
            digest = _hash(shards, sum(size for size, _, _ in stamp), on_progress, cancelled)
            if digest is not None:
                if _stamp(shards) != stamp:
                    raise TuirigError(f"{path} changed while it was read", hint="try again")
                _remember(path, stamp, digest)
    except OSError as error:
        raise TuirigError(f"{path} can't be read: {error.strerror}") from None
    return FileIdentity(file=path.name, size=sum(size for size, _, _ in stamp), sha256=digest)


def remember(path: Path, sha256: str) -> None:
    """Note the hash of a model file that was just read whole. Raises OSError if it is gone."""
    _remember(path, _stamp(shards_of(path)), sha256)


def _hash(
    shards: Sequence[Path], total: int, on_progress: OnProgress, cancelled: Callable[[], bool]
) -> str | None:
    import hashlib

    digest = hashlib.sha256()
    done = 0
    for chunk in _chunks(shards):
        if cancelled():
            return None
        digest.update(chunk)
        done += len(chunk)
        on_progress(done, total)
    return digest.hexdigest()


def _chunks(shards: Sequence[Path]) -> Iterator[bytes]:
    for shard in shards:
        with open(shard, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def _stamp(shards: Sequence[Path]) -> Stamp:
    states = [os.stat(shard) for shard in shards]
    return [[state.st_size, state.st_mtime_ns, state.st_ino] for state in states]


def _remembered(path: Path, stamp: Stamp) -> str | None:
    entry = _read_cache().get(os.path.realpath(path))
    if not isinstance(entry, dict) or entry.get("stamp") != stamp:
        return None
    digest = entry.get("sha256")
    return digest if isinstance(digest, str) else None


def _remember(path: Path, stamp: Stamp, digest: str) -> None:
    from tuirig.atomic import write_atomically

    with _lock:
        cache = _read_cache()
        cache[os.path.realpath(path)] = {"stamp": stamp, "sha256": digest}
        kept = {name: entry for name, entry in cache.items() if os.path.exists(name)}
        try:
            write_atomically(_cache_path(), json.dumps(kept, indent=1))
        except OSError:
            return  # a cache that can't be written (full disk) costs time, nothing else


def _cache_path() -> Path:
    return locations.cache_folder() / "hashes.json"


def _read_cache() -> dict[str, Any]:
    """What is remembered; a missing or damaged cache is an empty one."""
    try:
        data = json.loads(_cache_path().read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
