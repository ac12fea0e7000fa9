"""A model as its headers tell it: all shards together, keys by their short names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tuirig.errors import MissingError
from tuirig.files.gguf import TOKENS, GgufError, Header, Left, Tensor
from tuirig.files.headers import header_of
from tuirig.files.sources import is_url, without_secrets
from tuirig.rigs.shards import shards_of

#: Bounds what a file may claim: llama.cpp knows 512 layers and experts (LLAMA_MAX_LAYERS).
MOST_LAYERS = 512

_LAYER = re.compile(r"blk\.(\d{1,6})\.")


@dataclass(frozen=True)
class Shard:
    """A file of a model. header is None if it is not there."""

    reference: str
    header: Header | None


@dataclass(frozen=True)
class Model:
    """What the headers of a model's files say. The first shard has the keys."""

    shards: tuple[Shard, ...]
    first: Header

    @property
    def reference(self) -> str:
        """The path or URL of the (first) file."""
        return self.shards[0].reference

    @property
    def label(self) -> str:
        """The file's own name."""
        return without_secrets(self.reference).rsplit("/", 1)[-1]

    @property
    def missing_shards(self) -> tuple[str, ...]:
        """Files of the model that are not there."""
        return tuple(shard.reference for shard in self.shards if shard.header is None)

    @property
    def size(self) -> int:
        """Bytes of the files that are there."""
        return sum(header.file_size for header in self.headers)

    @property
    def headers(self) -> tuple[Header, ...]:
        """The headers of the files that are there."""
        return tuple(shard.header for shard in self.shards if shard.header is not None)

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by its name."""
        return {tensor.name: tensor for header in self.headers for tensor in header.tensors}

    @cached_property
    def architecture(self) -> str:
        """`general.architecture`, "" if it is not there."""
        return self.text("general.architecture") or ""

    def text(self, key: str) -> str | None:
        """A text; `key` is the whole key."""
        value = self.first.keys.get(key)
        return value if isinstance(value, str) else None

    def flag(self, key: str) -> bool | None:
        """True or false; `key` is the whole key."""
        value = self.first.keys.get(key)
        return value if isinstance(value, bool) else None

    def whole(self, key: str) -> int | None:
        """A whole number that is not negative; `key` is the whole key."""
        value = self.first.keys.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        return None

    def number(self, name: str) -> int | None:
        """A number of the architecture: `number("block_count")`."""
        return self.whole(f"{self.architecture}.{name}")

    def numbers(self, name: str) -> tuple[int, ...] | None:
        """A list of the architecture, flags as 0 and 1."""
        value = self.first.keys.get(f"{self.architecture}.{name}")
        return tuple(int(item) for item in value) if isinstance(value, tuple) else None

    def per_layer(self, name: str, default: int = 0) -> tuple[int, ...]:
        """A value for each layer: a list, or one number for all of them."""
        count = self.blocks
        listed = self.numbers(name)
        if listed is not None:
            return (*listed, *(default,) * count)[:count]
        value = self.number(name)
        return (default if value is None else value,) * count

    @property
    def blocks(self) -> int:
        """Layers with those of an MTP head; at most MOST_LAYERS."""
        return min(self.number("block_count") or 0, MOST_LAYERS)

    @property
    def mtp_layers(self) -> int:
        """Layers of an MTP head inside, 0 without one."""
        return min(self.number("nextn_predict_layers") or 0, self.blocks)

    @property
    def width(self) -> int | None:
        """The length of an embedding."""
        return self.number("embedding_length")

    @property
    def tokens(self) -> Left | None:
        """Where the token list stands."""
        value = self.first.keys.get(TOKENS)
        return value if isinstance(value, Left) else None

    @property
    def vocabulary_size(self) -> int | None:
        """Tokens in the list, or what `vocab_size` says."""
        tokens = self.tokens
        return tokens.count if tokens is not None else self.number("vocab_size")

    @cached_property
    def has_trunk(self) -> bool:
        """Whether layers before an MTP head are there, by the tensor that llama.cpp looks for."""
        return "blk.0.attn_norm.weight" in self.tensors

    @property
    def elements(self) -> int:
        """Parameters: the values of all tensors."""
        return sum(tensor.elements for tensor in self.tensors.values())


def read_model(reference: str | Path) -> Model:
    """The headers of a model's file and of its other shards. Blocks.

    reference: a path or URL; any shard stands for the whole model. Raises GgufError for a damaged
    file, MissingError or TuirigError if it can't be read; other shards may be missing.
    """
    text = str(reference)
    first, *others = references_of(text)
    header = header_of(first)
    shards = [Shard(first, header), *(Shard(other, _header(other)) for other in others)]
    count = header.keys.get("split.count")
    if isinstance(count, int) and count > 1 and len(shards) != count:
        raise GgufError(
            without_secrets(first),
            f"it says that it is one of {count:,} shards, its name does not",
            hint="give the files their names back: name-00001-of-00003.gguf",
        )
    return Model(tuple(shards), header)


def references_of(reference: str) -> tuple[str, ...]:
    """The files of a model, the first one first."""
    if not is_url(reference):
        return tuple(str(path) for path in shards_of(Path(reference).expanduser()))
    address, mark, query = reference.partition("?")
    folder, _, name = address.rpartition("/")
    return tuple(f"{folder}/{path.name}{mark}{query}" for path in shards_of(Path(name)))


def layer_of(tensor: str) -> int | None:
    """The layer that a tensor belongs to."""
    found = _LAYER.match(tensor)
    return int(found[1]) if found else None


def _header(reference: str) -> Header | None:
    try:
        return header_of(reference)
    except MissingError:
        return None
