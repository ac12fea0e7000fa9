from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.files.repack.checkpoints import write_safetensors, write_sharded
from tuirig.errors import MissingError, TuirigError
from tuirig.files.repack.safetensors import read_snapshot

TENSORS = {
    "a.weight": np.arange(64, dtype=np.float32).reshape(2, 32),
    "b.weight": np.ones(3, np.float64),
    "c.order": np.arange(4),
}


def raw(folder: Path, header: object, data: bytes = bytes(64), length: int | None = None) -> Path:
    """A safetensors file with any header."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path = folder / "model.safetensors"
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"dtype": "BF16", "shape": [2, 16], "data_offsets": [0, 64], **changes}


def test_reads_one_file(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", TENSORS)
    found = read_snapshot(tmp_path)
    assert found == read_snapshot(tmp_path / "model.safetensors")
    assert {name: (each.dtype, each.shape) for name, each in found.items()} == {
        "a.weight": ("BF16", (2, 32)),
        "b.weight": ("F32", (3,)),
        "c.order": ("I64", (4,)),
    }
    data = (tmp_path / "model.safetensors").read_bytes()
    b = found["b.weight"]
    assert np.frombuffer(data[b.start : b.start + b.size], np.float32).tolist() == [1, 1, 1]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_reads_several_files_by_their_index(tmp_path: Path, count: int) -> None:
    write_sharded(tmp_path, TENSORS, count)
    write_safetensors(tmp_path / "consolidated.safetensors", TENSORS)  # not in the index
    found = read_snapshot(tmp_path)
    assert found.keys() == TENSORS.keys()
    assert len({each.file for each in found.values()}) == count


def test_several_files_without_an_index_are_taken_together(tmp_path: Path) -> None:
    write_sharded(tmp_path, TENSORS, 2)
    (tmp_path / "model.safetensors.index.json").unlink()
    assert read_snapshot(tmp_path).keys() == TENSORS.keys()
    write_safetensors(tmp_path / "again.safetensors", {"a.weight": TENSORS["a.weight"]})
    with pytest.raises(TuirigError, match=r"a\.weight stands in again\.safetensors and model-"):
        read_snapshot(tmp_path)


def test_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no snapshot"):
        read_snapshot(tmp_path / "nowhere")
    with pytest.raises(MissingError, match=r"no \.safetensors file"):
        read_snapshot(tmp_path)
    write_sharded(tmp_path, TENSORS, 2)
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(MissingError, match=r"model-00002-of-00002\.safetensors is missing"):
        read_snapshot(tmp_path)


@pytest.mark.parametrize(
    "index",
    [
        {"weight_map": {"a.weight": "../model.safetensors"}},
        {"weight_map": {"a.weight": "/etc/passwd"}},
        {"weight_map": {"a.weight": ".."}},
        {"weight_map": {"a.weight": "model\0.safetensors"}},
        {"weight_map": {"a.weight": ""}},
        {"weight_map": {"a.weight": 3}},
        {"weight_map": {"absent.weight": "model.safetensors"}},
        {"weight_map": ["a.weight"]},
        {},
        [],
    ],
    ids=json.dumps,
)
def test_a_hostile_index(tmp_path: Path, index: object) -> None:
    write_safetensors(tmp_path / "model.safetensors", TENSORS)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(TuirigError, match="is damaged"):
        read_snapshot(tmp_path)


def test_an_index_too_large_to_read(tmp_path: Path) -> None:
    with open(tmp_path / "model.safetensors.index.json", "wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(TuirigError, match="too large"):
        read_snapshot(tmp_path)


@pytest.mark.parametrize(
    "header",
    [
        {"a": entry(data_offsets=[0, 65])},
        {"a": entry(data_offsets=[64, 0])},
        {"a": entry(data_offsets=[-64, 0])},
        {"a": entry(data_offsets=[0, 1 << 64])},
        {"a": entry(data_offsets=[0])},
        {"a": entry(data_offsets=[0.0, 64.0])},
        {"a": entry(data_offsets=[False, True])},
        {"a": entry(shape=[2, 17])},
        {"a": entry(shape=[-2, -16])},
        {"a": entry(shape=[1 << 62, 1 << 62])},
        {"a": entry(shape=[1] * 9)},
        {"a": entry(shape="2")},
        {"a": entry(dtype=16)},
        {"a": {}},
        {"a": None},
        [entry()],
        b"{",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"a": 1, "a": 2}',
    ],
    ids=lambda header: str(header)[:60],
)
def test_a_hostile_header(tmp_path: Path, header: object) -> None:
    raw(tmp_path, header)
    with pytest.raises(TuirigError, match="is damaged"):
        read_snapshot(tmp_path)


@pytest.mark.parametrize("length", [1 << 63, 1 << 30, 200])
def test_a_header_longer_than_the_file(tmp_path: Path, length: int) -> None:
    raw(tmp_path, {"a": entry()}, length=length)
    with pytest.raises(TuirigError, match="longer than the file"):
        read_snapshot(tmp_path)


@pytest.mark.parametrize("size", [0, 7, 8, 20])
def test_a_cut_file(tmp_path: Path, size: int) -> None:
    path = raw(tmp_path, {"a": entry()})
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(TuirigError, match="is damaged"):
        read_snapshot(tmp_path)


def test_types_that_nobody_knows_are_listed(tmp_path: Path) -> None:
    raw(tmp_path, {"a": entry(dtype="F8_E4M3"), "b": entry(dtype="F64", shape=[8])})
    assert {each.dtype for each in read_snapshot(tmp_path).values()} == {"F8_E4M3", "F64"}


def test_a_folder_that_can_not_be_read_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").mkdir()
    with pytest.raises(TuirigError, match="can't be read"):
        read_snapshot(tmp_path)
