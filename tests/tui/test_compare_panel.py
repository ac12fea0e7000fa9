"""The comparison in words, and where two texts part."""

from __future__ import annotations

import msgspec
import pytest

from tests.tui import example
from tests.tui.test_panels import words
from tuirig.events import ComparisonMoved, PlanMade, ReplyDone
from tuirig.rigs.settings import NONE, Setting
from tuirig.tui.panels import compare
from tuirig.tui.spans import Line, width
from tuirig.tui.view import View

B = Setting("q4_0", 2)
ENDS = (
    (None, None, 1, 0), (1.40, 1.95, 1, 2), (1.60, 1.85, 2, 2), (1.66, 1.77, 3, 3),
)  # fmt: skip


def moved(low: float | None, high: float | None, a: int, b: int) -> ComparisonMoved:
    ratio = None if low is None or high is None else (low * high) ** 0.5
    return ComparisonMoved(
        a="none", b=str(B), verdict="faster" if low else "open", ratio=ratio, low=low, high=high,
        confidence=0.95, detectable=None, starts_a=a, starts_b=b, blocks=a // 2,
    )  # fmt: skip


def compared(text_a: str = "", text_b: str = "") -> View:
    """`none` against q4_0:2, marked and compared, with a text of each."""
    view = example.measured()
    view.marked = {"a": NONE, "b": B}
    for ends in ENDS:
        view.apply(moved(*ends), 0)
    for setting, tok_s, text in ((NONE, 58.3, text_a), (B, 100.0, text_b)):
        answer = msgspec.structs.replace(example.reply(tok_s), text=text)
        view.apply(ReplyDone(setting=str(setting), reply=answer), 0)
    return view


def marked(lines: list[Line]) -> list[str]:
    return [span.text for line in lines for span in line if span.roles == "cursor"]


@pytest.mark.parametrize("cells", [40, 76, 196])
def test_the_interval_narrows_on_one_scale(cells: int) -> None:
    lines = compare.answer(compared(), cells, 9)
    assert all(width(line) <= cells for line in lines)
    said = words(lines)
    assert "B is faster" in said or cells < 76
    bars = [row.count("━") for row in said.splitlines() if "━" in row]
    assert len(bars) == len([ends for ends in ENDS if ends[0]]) or cells == 40
    assert bars == sorted(bars, reverse=True)


def test_a_new_run_begins_anew() -> None:
    view = compared()
    plan = PlanMade(steps=(), fewest=2, likely=4, most=4, seconds=9.0, basis="")
    view.apply(plan, 0)
    assert not view.moves
    assert "not compared yet" in words(compare.answer(view, 76, 9))


def test_other_marks_than_those_compared_are_not_answered_by_it() -> None:
    view = compared()
    view.marked = {"a": B, "b": NONE}
    said = words(compare.answer(view, 76, 9))
    assert "not compared yet" in said
    assert "B/A 0.583 on 1 shared prompt in the grid" in said


def test_without_marks_the_last_comparison_is_shown() -> None:
    view = compared()
    view.marked = {}
    assert compare.pair(view) == (NONE, B)


@pytest.mark.parametrize(
    ("a", "b", "at"),
    [
        ("same", "same", None), ("", "", None), ("abc", "abd", 2), ("abc", "ab", 2),
        ("", "x", 0), ("aé", "aè", 1),
    ],
)  # fmt: skip
def test_the_first_difference(a: str, b: str, at: int | None) -> None:
    assert compare.difference(a, b) == at


def test_the_first_difference_is_marked_in_both_columns() -> None:
    same = "walks the list once and turns each link around, " * 4
    rows, at = compare.texts(same + "so that", same + "and then", 60)
    assert marked(rows) == ["s", "a"]
    assert marked([rows[at]]) == ["s", "a"]
    assert all(width(row) <= 60 for row in rows)


@pytest.mark.parametrize("text", ["", "\tone\n\n two  three", "漢字 " * 20, "x" * 99])
def test_a_text_that_goes_on_is_marked_where_the_other_ends(text: str) -> None:
    rows, at = compare.texts(text, f"{text}more", 40)
    assert sorted(marked([rows[at]])) == [" ", "m"] or sorted(marked(rows)) == [" ", "m"]
    assert not marked(compare.texts(text, text, 40)[0])


def test_the_last_text_of_each_prompt_counts() -> None:
    view = compared("old", "old")
    again = msgspec.structs.replace(example.reply(101.0), text="new")
    view.apply(ReplyDone(setting=str(B), reply=again), 0)
    assert compare.shared_prompts(view) == ("code-1",)
    last = compare.replies(view, "code-1")
    assert last is not None
    assert [reply.text for reply in last] == ["old", "new"]
