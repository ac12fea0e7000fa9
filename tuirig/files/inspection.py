"""What a model file is, from its header alone: never from its name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tuirig.files.drafters import Drafts, Role, drafts_as, role_of
from tuirig.files.gguf import Header, Tensor
from tuirig.files.gguf_model import MOST_LAYERS, Model, read_model
from tuirig.files.sources import without_secrets
from tuirig.files.tensor_types import FILE_TYPES

#: Parameters in tensors of these types decide nothing about an encoding: norms, biases, tables.
_SMALL_TYPES = ("f32", "i8", "i16", "i32", "i64", "f64")


class Encoding(msgspec.Struct, frozen=True, kw_only=True):
    """How many tensors, parameters and bytes are of one type. size is None for an unknown type."""

    type: str
    tensors: int
    parameters: int
    size: int | None


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """A tokenizer. model, pre: its algorithm and splitting rules. sha256: of the token list."""

    model: str | None
    pre: str | None
    size: int | None
    sha256: str | None
    bos: int | None
    eos: int | None


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """What a file is.

    size: bytes of all shards. encodings: the largest first. bits_per_weight: over all tensors.
    claimed: what the file says of its encoding. layers: without those of an MTP head inside.
    """

    file: str
    size: int
    shards: int
    role: Role
    architecture: str
    name: str | None
    parameters: int
    encoding: str
    bits_per_weight: float | None
    encodings: tuple[Encoding, ...]
    claimed: str | None
    vocabulary: Vocabulary
    context_length: int | None
    width: int | None
    layers: int
    mtp_layers: int
    drafts: Drafts | None
    problems: tuple[str, ...]


def inspect(reference: str | Path) -> Inspection:
    """What the file at a path or http(s) URL is. Blocks. Raises what `read_model` raises."""
    return inspection_of(read_model(reference))


def inspection_of(model: Model) -> Inspection:
    """What a model is."""
    encodings = tuple(_encodings(model))
    sizes = [encoding.size for encoding in encodings]
    known = [size for size in sizes if size is not None]
    parameters = model.elements
    claimed = model.whole("general.file_type")
    inside = model.mtp_layers if role_of(model) is Role.MODEL_WITH_MTP else 0
    return Inspection(
        file=without_secrets(model.reference),
        size=model.size,
        shards=len(model.shards),
        role=role_of(model),
        architecture=model.architecture,
        name=model.text("general.name"),
        parameters=parameters,
        encoding=main_type(model) or "",
        bits_per_weight=(
            8 * sum(known) / parameters if parameters and len(known) == len(sizes) else None
        ),
        encodings=encodings,
        claimed=FILE_TYPES.get(claimed, str(claimed)) if claimed is not None else None,
        vocabulary=_vocabulary(model),
        context_length=model.number("context_length"),
        width=model.width,
        layers=model.blocks - inside,
        mtp_layers=model.mtp_layers,
        drafts=drafts_as(model),
        problems=tuple(problems_of(model)),
    )


def main_type(model: Model) -> str | None:
    """The type of most parameters outside of tables and norms; None without tensors."""
    amounts: dict[str, int] = defaultdict(int)
    for tensor in model.tensors.values():
        amounts[tensor.type_name] += tensor.elements
    large = {name: count for name, count in amounts.items() if name not in _SMALL_TYPES} or amounts
    return max(large, key=lambda name: large[name], default=None)


def problems_of(model: Model) -> Iterator[str]:
    """Why llama-server would refuse a file, or do without a part of it."""
    if not model.architecture:
        yield "it names no architecture"
    for missing in model.missing_shards:
        yield f"its shard {without_secrets(missing).rsplit('/', 1)[-1]} is missing"
    for shard in model.shards:
        if shard.header is not None:
            yield from _file_problems(shard.header, len(model.shards) > 1, shard.reference)
    if (model.number("block_count") or 0) > MOST_LAYERS:
        yield f"it claims {model.number('block_count'):,} layers; llama.cpp takes {MOST_LAYERS}"
    if not model.tensors and not model.missing_shards:
        yield "it has no tensors: a vocabulary without a model"
    yield from _drafter_problems(model)


def _file_problems(header: Header, many: bool, reference: str) -> Iterator[str]:
    name = f" ({without_secrets(reference).rsplit('/', 1)[-1]})" if many else ""
    if header.missing_bytes:
        yield f"it is cut short: {header.missing_bytes:,} bytes are missing at its end{name}"
    misplaced = _misplaced(header)
    if misplaced is not None:
        yield f"the tensor {misplaced.name} is not where llama.cpp expects it{name}"


def _misplaced(header: Header) -> Tensor | None:
    """The first tensor that does not start where the one before it ends."""
    expected = 0
    for tensor in header.tensors:
        if tensor.offset != expected:
            return tensor
        if tensor.size is None:
            return None
        expected += tensor.size + -tensor.size % header.alignment
    return None


def _drafter_problems(model: Model) -> Iterator[str]:
    if model.architecture == "gemma4-assistant":
        extra = [name for name in model.tensors if name.startswith("masked_embd")]
        if extra:
            yield (
                f"it has {' and '.join(extra)}, which llama.cpp does not take"
                ' ("vector::_M_range_check"): convert it without them'
            )
        if model.number("embedding_length_out") in (None, model.width):
            yield "embedding_length_out does not tell the width of its target"
        if model.mtp_layers != model.blocks:
            yield "nextn_predict_layers is not its number of layers"
    elif model.architecture == "eagle3":
        if len(model.numbers("target_layers") or ()) != 3:
            yield "target_layers does not name the three layers of the target that it reads"
    elif model.architecture == "dflash" and not model.numbers("target_layers"):
        yield "target_layers does not name the layers of the target that it reads"


def _encodings(model: Model) -> Iterator[Encoding]:
    groups: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in model.tensors.values():
        groups[tensor.type_name].append(tensor)
    for name, group in sorted(
        groups.items(), key=lambda item: -sum(tensor.elements for tensor in item[1])
    ):
        sizes = [tensor.size for tensor in group]
        yield Encoding(
            type=name,
            tensors=len(group),
            parameters=sum(tensor.elements for tensor in group),
            size=None if None in sizes else sum(size or 0 for size in sizes),
        )


def _vocabulary(model: Model) -> Vocabulary:
    tokens = model.tokens
    return Vocabulary(
        model=model.text("tokenizer.ggml.model"),
        pre=model.text("tokenizer.ggml.pre"),
        size=model.vocabulary_size,
        sha256=tokens.sha256 if tokens is not None else None,
        bos=model.whole("tokenizer.ggml.bos_token_id"),
        eos=model.whole("tokenizer.ggml.eos_token_id"),
    )
