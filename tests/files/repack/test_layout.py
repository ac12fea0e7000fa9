from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tests.files.repack.checkpoints import Checkpoint
from tuirig.errors import MissingError, TuirigError
from tuirig.files.repack.layout import read_layout


def test_agrees_with_the_gguf_package(tmp_path: Path, demo_files: Path) -> None:
    from gguf import GGUFReader

    template = Checkpoint.made(tmp_path).template
    for path in (template, demo_files / "gemma4-q4_0.gguf", demo_files / "qwen35.gguf"):
        found = read_layout(path)
        reader = GGUFReader(path)
        assert [
            (each.name, each.shape, each.kind, each.start, each.size) for each in found.tensors
        ] == [
            (
                each.name,
                tuple(map(int, each.shape)),
                each.tensor_type,
                each.data_offset,
                each.n_bytes,
            )
            for each in reader.tensors
        ]
        assert found.alignment == reader.alignment
        assert found.key_count == reader.fields["GGUF.kv_count"].contents()
        *_, last = (field for name, field in reader.fields.items() if not name.startswith("GGUF."))
        assert found.keys_end == last.offset + sum(part.nbytes for part in last.parts)


def gguf(kind: int, data: int, split: int = 1) -> bytes:
    """One key, `split.count`, and one tensor of 2 rows of 32."""
    name, key = b"a.weight", b"split.count"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1)
    head += struct.pack("<Q", len(key)) + key + struct.pack("<IH", 2, split)
    head += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 32, 2, kind, 0)
    return head + bytes(-len(head) % 32) + bytes(data)


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (gguf(8, 67), "is cut short: a.weight lies outside", "download"),
        (gguf(99, 128), "a.weight has the unknown type 99", "newer"),
        (gguf(8, 68, split=3), "is one of 3 files", "--merge"),
        (b"<html>not found</html>", "not a GGUF", ""),
        (b"", "not a GGUF", ""),
    ],
)
def test_what_can_not_be_repacked(tmp_path: Path, data: bytes, message: str, hint: str) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    with pytest.raises(TuirigError, match=message) as caught:
        read_layout(path)
    assert hint in caught.value.hint


def test_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf(8, 68))
    (tensor,) = read_layout(path).tensors
    assert (tensor.count, tensor.size, tensor.start % 32) == (64, 68, 0)
    with pytest.raises(MissingError):
        read_layout(tmp_path / "absent.gguf")
