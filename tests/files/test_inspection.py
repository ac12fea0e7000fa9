from __future__ import annotations

import hashlib
import struct
from pathlib import Path

import pytest

from tests.files import gguf_bytes as g
from tests.files import shapes
from tuirig.demo import smollm2
from tuirig.errors import MissingError, TuirigError
from tuirig.files.drafters import Role
from tuirig.files.inspection import inspect


def test_a_real_model() -> None:
    path = smollm2.in_wheel()
    assert path is not None
    found = inspect(path)
    assert (found.role, found.architecture, found.layers) == (Role.MODEL, "llama", 30)
    assert (found.parameters, found.encoding, found.claimed) == (134_515_008, "q4_1", "q4_1")
    assert [encoding.type for encoding in found.encodings] == ["q4_1", "q8_0", "f32"]
    assert found.bits_per_weight == pytest.approx(5.7437, abs=1e-4)
    vocabulary = found.vocabulary
    assert (vocabulary.model, vocabulary.pre, vocabulary.size) == ("gpt2", "smollm", 49152)
    assert (vocabulary.bos, vocabulary.eos, found.context_length) == (1, 2, 8192)
    assert found.drafts is not None
    assert found.drafts.type == "draft-simple"
    assert found.problems == ()


def test_the_miniatures(demo_files: Path) -> None:
    drafter = inspect(demo_files / "gemma4-q4_0.gguf")
    assert (drafter.role, drafter.encoding, drafter.problems) == (Role.DRAFTER, "q4_0", ())
    assert drafter.drafts is not None
    assert (drafter.drafts.type, drafter.drafts.architecture) == ("draft-mtp", "gemma4")
    target = inspect(demo_files / "gemma4.gguf")
    assert (target.role, target.width) == (Role.MODEL, drafter.drafts.width)
    assert target.vocabulary.sha256 == drafter.vocabulary.sha256
    inside = inspect(demo_files / "qwen35.gguf")
    assert (inside.role, inside.layers, inside.mtp_layers) == (Role.MODEL_WITH_MTP, 4, 1)
    assert inside.drafts is not None
    assert (inside.drafts.type, inside.drafts.target) == ("draft-mtp", "itself")


def test_the_encoding_is_that_of_the_tensors_not_of_the_name(tmp_path: Path) -> None:
    path = shapes.llama(
        tmp_path / "model-Q4_K_M.gguf", layers=2, kind="q6_k", general__file_type=g.u32(15)
    )
    found = inspect(path)
    assert (found.encoding, found.claimed) == ("q6_k", "q4_k_m")
    assert found.bits_per_weight == pytest.approx(6.5625, abs=0.01)


@pytest.mark.parametrize(
    ("architecture", "kind", "role"),
    [
        ("clip", "mmproj", Role.OTHER),
        ("llama", "adapter", Role.OTHER),
        ("bert", "model", Role.OTHER),
        ("eagle3", "model", Role.DRAFTER),
        ("dflash", "model", Role.DRAFTER),
        ("brand-new", "model", Role.MODEL),
    ],
)
def test_roles(architecture: str, kind: str, role: Role, tmp_path: Path) -> None:
    tensors: list[shapes.Entry] = [("a.weight", (32, 32), "f16")]
    keys: dict[str, shapes.Key] = {"block_count": 1, "target_layers": [1, 1, 1]}
    path = shapes.write(
        tmp_path / "x.gguf", architecture, keys, tensors, general__type=g.string(kind)
    )
    found = inspect(path)
    assert found.role is role
    assert (found.drafts is None) == (role is Role.OTHER)


def test_a_tensor_of_an_unknown_type_does_not_hide_the_rest(tmp_path: Path) -> None:
    entries = [g.tensor("a", (64, 2), 77, 0), g.tensor("b", (32,), 0, 128)]
    header = g.header({"general.architecture": g.string("llama")}, entries)
    (tmp_path / "x.gguf").write_bytes(header + bytes(256))
    found = inspect(tmp_path / "x.gguf")
    assert {encoding.type: encoding.size for encoding in found.encodings} == {
        "type 77": None,
        "f32": 128,
    }
    assert (found.bits_per_weight, found.problems) == (None, ())


def test_shards_are_one_model(tmp_path: Path) -> None:
    whole = shapes.llama(tmp_path / "whole.gguf", layers=2, vocabulary=300)
    count = (2, struct.pack("<H", 2))
    name = "model-0000{}-of-00002.gguf"
    shapes.write(
        tmp_path / name.format(1), "llama", {"block_count": 2},
        [("token_embd.weight", (4096, 300), "q8_0")], split__count=count,
    )  # fmt: skip
    shapes.write(
        tmp_path / name.format(2), "llama", {}, [("blk.0.attn_q.weight", (4096, 4096), "q8_0")],
        cut=5, split__count=count,
    )  # fmt: skip
    found = inspect(tmp_path / name.format(1))
    assert (found.shards, found.parameters) == (2, 4096 * 300 + 4096 * 4096)
    assert inspect(tmp_path / name.format(2)) == found  # any shard stands for the model
    assert found.problems == (
        "it is cut short: 5 bytes are missing at its end (model-00002-of-00002.gguf)",
    )
    (tmp_path / name.format(2)).unlink()
    assert inspect(tmp_path / name.format(1)).problems == (
        "its shard model-00002-of-00002.gguf is missing",
    )
    (tmp_path / name.format(1)).rename(tmp_path / "renamed.gguf")
    with pytest.raises(TuirigError, match="it says that it is one of 2 shards, its name does not"):
        inspect(tmp_path / "renamed.gguf")
    assert inspect(whole).shards == 1


def test_what_llama_server_would_refuse(tmp_path: Path) -> None:
    def problems(path: Path) -> str:
        return "; ".join(inspect(path).problems)

    keys: dict[str, shapes.Key] = {"block_count": 10_000}
    path = shapes.write(tmp_path / "x.gguf", "llama", keys, [("a.weight", (32,), "f32")])
    assert "it claims 10,000 layers; llama.cpp takes 512" in problems(path)
    shapes.write(path, "llama", {"block_count": 1}, [])
    assert "it has no tensors" in problems(path)
    path.write_bytes(g.header({}, [g.tensor("a", (32,), 0, 0)]) + bytes(128))
    assert "it names no architecture" in problems(path)
    entries = [g.tensor("a", (32,), 0, 0), g.tensor("b", (32,), 0, 256)]
    header = g.header({"general.architecture": g.string("llama")}, entries)
    path.write_bytes(header + bytes(512))
    assert problems(path) == "the tensor b is not where llama.cpp expects it"
    with pytest.raises(MissingError):
        inspect(tmp_path / "absent.gguf")


def test_tokenizers_are_told_apart_by_their_tokens(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(300)]
    one = inspect(shapes.llama(tmp_path / "a.gguf", layers=1, vocabulary=words)).vocabulary
    raw = b"".join(g.text(word) for word in words)
    assert (one.size, one.sha256) == (300, hashlib.sha256(raw).hexdigest())
