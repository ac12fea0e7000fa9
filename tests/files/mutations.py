"""GGUF headers that were damaged on purpose, for the tests and the long fuzzing run."""

from __future__ import annotations

import random
import struct
from functools import cache

from hypothesis import strategies as st

from tests.files import gguf_bytes as g

_EVIL = (
    0, 1, 2, 7, 8, 9, 31, 255, 65535, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**62,
    2**63 - 1, 2**63, 2**64 - 1,
)  # fmt: skip


@cache
def plain_header(architecture: str = "llama") -> bytes:
    """A sound header with every kind of entry, small enough to damage every byte of."""
    own: dict[str, g.Typed] = {
        "block_count": g.u32(2),
        "embedding_length": g.u32(64),
        "nextn_predict_layers": g.u32(1),
        "full_attention_interval": g.u32(2),
        "target_layers": g.numbers(g.U32, "I", [1, 2, 2]),
        "ssm.state_size": g.u32(8),
        "attention.head_count_kv": g.numbers(g.U32, "I", [2, 1]),
        "attention.sliding_window": g.u32(16),
        "attention.sliding_window_pattern": g.numbers(g.BOOL, "?", [True, False]),
        "attention.layer_norm_rms_epsilon": g.f32(1e-5),
    }
    keys: dict[str, g.Typed] = {
        "general.architecture": g.string(architecture),
        "general.alignment": g.u32(32),
        **{f"{architecture}.{name}": value for name, value in own.items()},
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
    """The plain header after a few changes that hypothesis chooses (and can make smaller)."""
    header = bytearray(plain_header())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(header) - 1)))
        _change(
            header,
            place,
            kind=data.draw(st.integers(0, 6)),
            number=data.draw(st.sampled_from(_EVIL)),
            piece=data.draw(st.binary(min_size=1, max_size=16)),
        )
    return bytes(header)


def damaged(sound: bytes, chance: random.Random) -> bytes:
    """The same with a random generator, which is much quicker."""
    header = bytearray(sound)
    for _ in range(chance.randint(1, 4)):
        _change(
            header,
            chance.randrange(max(1, len(header))),
            kind=chance.randint(0, 6),
            number=chance.choice(_EVIL),
            piece=chance.randbytes(chance.randint(1, 16)),
        )
    return bytes(header)


def _change(header: bytearray, place: int, *, kind: int, number: int, piece: bytes) -> None:
    """One change of a kind that breaks readers."""
    if kind == 0 and header:
        header[place] = piece[0]
    elif kind == 1 and len(header) >= place + 4:
        struct.pack_into("<I", header, place, number & 0xFFFF_FFFF)
    elif kind == 2 and len(header) >= place + 8:
        struct.pack_into("<Q", header, place, number)
    elif kind == 3:
        del header[place:]
    elif kind == 4:
        del header[place : place + len(piece)]
    elif kind == 5:
        header[place:place] = piece
    else:
        start = max(0, place - 4 * len(piece))
        header[place:place] = header[start:place]
