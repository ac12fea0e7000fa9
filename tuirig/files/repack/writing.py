"""Writing a GGUF in a template's layout: same keys, same tensors, other encodings."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tuirig.atomic import put_in_place
from tuirig.errors import TuirigError
from tuirig.files.gguf import MAGIC
from tuirig.files.repack.layout import LaidTensor, Layout, aligned
from tuirig.files.tensor_types import TENSOR_TYPES

_CHUNK = 1024 * 1024


@contextmanager
def part_of(path: Path, size: int) -> Iterator[BinaryIO]:
    """A file beside `path` (`*.part`) that gets its name when the block ends well.

    size: bytes that it will need. Otherwise the part is removed, and what stood there stays.
    Raises TuirigError for a full or unwritable disk, and while another tuirig writes the file.
    """
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "ab") as file:
            _lock(file, part, path)
            try:
                file.truncate(0)
                _require_room(path.parent, size)
                yield file
                file.flush()
                os.fsync(file.fileno())
                put_in_place(part, path)
            except BaseException:
                part.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise TuirigError(
            f"{path} can't be written: {error.strerror or error}",
            hint="free some space, or choose another folder",
        ) from None


def _lock(file: BinaryIO, part: Path, path: Path) -> None:
    """Make sure that nobody else writes the part, and that it has not got its name meanwhile."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = part.exists() and os.path.samestat(part.stat(), os.fstat(file.fileno()))
    except BlockingIOError:
        alone = False
    if not alone:
        raise TuirigError(f"another tuirig is writing {path}", hint="wait until it is done")


def _require_room(folder: Path, size: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < size:
        raise TuirigError(
            f"the file needs {size / 1e6:.0f} MB in {folder}; {free / 1e6:.0f} MB are free",
            hint="free some space, or choose another folder",
        )


def _size(tensor: LaidTensor, kind: int) -> int:
    """Bytes of a tensor's data in an encoding."""
    into = TENSOR_TYPES[kind]
    return tensor.count // into.block * into.size


def header(layout: Layout, kinds: Mapping[str, int]) -> tuple[bytes, bytes, int]:
    """(what comes before the keys, what comes after them, bytes of the whole file).

    kinds: GGML's number of a tensor's new encoding; the others stay as they are. Data follows in
    the order of the template's data, each tensor's padded to the alignment.
    """
    offsets = {}
    end = 0
    for tensor in sorted(layout.tensors, key=lambda tensor: tensor.start):
        offsets[tensor.name] = end
        end += aligned(_size(tensor, kinds.get(tensor.name, tensor.kind)), layout.alignment)
    before = (
        MAGIC
        + layout.version.to_bytes(4, "little")
        + len(layout.tensors).to_bytes(8, "little")
        + layout.key_count.to_bytes(8, "little")
    )
    after = b"".join(
        _described(tensor, kinds.get(tensor.name, tensor.kind), offsets[tensor.name])
        for tensor in layout.tensors
    )
    length = len(before) + layout.keys_size + len(after)
    after += padding(length, layout.alignment)
    return before, after, aligned(length, layout.alignment) + end


def _described(tensor: LaidTensor, kind: int, offset: int) -> bytes:
    name = tensor.name.encode()
    return b"".join(
        (
            len(name).to_bytes(8, "little"),
            name,
            len(tensor.shape).to_bytes(4, "little"),
            *(size.to_bytes(8, "little") for size in tensor.shape),
            kind.to_bytes(4, "little"),
            offset.to_bytes(8, "little"),
        )
    )


def copied(path: Path, start: int, end: int) -> Iterator[bytes]:
    """Bytes of a file, piece by piece."""
    with open(path, "rb", buffering=0) as file:
        file.seek(start)
        while start < end:
            data = file.read(min(end - start, _CHUNK))
            if not data:
                raise TuirigError(f"{path} became shorter while it was read", hint="try again")
            start += len(data)
            yield data


def padding(position: int, alignment: int) -> bytes:
    """What brings a position to the next multiple."""
    return bytes(aligned(position, alignment) - position)
