from __future__ import annotations

import hashlib
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import gguf as reference
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.files import gguf_bytes as g
from tests.files.mutations import mutated, plain_header
from tuirig.demo import smollm2
from tuirig.errors import ExitCode, TuirigError
from tuirig.files.gguf import GgufError, Left, parse_header, read_header
from tuirig.files.tensor_types import TENSOR_TYPES


class Bytes:
    """A source in memory. reads: every (offset, length) that was asked for."""

    label = "memory"
    first_read = 64

    def __init__(self, data: bytes, size: int | None = None) -> None:
        self._data = data
        self.size = len(data) if size is None else size
        self.reads: list[tuple[int, int]] = []

    def read(self, offset: int, length: int) -> bytes:
        self.reads.append((offset, length))
        return self._data[offset : offset + length]


def refused(data: bytes, size: int | None = None) -> GgufError:
    with pytest.raises(GgufError) as caught:
        parse_header(Bytes(data, size))
    assert caught.value.exit_code == ExitCode.BAD_FILE
    return caught.value


def test_every_kind_of_value() -> None:
    keys: dict[str, g.Typed] = {
        "u8": (0, b"\xff"),
        "i8": (1, b"\xff"),
        "u16": (2, struct.pack("<H", 65535)),
        "i16": (3, struct.pack("<h", -3)),
        "u32": g.u32(2**32 - 1),
        "i32": (5, struct.pack("<i", -5)),
        "f32": g.f32(0.5),
        "true": g.flag(True),
        "text": g.string("grün"),
        "broken text": g.string(b"\xff\xfe"),
        "numbers": g.numbers(g.U32, "I", [1, 2, 3]),
        "flags": g.numbers(g.BOOL, "?", [True, False]),
        "none": g.numbers(g.U32, "I", []),
        "u64": (10, struct.pack("<Q", 2**64 - 1)),
        "i64": (11, struct.pack("<q", -(2**63))),
        "f64": (12, struct.pack("<d", 1e300)),
    }
    header = parse_header(Bytes(g.header(keys, [g.tensor("t", (32, 3), 2, 0)])))
    assert header.keys == {
        "u8": 255, "i8": -1, "u16": 65535, "i16": -3, "u32": 2**32 - 1, "i32": -5, "f32": 0.5,
        "true": True, "text": "grün", "broken text": "\ufffd\ufffd", "numbers": (1, 2, 3),
        "flags": (True, False), "none": (), "u64": 2**64 - 1, "i64": -(2**63), "f64": 1e300,
    }  # fmt: skip
    (tensor,) = header.tensors
    assert (tensor.name, tensor.shape, tensor.type_name) == ("t", (32, 3), "q4_0")
    assert (tensor.elements, tensor.size, tensor.offset) == (96, 54, 0)


def test_a_long_list_is_left_in_the_file() -> None:
    words = [f"word {number}" * (number % 7) for number in range(5000)]
    keys = {
        "tokenizer.ggml.tokens": g.strings(words),
        "tokenizer.ggml.merges": g.strings(words),
        "scores": g.numbers(g.F32, "f", [0.0] * 5000),
        "after": g.u32(7),
    }
    data = g.header(keys)
    header = parse_header(Bytes(data))
    tokens, merges, scores = (header.keys[key] for key in list(keys)[:3])
    assert isinstance(tokens, Left)
    assert isinstance(merges, Left)
    assert isinstance(scores, Left)
    raw = b"".join(g.text(word) for word in words)
    assert data[tokens.offset :][: tokens.size] == raw
    assert tokens.sha256 == hashlib.sha256(raw).hexdigest()
    assert (tokens.count, merges.count, merges.sha256) == (5000, 5000, None)
    assert (scores.count, scores.size) == (5000, 20000)
    assert header.keys["after"] == 7


