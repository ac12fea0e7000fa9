"""Names of models in several files: `name-00001-of-00003.gguf` (llama.cpp's `gguf-split`)."""

from __future__ import annotations

import re
from pathlib import Path

_SHARD = re.compile(
    r"(?P<stem>.*)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})(?P<suffix>\.gguf)", re.IGNORECASE
)


def shards_of(path: Path) -> tuple[Path, ...]:
    """Every file of the model that a path names, itself included; just itself if it is whole.

    The files need not exist.
    """
    name = _SHARD.fullmatch(path.name)
    if name is None or not 1 <= int(name["number"]) <= int(name["count"]):
        return (path,)
    return tuple(
        path.with_name(f"{name['stem']}-{number:05}-of-{name['count']}{name['suffix']}")
        for number in range(1, int(name["count"]) + 1)
    )


def model_name(file: str) -> str:
    """A model's name from its file name: without `.gguf` and without a shard's number."""
    name = _SHARD.fullmatch(file)
    return name["stem"] if name else re.sub(r"\.gguf$", "", file, flags=re.IGNORECASE)
