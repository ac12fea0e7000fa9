"""tok/s by draft length, a line per drafter, with intervals: plotext, imported when shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Point(NamedTuple):
    """tok/s of a setting and the interval of it; low and high are tok/s where they are known."""

    drafter: str
    length: int
    tok_s: float
    low: float
    high: float


def by_length(points: Sequence[Point], none_tok_s: float | None, cells: int, rows: int) -> str:
    """The plot as text of so many cells and rows. A drafter with one length is a single mark."""
    import plotext

    figure = plotext
    figure.clear_figure()
    figure.plotsize(cells, rows)
    figure.theme("clear")
    markers = ["braille", "hd", "dot", "x", "star"]
    for index, drafter in enumerate(dict.fromkeys(point.drafter for point in points)):
        own = sorted(point for point in points if point.drafter == drafter)
        lengths = [point.length for point in own]
        speeds = [point.tok_s for point in own]
        if len(own) == 1:
            figure.scatter(lengths, speeds, label=drafter, marker=markers[index % len(markers)])
        else:
            figure.plot(lengths, speeds, label=drafter, marker=markers[index % len(markers)])
        spans = [point.high - point.low for point in own]
        if any(spans):
            figure.error(lengths, speeds, yerr=spans, xerr=[0] * len(own))
    if none_tok_s is not None:
        figure.hline(none_tok_s)
    figure.xticks(sorted({point.length for point in points}))
    figure.ylabel("tok/s")
    return str(figure.build())
