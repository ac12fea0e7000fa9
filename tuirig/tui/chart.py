"""Curves on two axes as lines of spans, drawn by plotext, which is imported with the first one.

Plotext directly: textual-plotext (1.0.1 of November 2024, none since) would add a widget that
repaints whole around the same text, and what is drawn here takes its colours from the theme.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from tuirig.tui.spans import Line, Span, line, width

#: One after the other for the curves of a chart, so that they differ without colour.
MARKS = "●■▲◆★○□△◇☆"
ROLES = ("bar", "bar3", "good", "accent", "")
#: How points are joined.
SOLID, DOTTED = "braille", "·"
_TICK_CELLS = 10
#: The x axis and its labels.
_X_ROWS = 2
_SGR = re.compile(r"\x1b\[(?:38;5;(\d+)|[\d;]*)m")


class Axis(NamedTuple):
    """What an axis shows. ticks: (place, label)."""

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...] = ()


class Curve(NamedTuple):
    """Points from left to right; y None is a gap. bars: (x, low, high)."""

    points: Sequence[tuple[float, float | None]]
    mark: str = ""
    join: str = ""
    role: str = ""
    bars: Sequence[tuple[float, float, float]] = ()


class Level(NamedTuple):
    """A horizontal line and the words at its right end."""

    y: float
    text: str


def plot(
    cells: int, rows: int, x: Axis, y: Axis, curves: Sequence[Curve], levels: Sequence[Level] = ()
) -> list[Line]:
    """Curves over each other, the first one lowest; an axis without ticks is not drawn."""
    import plotext

    roles = list(dict.fromkeys(("dim", *(curve.role for curve in curves))))
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.limit_size(False, False)
    plotext.plotsize(cells, rows)
    plotext.xaxes(bool(x.ticks), False)
    plotext.yaxes(bool(y.ticks), False)
    plotext.xlim(x.low, x.high)
    plotext.ylim(y.low, y.high)
    plotext.xticks([at for at, _ in x.ticks], [label for _, label in x.ticks])
    plotext.yticks([at for at, _ in y.ticks], [label for _, label in y.ticks])
    for level in levels:
        plotext.hline(level.y, roles.index("dim"))
        plotext.text(level.text, x.high, level.y, color=roles.index("dim"), alignment="right")
    for curve in curves:
        _draw(plotext, curve, y, roles.index(curve.role))
    return [_spans(row, roles) for row in plotext.build().splitlines()[:rows]]


def _draw(plotext, curve: Curve, y: Axis, color: int) -> None:  # type: ignore[no-untyped-def]
    for left, right in pairwise(curve.points) if curve.join else ():
        if left[1] is not None and right[1] is not None:
            ends = [left[0], right[0]], [left[1], right[1]]
            plotext.plot(*ends, marker=curve.join, color=color)
    for x, low, high in curve.bars:
        reach = [max(low, y.low), min(high, y.high)]
        plotext.plot([x, x], reach, marker="│", color=color)
    known = [point for point in curve.points if point[1] is not None]
    if curve.mark and known:
        plotext.scatter(*zip(*known, strict=True), marker=curve.mark, color=color)


def _spans(row: str, roles: Sequence[str]) -> Line:
    """A row of plotext's text, whose colours are numbers of roles; the axes are dim."""
    parts: list[Span | str] = []
    role, start = "dim", 0
    for found in _SGR.finditer(row):
        parts.append(Span(row[start : found.start()], role))
        role = roles[int(found[1])] if found[1] else "dim"
        start = found.end()
    return line(*(part for part in (*parts, Span(row[start:], role)) if part[0]))


def x_axis(
    first: float, last: float, cells: int, *, right: int = 2, whole: bool = True, unit: str = ""
) -> tuple[Axis, float]:
    """(an axis that leaves so many cells free behind its last point, what a cell is of it).

    whole: ticks at whole numbers alone. unit: after the last tick.
    """
    if last <= first:
        first, last = first - 0.5, last + 0.5
    cell = (last - first) / max(1, cells - _TICK_CELLS - right)
    ticks = round_numbers(first, last, max(2, cells // _TICK_CELLS), least=1.0 if whole else 0.0)
    labels = [number(tick) for tick in ticks]
    if unit and labels:
        labels[-1] += f" {unit}"
    axis = Axis(first - 2 * cell, last + right * cell, tuple(zip(ticks, labels, strict=True)))
    return axis, cell


def y_axis(values: Sequence[float], rows: int, reach: Sequence[float] = ()) -> Axis:
    """An axis around the values; what is further out (reach) may widen it by half at each end."""
    low, high = min(values), max(values)
    span = max(high - low, 0.05 * abs(high)) or 1.0
    low = max(min((low, *reach)), low - 0.5 * span)
    high = min(max((high, *reach)), high + 0.5 * span)
    low, high = low - 0.08 * span, high + 0.08 * span
    ticks = round_numbers(low, high, max(2, rows // 3))
    return Axis(low, high, tuple((tick, number(tick)) for tick in ticks))


def apart(levels: Sequence[Level], y: Axis, rows: int) -> list[Level]:
    """Levels that fall into one row of a plot become one, with the words of both."""
    found: dict[int, Level] = {}
    for level in sorted(levels):
        row = round((level.y - y.low) / (y.high - y.low) * max(1, rows - _X_ROWS - 1))
        before = found.get(row)
        found[row] = Level(before.y, f"{before.text}, {level.text}") if before else level
    return list(found.values())


def round_numbers(low: float, high: float, most: int, *, least: float = 0.0) -> list[float]:
    """At most so many multiples of 1, 2 or 5 times a power of ten, at least `least` apart."""
    rough = max((high - low) / max(1, most), least, 1e-9)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(n * power for n in (1, 2, 5, 10) if n * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(n * step, 9) for n in range(first, last + 1)]


def number(value: float) -> str:
    """A short number: .5, 60, 1905."""
    text = f"{value:.6g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def legend(entries: Sequence[Sequence[Span | str]], cells: int) -> list[Line]:
    """Entries beside each other in as few rows as they need."""
    found: list[Line] = []
    for entry in entries:
        spans = line(*entry)
        if found and width(found[-1]) + 3 + width(spans) <= cells:
            found[-1] = line(*found[-1], "   ", *spans)
        else:
            found.append(spans)
    return found
