"""The parts of a GGUF that a repack keeps: its key/value region as bytes, its list of tensors.

Format: github.com/ggml-org/ggml/blob/master/docs/gguf.md. Keys are walked over, not understood,
so that an architecture of any name will do. Nothing that a file says is believed unchecked.
"""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from tuirig.errors import MissingError, TuirigError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT_KEY = b"general.alignment"
_SPLIT_KEY = b"split.count"
_DEFAULT_ALIGNMENT = 32
_LARGEST_ALIGNMENT = 1 << 20
_STRING, _ARRAY = 8, 9
#: Bytes of a value, by GGUF's number of its type.
_SCALARS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_UNSIGNED = (0, 2, 4, 10)
_MOST_DIMENSIONS = 4
_DEEPEST = 4


@dataclass(frozen=True)
class TensorType:
    """A way of encoding values: `block` of them in `size` bytes. number: GGML's."""

    name: str
    number: int
    block: int
    size: int


F32 = TensorType("F32", 0, 1, 4)
F16 = TensorType("F16", 1, 1, 2)
Q4_0 = TensorType("Q4_0", 2, 32, 18)
Q8_0 = TensorType("Q8_0", 8, 32, 34)
BF16 = TensorType("BF16", 30, 1, 2)
#: (name, shape, number of the type, offset).
_Described: TypeAlias = tuple[bytes, tuple[int, ...], int, int]
_TYPES = {kind.number: kind for kind in (F32, F16, Q4_0, Q8_0, BF16)}


@dataclass(frozen=True)
class LaidTensor:
    """A tensor of a GGUF. shape: the row's length first. start: its first byte in the file.

    type is None for a type that is only ever copied; size then reaches to the next tensor.
    """

    raw_name: bytes
    shape: tuple[int, ...]
    number: int
    start: int
    size: int

    @property
    def name(self) -> str:
        """The name as text."""
        return self.raw_name.decode(errors="replace")

    @property
    def type(self) -> TensorType | None:
        """Its encoding, where its values can be read."""
        return _TYPES.get(self.number)

    @property
    def type_name(self) -> str:
        """For people."""
        return self.type.name if self.type else f"GGML type {self.number}"

    @property
    def count(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """A GGUF's parts. keys: the region's first byte and the one after its last.

    tensors: in the order of the file's list.
    """

    path: Path
    version: int
    key_count: int
    keys: tuple[int, int]
    alignment: int
    tensors: tuple[LaidTensor, ...]


def read_layout(path: Path) -> Layout:
    """The parts of a GGUF. Raises MissingError, or TuirigError for what is none or damaged."""
    try:
        with open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise TuirigError(f"{path} is empty")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _read(_Cursor(path, data))
    except FileNotFoundError:
        raise MissingError(f"no file {path}") from None
    except OSError as error:
        raise TuirigError(f"{path} can't be read: {error.strerror}") from None


class _Cursor:
    """Reads little-endian values one after the other, never past the end."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.at = 0
        self._data = data
        self.size = len(data)

    def skip(self, count: int) -> None:
        if count > self.size - self.at:
            raise _damaged(self.path, "it ends within its header")
        self.at += count

    def take(self, count: int) -> bytes:
        self.skip(count)
        return self._data[self.at - count : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def text(self) -> bytes:
        return self.take(self.number(8))

    def skip_value(self, kind: int, depth: int = 0) -> None:
        if kind in _SCALARS:
            self.skip(_SCALARS[kind])
        elif kind == _STRING:
            self.skip(self.number(8))
        elif kind == _ARRAY and depth < _DEEPEST:
            inner, count = self.number(4), self.number(8)
            if inner in _SCALARS:
                self.skip(_SCALARS[inner] * count)
                return
            for _ in range(count):  # ends with the file, for each takes at least 8 bytes
                self.skip_value(inner, depth + 1)
        else:
            raise _damaged(self.path, f"it has a value of the unknown type {kind}")


def _read(cursor: _Cursor) -> Layout:
    path = cursor.path
    if cursor.take(4) != _MAGIC:
        raise TuirigError(f"{path} is not a GGUF")
    version = cursor.number(4)
    if version not in _VERSIONS:
        raise TuirigError(
            f"{path} is a GGUF of version {version}; versions 2 and 3 are known",
            hint="convert it again with a current llama.cpp",
        )
    tensor_count, key_count = cursor.number(8), cursor.number(8)
    start = cursor.at
    numbers = _walk_keys(cursor, key_count)
    if numbers[_SPLIT_KEY] > 1:
        raise TuirigError(
            f"{path} is one of {numbers[_SPLIT_KEY]} files of a model",
            hint="merge them first: llama-gguf-split --merge",
        )
    alignment = numbers[_ALIGNMENT_KEY]
    if not 1 <= alignment <= _LARGEST_ALIGNMENT or alignment & (alignment - 1):
        raise _damaged(path, f"its alignment is {alignment}")
    end = cursor.at
    tensors = tuple(_described(cursor, tensor_count))
    data_start = aligned(cursor.at, alignment)
    return Layout(
        path=path,
        version=version,
        key_count=key_count,
        keys=(start, end),
        alignment=alignment,
        tensors=_placed(path, tensors, data_start, cursor.size, alignment),
    )


def _walk_keys(cursor: _Cursor, count: int) -> dict[bytes, int]:
    """The numbers that matter here; the rest is walked over."""
    numbers = {_ALIGNMENT_KEY: _DEFAULT_ALIGNMENT, _SPLIT_KEY: 1}
    for _ in range(count):
        key, kind = cursor.text(), cursor.number(4)
        if key in numbers and kind in _UNSIGNED:
            numbers[key] = cursor.number(_SCALARS[kind])
        else:
            cursor.skip_value(kind)
    return numbers


def _described(cursor: _Cursor, count: int) -> Iterator[_Described]:
    """The list of tensors, as far as it can be checked by itself."""
    for _ in range(count):
        name = cursor.text()
        dimensions = cursor.number(4)
        if not 1 <= dimensions <= _MOST_DIMENSIONS:
            raise _damaged(cursor.path, f"a tensor with {dimensions} dimensions")
        shape = tuple(cursor.number(8) for _ in range(dimensions))
        yield name, shape, cursor.number(4), cursor.number(8)


def _placed(
    path: Path,
    described: Sequence[_Described],
    data_start: int,
    file_size: int,
    alignment: int,
) -> tuple[LaidTensor, ...]:
    """Every tensor with its place, each of which lies inside the file."""
    if len({name for name, *_ in described}) < len(described):
        raise _damaged(path, "a tensor stands twice")
    starts = sorted({data_start + offset for *_, offset in described})
    following = dict(pairwise([*starts, max(file_size, data_start)]))
    placed = []
    for name, shape, number, offset in described:
        start = data_start + offset
        size = following[start] - start
        tensor = LaidTensor(name, shape, number, start, size)
        kind = tensor.type
        if kind is not None:
            if shape[0] % kind.block:
                raise _damaged(
                    path, f"{tensor.name}: a row is no whole number of {kind.name} blocks"
                )
            tensor = replace(tensor, size=tensor.count // kind.block * kind.size)
        if offset % alignment or not 0 <= tensor.size <= size:
            raise _damaged(path, f"{tensor.name}: its data lies outside the file")
        placed.append(tensor)
    return tuple(placed)


def aligned(position: int, alignment: int) -> int:
    """The next multiple."""
    return -(-position // alignment) * alignment


def _damaged(path: Path, what: str) -> TuirigError:
    return TuirigError(f"{path} is damaged: {what}", hint="download or convert it again")