def test_a_string_larger_than_any_window_is_walked_over() -> None:
    words = ["a", "b" * 1_000_000, "c", "d" * 300_000]
    header = parse_header(
        Bytes(g.header({"tokenizer.ggml.tokens": g.strings(words), "after": g.u32(7)}))
    )
    tokens = header.keys["tokenizer.ggml.tokens"]
    assert isinstance(tokens, Left)
    raw = b"".join(g.text(word) for word in words)
    assert (tokens.size, tokens.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert header.keys["after"] == 7


def test_weights_are_not_read() -> None:
    data = g.header({"a": g.u32(1)}, [g.tensor("t", (2**40,), 0, 0)])
    source = Bytes(data + bytes(10_000), size=len(data) + 2**42)
    header = parse_header(source)
    assert header.missing_bytes == 0
    assert sum(length for _, length in source.reads) < 4096


def test_what_is_missing_at_the_end_is_counted() -> None:
    data = g.header({}, [g.tensor("a", (32,), 2, 0), g.tensor("b", (64,), 0, 32)])
    header = parse_header(Bytes(data + bytes(100)))
    assert header.data_start == len(data)
    assert header.missing_bytes == 32 + 256 - 100


@pytest.mark.parametrize("version", [2, 3])
def test_both_versions_that_llama_cpp_reads(version: int) -> None:
    assert parse_header(Bytes(g.header({}, version=version))).version == version


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a GGUF file"),
        (b"<html>", "not a GGUF file"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (g.header({}, version=1), "version 1, which llama.cpp reads no more"),
        (g.header({}, version=4), "version 4; known are 2 and 3"),
        (g.header({"a": (77, b"")}), "unknown value type 77"),
        (g.header({"a": (g.ARRAY, struct.pack("<IQ", 77, 1) + bytes(64))}), "unknown item type 77"),
        (g.header({"a": (g.ARRAY, struct.pack("<IQ", 9, 1) + bytes(64))}), "a list of lists"),
        (g.header({"general.alignment": g.u32(48)}), "not a power of two"),
        (g.header({"general.alignment": g.u32(0)}), "not a power of two"),
        (g.header({"general.alignment": g.string("x")}), "not a power of two"),
        (g.header({}, [g.tensor("t", (1, 1, 1, 1, 1), 0, 0)]), "5 dimensions"),
        (g.header({}, [g.tensor("t", (2**62, 2**62), 0, 0)]), "larger than any memory"),
        (g.header({}, [g.tensor("t", (33,), 2, 0)]), "no multiple of 32"),
        (g.header({}, [g.tensor("t", (32,), 0, 7)]), "multiple of 32"),
        (g.header({}, [g.tensor("t", (32,), 0, 0)] * 2), "the same name"),
    ],
)  # fmt: skip
def test_what_is_no_sound_header_is_refused_with_words(data: bytes, words: str) -> None:
    assert words in refused(data).message


def test_a_key_that_stands_twice() -> None:
    data = bytearray(g.header({"a": g.u32(1), "b": g.u32(2)}))
    data[data.index(b"b", 24)] = ord("a")
    error = refused(bytes(data))
    assert "the key a stands twice" in error.message
    assert error.at == data.index(b"a", 40) - 8


@pytest.mark.parametrize(("place", "what"), [(8, "tensors"), (16, "keys")], ids=("tensors", "keys"))
@pytest.mark.parametrize("count", [1000, 2**31, 2**63, 2**64 - 1])
def test_a_count_that_the_file_can_not_hold(place: int, what: str, count: int) -> None:
    data = bytearray(g.header({"a": g.u32(1)}, [g.tensor("t", (32,), 0, 0)]))
    struct.pack_into("<Q", data, place, count)
    error = refused(bytes(data))
    assert f"{count:,} {what}, which it can't hold (at byte {place})" in error.message


@pytest.mark.parametrize("length", [50, 2**20, 2**40, 2**63, 2**64 - 1])
def test_a_length_that_the_file_can_not_hold(length: int) -> None:
    for data in (
        g.header({"a": (g.STRING, struct.pack("<Q", length))}),
        g.header({"a": (g.ARRAY, struct.pack("<IQ", g.STRING, length))}),
        g.header({"a": (g.ARRAY, struct.pack("<IQ", g.U32, length))}),
        g.header({"a": (g.ARRAY, struct.pack("<IQQ", g.STRING, 1, length))}),
        g.header({"tokenizer.ggml.tokens": (g.ARRAY, struct.pack("<IQQ", g.STRING, 1, length))}),
    ):
        assert "bytes" in refused(data).message


def test_a_header_cut_at_any_byte_is_refused() -> None:
    data = plain_header()
    whole = parse_header(Bytes(data))
    end = len(data.rstrip(b"\0")) - 8  # the last tensor's offset is zeros too
    for length in range(end):
        assert refused(data[:length]).at is not None
    assert parse_header(Bytes(data)) == whole


def test_a_file_that_shrinks_while_it_is_read() -> None:
    data = plain_header()
    assert "became shorter" in refused(data[:100], size=len(data)).message


def test_claims_cost_no_memory() -> None:
    """Files of a terabyte (by their size alone) that claim as much as they could hold."""
    claims = [
        g.header({"a": (g.STRING, struct.pack("<Q", 2**39))}),
        g.header({"a": (g.ARRAY, struct.pack("<IQ", g.U32, 2**37))}),
        g.header({"a": (g.ARRAY, struct.pack("<IQ", g.STRING, 2**36))}),
        g.header({"tokenizer.ggml.tokens": (g.ARRAY, struct.pack("<IQQ", g.STRING, 1, 2**39))}),
        b"GGUF" + struct.pack("<IQQ", 3, 2**35, 2**35),
    ]
    tracemalloc.start()
    try:
        for data in claims:
            with suppress(TuirigError):
                parse_header(Bytes(data, size=2**40))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * 2**20


