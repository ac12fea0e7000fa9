"""A miniature Qwen3.5 target that carries its MTP head in its own file.

Trunk: embedding and head are the bigram factors; attention, delta-net and FFN are random and add
`noise` (relative to the embedding, over all layers) to the residual stream. Head: the block after
the trunk reads (embedding of the newest token, hidden state of the token before it); it keeps the
embedding half, so it guesses the bigram part and misses the rest.

What llama.cpp asks of such a file (src/models/qwen35.cpp):
- block_count counts the MTP block, nextn_predict_layers is 1;
- every full_attention_interval-th layer is full attention, the others are gated delta-nets; a trunk
  without any delta-net aborts in the warm-up run;
- attn_q is twice as tall as usual: per head, the query rows and then the gate rows;
- eh_proj's input is the embedding, then the hidden state;
- rope.dimension_sections has four numbers whose sum is half of rope.dimension_count;
- nothing scales the embedding at run time, so it is stored with unit RMS.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuirig.demo.bigram import Floats, Language, bigram_factors
from tuirig.demo.writing import ModelWriter, random_matrix

_HEADS = 4
_HEADS_KV = 1
_HEAD_DIM = 64
_SECTIONS = [11, 11, 10, 0]
_STATE = 64
_KEY_GROUPS = 2
_VALUE_HEADS = 4
_CONVOLUTION = 4
_FULL_ATTENTION_INTERVAL = 4
#: RMS that a gated sub-block of gain 1 adds to the residual stream, by trial.
_SUB_BLOCK_RMS = 0.6


@dataclass(frozen=True)
class Qwen35Shape:
    """Sizes. dim is a multiple of 32; layers (of the trunk) is at least 4.

    noise: see the module. ffn_share: the FFNs' noise relative to the mixers'. sharpness: scale of
    attention logits. head_gain: scale of the logits (sampled text gets less random, greedy text
    stays). draft_noise: share of the head's own blocks and of the hidden state in what it predicts.
    """

    dim: int = 384
    layers: int = 8
    noise: float = 0.7
    ffn_share: float = 0.3
    sharpness: float = 3.0
    head_gain: float = 2.0
    draft_noise: float = 0.05
    context: int = 8192
    seed: int = 7

    @property
    def ff(self) -> int:
        """Width of the FFNs."""
        return 3 * self.dim


class Qwen35Target:
    """The weights of one target with its head inside."""

    def __init__(self, shape: Qwen35Shape, language: Language) -> None:
        self._shape = shape
        self._language = language
        self._random = np.random.default_rng(shape.seed)
        self._embedding, self._head = bigram_factors(language, shape.dim, self._random)

    def write(self, path: Path) -> None:
        """The file, f16."""
        shape = self._shape
        with ModelWriter(
            path,
            "qwen35",
            name="Miniature Qwen3.5 with MTP",
            tokenizer=self._language.tokenizer,
            format="f16",
        ) as writer:
            self._write_keys(writer)
            writer.matrix("token_embd", self._embedding * np.sqrt(shape.dim))
            writer.matrix("output", self._head * shape.head_gain)
            writer.gain("output_norm", shape.dim)
            # The sub-blocks' contributions are independent: they add up in quadrature.
            parts = (1 + shape.ffn_share**2) * shape.layers
            gain = shape.noise / _SUB_BLOCK_RMS / float(np.sqrt(parts))
            for index in range(shape.layers):
                layer = f"blk.{index}"
                if (index + 1) % _FULL_ATTENTION_INTERVAL == 0:
                    self._write_attention(writer, layer, gain)
                else:
                    self._write_delta_net(writer, layer, gain)
                self._write_ffn(writer, layer, gain * shape.ffn_share)
            self._write_mtp_block(writer, f"blk.{shape.layers}")

    def _write_keys(self, writer: ModelWriter) -> None:
        shape = self._shape
        writer.keys(
            block_count=shape.layers + 1,
            nextn_predict_layers=1,
            context_length=shape.context,
            embedding_length=shape.dim,
            feed_forward_length=shape.ff,
            full_attention_interval=_FULL_ATTENTION_INTERVAL,
            attention__head_count=_HEADS,
            attention__head_count_kv=_HEADS_KV,
            attention__key_length=_HEAD_DIM,
            attention__value_length=_HEAD_DIM,
            attention__layer_norm_rms_epsilon=1e-6,
            rope__freq_base=10_000_000.0,
            rope__dimension_count=_HEAD_DIM,
            rope__dimension_sections=_SECTIONS,
            ssm__conv_kernel=_CONVOLUTION,
            ssm__state_size=_STATE,
            ssm__group_count=_KEY_GROUPS,
            ssm__time_step_rank=_VALUE_HEADS,
            ssm__inner_size=_STATE * _VALUE_HEADS,
        )

    def _write_mtp_block(self, writer: ModelWriter, layer: str) -> None:
        shape = self._shape
        self._random = np.random.default_rng(shape.seed + 1)  # the same head for any depth
        projection = np.concatenate(
            [
                np.eye(shape.dim, dtype=np.float32),
                self._matrix(shape.dim, shape.dim, shape.draft_noise),
            ],
            axis=1,
        )
        writer.matrix(f"{layer}.nextn.eh_proj", projection)
        for norm in ("enorm", "hnorm", "shared_head_norm"):
            writer.gain(f"{layer}.nextn.{norm}", shape.dim)
        self._write_attention(writer, layer, shape.draft_noise)
        self._write_ffn(writer, layer, shape.draft_noise)

    def _write_attention(self, writer: ModelWriter, layer: str, gain: float) -> None:
        dim = self._shape.dim
        writer.gain(f"{layer}.attn_norm", dim)
        writer.matrix(f"{layer}.attn_q", self._matrix(2 * _HEAD_DIM * _HEADS, dim))
        writer.matrix(f"{layer}.attn_k", self._matrix(_HEAD_DIM * _HEADS_KV, dim))
        writer.matrix(f"{layer}.attn_v", self._matrix(_HEAD_DIM * _HEADS_KV, dim))
        writer.matrix(f"{layer}.attn_output", self._matrix(dim, _HEAD_DIM * _HEADS, gain))
        writer.gain(f"{layer}.attn_q_norm", _HEAD_DIM, self._shape.sharpness)
        writer.gain(f"{layer}.attn_k_norm", _HEAD_DIM)

    def _write_delta_net(self, writer: ModelWriter, layer: str, gain: float) -> None:
        dim, values = self._shape.dim, _STATE * _VALUE_HEADS
        mixed = 2 * _STATE * _KEY_GROUPS + values
        writer.gain(f"{layer}.attn_norm", dim)
        writer.matrix(f"{layer}.attn_qkv", self._matrix(mixed, dim))
        writer.matrix(f"{layer}.attn_gate", self._matrix(values, dim))
        writer.matrix(f"{layer}.ssm_conv1d", self._matrix(mixed, _CONVOLUTION), format="f32")
        writer.vector(f"{layer}.ssm_dt.bias", np.zeros(_VALUE_HEADS))
        writer.vector(f"{layer}.ssm_a", -np.geomspace(0.02, 0.5, _VALUE_HEADS))  # slow to fast
        writer.matrix(f"{layer}.ssm_beta", self._matrix(_VALUE_HEADS, dim))
        writer.matrix(f"{layer}.ssm_alpha", self._matrix(_VALUE_HEADS, dim))
        writer.gain(f"{layer}.ssm_norm", _STATE)
        writer.matrix(f"{layer}.ssm_out", self._matrix(dim, values, gain))

    def _write_ffn(self, writer: ModelWriter, layer: str, gain: float) -> None:
        dim, ff = self._shape.dim, self._shape.ff
        writer.gain(f"{layer}.post_attention_norm", dim)
        writer.matrix(f"{layer}.ffn_gate", self._matrix(ff, dim))
        writer.matrix(f"{layer}.ffn_up", self._matrix(ff, dim))
        writer.matrix(f"{layer}.ffn_down", self._matrix(dim, ff, gain))

    def _matrix(self, rows: int, columns: int, gain: float = 1.0) -> Floats:
        return random_matrix(self._random, rows, columns, gain)
