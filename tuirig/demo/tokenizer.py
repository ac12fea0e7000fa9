"""The tokenizer of the miniature models: the first ids of SmolLM2's byte-level BPE vocabulary."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from gguf import GGUFReader, GGUFWriter

#: How text is cut before merging; for plain English prose it agrees with llama.cpp's "smollm".
_PIECE = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d| ?[^\s\w]+|\s+(?!\S)|\s+|_")
_NEVER = 1 << 30


class Tokenizer:
    """A byte-level BPE vocabulary cut to its first ids: the special tokens, all bytes, merges.

    Raises KeyError when the GGUF has no such tokenizer.
    """

    def __init__(self, gguf_file: Path, size: int) -> None:
        fields = GGUFReader(gguf_file).fields

        def value(key: str) -> Any:
            return fields[key].contents()

        self.tokens: list[str] = value("tokenizer.ggml.tokens")[:size]
        self._ids = {token: index for index, token in enumerate(self.tokens)}
        self._types: list[int] = value("tokenizer.ggml.token_type")[:size]
        self._merges: list[str] = [
            merge
            for merge in value("tokenizer.ggml.merges")
            if {*merge.split(" "), merge.replace(" ", "")} <= self._ids.keys()
        ]
        self._ranks = {_pair(merge): rank for rank, merge in enumerate(self._merges)}
        self._copied = {
            key: value(f"tokenizer.{key}")
            for key in (
                "ggml.model",
                "ggml.pre",
                "ggml.bos_token_id",
                "ggml.eos_token_id",
                "ggml.unknown_token_id",
                "ggml.padding_token_id",
                "chat_template",
            )
        }
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
