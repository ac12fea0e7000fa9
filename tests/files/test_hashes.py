from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tuirig import locations
from tuirig.errors import TuirigError
from tuirig.files import hashes
from tuirig.files.hashes import identity
from tuirig.records import FileIdentity


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"one")
    return path


def remembered(path: Path) -> str | None:
    return identity(path, compute=False).sha256


def test_known_only_when_computed(model: Path) -> None:
    assert identity(model, compute=False) == FileIdentity(file="model.gguf", size=3)
    whole = FileIdentity(file="model.gguf", size=3, sha256=sha256(b"one"))
    assert identity(model, compute=True) == whole
    assert identity(model, compute=False) == whole


def test_a_remembered_hash_reads_no_file(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity(model, compute=True)
    seen: list[int] = []
    identity(model, compute=True, on_progress=lambda done, total: seen.append(done))
    assert seen == []


def same_size_later(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def other_size_same_time(path: Path) -> None:
    before = path.stat()
    path.write_bytes(b"three")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def another_inode_same_size_and_time(path: Path) -> None:
    before = path.stat()
    other = path.with_name("other")
    other.write_bytes(b"two")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(path)


@pytest.mark.parametrize(
    "change", [same_size_later, other_size_same_time, another_inode_same_size_and_time]
)
def test_a_changed_file_is_hashed_anew(model: Path, change: Callable[[Path], None]) -> None:
    identity(model, compute=True)
    change(model)
    assert remembered(model) is None
    assert identity(model, compute=True).sha256 == sha256(model.read_bytes())


def test_a_link_and_its_file_share_a_hash(model: Path) -> None:
    link = model.with_name("link.gguf")
    link.symlink_to(model)
    identity(link, compute=True)
    assert remembered(model) == sha256(b"one")
    assert identity(link, compute=False).file == "link.gguf"


def test_progress_and_cancel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "_CHUNK", 1000)
    path = tmp_path / "big.gguf"
    path.write_bytes(bytes(2500))
    seen: list[tuple[int, int]] = []

    def note(done: int, total: int) -> None:
        seen.append((done, total))

    cancelled = identity(path, compute=True, on_progress=note, cancelled=lambda: len(seen) == 2)
    assert cancelled == FileIdentity(file="big.gguf", size=2500)
    assert seen == [(1000, 2500), (2000, 2500)]
    assert remembered(path) is None
    assert identity(path, compute=True, on_progress=note).sha256 == sha256(bytes(2500))
    assert seen[2:] == [(1000, 2500), (2000, 2500), (2500, 2500)]


def test_a_file_that_changes_meanwhile(model: Path) -> None:
    def write(done: int, total: int) -> None:
        model.write_bytes(b"longer than before")

    with pytest.raises(TuirigError, match="changed while it was read"):
        identity(model, compute=True, on_progress=write)
    assert remembered(model) is None


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TuirigError, match="can't be read: No such file"):
        identity(tmp_path / "x.gguf", compute=False)


def test_shards_are_one_model(tmp_path: Path) -> None:
    first, second = (tmp_path / f"m-0000{number}-of-00002.gguf" for number in (1, 2))
    first.write_bytes(b"one")
    second.write_bytes(b"three")
    assert identity(first, compute=True) == FileIdentity(
        file=first.name, size=8, sha256=sha256(b"onethree")
    )
    same_size_later(first)
    first.write_bytes(b"one")
    second.write_bytes(b"four")
    assert remembered(first) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"\xff", b'{"%s": 3}', b'{"%s": {}}'])
def test_a_damaged_cache_is_made_again(model: Path, damage: bytes) -> None:
    cache = locations.cache_folder() / "hashes.json"
    cache.parent.mkdir(parents=True)
    cache.write_bytes(damage.replace(b"%s", str(model).encode()))
    assert remembered(model) is None
    assert identity(model, compute=True).sha256 == sha256(b"one")
    assert remembered(model) == sha256(b"one")


def test_a_cache_that_can_not_be_written_does_no_harm(model: Path, home: Path) -> None:
    home.write_text("a file where the folder should be")
    assert identity(model, compute=True).sha256 == sha256(b"one")
    assert remembered(model) is None


def test_files_that_are_gone_are_forgotten(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(b"other")
    identity(other, compute=True)
    other.unlink()
    identity(model, compute=True)
    assert str(other) not in (locations.cache_folder() / "hashes.json").read_text()
