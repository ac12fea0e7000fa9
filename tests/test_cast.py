"""What screenshots/record.py writes, and what it refuses of what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from screenshots import record

Lines = list[str]
HEADER = {"version": 2, "width": 100, "height": 30, "idle_time_limit": 1.5}
TOLD = (
    "Space streams",
    "13 server starts",
    "Save q4_0:2 as the profile",
    "saved: ~",
    "\x1b[?1049l",
)


@pytest.fixture
def lines() -> Lines:
    events = [(float(at_s), "o", text) for at_s, text in enumerate(TOLD)]
    return [json.dumps(line) for line in (HEADER, *events)]


def test_every_recording_there_is_whole() -> None:
    for path in record.HERE.glob("*.cast"):
        assert path.name in record.check(path)


def test_the_whole_story_is_one(lines: Lines, tmp_path: Path) -> None:
    path = tmp_path / "whole.cast"
    path.write_text("\n".join(lines), "utf-8")
    assert record.check(path).startswith("whole.cast: 5 events, 4 s")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [*lines, json.dumps([0.1, "o", "earlier"])], "run back"),
        (lambda lines: [*lines[:4], *lines[5:]], "'saved: ' does not follow"),
        (lambda lines: lines[:-1], "did not end"),
    ],
    ids=["time runs back", "no profile", "the screen stays"],
)
def test_another_one_is_refused(
    change: Callable[[Lines], Lines], reason: str, lines: Lines, tmp_path: Path
) -> None:
    path = tmp_path / "changed.cast"
    path.write_text("\n".join(change(lines)), "utf-8")
    with pytest.raises(AssertionError, match=reason):
        record.check(path)


def test_a_character_that_came_in_two_parts_is_one() -> None:
    star = "★".encode()
    parts = [(0.1, b"a" + star[:1]), (0.11, star[1:]), (0.5, b"b")]
    assert record.events(parts) == [(0.1, "o", "a★"), (0.5, "o", "b")]
