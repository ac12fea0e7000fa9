"""Writing GGUF headers byte by byte, right and wrong ones."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

Typed: TypeAlias = tuple[int, bytes]

U8, U32, F32, BOOL, STRING, ARRAY, U64 = 0, 4, 6, 7, 8, 9, 10


def text(value: str | bytes) -> bytes:
    """A string with its length in front."""
    data = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(data)) + data


def u32(value: int) -> Typed:
    return U32, struct.pack("<I", value)


def f32(value: float) -> Typed:
    return F32, struct.pack("<f", value)


def flag(value: bool) -> Typed:
    return BOOL, bytes([value])


def string(value: str | bytes) -> Typed:
    return STRING, text(value)


def strings(values: Iterable[str | bytes]) -> Typed:
    items = [text(value) for value in values]
    return ARRAY, struct.pack("<IQ", STRING, len(items)) + b"".join(items)


def numbers(kind: int, letter: str, values: Sequence[int | float]) -> Typed:
    return ARRAY, struct.pack(f"<IQ{len(values)}{letter}", kind, len(values), *values)


def tensor(name: str | bytes, shape: Sequence[int], kind: int, offset: int) -> bytes:
    packed = struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)
    return text(name) + packed


def header(
    keys: Mapping[str, Typed],
    tensors: Sequence[bytes] = (),
    *,
    version: int = 3,
    magic: bytes = b"GGUF",
) -> bytes:
    """A header; the weights, padded to 32 bytes, come after it."""
    parts = [magic, struct.pack("<IQQ", version, len(tensors), len(keys))]
    parts += [text(key) + struct.pack("<I", kind) + data for key, (kind, data) in keys.items()]
    data = b"".join([*parts, *tensors])
    return data + bytes(-len(data) % 32)
