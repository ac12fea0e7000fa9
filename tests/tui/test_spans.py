"""Lines of spans: cutting, spreading and wrapping keep to the cells they are given."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tuirig.tui.spans import Span, cut, line, spread, width, wrap

WIDE = "模型 drafts 三 tokens"


def text(spans: tuple[Span, ...]) -> str:
    return "".join(span.text for span in spans)


@pytest.mark.parametrize("cells", range(24))
def test_cut_never_exceeds_the_cells_and_marks_a_loss(cells: int) -> None:
    spans = line(Span("abc", "dim"), WIDE)
    short = cut(spans, cells)
    assert width(short) <= cells
    if cells and cells < width(spans):
        assert text(short).endswith("…")


def test_cut_leaves_what_fits() -> None:
    spans = line("abc", Span("def", "good"))
    assert cut(spans, 6) == spans


@pytest.mark.parametrize("cells", range(20, 60))
def test_spread_fills_the_line_exactly(cells: int) -> None:
    assert width(spread(line(WIDE * 2), line("right"), cells)) == cells


def test_wrap_breaks_at_blanks() -> None:
    assert wrap("one two three four", 9) == ["one two", "three", "four"]


def test_wrap_keeps_paragraphs_and_indentation() -> None:
    assert wrap("def f():\n    return 1\n\nend", 20) == ["def f():", "    return 1", "", "end"]


def test_wrap_breaks_a_word_that_is_too_long() -> None:
    assert wrap("a" * 10 + " b", 4) == ["aaaa", "aaaa", "aa b"]


@pytest.mark.parametrize("cells", range(2, 30))
def test_wrap_rows_fit_and_lose_no_letter(cells: int) -> None:
    source = f"{WIDE} and {'x' * 33}\n  {WIDE}"
    rows = wrap(source, cells)
    assert all(cell_len(row) <= cells for row in rows)
    assert "".join(rows).replace(" ", "") == source.replace(" ", "").replace("\n", "")
