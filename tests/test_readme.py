"""The README's tables are those of the program."""

from __future__ import annotations

from pathlib import Path

from tuirig.errors import ExitCode
from tuirig.tui.keys import rows

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def test_exit_codes() -> None:
    for code in ExitCode:
        assert f"| {int(code)} | {code.meaning} |" in README


def test_keys() -> None:
    for keys, does in rows():
        assert f"| {keys} | {does} |" in README


def test_every_picture_is_there() -> None:
    import re

    pictures = re.findall(r"\]\((screenshots/[^)]+)\)", README)
    assert pictures
    for picture in pictures:
        assert (Path(__file__).parents[1] / picture).is_file(), picture


def test_nothing_is_left_to_fill_in() -> None:
    assert "<!--" not in README
