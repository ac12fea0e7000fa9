"""Models of real shapes without weights: true headers in front of a hole in the file.

llama-server loads them (a hole reads as zeros and takes no room), so that what it allocates for
models of many gigabytes can be seen on any machine.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

from tests.files import gguf_bytes
from tuirig.files.tensor_types import BY_NAME, TENSOR_TYPES

Entry: TypeAlias = tuple[str, tuple[int, ...], str]
Key: TypeAlias = bool | int | float | list[int] | list[bool] | str

_NUMBERS = {kind.name: number for number, kind in TENSOR_TYPES.items()}


def write(
    path: Path,
    architecture: str,
    keys: dict[str, Key],
    tensors: Sequence[Entry],
    vocabulary: int | Sequence[str] = 300,
    *,
    cut: int = 0,
    **more: gguf_bytes.Typed,
) -> Path:
    """Write a model. keys: of the architecture. vocabulary: a size, or the tokens.

    cut: bytes that are missing at the end. more: whole keys, a double underscore for a dot.
    """
    table: dict[str, gguf_bytes.Typed] = {"general.architecture": gguf_bytes.string(architecture)}
    table |= {f"{architecture}.{name}": _typed(value) for name, value in keys.items()}
    table |= _tokenizer(vocabulary)
    table |= {name.replace("__", "."): value for name, value in more.items()}
    entries, offset = [], 0
    for name, shape, kind in tensors:
        entries.append(gguf_bytes.tensor(name, shape, _NUMBERS[kind], offset))
        size = math.prod(shape) // BY_NAME[kind].block * BY_NAME[kind].size
        offset += size + -size % 32
    header = gguf_bytes.header(table, entries)
    with path.open("wb") as file:
        file.write(header)
        file.truncate(len(header) + offset - cut)
    return path


def _typed(value: Key) -> gguf_bytes.Typed:
    if isinstance(value, bool):
        return gguf_bytes.flag(value)
    if isinstance(value, int):
        return gguf_bytes.u32(value)
    if isinstance(value, float):
        return gguf_bytes.f32(value)
    if isinstance(value, str):
        return gguf_bytes.string(value)
    if value and isinstance(value[0], bool):
        return gguf_bytes.numbers(gguf_bytes.BOOL, "?", value)
    return gguf_bytes.numbers(gguf_bytes.U32, "I", value)


def _tokenizer(vocabulary: int | Sequence[str]) -> dict[str, gguf_bytes.Typed]:
    """A vocabulary that llama-server takes: special tokens, bytes, and words."""
    if isinstance(vocabulary, int):
        words = (f"t{number}" for number in range(vocabulary - 259))
        tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    else:
        tokens = list(vocabulary)
    count = len(tokens)
    kinds = ([2, 3, 3] + [6] * 256 + [1] * count)[:count]
    return {
        "tokenizer.ggml.model": gguf_bytes.string("llama"),
        "tokenizer.ggml.tokens": gguf_bytes.strings(tokens),
        "tokenizer.ggml.scores": gguf_bytes.numbers(gguf_bytes.F32, "f", [0.0] * count),
        "tokenizer.ggml.token_type": (
            gguf_bytes.ARRAY,
            struct.pack(f"<IQ{count}i", 5, count, *kinds),
        ),
        "tokenizer.ggml.bos_token_id": gguf_bytes.u32(1),
        "tokenizer.ggml.eos_token_id": gguf_bytes.u32(2),
    }


def llama(
    path: Path,
    *,
    architecture: str = "llama",
    width: int = 4096,
    ff: int = 14336,
    layers: int = 32,
    heads: int = 32,
    kv_heads: int = 8,
    head: int = 128,
    vocabulary: int | Sequence[str] = 128256,
    kind: str = "q8_0",
    experts: tuple[int, int, int] | None = None,
    **more: gguf_bytes.Typed,
) -> Path:
    """Llama 3.1 8B; with other numbers Qwen3 (dense or of experts: how many, used, their width)."""
    keys: dict[str, Key] = {
        "block_count": layers,
        "context_length": 131072,
        "embedding_length": width,
        "feed_forward_length": ff,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": head,
        "rope.freq_base": 5e5,
    }
    if experts:
        keys["expert_count"], keys["expert_used_count"], keys["expert_feed_forward_length"] = (
            experts
        )
    count = vocabulary if isinstance(vocabulary, int) else len(vocabulary)
    tensors: list[Entry] = [
        ("token_embd.weight", (width, count), kind),
        ("output_norm.weight", (width,), "f32"),
        ("output.weight", (width, count), kind),
    ]
    for layer in range(layers):
        part = f"blk.{layer}"
        tensors += _attention(part, width, heads, kv_heads, head, kind)
        if architecture.startswith("qwen3"):
            tensors += _norms(part, (("attn_q_norm", head), ("attn_k_norm", head)))
        tensors.append((f"{part}.ffn_norm.weight", (width,), "f32"))
        if experts:
            number, _, narrow = experts
            tensors += [
                (f"{part}.ffn_gate_inp.weight", (width, number), "f32"),
                (f"{part}.ffn_gate_exps.weight", (width, narrow, number), kind),
                (f"{part}.ffn_up_exps.weight", (width, narrow, number), kind),
                (f"{part}.ffn_down_exps.weight", (narrow, width, number), kind),
            ]
        else:
            tensors += _feed_forward(part, width, ff, kind)
    return write(path, architecture, keys, tensors, vocabulary, **more)


def gemma4(
    path: Path,
    *,
    width: int = 2560,
    ff: int = 10240,
    layers: int = 42,
    heads: int = 8,
    kv_heads: int = 2,
    head: int = 512,
    sliding_head: int = 256,
    window: int = 512,
    shared: int = 18,
    per_layer: int = 256,
    vocabulary: int = 262144,
    period: int = 6,
    kind: str = "q8_0",
    **more: gguf_bytes.Typed,
) -> Path:
    """Gemma 4 E4B; per_layer 0 and shared 0 are the larger ones."""
    sliding = [(layer + 1) % period != 0 for layer in range(layers)]
    keys = _gemma_keys(width, ff, heads, kv_heads, head, sliding_head, window, shared, sliding)
    keys |= {"embedding_length_per_layer_input": per_layer, "final_logit_softcapping": 30.0}
    tensors: list[Entry] = [
        ("token_embd.weight", (width, vocabulary), kind),
        ("output_norm.weight", (width,), "f32"),
        ("rope_freqs.weight", (head // 2,), "f32"),
    ]
    if per_layer:
        rows = per_layer * layers
        tensors += [
            ("per_layer_token_embd.weight", (rows, vocabulary), kind),
            ("per_layer_model_proj.weight", (width, rows), "f16"),
            ("per_layer_proj_norm.weight", (per_layer,), "f32"),
        ]
    for layer, slides in enumerate(sliding):
        part, size = f"blk.{layer}", sliding_head if slides else head
        tensors += _attention(part, width, heads, kv_heads, size, kind)
        tensors += _norms(part, (("attn_q_norm", size), ("attn_k_norm", size)))
        tensors += _gemma_rest(part, width, ff, kind)
        if per_layer:
            tensors += [
                (f"{part}.inp_gate.weight", (width, per_layer), "f32"),
                (f"{part}.proj.weight", (per_layer, width), "f32"),
                (f"{part}.post_norm.weight", (width,), "f32"),
            ]
    return write(path, "gemma4", keys, tensors, vocabulary, **more)


def gemma4_assistant(
    path: Path,
    *,
    target_width: int = 2560,
    width: int = 256,
    ff: int = 2048,
    layers: int = 4,
    heads: int = 4,
    kv_heads: int = 2,
    head: int = 512,
    sliding_head: int = 256,
    vocabulary: int = 262144,
    kind: str = "q8_0",
    masked: bool = False,
    cut: int = 0,
    **more: gguf_bytes.Typed,
) -> Path:
    """The MTP assistant of Gemma 4 E4B. masked: with the tensors that the converter drops."""
    sliding = [True] * (layers - 1) + [False]
    keys = _gemma_keys(width, ff, heads, kv_heads, head, sliding_head, 512, layers, sliding)
    keys |= {
        "embedding_length_per_layer_input": 0,
        "embedding_length_out": target_width,
        "nextn_predict_layers": layers,
    }
    tensors: list[Entry] = [
        ("token_embd.weight", (width, vocabulary), kind),
        ("output_norm.weight", (width,), "f32"),
        ("rope_freqs.weight", (head // 2,), "f32"),
        ("nextn.pre_projection.weight", (2 * target_width, width), kind),
        ("nextn.post_projection.weight", (width, target_width), kind),
    ]
    if masked:
        tensors.append(("masked_embd_centroids.weight", (width, 64), "f32"))
    for layer, slides in enumerate(sliding):
        part, size = f"blk.{layer}", sliding_head if slides else head
        tensors += [
            (f"{part}.attn_norm.weight", (width,), "f32"),
            (f"{part}.attn_q.weight", (width, heads * size), kind),
            (f"{part}.attn_output.weight", (heads * size, width), kind),
            (f"{part}.attn_q_norm.weight", (size,), "f32"),
        ]
        tensors += _gemma_rest(part, width, ff, kind)
    return write(path, "gemma4-assistant", keys, tensors, vocabulary, cut=cut, **more)


def qwen35(
    path: Path,
    *,
    width: int = 4096,
    ff: int = 12288,
    layers: int = 32,
    heads: int = 16,
    kv_heads: int = 4,
    head: int = 256,
    state: int = 128,
    groups: int = 16,
    value_heads: int = 32,
    vocabulary: int = 248320,
    mtp: int = 1,
    only_head: bool = False,
    kind: str = "q8_0",
    **more: gguf_bytes.Typed,
) -> Path:
    """Qwen3.5 9B with its MTP head inside. only_head: just the head, in a file of its own."""
    inner = state * value_heads
    keys: dict[str, Key] = {
        "block_count": layers + mtp,
        "nextn_predict_layers": mtp,
        "context_length": 262144,
        "embedding_length": width,
        "feed_forward_length": ff,
        "full_attention_interval": 4,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "rope.freq_base": 1e7,
        "rope.dimension_count": 64,
        "rope.dimension_sections": [11, 11, 10, 0],
        "ssm.conv_kernel": 4,
        "ssm.state_size": state,
        "ssm.group_count": groups,
        "ssm.time_step_rank": value_heads,
        "ssm.inner_size": inner,
    }
    tensors: list[Entry] = [
        ("token_embd.weight", (width, vocabulary), kind),
        ("output.weight", (width, vocabulary), kind),
        ("output_norm.weight", (width,), "f32"),
    ]
    mixed = 2 * state * groups + inner
    for layer in range(layers, layers + mtp) if only_head else range(layers + mtp):
        part = f"blk.{layer}"
        if layer >= layers:
            tensors.append((f"{part}.nextn.eh_proj.weight", (2 * width, width), kind))
            tensors += _norms(f"{part}.nextn", ((n, width) for n in ("enorm", "hnorm")))
        if layer >= layers or (layer + 1) % 4 == 0:
            tensors += _attention(part, width, heads, kv_heads, head, kind, gates=True)
            tensors += _norms(part, (("attn_q_norm", head), ("attn_k_norm", head)))
        else:
            tensors += [
                (f"{part}.attn_norm.weight", (width,), "f32"),
                (f"{part}.attn_qkv.weight", (width, mixed), kind),
                (f"{part}.attn_gate.weight", (width, inner), kind),
                (f"{part}.ssm_conv1d.weight", (4, mixed), "f32"),
                (f"{part}.ssm_dt.bias", (value_heads,), "f32"),
                (f"{part}.ssm_a", (value_heads,), "f32"),
                (f"{part}.ssm_beta.weight", (width, value_heads), kind),
                (f"{part}.ssm_alpha.weight", (width, value_heads), kind),
                (f"{part}.ssm_norm.weight", (state,), "f32"),
                (f"{part}.ssm_out.weight", (inner, width), kind),
            ]
        tensors.append((f"{part}.post_attention_norm.weight", (width,), "f32"))
        tensors += _feed_forward(part, width, ff, kind)
    return write(path, "qwen35", keys, tensors, vocabulary, **more)


def _attention(
    part: str,
    width: int,
    heads: int,
    kv_heads: int,
    head: int,
    kind: str,
    *,
    gates: bool = False,
) -> list[Entry]:
    """gates: the queries' matrix has a gate for each query."""
    queries = heads * head * (2 if gates else 1)
    return [
        (f"{part}.attn_norm.weight", (width,), "f32"),
        (f"{part}.attn_q.weight", (width, queries), kind),
        (f"{part}.attn_k.weight", (width, kv_heads * head), kind),
        (f"{part}.attn_v.weight", (width, kv_heads * head), kind),
        (f"{part}.attn_output.weight", (heads * head, width), kind),
    ]


