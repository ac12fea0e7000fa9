from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tests.files.repack.checkpoints import Checkpoint
from tuirig.errors import MissingError, TuirigError
from tuirig.files.repack.layout import Layout, read_layout


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def key(name: bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(
    name: bytes = b"a.weight", shape: tuple[int, ...] = (32, 2), kind: int = 8, offset: int = 0
) -> bytes:
    sizes = struct.pack(f"<{len(shape)}Q", *shape)
    return text(name) + struct.pack("<I", len(shape)) + sizes + struct.pack("<IQ", kind, offset)


def gguf(
    *tensors: bytes,
    keys: tuple[bytes, ...] = (),
    data: bytes = bytes(128),
    version: int = 3,
    counts: tuple[int, int] | None = None,
) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, *(counts or (len(tensors), len(keys))))
    head += b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def read(folder: Path, data: bytes) -> Layout:
    path = folder / "x.gguf"
    path.write_bytes(data)
    return read_layout(path)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return Checkpoint.made(tmp_path_factory.mktemp("checkpoint"))


def test_agrees_with_the_gguf_package(checkpoint: Checkpoint, demo_files: Path) -> None:
    from gguf import GGUFReader

    for path in (checkpoint.template, demo_files / "gemma4-q4_0.gguf", demo_files / "qwen35.gguf"):
        found = read_layout(path)
        reader = GGUFReader(path)
        assert [
            (each.name, each.shape, each.number, each.start, each.size) for each in found.tensors
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


def test_reads_what_is_well_formed(tmp_path: Path) -> None:
    nested = struct.pack("<IQIQ", 9, 1, 8, 2) + text(b"x") + text(b"y")
    keys = (key(b"general.alignment", 4, struct.pack("<I", 64)), key(b"list", 9, nested))
    layout = read(tmp_path, gguf(tensor(), keys=keys, data=bytes(192)))
    assert layout.alignment == 64
    assert layout.tensors[0].start % 64 == 0


BIG = (1 << 64) - 1
HOSTILE = {
    "counts more tensors": gguf(tensor(), counts=(BIG, 0)),
    "counts more keys": gguf(tensor(), counts=(1, BIG)),
    "a long key": gguf(keys=(struct.pack("<Q", BIG),), counts=(0, 1)),
    "an unknown type": gguf(keys=(key(b"k", 13, b""),)),
    "a long list": gguf(keys=(key(b"k", 9, struct.pack("<IQ", 4, BIG)),)),
    "a long list of strings": gguf(keys=(key(b"k", 9, struct.pack("<IQ", 8, BIG)),)),
    "a list of unknown things": gguf(keys=(key(b"k", 9, struct.pack("<IQ", 77, 1)),)),
    "deep lists": gguf(keys=(key(b"k", 9, struct.pack("<IQ", 9, 1) * 5000),)),
    "no dimensions": gguf(tensor(shape=())),
    "five dimensions": gguf(tensor(shape=(32, 1, 1, 1, 1))),
    "a shape too large": gguf(tensor(shape=(1 << 62, 1 << 62))),
    "half a block": gguf(tensor(shape=(33, 2))),
    "an offset off the grid": gguf(tensor(offset=1)),
    "an offset outside": gguf(tensor(offset=1 << 40)),
    "data that ends early": gguf(tensor(), data=bytes(67)),
    "a tensor twice": gguf(tensor(), tensor()),
    "alignment 0": gguf(keys=(key(b"general.alignment", 4, bytes(4)),)),
    "alignment 33": gguf(keys=(key(b"general.alignment", 4, struct.pack("<I", 33)),)),
    "overlapping tensors": gguf(tensor(), tensor(b"b.weight", offset=32)),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_file(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TuirigError, match="is damaged"):
        read(tmp_path, data)


def test_what_is_no_gguf_or_one_of_several(tmp_path: Path) -> None:
    with pytest.raises(TuirigError, match="is not a GGUF"):
        read(tmp_path, b"<html>not found</html>")
    with pytest.raises(TuirigError, match="is empty"):
        read(tmp_path, b"")
    with pytest.raises(TuirigError, match="of version 1;"):
        read(tmp_path, gguf(version=1))
    with pytest.raises(TuirigError, match="one of 3 files") as caught:
        read(tmp_path, gguf(keys=(key(b"split.count", 2, struct.pack("<H", 3)),)))
    assert "--merge" in caught.value.hint
    with pytest.raises(MissingError):
        read_layout(tmp_path / "absent.gguf")
    with pytest.raises(TuirigError, match="can't be read"):
        read_layout(tmp_path)


def test_a_file_cut_anywhere_is_refused(tmp_path: Path, checkpoint: Checkpoint) -> None:
    data = checkpoint.template.read_bytes()
    for size in (*range(200), *range(200, len(data) - 32, 997)):
        with pytest.raises(TuirigError):
            read(tmp_path, data[:size])


def test_changed_bytes_never_break_the_reader(tmp_path: Path, checkpoint: Checkpoint) -> None:
    data = checkpoint.template.read_bytes()
    header = read_layout(checkpoint.template).tensors[0].start
    chance = random.Random(1)
    for _ in range(1500):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(header)
            changed[at : at + 8] = chance.choice((b"\xff" * 8, bytes(8), chance.randbytes(8)))
        try:
            read(tmp_path, bytes(changed))
        except TuirigError as error:
            assert error.message
