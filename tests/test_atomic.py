from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tuirig.atomic import create_atomically, write_atomically


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """A disk that is full beyond a size: writing more fails half way with EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.toml"
    write_atomically(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    write_atomically(path, b"\0new")
    assert path.read_bytes() == b"\0new"
    assert os.listdir(path.parent) == ["c.toml"]


def test_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "x", "")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("write", [write_atomically, create_atomically])
def test_a_failing_write_leaves_nothing_behind(tmp_path: Path, write: object) -> None:
    assert callable(write)
    with no_file_above(1000), pytest.raises(OSError) as caught:
        write(tmp_path / "x", b"y" * 5000)
    assert caught.value.errno == errno.EFBIG
    assert os.listdir(tmp_path) == []


def test_a_failing_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write_atomically(path, "old")
    with no_file_above(1000), pytest.raises(OSError, match="too large"):
        write_atomically(path, b"y" * 5000)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["x"]


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "x", "new")
    assert os.listdir(tmp_path) == ["x"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def test_a_new_file_never_replaces_one(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "x"
    create_atomically(path, "first")
    with pytest.raises(FileExistsError):
        create_atomically(path, "second")
    assert path.read_text() == "first"
    assert os.listdir(path.parent) == ["x"]


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: object, target: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "x"
    create_atomically(path, "first")
    with pytest.raises(FileExistsError):
        create_atomically(path, "second")
    assert path.read_text() == "first"
    assert os.listdir(tmp_path) == ["x"]
