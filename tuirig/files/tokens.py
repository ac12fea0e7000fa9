"""Comparing the token lists of two models without building them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tuirig.files.gguf import GgufError, Left
from tuirig.files.gguf_model import Model
from tuirig.files.sources import Source, opened

_CHUNK = 256 * 1024
_LONGEST_TOKEN = 65_536


@dataclass(frozen=True)
class Difference:
    """The first token that differs. target, drafter: its texts."""

    number: int
    target: str
    drafter: str


def first_difference(target: Model, drafter: Model, start: int) -> Difference | None:
    """The first token from `start` on with another text, in what both lists have.

    Reads the lists again only where their hashes differ. Raises TuirigError.
    """
    one, other = target.tokens, drafter.tokens
    if one is None or other is None or (one.sha256, one.count) == (other.sha256, other.count):
        return None
    with opened(target.reference) as first, opened(drafter.reference) as second:
        pairs = zip(strings(first, one), strings(second, other), strict=False)
        for number, (text, its_text) in enumerate(pairs):
            if number >= start and text != its_text:
                return Difference(number, _shown(text), _shown(its_text))
    return None


def strings(source: Source, left: Left) -> Iterator[bytes]:
    """The strings of a list that was left in the file. Raises GgufError, TuirigError."""
    window, start, at = b"", left.offset, 0
    for _ in range(left.count):
        if len(window) - at < 8 + _LONGEST_TOKEN and start + len(window) < left.offset + left.size:
            start, kept = start + at, window[at:]
            window, at = kept + source.read(start + len(kept), _CHUNK), 0
        if len(window) - at < 8:
            raise GgufError(source.label, "its tokens changed while they were read", at=start + at)
        length = struct.unpack_from("<Q", window, at)[0]
        if length > min(_LONGEST_TOKEN, len(window) - at - 8):
            raise GgufError(source.label, f"a token claims {length:,} bytes", at=start + at)
        at += 8 + length
        yield window[at - length : at]


def _shown(text: bytes) -> str:
    shown = repr(text.decode("utf-8", "replace"))
    return shown if len(shown) <= 40 else f"{shown[:39]}…"