def _feed_forward(part: str, width: int, ff: int, kind: str) -> list[Entry]:
    return [
        (f"{part}.ffn_gate.weight", (width, ff), kind),
        (f"{part}.ffn_up.weight", (width, ff), kind),
        (f"{part}.ffn_down.weight", (ff, width), kind),
    ]


def _norms(part: str, sizes: Sequence[tuple[str, int]] | Iterator[tuple[str, int]]) -> list[Entry]:
    return [(f"{part}.{name}.weight", (size,), "f32") for name, size in sizes]


def _gemma_rest(part: str, width: int, ff: int, kind: str) -> list[Entry]:
    return [
        (f"{part}.post_attention_norm.weight", (width,), "f32"),
        (f"{part}.layer_output_scale.weight", (1,), "f32"),
        (f"{part}.ffn_norm.weight", (width,), "f32"),
        *_feed_forward(part, width, ff, kind),
        (f"{part}.post_ffw_norm.weight", (width,), "f32"),
    ]


def _gemma_keys(
    width: int,
    ff: int,
    heads: int,
    kv_heads: int,
    head: int,
    sliding_head: int,
    window: int,
    shared: int,
    sliding: list[bool],
) -> dict[str, Key]:
    return {
        "block_count": len(sliding),
        "context_length": 131072,
        "embedding_length": width,
        "feed_forward_length": ff,
        "attention.head_count": heads,
        "attention.head_count_kv": kv_heads,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.key_length_swa": sliding_head,
        "attention.value_length_swa": sliding_head,
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.sliding_window": window,
        "attention.sliding_window_pattern": sliding,
        "attention.shared_kv_layers": shared,
        "rope.dimension_count": head,
        "rope.dimension_count_swa": sliding_head,
        "rope.freq_base": 1e6,
        "rope.freq_base_swa": 1e4,
    }
