"""Numbers as files store them: bf16, and the blocks of GGUF's types, as float32.

Values come and go as columns of 32 ([32, groups]): a group is what Q4_0 and Q8_0 give one step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

#: Values that share a step.
GROUP = 32
#: How far rounding to fp16 may move a number: a share of it, or an amount below 2**-14.
_FP16_MOVES = 2.0**-11
_FP16_MOVES_SUBNORMAL = 2.0**-25


def from_bf16(bits: NDArray[np.uint16]) -> Floats:
    """bf16 is the upper half of a float32."""
    wide = bits.astype(np.uint32)
    wide <<= np.uint32(16)
    return wide.view(np.float32)


def rounded_to_bf16(values: Floats) -> Floats:
    """The nearest bf16 of each value, ties to the even one; for finite values in range."""
    bits = values.view(np.uint32)
    rounded = bits >> np.uint32(16)
    rounded &= np.uint32(1)
    rounded += np.uint32(0x7FFF)
    rounded += bits
    rounded &= np.uint32(0xFFFF0000)
    return rounded.view(np.float32)


def columns(flat: NDArray[Any]) -> NDArray[Any]:
    """A run of values as [32, groups]: group after group."""
    return np.ascontiguousarray(flat.reshape(-1, GROUP).T)


def decode(data: bytes, type_name: str) -> tuple[Floats, Floats]:
    """(values [32, groups], how far each may be from what was encoded) of whole groups.

    type_name: f32, f16, bf16, q8_0 or q4_0. The allowance is half a step of the encoding, and for
    q8_0 what fp16 adds by rounding the step.
    """
    return _DECODERS[type_name](np.frombuffer(data, np.uint8))


def _from_f32(data: Bytes) -> tuple[Floats, Floats]:
    values: Floats = columns(data.view("<f4"))
    return values, np.zeros_like(values)


def _from_f16(data: Bytes) -> tuple[Floats, Floats]:
    values: Floats = columns(data.view("<f2")).astype(np.float32)
    moved = np.abs(values) * np.float32(_FP16_MOVES)
    return values, np.maximum(moved, np.float32(_FP16_MOVES_SUBNORMAL))


def _from_bf16(data: Bytes) -> tuple[Floats, Floats]:
    values = from_bf16(columns(data.view("<u2")))
    return values, np.abs(values) * np.float32(2.0**-8)


def _from_q8_0(data: Bytes) -> tuple[Floats, Floats]:
    blocks = data.reshape(-1, 2 + GROUP)
    levels = np.ascontiguousarray(blocks[:, 2:].T).view(np.int8).astype(np.float32)
    steps = _steps(blocks)
    values: Floats = levels * steps
    size = np.abs(steps)
    moved = np.maximum(size * np.float32(_FP16_MOVES), np.float32(_FP16_MOVES_SUBNORMAL))
    allowance = np.abs(levels, out=levels)
    allowance *= moved
    allowance += size * np.float32(0.5 + 2.0**-10)
    return values, allowance


def _from_q4_0(data: Bytes) -> tuple[Floats, Floats]:
    blocks = data.reshape(-1, 2 + GROUP // 2)
    nibbles = np.ascontiguousarray(blocks[:, 2:].T)
    levels = np.concatenate([nibbles & np.uint8(15), nibbles >> np.uint8(4)]).view(np.int8)
    steps = _steps(blocks)
    values: Floats = (levels - np.int8(8)) * steps
    return values, np.broadcast_to(np.abs(steps) / np.float32(2), values.shape)


def _steps(blocks: Bytes) -> Floats:
    return np.ascontiguousarray(blocks[:, :2]).view("<f2")[:, 0].astype(np.float32)


_DECODERS: dict[str, Callable[[Bytes], tuple[Floats, Floats]]] = {
    "f32": _from_f32,
    "f16": _from_f16,
    "bf16": _from_bf16,
    "q8_0": _from_q8_0,
    "q4_0": _from_q4_0,
}


def q4_0_bytes(steps: NDArray[np.float16], levels: Floats) -> bytes:
    """Blocks of 18 bytes: the step, then element i in the low and i + 16 in the high nibble."""
    nibbles = (levels + np.float32(8)).astype(np.uint8)
    half = GROUP // 2
    blocks = np.empty((levels.shape[1], 2 + half), np.uint8)
    blocks[:, :2] = steps.astype("<f2").reshape(-1, 1).view(np.uint8)
    blocks[:, 2:] = (nibbles[:half] | (nibbles[half:] << np.uint8(4))).T
    return blocks.tobytes()


def bf16_bytes(values: Floats) -> bytes:
    """The upper halves of float32 values that are bf16."""
    return (values.T.view(np.uint32) >> np.uint32(16)).astype("<u2").tobytes()
