"""GGUF headers that were damaged on purpose, for the tests and the long fuzzing run."""

from __future__ import annotations

import struct
from functools import cache

from hypothesis import strategies as st

from tests.files import gguf_bytes as g

_EVIL = (0, 1, 2, 7, 8, 9, 31, 255, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1)
_EVIL_LONG = (*_EVIL, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)


@cache
def plain_header() -> bytes:
    """A sound header with every kind of entry, small enough to damage every byte of."""
    keys: dict[str, g.Typed] = {
        "general.architecture": g.string("llama"),
        "general.alignment": g.u32(32),
        "llama.block_count": g.u32(2),
        "llama.attention.head_count_kv": g.numbers(g.U32, "I", [2, 1]),
        "llama.attention.sliding_window_pattern": g.numbers(g.BOOL, "?", [True, False]),
        "llama.attention.layer_norm_rms_epsilon": g.f32(1e-5),
        "tokenizer.ggml.model": g.string("gpt2"),
        "tokenizer.ggml.tokens": g.strings(["<s>", "a", "", "ä" * 70, "end"]),
        "tokenizer.ggml.merges": g.strings(["a b", "c d"]),
        "tokenizer.ggml.add_bos_token": g.flag(True),
        "split.count": (2, struct.pack("<H", 1)),
    }
    tensors = [
        g.tensor("token_embd.weight", (64, 5), 0, 0),
        g.tensor("blk.0.attn_q.weight", (64, 64), 2, 1280),
        g.tensor("blk.1.ffn_up.weight", (256, 2, 3), 12, 3584),
    ]
    return g.header(keys, tensors)


def mutated(data: st.DataObject) -> bytes:
    """The plain header after one to four changes of the kind that break readers."""
    header = bytearray(plain_header())
    for _ in range(data.draw(st.integers(1, 4))):
        _change(header, data)
    return bytes(header)


def _change(header: bytearray, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, max(0, len(header) - 1)))
    kind = data.draw(st.integers(0, 6))
    if kind == 0 and header:
        header[place] = data.draw(st.integers(0, 255))
    elif kind == 1 and len(header) >= place + 4:
        struct.pack_into("<I", header, place, data.draw(st.sampled_from(_EVIL)))
    elif kind == 2 and len(header) >= place + 8:
        struct.pack_into("<Q", header, place, data.draw(st.sampled_from(_EVIL_LONG)))
    elif kind == 3:
        del header[place:]
    elif kind == 4:
        del header[place : place + data.draw(st.integers(1, 16))]
    elif kind == 5:
        header[place:place] = data.draw(st.binary(min_size=1, max_size=16))
    else:
        size = data.draw(st.integers(1, 64))
        start = data.draw(st.integers(0, max(0, len(header) - size)))
        header[place:place] = header[start : start + size]
