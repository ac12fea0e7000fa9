"""The tokenizer of the miniature models: the first ids of SmolLM2's byte-level BPE vocabulary."""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from gguf import GGUFWriter

from tuirig.files.gguf import Left, Value, read_header
from tuirig.files.sources import opened
from tuirig.files.tokens import strings

#: How text is cut before merging; for plain English prose it agrees with llama.cpp's "smollm".
_PIECE = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d| ?[^\s\w]+|\s+(?!\S)|\s+|_")
_NEVER = 1 << 30
_COPIED = (
    "ggml.model",
    "ggml.pre",
    "ggml.bos_token_id",
    "ggml.eos_token_id",
    "ggml.unknown_token_id",
    "ggml.padding_token_id",
    "chat_template",
)


class Tokenizer:
    """A byte-level BPE vocabulary cut to its first ids: the special tokens, all bytes, merges.

    Raises KeyError when the GGUF has no such tokenizer.
    """

    def __init__(self, gguf_file: Path, size: int) -> None:
        keys = read_header(gguf_file).keys
        with opened(gguf_file) as source:

            def texts(key: str) -> list[str]:
                return [text.decode() for text in strings(source, _left(keys, key))]

            types = _left(keys, "tokenizer.ggml.token_type")
            all_types = struct.iter_unpack("<i", source.read(types.offset, types.size))
            self.tokens = texts("tokenizer.ggml.tokens")[:size]
            self._types = [kind for (kind,) in islice(all_types, size)]
            self._ids = {token: index for index, token in enumerate(self.tokens)}
            self._merges = [
                merge
                for merge in texts("tokenizer.ggml.merges")
                if {*_pair(merge), merge.replace(" ", "")} <= self._ids.keys()
            ]
        self._ranks = {_pair(merge): rank for rank, merge in enumerate(self._merges)}
        self._copied: dict[str, Any] = {key: keys[f"tokenizer.{key}"] for key in _COPIED}
        self._letters = _byte_letters()
        self._known_pieces: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return [token for match in _PIECE.finditer(text) for token in self._piece(match.group())]

    def _piece(self, piece: str) -> list[int]:
        if piece not in self._known_pieces:
            parts = [self._letters[byte] for byte in piece.encode()]
            while len(parts) > 1:
                ranks = [self._ranks.get(pair, _NEVER) for pair in pairwise(parts)]
                best = min(ranks)
                if best == _NEVER:
                    break
                at = ranks.index(best)
                parts[at : at + 2] = [parts[at] + parts[at + 1]]
            self._known_pieces[piece] = [self._ids[part] for part in parts if part in self._ids]
        return self._known_pieces[piece]

    def write_to(self, writer: GGUFWriter) -> None:
        """Add the tokenizer's keys to a GGUF."""
        writer.add_tokenizer_model(self._copied["ggml.model"])
        writer.add_tokenizer_pre(self._copied["ggml.pre"])
        writer.add_token_list(self.tokens)
        writer.add_token_types(self._types)
        writer.add_token_merges(self._merges)
        writer.add_bos_token_id(self._copied["ggml.bos_token_id"])
        writer.add_eos_token_id(self._copied["ggml.eos_token_id"])
        writer.add_unk_token_id(self._copied["ggml.unknown_token_id"])
        writer.add_pad_token_id(self._copied["ggml.padding_token_id"])
        writer.add_add_bos_token(False)
        writer.add_add_space_prefix(False)
        writer.add_chat_template(self._copied["chat_template"])


def _left(keys: Mapping[str, Value], key: str) -> Left:
    """A list that the header's reader left in the file."""
    value = keys[key]
    if not isinstance(value, Left):
        raise KeyError(f"{key} is too short to be a vocabulary's")
    return value


def _pair(merge: str) -> tuple[str, str]:
    left, right = merge.split(" ")
    return left, right


def _byte_letters() -> dict[int, str]:
    """The printable letter that stands for each byte in a byte-level vocabulary (GPT-2's table)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in letters)
    letters.update({byte: chr(256 + index) for index, byte in enumerate(others)})
    return letters
