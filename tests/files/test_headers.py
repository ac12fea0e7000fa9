from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.files import shapes
from tuirig import locations
from tuirig.files import headers
from tuirig.files.gguf import GgufError, Header
from tuirig.files.headers import header_of


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that was written a while ago."""
    return aged(shapes.llama(tmp_path / "x.gguf", layers=1, vocabulary=300))


def aged(path: Path, seconds: float = 60) -> Path:
    then = time.time() - seconds
    os.utime(path, (then, then))
    return path


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The labels of files whose headers were read and not remembered."""
    seen: list[str] = []
    parse = headers.parse_header

    def spying(source: Any) -> Header:
        seen.append(source.label)
        return parse(source)

    monkeypatch.setattr(headers, "parse_header", spying)
    return seen


def test_a_file_is_read_once(model: Path, parsed: list[str]) -> None:
    first = header_of(model)
    assert header_of(model) == first
    assert parsed == [str(model)]


def test_a_link_is_the_file_that_it_leads_to(model: Path, parsed: list[str]) -> None:
    link = model.with_name("link.gguf")
    link.symlink_to(model)
    assert header_of(link) == header_of(model)
    assert len(parsed) == 1


def test_a_changed_file_is_read_again(model: Path, parsed: list[str]) -> None:
    before = header_of(model)
    aged(shapes.llama(model, layers=2, vocabulary=300))
    assert header_of(model) != before
    aged(model, 30)
    header_of(model)
    copy = model.with_name("copy.gguf")
    copy.write_bytes(model.read_bytes())
    aged(copy, 30)
    os.replace(copy, model)  # same size and time, another inode
    header_of(model)
    assert len(parsed) == 4


def test_a_file_that_may_still_be_written_is_not_remembered(
    tmp_path: Path, parsed: list[str]
) -> None:
    path = shapes.llama(tmp_path / "x.gguf", layers=1, vocabulary=300)
    header_of(path)
    header_of(path)
    assert len(parsed) == 2


@pytest.mark.parametrize("damage", [b"", b"\xff" * 100, b"\x80"])
def test_a_damaged_cache_is_an_empty_one(model: Path, parsed: list[str], damage: bytes) -> None:
    first = header_of(model)
    (entry,) = (locations.cache_folder() / "headers").iterdir()
    entry.write_bytes(damage)
    assert header_of(model) == first
    assert header_of(model) == first
    assert len(parsed) == 2


def test_a_cache_that_can_not_be_written_costs_nothing_but_time(
    model: Path, parsed: list[str], home: Path
) -> None:
    home.write_text("in the way")
    assert header_of(model) == header_of(model)
    assert len(parsed) == 2


def test_old_entries_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_MOST_ENTRIES", 3)
    for number in range(5):
        path = tmp_path / f"{number}.gguf"
        header_of(aged(shapes.llama(path, layers=1, vocabulary=300)))
    assert len(list((locations.cache_folder() / "headers").iterdir())) == 3


def test_what_is_refused_is_refused_again(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF")
    aged(path)
    for _ in range(2):
        with pytest.raises(GgufError):
            header_of(path)
