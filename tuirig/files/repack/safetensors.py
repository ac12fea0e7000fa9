"""Tensors of a Hugging Face snapshot: where they lie in its safetensors files.

Format (github.com/huggingface/safetensors): 8 bytes with the header's length, the header (JSON:
name -> dtype, shape, data_offsets), the data. A model in several files has an index, JSON with
`weight_map`: name -> file. Nothing that a file says is believed before it is checked.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from tuirig.errors import MissingError, TuirigError

INDEX = "model.safetensors.index.json"
_SUFFIX = ".safetensors"
#: Bytes of a value, of the types that hold weights.
SIZES = {"BF16": 2, "F16": 2, "F32": 4}
#: Of the others; they are listed, never read.
_OTHER_SIZES = {"F64": 8, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2}
#: Bytes; the largest known headers have a few millions.
_LARGEST_HEADER = 25_000_000


@dataclass(frozen=True)
class SourceTensor:
    """A tensor of a snapshot. shape: rows first. start: its first byte in the file."""

    name: str
    file: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    size: int

    @property
    def count(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


def read_snapshot(path: Path) -> dict[str, SourceTensor]:
    """Every tensor of a snapshot folder, or of one safetensors file, by name.

    Raises MissingError where there is none, TuirigError for a file that is damaged or unreadable.
    """
    try:
        return _gather(path)
    except OSError as error:
        raise TuirigError(f"{error.filename or path} can't be read: {error.strerror}") from None


def _gather(path: Path) -> dict[str, SourceTensor]:
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise MissingError(f"no snapshot {path}", hint="give the folder of its safetensors")
        return _without_twins(_read_header(path))
    index = path / INDEX
    if os.path.exists(index):
        return _by_index(index)
    files = sorted(path.glob(f"*{_SUFFIX}"))
    if not files:
        raise MissingError(
            f"no {_SUFFIX} file in {path}",
            hint="a snapshot holds model.safetensors, or several files and their index",
        )
    return _without_twins(tensor for file in files for tensor in _read_header(file))


def _without_twins(tensors: Iterable[SourceTensor]) -> dict[str, SourceTensor]:
    found: dict[str, SourceTensor] = {}
    for tensor in tensors:
        if tensor.name in found:
            raise TuirigError(
                f"{tensor.name} stands in {found[tensor.name].file.name} and {tensor.file.name}",
                hint=f"keep only the files of one checkpoint, or their {INDEX}",
            )
        found[tensor.name] = tensor
    return found


def _by_index(index: Path) -> dict[str, SourceTensor]:
    if index.stat().st_size > _LARGEST_HEADER:
        raise _damaged(index, "it is too large for an index")
    weight_map = _parse(index.read_bytes(), str(index)).get("weight_map")
    if not isinstance(weight_map, dict) or not all(
        isinstance(file, str) for file in weight_map.values()
    ):
        raise _damaged(index, "it has no weight_map of names to files")
    found: dict[str, SourceTensor] = {}
    for name in sorted(set(weight_map.values())):
        file = index.with_name(name) if _is_plain(name) else None
        if file is None:
            raise _damaged(index, f"{name!r} is not the name of a file beside it")
        if not os.path.exists(file):
            raise MissingError(
                f"{file.name} is missing in {index.parent}", hint="download the whole snapshot"
            )
        found |= {
            tensor.name: tensor
            for tensor in _read_header(file)
            if weight_map.get(tensor.name) == name
        }
    absent = weight_map.keys() - found.keys()
    if absent:
        name = min(absent)
        raise _damaged(index, f"{name} does not stand in {weight_map[name]}")
    return found


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and not set(name) & set("/\\\0")


def _read_header(path: Path) -> Iterator[SourceTensor]:
    with open(path, "rb") as file:
        whole = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if whole < 8 or length > min(whole - 8, _LARGEST_HEADER):
            raise _damaged(path, "its header is longer than the file")
        header = _parse(file.read(length), str(path))
    for name, entry in header.items():
        if name != "__metadata__":
            yield _tensor(path, name, entry, 8 + length, whole)


def _tensor(path: Path, name: str, entry: Any, data_start: int, whole: int) -> SourceTensor:
    if not isinstance(entry, dict):
        raise _damaged(path, f"{name}: not a description of a tensor")
    dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets"))
    if not isinstance(dtype, str) or not _are_sizes(shape) or not _are_sizes(offsets):
        raise _damaged(path, f"{name}: dtype, shape or data_offsets is wrong")
    if len(offsets) != 2 or not offsets[0] <= offsets[1] <= whole - data_start:
        raise _damaged(path, f"{name}: its data lies outside the file")
    size = offsets[1] - offsets[0]
    each = SIZES.get(dtype) or _OTHER_SIZES.get(dtype)
    if each is not None and math.prod(shape) * each != size:
        raise _damaged(path, f"{name}: its shape and its data have different sizes")
    return SourceTensor(
        name=name,
        file=path,
        dtype=dtype,
        shape=tuple(shape),
        start=data_start + offsets[0],
        size=size,
    )


def _are_sizes(value: Any) -> TypeGuard[list[int]]:
    """A short list of whole numbers of at most 64 bits."""
    return (
        isinstance(value, list)
        and len(value) <= 8
        and all(type(number) is int and 0 <= number < 1 << 63 for number in value)
    )


def _parse(data: bytes, where: str) -> dict[str, Any]:
    """JSON as a table in which no name stands twice."""

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = dict(pairs)
        if len(names) < len(pairs):
            raise ValueError("a name stands twice")
        return names

    try:
        value = json.loads(data, object_pairs_hook=table)
    except (ValueError, RecursionError) as error:
        raise _damaged(where, f"its JSON is broken ({error})") from None
    if not isinstance(value, dict):
        raise _damaged(where, "its JSON is not a table")
    return value


def _damaged(where: str | Path, what: str) -> TuirigError:
    return TuirigError(f"{where} is damaged: {what}", hint="download it again")
