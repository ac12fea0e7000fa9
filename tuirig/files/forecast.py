"""What a server will need, from the headers of its models and its flags, before it is started.

Weights and caches are counted exactly, as llama.cpp lays them out (src/llama-model.cpp,
llama-kv-cache.cpp, llama-kv-cache-iswa.cpp, llama-memory-recurrent.cpp of b10434). Compute buffers
are what its allocator needs for one micro-batch; the sums below were fitted to its own allocation
lines for models of many shapes. Builds before the summer of 2026 keep the logits of a whole
micro-batch there as well: vocabulary x micro-batch x 4 bytes more.

Pure: headers and flags in, figures out. Nothing is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from tuirig.files.drafters import is_mtp_head
from tuirig.files.gguf import Tensor
from tuirig.files.gguf_model import Model, layer_of
from tuirig.files.memory_flags import MemoryFlags
from tuirig.files.tensor_types import BY_NAME
from tuirig.records import MemoryParts

_MIB = 1024 * 1024
_FLOAT = 4
_PAD = 256

#: Embedding tables stay in the machine's memory: a token takes one row of them.
_TABLES = ("token_embd.", "per_layer_token_embd.", "position_embd.", "token_types.")
#: Kept a second time, in an order that suits the processor (ggml-cpu/repack.cpp, x86-64).
_REPACKED = ("q4_0", "q4_k", "q2_k", "iq4_nl", "mxfp4")
_REPACKED_ROWS = 8
#: Every so many layers one is not sliding, where the header does not say (src/models/*.cpp).
_SLIDING_PERIODS = {"gemma2": 2, "gemma3": 6, "gpt-oss": 2, "cohere2": 4}
#: Architectures whose forecast was compared with the server's own figures.
_COMPARED = (
    "llama",
    "qwen2",
    "qwen3",
    "qwen3moe",
    "qwen35",
    "gemma3",
    "gemma4",
    "gemma4-assistant",
)


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Memory in MiB.

    card: on the card; for a rig without one, in the machine's memory. host: beside the card in the
    machine's memory, None without a card. full, sliding and recurrent are the target's cache by the
    kind of its layers. rest_mib: what the driver needs for any program. rough: why it may be off.
    """

    card: MemoryParts
    host: MemoryParts | None
    full_mib: float
    sliding_mib: float
    recurrent_mib: float
    rest_mib: float
    rough: tuple[str, ...]

    @property
    def total_mib(self) -> float:
        """Everything on the card, or in the machine's memory without one."""
        return total(self.card) + self.rest_mib


#: A CUDA context, where nothing was measured yet: 200 to 500 MiB have been seen on small cards, 660
#: on an H200 (and 112 of Vulkan).
CARD_REST_MIB = 300.0


def forecast(
    target: Model,
    drafter: Model | None,
    flags: MemoryFlags,
    *,
    type: str = "",
    length: int = 0,
    on_card: bool = True,
    rest_mib: float = CARD_REST_MIB,
) -> Forecast:
    """The memory of a server.

    drafter: the drafter's file; None without one. type: the `--spec-type` list, "" for no drafter.
    length: the draft length. on_card: False for a rig without a card. rest_mib: what the driver
    needs there for any program.
    """
    if not on_card:
        flags = replace(flags, layers=0, drafter_layers=0)
    drafts = any(name.strip().startswith("draft-") for name in type.split(","))
    inside = drafter is None and target.mtp_layers > 0 and "draft-mtp" in type
    places = _Places()
    kinds = _target(places, target, flags, length if drafts else 0, with_head=inside)
    if drafter is not None:
        _drafter(places, target, drafter, flags)
    elif inside:
        _head_inside(places, target, flags)
    return Forecast(
        card=places.parts(CARD if on_card else HOST),
        host=places.parts(HOST) if on_card else None,
        full_mib=kinds["full"] / _MIB,
        sliding_mib=kinds["sliding"] / _MIB,
        recurrent_mib=kinds["recurrent"] / _MIB,
        rest_mib=rest_mib if on_card else 0.0,
        rough=tuple(_rough(target, drafter, flags)),
    )


def total(parts: MemoryParts) -> float:
    """The sum of what is known, in MiB."""
    amounts = (parts.target_mib, parts.drafter_mib, parts.cache_mib, parts.buffers_mib)
    return sum(amount or 0.0 for amount in amounts)