def test_texts_are_kept_within_bounds() -> None:
    long = g.header({f"key {n}": g.string("x" * 1_000_000) for n in range(20)})
    assert "more than 16 MiB of text" in refused(long).message
    longer = parse_header(Bytes(g.header({"a": g.string("x" * 2**21), "b": g.u32(1)})))
    assert longer.keys == {"a": Left(g.STRING, 1, longer.keys["a"].offset, 2**21), "b": 1}  # type: ignore[union-attr]


def test_names_from_a_file_are_made_harmless_in_messages() -> None:
    message = refused(g.header({"\x1b[31mevil\n" + "x" * 500: (77, b"")})).message
    assert message.isprintable()
    assert len(message) < 200


def test_a_folder_a_pipe_and_nothing_are_no_files(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "absent", tmp_path / "nul\0"):
        with pytest.raises(TuirigError):
            read_header(path)


@settings(
    max_examples=1500, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
@given(st.data())
def test_mutated_headers_are_read_or_refused(data: st.DataObject) -> None:
    source = Bytes(mutated(data))
    try:
        header = parse_header(source)
    except TuirigError as error:
        assert error.message.isprintable()
    else:
        assert header.missing_bytes >= 0
    assert sum(length for _, length in source.reads) < 2**20


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for start in (b"", b"GGUF\3\0\0\0"):
        try:
            parse_header(Bytes(start + data))
        except TuirigError as error:
            assert error.message.isprintable()


def agrees(path: Path) -> None:
    """Whether the header is what the gguf package reads."""
    ours, theirs = read_header(path), reference.GGUFReader(path)
    fields = {key: field for key, field in theirs.fields.items() if not key.startswith("GGUF.")}
    assert list(ours.keys) == list(fields)
    for key, field in fields.items():
        value = ours.keys[key]
        if isinstance(value, Left):
            assert value.count == len(field.data)
            assert field.types[0] == reference.GGUFValueType.ARRAY
            continue
        assert (list(value) if isinstance(value, tuple) else value) == field.contents()
    assert len(ours.tensors) == len(theirs.tensors)
    for tensor, known in zip(ours.tensors, theirs.tensors, strict=True):
        assert (tensor.name, tensor.kind) == (known.name, known.tensor_type)
        assert tensor.shape == tuple(int(size) for size in known.shape)
        assert tensor.size == known.n_bytes
        assert tensor.elements == known.n_elements
        assert ours.data_start + tensor.offset == known.data_offset
    assert ours.missing_bytes == 0


@pytest.mark.parametrize(
    "kind", [kind for kind in TENSOR_TYPES if kind != 9]
)  # q8_1: in memory only
def test_agrees_with_the_gguf_package_on_every_type(kind: int, tmp_path: Path) -> None:
    if kind not in set(reference.GGMLQuantizationType):
        pytest.skip("newer than the package")
    path = tmp_path / "x.gguf"
    writer = reference.GGUFWriter(path, "llama")
    block, size = reference.GGML_QUANT_SIZES[reference.GGMLQuantizationType(kind)]
    for name, rows in (("a", 3), ("b", 5)):
        data = np.zeros((rows, 2 * size), dtype=np.uint8)
        shape = (rows, 2 * size)
        writer.add_tensor(
            name, data, raw_shape=shape, raw_dtype=reference.GGMLQuantizationType(kind)
        )
    _finish(writer)
    agrees(path)
    assert read_header(path).tensors[0].shape == (2 * block, 3)


@pytest.mark.parametrize("architecture", ["llama", "gemma4", "qwen35", "mamba", "gpt-oss", "bert"])
def test_agrees_with_the_gguf_package_on_architectures(architecture: str, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    writer = reference.GGUFWriter(path, architecture)
    values: dict[str, Any] = {
        "add_name": "A name", "add_block_count": 4, "add_context_length": 4096,
        "add_embedding_length": 64, "add_head_count": 4, "add_head_count_kv": [2, 2, 1, 1],
        "add_layer_norm_rms_eps": 1e-5, "add_tokenizer_model": "gpt2", "add_tokenizer_pre": "x",
        "add_token_list": [f"t{n}" for n in range(9000)], "add_token_types": [1] * 9000,
        "add_bos_token_id": 3, "add_add_bos_token": True, "add_token_merges": ["a b"] * 7000,
        "add_sliding_window": 512, "add_custom_alignment": 64,
    }  # fmt: skip
    for method, value in values.items():
        getattr(writer, method)(value)
    writer.add_array("a.flags", [True, False])
    writer.add_array("a.floats", [0.5, 2.0])
    writer.add_array("a.texts", ["x", "yy"])
    for layer in range(4):
        writer.add_tensor(f"blk.{layer}.a", np.zeros((3, layer + 1, 8), dtype=np.float32))
        writer.add_tensor(f"blk.{layer}.b", np.zeros(7, dtype=np.int32))
    _finish(writer)
    agrees(path)


def test_agrees_with_the_gguf_package_on_the_small_models(demo_files: Path) -> None:
    real = smollm2.in_wheel()
    assert real is not None
    for path in (*sorted(demo_files.glob("*.gguf")), real):
        agrees(path)


def _finish(writer: reference.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
