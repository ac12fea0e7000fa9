"""Numbers as people read them."""

from __future__ import annotations

import pytest

from tuirig.tui import figures


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (8.417, "8.42"), (58.26, "58.3"), (1243.4, "1243")]
)
def test_rate(value: float | None, shown: str) -> None:
    assert figures.rate(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "–"), (0.4812, ".481"), (0.0, ".000"), (1.0, "1.00")]
)
def test_share(value: float | None, shown: str) -> None:
    assert figures.share(value) == shown


def test_unknown_is_never_zero() -> None:
    for shown in (
        figures.gain(None),
        figures.gib(None),
        figures.memory(None),
        figures.whole(None, "W"),
    ):
        assert "0" not in shown
        assert "–" in shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), (0.5, "████"), (1.0, "█" * 8), (2.0, "█" * 8)]
)
def test_bar(value: float | None, shown: str) -> None:
    assert figures.bar(value, 8) == shown


def test_trend_is_scaled_from_zero_and_shows_the_newest() -> None:
    assert figures.trend([100, 50, 100], 2) == "▅█"
    assert figures.trend([0, 0], 5) == "▁▁"
    assert figures.trend([], 5) == ""


@pytest.mark.parametrize("cells", range(1, 40))
def test_stack_fills_the_cells_and_shows_every_part(cells: int) -> None:
    parts = [(4050.0, "█"), (60.0, "▓"), (120.0, "▒"), (0.0, "░")]
    drawn = figures.stack(parts, 8192, cells)
    assert sum(len(text) for text, _ in drawn) == cells
    if cells >= 8:
        assert [len(text) > 0 for text, _ in drawn] == [True, True, True, False, True]
