"""Rig texts that tests change."""

from __future__ import annotations

RIG = """\
name = "box-e4b"
card = "NVIDIA GeForce RTX 3050"

[target]
path = "~/models/target.gguf"

[[drafter]]
format = "q4_0"
type = "draft-mtp"
path = "drafter-q4_0.gguf"

[[drafter]]
format = "inside"
type = "draft-mtp"

[[drafter]]
format = "ngram"
type = "ngram-simple"

[[drafter]]
name = "cache"
format = "ngram"
type = "ngram-cache"

[server]
program = "llama-server"
args = [
    "-ngl", "99",
    "-c", "8192",
]
env = { GGML_VK_VISIBLE_DEVICES = "0" }

[tune]
lengths = [0, 1, 2, 3]
"""


def changed(old: str, new: str, text: str = RIG) -> str:
    """The text with one place changed; the place has to be there."""
    assert old in text, old
    return text.replace(old, new, 1)


def line_of(part: str, text: str, nth: int = 1) -> int:
    """The number of the nth line that contains a part."""
    lines = [number for number, line in enumerate(text.splitlines(), 1) if part in line]
    return lines[nth - 1]
