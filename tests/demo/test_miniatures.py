"""The makers' files, read back and run."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader

from tests.demo.server import running
from tuirig.demo import smollm2
from tuirig.demo.bigram import Language, bigram_factors, corpus
from tuirig.demo.tokenizer import Tokenizer
from tuirig.files.gguf import Left, read_header
from tuirig.rigs.schema import Rig


def shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Tensor name -> shape as ggml counts it, the fastest dimension first."""
    return {tensor.name: tensor.shape for tensor in read_header(path).tensors}


def test_gemma4_target_has_what_llama_cpp_asks_for(demo_files: Path) -> None:
    header = read_header(demo_files / "gemma4.gguf")
    keys, tensors = header.keys, shapes(demo_files / "gemma4.gguf")
    assert keys["general.architecture"] == "gemma4"
    assert keys["gemma4.block_count"] == 4
    assert keys["gemma4.attention.sliding_window_pattern"] == (True, False, True, False)
    assert keys["gemma4.attention.head_count_kv"] == (1, 1, 1, 1)
    tokens = keys["tokenizer.ggml.tokens"]
    assert isinstance(tokens, Left)
    assert tokens.count == 4096
    assert tensors["token_embd.weight"] == tensors["output.weight"] == (256, 4096)
    assert tensors["blk.0.attn_k.weight"] == (256, 64)
    assert tensors["blk.1.attn_k.weight"] == (256, 128)
    parts = {name.partition("blk.3.")[2] for name in tensors if name.startswith("blk.3.")}
    assert parts == {
        *(f"attn_{part}.weight" for part in ("norm", "q", "k", "v", "output", "q_norm", "k_norm")),
        *(f"ffn_{part}.weight" for part in ("norm", "gate", "up", "down")),
        "post_attention_norm.weight",
        "post_ffw_norm.weight",
        "layer_output_scale.weight",
    }
    assert header.missing_bytes == 0


def test_gemma4_drafter_fits_its_target(demo_files: Path) -> None:
    target = read_header(demo_files / "gemma4.gguf").keys
    drafter = read_header(demo_files / "gemma4-f16.gguf").keys
    name = "gemma4-assistant"
    assert drafter["general.architecture"] == name
    assert drafter[f"{name}.embedding_length_out"] == target["gemma4.embedding_length"]
    assert drafter[f"{name}.embedding_length"] != target["gemma4.embedding_length"]
    assert drafter[f"{name}.nextn_predict_layers"] == drafter[f"{name}.block_count"]
    for key in ("key_length", "value_length", "key_length_swa", "value_length_swa"):
        assert drafter[f"{name}.attention.{key}"] == target[f"gemma4.attention.{key}"]
    tensors = shapes(demo_files / "gemma4-f16.gguf")
    assert tensors["nextn.pre_projection.weight"] == (512, 128)
    assert tensors["nextn.post_projection.weight"] == (128, 256)
    assert not [name for name in tensors if "attn_k" in name or "attn_v" in name]


@pytest.mark.parametrize(("format", "error"), [("q8_0", 0.01), ("q4_0", 0.15)])
def test_every_format_of_the_drafter_encodes_the_same_weights(
    demo_files: Path, format: str, error: float
) -> None:
    plain = GGUFReader(demo_files / "gemma4-f16.gguf").tensors
    encoded = GGUFReader(demo_files / f"gemma4-{format}.gguf").tensors
    for one, other in zip(plain, encoded, strict=True):
        assert (one.name, list(one.shape)) == (other.name, list(other.shape))
        if one.tensor_type == GGMLQuantizationType.F32:
            assert np.array_equal(one.data, other.data)
        else:
            assert other.tensor_type == GGMLQuantizationType[format.upper()]
            exact = one.data.astype(np.float32)
            decoded = gguf.quants.dequantize(other.data, other.tensor_type)
            assert 0 < np.linalg.norm(decoded - exact) <= error * np.linalg.norm(exact), one.name


def test_qwen35_carries_its_head(demo_files: Path) -> None:
    keys, tensors = (
        read_header(demo_files / "qwen35.gguf").keys,
        shapes(demo_files / "qwen35.gguf"),
    )
    assert keys["general.architecture"] == "qwen35"
    assert keys["qwen35.nextn_predict_layers"] == 1
    assert keys["qwen35.block_count"] == 5  # four of the trunk and the head
    assert tensors["blk.4.nextn.eh_proj.weight"] == (512, 256)
    assert "blk.3.attn_q.weight" in tensors
    assert "blk.3.ssm_out.weight" not in tensors
    assert "blk.2.ssm_out.weight" in tensors
    sections = keys["qwen35.rope.dimension_sections"]
    assert isinstance(sections, tuple)
    assert 2 * sum(sections) == keys["qwen35.rope.dimension_count"]


def test_the_embedding_and_the_head_are_the_bigram_table() -> None:
    source = smollm2.in_wheel()
    assert source is not None
    language = Language.read(source, 400)
    embedding, head = bigram_factors(language, 400, np.random.default_rng(0))
    assert np.allclose(np.linalg.norm(embedding, axis=1), 1, atol=1e-3)
    logits = head @ (embedding * np.sqrt(400)).T  # [next, this]; RMSNorm of unit rows
    pairs = np.zeros((400, 400), int)
    np.add.at(pairs, (language.tokens[:-1], language.tokens[1:]), 1)
    np.fill_diagonal(pairs, 0)
    often = np.argsort(pairs.sum(1))[-50:]
    guessed = logits.argmax(0)[often] == pairs.argmax(1)[often]
    assert guessed.mean() > 0.9


def test_the_tokenizer_cuts_prose_as_the_server_does(tiny_gemma4_rig: Rig) -> None:
    prose = corpus()[1000:1400]
    source = smollm2.in_wheel()
    assert source is not None
    tokenizer = Tokenizer(source, 4096)
    with running(tiny_gemma4_rig) as server:
        tokens = server.post("/tokenize", {"content": prose})["tokens"]
    assert tokenizer.encode(prose) == tokens
    assert len(tokens) > 50