def differences(guess: MemoryParts, real: MemoryParts) -> dict[str, float]:
    """Real minus forecast in MiB, by part, for the parts that the server's log names."""
    found = {}
    for part in ("target", "drafter", "cache", "buffers"):
        size = getattr(real, f"{part}_mib")
        if size is not None:
            found[part] = round(size - (getattr(guess, f"{part}_mib") or 0.0), 2)
    return found


def largest_context(
    target: Model,
    drafter: Model | None,
    flags: MemoryFlags,
    free_mib: float,
    *,
    type: str = "",
    length: int = 0,
    on_card: bool = True,
    rest_mib: float = CARD_REST_MIB,
) -> int | None:
    """The largest `-c`, a multiple of 256, that fits; None if not even the smallest does.

    It is never above the model's own context. free_mib: of the card, or of the machine.
    """

    def fits(blocks: int) -> bool:
        changed = replace(flags, context=blocks * _PAD)
        needed = forecast(
            target, drafter, changed, type=type, length=length, on_card=on_card, rest_mib=rest_mib
        )
        return needed.total_mib <= free_mib

    most = max(1, (target.number("context_length") or flags.context or _PAD) // _PAD)
    if not fits(1):
        return None
    low, high = 1, most  # low fits
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low * _PAD


CARD, HOST = "card", "host"


class _Places:
    """Bytes by place and purpose."""

    def __init__(self) -> None:
        self._bytes: dict[tuple[str, str], float] = defaultdict(float)

    def add(self, place: str, part: str, size: float) -> None:
        self._bytes[place, part] += size

    def parts(self, place: str) -> MemoryParts:
        def mib(part: str) -> float | None:
            size = self._bytes.get((place, part))
            return round(size / _MIB, 2) if size else None

        return MemoryParts(
            target_mib=mib("target"),
            drafter_mib=mib("drafter"),
            cache_mib=mib("cache"),
            buffers_mib=mib("buffers"),
        )


@dataclass(frozen=True)
class _Cells:
    """Places for tokens: of one sequence in full and sliding layers, and how many sequences."""

    full: int
    sliding: int
    streams: int
    micro_batch: int

    @classmethod
    def of(cls, model: Model, flags: MemoryFlags) -> _Cells:
        context = flags.context or model.number("context_length") or 0
        streams = 1 if flags.unified else max(1, flags.slots)
        full = _padded(_padded(context) // streams)
        micro_batch = min(flags.micro_batch, flags.batch, full * streams)
        window = (model.number("attention.sliding_window") or 0) * (
            flags.slots if flags.unified else 1
        )
        sliding = full if flags.full_sliding else _padded(min(full, window + micro_batch))
        return cls(full, min(full, sliding), streams, micro_batch)


def _target(
    places: _Places, model: Model, flags: MemoryFlags, rollback: int, *, with_head: bool
) -> dict[str, float]:
    """Weights, cache and buffers of the target; its cache's bytes by kind of layer.

    rollback: steps that a recurrent state can go back, which are kept one by one. with_head: its
    MTP head is used; else llama.cpp does not load it.
    """
    first = _first_on_card(model, flags.layers)
    _weights(places, "target", model, first, flags, with_head=with_head)
    cells = _Cells.of(model, flags)
    kinds: dict[str, float] = defaultdict(float)
    trunk = model.blocks - model.mtp_layers
    for layer, (kind, size) in enumerate(
        _layer_caches(model, cells, flags.keys, flags.values, flags.flash_attention)
    ):
        if layer >= trunk:
            break
        if kind == "recurrent":
            size *= max(1, flags.slots) * (1 + rollback)
        on_card = layer >= first and (flags.cache_on_card or kind == "recurrent")
        places.add(CARD if on_card else HOST, "cache", size)
        kinds[kind] += size
    has_card = first <= model.blocks
    inputs = _inputs(model, cells, flags)
    working = _working(model, cells, flags) + inputs
    places.add(CARD if has_card else HOST, "buffers", working)
    logits = (model.vocabulary_size or 0) * _FLOAT * max(1, flags.slots)
    places.add(HOST, "buffers", logits + (inputs if has_card else 0))
    return kinds


def _drafter(places: _Places, target: Model, drafter: Model, flags: MemoryFlags) -> None:
    """Everything that comes with a drafter file."""
    first = _first_on_card(drafter, flags.drafter_layers)
    flags = replace(flags, layers=flags.drafter_layers, expert_layers=0)
    _weights(places, "drafter", drafter, first, flags, with_head=True)
    context = flags.context or target.number("context_length") or 0
    cells = _Cells.of(drafter, replace(flags, context=context))
    place = CARD if first <= drafter.blocks else HOST
    caches = _layer_caches(
        drafter, cells, flags.drafter_keys, flags.drafter_values, flags.flash_attention
    )
    if drafter.architecture != "gemma4-assistant":  # it reads the target's cache
        # The head of a model has a cache for itself, not for the layers that are not there.
        start = drafter.blocks - drafter.mtp_layers if is_mtp_head(drafter) else 0
        for layer, (kind, size) in enumerate(caches):
            if layer >= start:
                rows = max(1, flags.slots) if kind == "recurrent" else 1
                places.add(CARD if layer >= first else HOST, "drafter", size * rows)
    if drafter.architecture == "gemma4-assistant":
        # The target's embedding, its hidden state, and both side by side; or scores.
        values = max(4 * (target.width or 0), _scores(drafter, cells, flags))
        working = float(values * cells.micro_batch * _FLOAT)
    elif is_mtp_head(drafter):
        working = _head_working(drafter, cells, flags)
    else:
        working = _working(drafter, cells, flags)
    places.add(place, "drafter", working + _inputs(drafter, cells, flags))
    logits = (drafter.vocabulary_size or 0) * _FLOAT * max(1, flags.slots)
    places.add(HOST, "drafter", logits)


def _head_inside(places: _Places, model: Model, flags: MemoryFlags) -> None:
    """What the target's own MTP head needs beside its weights, which the target has."""
    first = _first_on_card(model, flags.layers)
    cells = _Cells.of(model, flags)
    trunk = model.blocks - model.mtp_layers
    caches = _layer_caches(
        model, cells, flags.drafter_keys, flags.drafter_values, flags.flash_attention
    )
    for layer, (_, size) in enumerate(caches):
        if layer >= trunk:
            on_card = layer >= first and flags.cache_on_card
            places.add(CARD if on_card else HOST, "drafter", size)
    working = _head_working(model, cells, flags) + _inputs(model, cells, flags)
    places.add(CARD if first <= model.blocks else HOST, "drafter", working)
    logits = (model.vocabulary_size or 0) * _FLOAT * max(1, flags.slots)
    places.add(HOST, "drafter", logits)


def left_off_card(model: Model, layers: int) -> tuple[int, int]:
    """(layers that `-ngl` leaves off the card, all of them), as llama.cpp counts them."""
    counted = model.blocks - model.mtp_layers * (not is_mtp_head(model)) + 1
    return max(0, counted - layers), counted


def _first_on_card(model: Model, layers: int) -> int:
    """The first layer on the card; above `blocks` where none is. The output counts as one."""
    if not layers:
        return model.blocks + 1
    return left_off_card(model, layers)[0]


def _weights(
    places: _Places,
    part: str,
    model: Model,
    first: int,
    flags: MemoryFlags,
    *,
    with_head: bool,
) -> None:
    output_on_card = first <= model.blocks and flags.layers > model.blocks - model.mtp_layers
    in_memory: list[Tensor] = []
    end = model.blocks if with_head else model.blocks - model.mtp_layers
    for tensor in model.tensors.values():
        if (layer_of(tensor.name) or 0) >= end > 0:
            continue
        if _is_on_card(tensor.name, first, output_on_card, flags.expert_layers):
            places.add(CARD, part, tensor.size or 0)
        else:
            in_memory.append(tensor)
    table = model.tensors.get("token_embd.weight")
    if table is not None and "output.weight" not in model.tensors:
        # It is the output as well: on the card it is there a second time.
        if output_on_card:
            places.add(CARD, part, table.size or 0)
        elif flags.repack and _can_be_repacked(table):
            places.add(HOST, part, table.size or 0)
    for header in model.headers:
        names = {tensor.name for tensor in header.tensors}
        places.add(HOST, part, _mapped([t for t in in_memory if t.name in names], flags))


def _is_on_card(name: str, first: int, output_on_card: bool, expert_layers: int) -> bool:
    layer = layer_of(name)
    if layer is None:
        return output_on_card and not name.startswith(_TABLES)
    return layer >= first and not (layer < expert_layers and "_exps." in name)


def _mapped(tensors: list[Tensor], flags: MemoryFlags) -> float:
    """Bytes in the machine's memory: a file's part from the first to the last tensor, and copies
    of those that are laid out anew."""
    repacked = [tensor for tensor in tensors if flags.repack and _is_repacked(tensor)]
    kept = [tensor for tensor in tensors if not (flags.repack and _is_repacked(tensor))]
    size = float(sum(tensor.size or 0 for tensor in repacked))
    if kept:
        ends = [tensor.offset + (tensor.size or 0) for tensor in kept]
        size += max(ends) - min(tensor.offset for tensor in kept)
    return size


def _is_repacked(tensor: Tensor) -> bool:
    return _can_be_repacked(tensor) and not tensor.name.startswith(_TABLES)


def _can_be_repacked(tensor: Tensor) -> bool:
    rows = _rows(tensor, 1)
    return tensor.type_name in _REPACKED and rows > 0 and rows % _REPACKED_ROWS == 0


def _layer_caches(
    model: Model, cells: _Cells, keys: str, values: str, flash_attention: bool
) -> Iterator[tuple[str, float]]:
    """(kind, bytes) of each layer's cache; of recurrent layers for one state of one sequence.

    Without flash attention values are stored turned, all layers as wide as the widest.
    """
    heads = model.per_layer("attention.head_count_kv", model.number("attention.head_count") or 0)
    sliding = sliding_layers(model)
    recurrent = recurrent_layers(model)
    shared = model.number("attention.shared_kv_layers") or 0
    head = (model.width or 0) // max(1, max(model.per_layer("attention.head_count"), default=1))
    key_length = model.number("attention.key_length") or head
    value_length = model.number("attention.value_length") or head
    value_lengths = [
        (model.number("attention.value_length_swa") if slides else None) or value_length
        for slides in sliding
    ]
    widest = max((a * b for a, b in zip(heads, value_lengths, strict=True)), default=0)
    for layer in range(model.blocks):
        if recurrent[layer]:
            yield "recurrent", _recurrent_state(model)
            continue
        kind = "sliding" if sliding[layer] else "full"
        suffix = "_swa" if sliding[layer] else ""
        key = model.number(f"attention.key_length{suffix}") or key_length
        has_cache = layer < model.blocks - shared
        wide = heads[layer] * value_lengths[layer] if flash_attention else widest
        row = heads[layer] * key * _bytes(keys) + wide * _bytes(values) if has_cache else 0.0
        yield kind, row * (cells.sliding if sliding[layer] else cells.full) * cells.streams


def sliding_layers(model: Model) -> tuple[bool, ...]:
    """Which layers see a window of the text only."""
    if not model.number("attention.sliding_window"):
        return (False,) * model.blocks
    period = model.number("attention.sliding_window_pattern") or _SLIDING_PERIODS.get(
        model.architecture, 1
    )
    if model.numbers("attention.sliding_window_pattern") is not None:
        return tuple(map(bool, model.per_layer("attention.sliding_window_pattern")))
    return tuple((layer + 1) % period != 0 for layer in range(model.blocks))


def recurrent_layers(model: Model) -> tuple[bool, ...]:
    """Which layers keep a state of fixed size instead of a cache."""
    if not _recurrent_state(model):
        return (False,) * model.blocks
    if model.numbers("attention.recurrent_layers") is not None:
        return tuple(map(bool, model.per_layer("attention.recurrent_layers")))
    interval = model.number("full_attention_interval")
    if interval or model.architecture in ("qwen35", "qwen35moe", "qwen3next"):
        trunk = model.blocks - model.mtp_layers
        return tuple(
            layer < trunk and (layer + 1) % (interval or 4) != 0 for layer in range(model.blocks)
        )
    heads = model.per_layer("attention.head_count_kv", model.number("attention.head_count") or 0)
    return tuple(not count for count in heads)


def _recurrent_state(model: Model) -> float:
    """Bytes of one layer's state for one sequence (llama-hparams.cpp: n_embd_r, n_embd_s)."""
    state, inner = model.number("ssm.state_size") or 0, model.number("ssm.inner_size") or 0
    kernel, groups = model.number("ssm.conv_kernel") or 0, model.number("ssm.group_count") or 0
    short = model.number("shortconv.l_cache") or 0
    convolution = max(0, kernel - 1) * (inner + 2 * groups * state)
    convolution += max(0, short - 1) * (model.width or 0)
    return float((convolution + state * inner) * _FLOAT)


def _working(model: Model, cells: _Cells, flags: MemoryFlags) -> float:
    """Bytes of what one micro-batch computes, at the layer that needs most of it.

    In units of a value per token: attention needs three embeddings, queries twice, keys and values,
    and all scores without flash attention; a feed-forward network its width three times and four
    embeddings (three beside recurrent layers); experts three times the chosen ones' width, their
    outputs and five embeddings; Gemma's per-layer embeddings are kept twice.
    """
    width = model.width or 0
    recurrent = any(recurrent_layers(model))
    dense = _widest(model, "ffn_up.weight")
    tables = _rows(model.tensors.get("per_layer_token_embd.weight"), 0)
    keys, values = _widest(model, "attn_k.weight"), _widest(model, "attn_v.weight")
    attention = 3 * width + 2 * _widest(model, "attn_q.weight") + keys + values
    attention += _scores(model, cells, flags)
    stages = [attention, 3 * dense + (3 if recurrent else 4) * width]
    if recurrent:
        stages.append(3 * _widest(model, "attn_qkv.weight") + 3 * width)
    if tables:
        stages = [
            attention + 2 * tables,
            3 * dense + 2 * tables + 2 * width,
            4 * tables + 2 * width,
        ]
    used = model.number("expert_used_count") or 0
    experts = _widest(model, "ffn_up_exps.weight") or _widest(model, "ffn_gate_up_exps.weight") // 2
    if used and experts:
        stages.append(used * width + 3 * used * experts + 5 * width)
    return float(max(stages)) * cells.micro_batch * _FLOAT


def _head_working(model: Model, cells: _Cells, flags: MemoryFlags) -> float:
    """Bytes of what an MTP head computes: seven embeddings and its queries twice, or attention."""
    layer = model.blocks - model.mtp_layers
    width = model.width or 0
    queries, keys, values = (
        _rows(model.tensors.get(f"blk.{layer}.attn_{name}.weight"), 1) for name in "qkv"
    )
    attention = 3 * width + queries + keys + values + _scores(model, cells, flags)
    return float(max(7 * width + 2 * queries, attention)) * cells.micro_batch * _FLOAT


def _scores(model: Model, cells: _Cells, flags: MemoryFlags) -> int:
    """Scores of one token without flash attention, which keeps none."""
    if flags.flash_attention:
        return 0
    return max(model.per_layer("attention.head_count"), default=0) * cells.full


def _inputs(model: Model, cells: _Cells, flags: MemoryFlags) -> float:
    """Bytes of the attention masks: one value per token of a micro-batch and cell."""
    size = 2 if flags.flash_attention else 4
    sliding, recurrent = sliding_layers(model), recurrent_layers(model)
    full = any(not (s or r) for s, r in zip(sliding, recurrent, strict=True))
    width = cells.full * full + cells.sliding * any(sliding)
    return float(width * cells.micro_batch * size)


def _widest(model: Model, suffix: str) -> int:
    """The most rows that a layer's matrix of this name has."""
    ending = f".{suffix}"
    rows = (_rows(t, 1) for name, t in model.tensors.items() if name.endswith(ending))
    return max(rows, default=0)


def _rows(tensor: Tensor | None, dimension: int) -> int:
    if tensor is None or len(tensor.shape) <= dimension:
        return 0
    return tensor.shape[dimension]


def _bytes(type: str) -> float:
    kind = BY_NAME[type]
    return kind.size / kind.block


def _padded(count: int) -> int:
    return count + -count % _PAD


def _rough(target: Model, drafter: Model | None, flags: MemoryFlags) -> Iterator[str]:
    for model in _given(target, drafter):
        if model.architecture not in _COMPARED:
            yield f"{model.architecture or 'an unknown architecture'} was never compared"
        if model.missing_shards:
            yield f"shards of {model.label} are missing"
        if any(tensor.size is None for tensor in model.tensors.values()):
            yield f"{model.label} has tensors of an unknown type"
    for flag in flags.unknown:
        yield f"what {flag} moves is not counted"


def _given(*models: Model | None) -> Iterable[Model]:
    return (model for model in models if model is not None)
