"""Which tensor of a Hugging Face checkpoint is which tensor of its GGUF.

Names only: the converter may still have changed a tensor (turned, split, merged), so what is found
here is proved by its content before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_WEIGHT = ".weight"
#: The text model's place inside a checkpoint, longest first.
_PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.")
#: GGUF name -> checkpoint name, both without `.weight`.
_WHOLE = {
    "token_embd": "embed_tokens",
    "output": "lm_head",
    "per_layer_token_embd": "embed_tokens_per_layer",
    "per_layer_model_proj": "per_layer_model_projection",
    "nextn.pre_projection": "pre_projection",
    "nextn.post_projection": "post_projection",
}
_IN_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
}
_LAYER = re.compile(r"blk\.([0-9]+)\.(.+)")


def sources(gguf_names: Iterable[str], names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The checkpoint's tensors that may be a GGUF's, by the GGUF's name.

    Without those that have none. More than one is found where prefixes differ.
    """
    bare: dict[str, list[str]] = {}
    for name in sorted(names):
        bare.setdefault(_without_prefix(name), []).append(name)
    found = ((name, bare.get(_checkpoint_name(name) or "")) for name in gguf_names)
    return {name: tuple(candidates) for name, candidates in found if candidates}


def _checkpoint_name(gguf_name: str) -> str | None:
    """The name without its prefix, None for a tensor that is not known."""
    name = gguf_name.removesuffix(_WEIGHT)
    layer = _LAYER.fullmatch(name)
    part = _IN_LAYER.get(layer[2]) if layer else _WHOLE.get(name)
    if part is None or name == gguf_name:
        return None
    return f"layers.{layer[1]}.{part}{_WEIGHT}" if layer else f"{part}{_WEIGHT}"


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
