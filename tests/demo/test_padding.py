"""A big stand-in that says what the small model says; a copy that differs in its encoding alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader

from tests.demo.server import running, with_target
from tuirig.demo import smollm2
from tuirig.demo.padding import append_layers
from tuirig.files.gguf import read_header
from tuirig.rigs.schema import Rig


def _source_file() -> Path:
    path = smollm2.in_wheel()
    assert path is not None
    return path


def test_appended_layers_change_no_token(smollm2_rig: Rig, tmp_path: Path) -> None:
    padded = tmp_path / "padded.gguf"
    append_layers(GGUFReader(_source_file()), padded, 2)
    header = read_header(padded)
    assert header.keys["llama.block_count"] == 32
    before = {tensor.name for tensor in read_header(_source_file()).tensors}
    added = {tensor.name for tensor in header.tensors} - before
    assert {name.split(".")[1] for name in added} == {"30", "31"}
    assert len(added) == 2 * len([name for name in before if name.startswith("blk.29.")])
    with running(smollm2_rig) as server:
        plain = server.answers(16)
    with running(with_target(smollm2_rig, padded)) as server:
        assert server.answers(16) == plain
    assert all(len(answer.text) > 30 for answer in plain)


def test_a_requantised_file_differs_in_its_encoding_alone(smollm2_files: Path) -> None:
    copy = smollm2_files / "smollm2-q4_0.gguf"
    changed = {
        key
        for key, value in read_header(_source_file()).keys.items()
        if _comparable(value) != _comparable(read_header(copy).keys[key])
    }
    assert changed == {"general.file_type"}
    matrices = 0
    for one, other in zip(_tensors(_source_file()), _tensors(copy), strict=True):
        assert (one.name, one.shape) == (other.name, other.shape)
        if one.kind == GGMLQuantizationType.F32:
            assert other.kind == GGMLQuantizationType.F32
            assert np.array_equal(one.data, other.data)
        else:
            assert other.kind == GGMLQuantizationType.Q4_0
            if one.name.startswith("blk.7."):
                exact = gguf.quants.dequantize(one.data, one.kind)
                decoded = gguf.quants.dequantize(other.data, other.kind)
                assert 0 < np.linalg.norm(decoded - exact) < 0.15 * np.linalg.norm(exact)
                matrices += 1
    assert matrices == 7


class _Tensor(NamedTuple):
    name: str
    shape: tuple[int, ...]
    kind: GGMLQuantizationType
    data: np.ndarray[tuple[int, ...], np.dtype[np.uint8]]


def _tensors(path: Path) -> Iterator[_Tensor]:
    """Every tensor with its bytes; the project's own reader, as quick as gguf's is slow."""
    header = read_header(path)
    content = np.memmap(path, np.uint8, "r")
    for tensor in header.tensors:
        assert tensor.size is not None
        start = header.data_start + tensor.offset
        data = content[start : start + tensor.size]
        yield _Tensor(tensor.name, tensor.shape, GGMLQuantizationType(tensor.kind), data)


def _comparable(value: object) -> object:
    """A list that the reader left in the file: by its content, not by its place."""
    return (value.count, value.sha256, value.size) if hasattr(value, "sha256") else value
