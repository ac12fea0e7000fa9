"""A miniature Gemma 4 target and its MTP assistant drafter, which llama-server loads as real ones.

Target: embedding and head are the bigram factors; attention and FFN are random, and their share of
the residual stream (`noise`) makes the text depend on more than the last token. Drafter: it sees
the leading singular directions of the target's embedding, so it guesses the bigram part and misses
the rest; acceptance falls with more noise and with fewer directions.

What llama.cpp asks of the pair (src/models/gemma4.cpp, gemma4-assistant.cpp):
- the drafter has no keys and values of its own: its sliding layers read those of target layer
  n - 2, its full layers those of n - 1, so the target has to end in (sliding, full);
- head sizes and n_head_kv are equal in both, the drafter's embedding_length differs from
  embedding_length_out (the target's), nextn_predict_layers is its block_count;
- the embedding is scaled by sqrt(dim) at run time, so rows of length 1 become unit RMS;
- the drafter embeds with the target's table: its own token_embd is its head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuirig.demo.bigram import Floats, Language, bigram_factors
from tuirig.demo.writing import ModelWriter, random_matrix

_HEADS = 4
_HEADS_KV = 1
_HEAD_DIM = 128
_HEAD_DIM_SLIDING = 64
_ROTATED = _HEAD_DIM // 8  # a quarter of the full head turns, in pairs
_NEVER_TURNS = 1e30


@dataclass(frozen=True)
class Gemma4Shape:
    """Sizes of the pair. layers is even; draft_dim differs from dim and is smaller."""

    dim: int = 256
    ff: int = 512
    layers: int = 4
    noise: float = 0.25
    draft_dim: int = 128
    draft_layers: int = 4
    draft_noise: float = 0.02
    context: int = 8192
    seed: int = 7


class Gemma4Pair:
    """The weights of one pair. Write the target first: both draw from one random stream."""

    def __init__(self, shape: Gemma4Shape, language: Language) -> None:
        self._shape = shape
        self._language = language
        self._random = np.random.default_rng(shape.seed)
        self._embedding, self._head = bigram_factors(language, shape.dim, self._random)
        self._drafter: _DrafterWeights | None = None

    def write_target(self, path: Path, format: str = "f16") -> None:
        """The target; every format encodes the same weights."""
        shape = self._shape
        sliding = [layer % 2 == 0 for layer in range(shape.layers)]
        with self._writer(path, "gemma4", "Miniature Gemma 4", format) as writer:
            _write_keys(writer, shape.dim, shape.ff, sliding, shape.context, shared=0)
            writer.keys(final_logit_softcapping=30.0)
            writer.matrix("token_embd", self._embedding)
            writer.matrix("output", self._head)
            _write_outer(writer, shape.dim)
            for layer, slides in enumerate(sliding):
                self._write_target_layer(writer, f"blk.{layer}", slides)

    def _write_target_layer(self, writer: ModelWriter, layer: str, slides: bool) -> None:
        dim, ff = self._shape.dim, self._shape.ff
        head_dim = _head_dim(slides)
        writer.matrix(f"{layer}.attn_q", self._matrix(head_dim * _HEADS, dim))
        writer.matrix(f"{layer}.attn_k", self._matrix(head_dim * _HEADS_KV, dim))
        writer.matrix(f"{layer}.attn_v", self._matrix(head_dim * _HEADS_KV, dim))
        writer.matrix(f"{layer}.attn_output", self._matrix(dim, head_dim * _HEADS))
        writer.gain(f"{layer}.attn_k_norm", head_dim)
        writer.matrix(f"{layer}.ffn_gate", self._matrix(ff, dim))
        writer.matrix(f"{layer}.ffn_up", self._matrix(ff, dim))
        writer.matrix(f"{layer}.ffn_down", self._matrix(dim, ff))
        _write_layer_gains(writer, layer, dim, head_dim, self._shape.noise)

    def write_drafter(self, path: Path, format: str) -> None:
        """The drafter; every format encodes the same weights."""
        shape = self._shape
        weights = self._drafter = self._drafter or self._draw_drafter()
        sliding = _draft_pattern(shape)
        name = "Miniature Gemma 4 assistant"
        with self._writer(path, "gemma4-assistant", name, format) as writer:
            _write_keys(
                writer,
                shape.draft_dim,
                _draft_ff(shape),
                sliding,
                shape.context,
                shared=shape.draft_layers,
            )
            writer.keys(embedding_length_out=shape.dim, nextn_predict_layers=shape.draft_layers)
            writer.matrix("token_embd", weights.head)
            _write_outer(writer, shape.draft_dim)
            writer.matrix("nextn.pre_projection", weights.pre_projection)
            writer.matrix("nextn.post_projection", weights.post_projection)
            for index, (slides, matrices) in enumerate(zip(sliding, weights.layers, strict=True)):
                layer = f"blk.{index}"
                for part, values in matrices.items():
                    writer.matrix(f"{layer}.{part}", values)
                _write_layer_gains(
                    writer, layer, shape.draft_dim, _head_dim(slides), shape.draft_noise
                )

    def _draw_drafter(self) -> _DrafterWeights:
        dim, draft_dim, ff = self._shape.dim, self._shape.draft_dim, _draft_ff(self._shape)
        # Input: the newest token's embedding, then the target's hidden state.
        pre_projection = np.concatenate(
            [
                np.eye(draft_dim, dim, dtype=np.float32),
                self._matrix(draft_dim, dim, self._shape.draft_noise),
            ],
            axis=1,
        )
        layers = []
        for slides in _draft_pattern(self._shape):
            width = _head_dim(slides) * _HEADS
            layers.append(
                {
                    "attn_q": self._matrix(width, draft_dim),
                    "attn_output": self._matrix(draft_dim, width),
                    "ffn_gate": self._matrix(ff, draft_dim),
                    "ffn_up": self._matrix(ff, draft_dim),
                    "ffn_down": self._matrix(draft_dim, ff),
                }
            )
        return _DrafterWeights(
            head=self._head[:, :draft_dim],
            pre_projection=pre_projection,
            post_projection=self._matrix(dim, draft_dim),
            layers=layers,
        )

    def _matrix(self, rows: int, columns: int, gain: float = 1.0) -> Floats:
        return random_matrix(self._random, rows, columns, gain)

    def _writer(self, path: Path, architecture: str, name: str, format: str) -> ModelWriter:
        tokenizer = self._language.tokenizer
        return ModelWriter(path, architecture, name=name, tokenizer=tokenizer, format=format)


@dataclass(frozen=True)
class _DrafterWeights:
    head: Floats
    pre_projection: Floats
    post_projection: Floats
    layers: list[dict[str, Floats]]


def _head_dim(slides: bool) -> int:
    return _HEAD_DIM_SLIDING if slides else _HEAD_DIM


def _draft_pattern(shape: Gemma4Shape) -> list[bool]:
    return [True] * (shape.draft_layers - 1) + [False]


def _draft_ff(shape: Gemma4Shape) -> int:
    return 2 * shape.draft_dim


def _write_keys(
    writer: ModelWriter, dim: int, ff: int, sliding: Sequence[bool], context: int, *, shared: int
) -> None:
    writer.keys(
        block_count=len(sliding),
        context_length=context,
        embedding_length=dim,
        embedding_length_per_layer_input=0,
        feed_forward_length=ff,
        attention__head_count=_HEADS,
        attention__head_count_kv=[_HEADS_KV] * len(sliding),
        attention__layer_norm_rms_epsilon=1e-6,
        attention__key_length=_HEAD_DIM,
        attention__value_length=_HEAD_DIM,
        attention__key_length_swa=_HEAD_DIM_SLIDING,
        attention__value_length_swa=_HEAD_DIM_SLIDING,
        attention__sliding_window=512,
        attention__sliding_window_pattern=list(sliding),
        attention__shared_kv_layers=shared,
        rope__freq_base=1_000_000.0,
        rope__freq_base_swa=10_000.0,
        rope__dimension_count=_HEAD_DIM,
        rope__dimension_count_swa=_HEAD_DIM_SLIDING,
    )


def _write_outer(writer: ModelWriter, dim: int) -> None:
    writer.gain("output_norm", dim)
    turning = np.arange(_HEAD_DIM // 2) < _ROTATED
    writer.vector("rope_freqs.weight", np.where(turning, 1.0, _NEVER_TURNS))


def _write_layer_gains(
    writer: ModelWriter, layer: str, dim: int, head_dim: int, noise: float
) -> None:
    writer.gain(f"{layer}.attn_norm", dim)
    writer.gain(f"{layer}.attn_q_norm", head_dim)
    writer.gain(f"{layer}.post_attention_norm", dim, noise)
    writer.gain(f"{layer}.ffn_norm", dim)
    writer.gain(f"{layer}.post_ffw_norm", dim, noise)
    writer.gain(f"{layer}.layer_output_scale", 1)
