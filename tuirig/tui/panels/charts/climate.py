"""Temperature, clock, power and load over a run, one strip each above a common axis of time."""

from __future__ import annotations

from typing import NamedTuple

from tuirig.records import Reading
from tuirig.runs.store import StoredArm
from tuirig.tui import chart
from tuirig.tui.chart import Axis, Curve
from tuirig.tui.panels.charts.facts import Facts, sentence
from tuirig.tui.spans import Line, Span, line

#: (attribute of a reading, unit, name)
_OF_A_GPU = (
    ("temperature_c", "°C", "temperature"),
    ("sm_clock_mhz", "MHz", "SM clock"),
    ("power_w", "W", "power"),
)
_OF_A_CPU = (("load", "load", "load"), ("temperature_c", "°C", "temperature"))
_LEAST_ROWS = 2
_AXIS_ROWS = 2
#: A strip of so many rows leaves one to the next strip.
_TALL = 5


class Strip(NamedTuple):
    """Points in minutes; None between two starts, and where a reading does not tell."""

    name: str
    unit: str
    points: tuple[tuple[float, float | None], ...]

    @property
    def values(self) -> list[float]:
        """What is known."""
        return [value for _, value in self.points if value is not None]


def strips(facts: Facts) -> tuple[list[Strip], list[str]]:
    """(what is known of the card, names of what it does not tell).

    Time is spent time: a pause before a run was resumed is left out.
    """
    is_cpu = any(arm.circumstances.card.kind == "cpu" for arm in facts.arms)
    wanted = _OF_A_CPU if is_cpu else _OF_A_GPU
    timed = _timed(facts.arms)
    found, lacking = [], []
    for attribute, unit, name in wanted:
        points = tuple(
            (minutes, None if reading is None else getattr(reading, attribute))
            for minutes, reading in timed
        )
        strip = Strip(name, unit, points)
        if strip.values:
            found.append(strip)
        else:
            lacking.append(name)
    return found, lacking


def _timed(arms: tuple[StoredArm, ...]) -> list[tuple[float, Reading | None]]:
    """(minutes since the run began, a reading); None after the last one of each start."""
    found: list[tuple[float, Reading | None]] = []
    before_s = 0.0
    for arm in arms:
        after = [reply.reading_after for reply in arm.replies if reply.reading_after is not None]
        readings = sorted((*arm.samples, *after), key=lambda reading: reading.at_s)
        began_s = before_s + arm.cooling.seconds + ((arm.arm.ready_s or 0.0) if arm.arm else 0.0)
        first_s = readings[0].at_s if readings else 0.0
        last_s = began_s
        for reading in readings:
            last_s = began_s + reading.at_s - first_s
            found.append((last_s / 60, reading))
        if readings:
            found.append((last_s / 60, None))
        before_s = max(last_s, before_s + (arm.seconds or 0.0))
    return found


def over_time(facts: Facts, cells: int, rows: int) -> list[Line]:
    """As high as the room lets them be; what is not known is said."""
    found, lacking = strips(facts)
    if not found:
        card = next((arm.circumstances.card.name for arm in facts.arms), "")
        if not card:
            return sentence("Nothing was started yet.", cells)
        listed = f"{', '.join(lacking[:-1])} and {lacking[-1]}"
        return sentence(f"{card} does not tell {listed}: there is nothing to draw.", cells)
    names = "   ".join(f"{strip.name} in {strip.unit}" for strip in found if strip.unit != "load")
    left = f"not told here: {', '.join(lacking)}" if lacking else ""
    head = [line(Span("   ".join(filter(None, (names, left))), "dim"))] if names or left else []
    room = rows - len(head) - _AXIS_ROWS
    fit = max(1, min(len(found), room // _LEAST_ROWS))
    last = max(minutes for strip in found for minutes, _ in strip.points)
    x, _ = chart.x_axis(0.0, last or 1.0, cells, whole=last >= 4, unit="min", right=4)
    shown = found[:fit]
    labels = [_labels(strip) for strip in shown]
    wide = max(len(label) for two in labels for label in two)
    lines: list[Line] = list(head)
    for number, (strip, ends) in enumerate(zip(shown, labels, strict=True)):
        bottom = number == len(shown) - 1
        height = room // fit + (number < room % fit)
        lines += _strip(strip, number, ends, wide, x, cells, height, bottom)
    return lines


def _labels(strip: Strip) -> tuple[str, str]:
    low, high = min(strip.values), max(strip.values)
    digits = 1 if strip.unit == "load" else 0
    return f"{low:.{digits}f} {strip.unit}", f"{high:.{digits}f} {strip.unit}"


def _strip(
    strip: Strip,
    number: int,
    ends: tuple[str, str],
    wide: int,
    x: Axis,
    cells: int,
    height: int,
    bottom: bool,
) -> list[Line]:
    low, high = min(strip.values), max(strip.values)
    ticks = tuple(dict.fromkeys(((low, ends[0].rjust(wide)), (high, ends[1].rjust(wide)))))
    if ends[0] == ends[1]:
        ticks, low, high = ticks[:1], low - 1, high + 1
    alone = [
        now
        for before, now, after in zip(
            ((0.0, None), *strip.points),
            strip.points,
            (*strip.points[1:], (0.0, None)),
            strict=False,
        )
        if now[1] is not None and before[1] is None and after[1] is None
    ]
    role = chart.ROLES[number % len(chart.ROLES)]
    curves = [
        Curve(strip.points, join=chart.SOLID, role=role),
        Curve(alone, mark="•", role=role),
    ]
    if bottom:
        return chart.plot(cells, height + _AXIS_ROWS, x, Axis(low, high, ticks), curves)
    gap = int(height >= _TALL)
    y = Axis(low, high, ticks)
    return [*chart.plot(cells, height - gap, Axis(x.low, x.high), y, curves), *[()] * gap]
