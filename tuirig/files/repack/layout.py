"""The parts of a GGUF that a repack keeps: its keys as bytes, its list of tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from tuirig.errors import TuirigError
from tuirig.files.gguf import KEYS_START, Header, Tensor, read_header
from tuirig.files.tensor_types import TENSOR_TYPES, TensorType

#: GGML's numbers of the encodings whose values are read and written here.
F32, F16, Q4_0, Q8_0, BF16 = 0, 1, 2, 8, 30
READABLE = (F32, F16, Q4_0, Q8_0, BF16)


@dataclass(frozen=True)
class LaidTensor:
    """A tensor of a GGUF. shape: the row's length first. kind: GGML's number of its encoding.

    start, size: its bytes in the file.
    """

    name: str
    shape: tuple[int, ...]
    kind: int
    start: int
    size: int

    @property
    def type(self) -> TensorType:
        """Its encoding."""
        return TENSOR_TYPES[self.kind]

    @property
    def count(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True)
class Layout:
    """A GGUF's parts. keys_end: the byte after the last key. tensors: in the file's order."""

    path: Path
    version: int
    key_count: int
    keys_end: int
    alignment: int
    tensors: tuple[LaidTensor, ...]

    @property
    def keys_size(self) -> int:
        """Bytes of the keys."""
        return self.keys_end - KEYS_START


def read_layout(path: Path) -> Layout:
    """The parts of a whole GGUF. Raises MissingError, or TuirigError for what is none or cut."""
    header = read_header(path)
    shards = header.keys.get("split.count", 1)
    if isinstance(shards, int) and shards > 1:
        raise TuirigError(
            f"{path} is one of {shards} files of a model",
            hint="merge them first: llama-gguf-split --merge",
        )
    return Layout(
        path=path,
        version=header.version,
        key_count=len(header.keys),
        keys_end=header.keys_end,
        alignment=header.alignment,
        tensors=tuple(_laid(path, header, tensor) for tensor in header.tensors),
    )


def _laid(path: Path, header: Header, tensor: Tensor) -> LaidTensor:
    size = tensor.size
    if size is None:
        raise TuirigError(
            f"{path}: {tensor.name} has the unknown {tensor.type_name}",
            hint="a newer tuirig may know it",
        )
    start = header.data_start + tensor.offset
    if start + size > header.file_size:
        raise TuirigError(
            f"{path} is cut short: {tensor.name} lies outside of it",
            hint="download or convert it again",
        )
    return LaidTensor(tensor.name, tensor.shape or (1,), tensor.kind, start, size)


def aligned(position: int, alignment: int) -> int:
    """The next multiple."""
    return -(-position // alignment) * alignment
