"""The flags of llama-server that decide where memory goes, read from its arguments.

Spellings and defaults: `--help` of b10434 and b11434. A flag that stands twice counts as it stands
last, as llama-server has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuirig.files.tensor_types import BY_NAME

#: Above any number of layers.
ALL_LAYERS = 99_999


@dataclass(frozen=True)
class MemoryFlags:
    """What the flags say. context: tokens for all slots, 0 for the model's own.

    layers, drafter_layers: on the card (`-ngl`). keys, values: encodings of the caches. unified:
    slots share one cache. expert_layers: first layers whose experts stay off the card. unknown:
    flags that move memory in a way that is not counted here.
    """

    context: int = 0
    layers: int = ALL_LAYERS
    drafter_layers: int = ALL_LAYERS
    slots: int = 1
    unified: bool = False
    batch: int = 2048
    micro_batch: int = 512
    keys: str = "f16"
    values: str = "f16"
    drafter_keys: str = "f16"
    drafter_values: str = "f16"
    flash_attention: bool = True
    full_sliding: bool = False
    cache_on_card: bool = True
    expert_layers: int = 0
    repack: bool = True
    unknown: tuple[str, ...] = ()


_NUMBERS: dict[str, tuple[str, ...]] = {
    "context": ("-c", "--ctx-size"),
    "batch": ("-b", "--batch-size"),
    "micro_batch": ("-ub", "--ubatch-size"),
    "slots": ("-np", "--parallel"),
    "expert_layers": ("-ncmoe", "--n-cpu-moe"),
}
_LAYERS: dict[str, tuple[str, ...]] = {
    "layers": ("-ngl", "--gpu-layers", "--n-gpu-layers"),
    "drafter_layers": (
        "-ngld", "--spec-draft-ngl", "--gpu-layers-draft", "--n-gpu-layers-draft",
    ),
}  # fmt: skip
_TYPES: dict[str, tuple[str, ...]] = {
    "keys": ("-ctk", "--cache-type-k"),
    "values": ("-ctv", "--cache-type-v"),
    "drafter_keys": ("-ctkd", "--spec-draft-type-k", "--cache-type-k-draft"),
    "drafter_values": ("-ctvd", "--spec-draft-type-v", "--cache-type-v-draft"),
}
_SWITCHES: dict[str, tuple[str, Any]] = {
    "-kvu": ("unified", True),
    "--kv-unified": ("unified", True),
    "-no-kvu": ("unified", False),
    "--no-kv-unified": ("unified", False),
    "--swa-full": ("full_sliding", True),
    "-nkvo": ("cache_on_card", False),
    "--no-kv-offload": ("cache_on_card", False),
    "-kvo": ("cache_on_card", True),
    "--kv-offload": ("cache_on_card", True),
    "-cmoe": ("expert_layers", ALL_LAYERS),
    "--cpu-moe": ("expert_layers", ALL_LAYERS),
    "-nr": ("repack", False),
    "--no-repack": ("repack", False),
    "--repack": ("repack", True),
}
_FLASH_ATTENTION = ("-fa", "--flash-attn")
_DEVICES = {
    "-dev": "layers",
    "--device": "layers",
    "-devd": "drafter_layers",
    "--spec-draft-device": "drafter_layers",
    "--device-draft": "drafter_layers",
}
_UNKNOWN = (
    "-ot", "--override-tensor", "-otd", "--spec-draft-override-tensor", "--override-tensor-draft",
    "-mm", "--mmproj", "-mmu", "--mmproj-url", "-sm", "--split-mode", "-ts", "--tensor-split",
    "--lora", "--lora-scaled", "--control-vector", "--override-kv", "-cmoed", "--cpu-moe-draft",
    "-ncmoed", "--n-cpu-moe-draft", "--rpc",
)  # fmt: skip
_OFF = ("off", "0", "false")


def memory_flags(args: Iterable[str], *, slots: int = 1) -> MemoryFlags:
    """What arguments say about memory. Values that llama-server would refuse count as not given."""
    changes: dict[str, Any] = {"slots": slots}
    off_card: set[str] = set()
    unknown: list[str] = []
    words = list(args)
    for flag, value in zip(words, [*words, ""][1:], strict=True):
        if flag in _SWITCHES:
            name, state = _SWITCHES[flag]
            changes[name] = state
        elif flag in _FLASH_ATTENTION:
            changes["flash_attention"] = value not in _OFF
        elif flag in _DEVICES and value == "none":
            off_card.add(_DEVICES[flag])
        elif flag in _UNKNOWN:
            unknown.append(flag)
        else:
            changes.update(_valued(flag, value))
    changes.update(dict.fromkeys(off_card, 0))  # whatever -ngl says
    return replace(MemoryFlags(), **changes, unknown=tuple(dict.fromkeys(unknown)))


def _valued(flag: str, value: str) -> Mapping[str, Any]:
    for name, spellings in _NUMBERS.items():
        if flag in spellings and value.isdigit():
            return {name: int(value)}
    for name, spellings in _LAYERS.items():
        if flag in spellings and (value.isdigit() or value in ("all", "auto")):
            return {name: int(value) if value.isdigit() else ALL_LAYERS}
    for name, spellings in _TYPES.items():
        if flag in spellings and value.lower() in BY_NAME:
            return {name: value.lower()}
    return {}
