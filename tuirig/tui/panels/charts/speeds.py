"""tok/s by draft length, and tok/s of every start in the order of time."""

from __future__ import annotations

from itertools import cycle
from typing import NamedTuple

from tuirig.measure import summary
from tuirig.rigs.settings import NONE, parse_setting
from tuirig.runs.flags import greedy
from tuirig.runs.store import ArmState
from tuirig.tui import chart, figures
from tuirig.tui.chart import Curve, Level
from tuirig.tui.panels.charts.facts import Facts, sentence
from tuirig.tui.spans import Line, Span

_HOLLOW = {"●": "○", "■": "□", "▲": "△", "◆": "◇", "★": "☆"}


class Point(NamedTuple):
    """tok/s at a draft length; low and high where an interval is known."""

    length: int
    tok_s: float
    low: float | None = None
    high: float | None = None


def points(facts: Facts) -> dict[str, list[Point]]:
    """The measured lengths by drafter, in order; the interval of the gain is told in tok/s."""
    none = facts.none_tok_s
    found: dict[str, list[Point]] = {}
    for one in facts.settings:
        setting = parse_setting(one.setting)
        if not setting.drafter or setting.length is None or setting.knobs or one.tok_s is None:
            continue
        point = Point(setting.length, one.tok_s)
        if none is not None and one.interval is not None:
            low, high = one.interval
            point = Point(setting.length, one.tok_s, low * none, high * none)
        found.setdefault(setting.drafter, []).append(point)
    return {drafter: sorted(own) for drafter, own in found.items()}


def levels(facts: Facts) -> list[Level]:
    """What has no draft length: `none`, and methods where none can be set."""
    return [
        Level(one.tok_s, f"{one.setting} {figures.rate(one.tok_s)}")
        for one in facts.settings
        if one.tok_s is not None
        and not parse_setting(one.setting).knobs
        and (one.setting == str(NONE) or parse_setting(one.setting).length is None)
    ]


def by_length(facts: Facts, cells: int, rows: int) -> list[Line]:
    """A line per drafter with its intervals, the predicted ones dotted, `none` across."""
    own, flat = points(facts), levels(facts)
    if not own:
        said = ", ".join(f"{level.text} tok/s" for level in flat)
        nothing = "No setting with a draft length is measured yet."
        return sentence(f"{nothing} {said}".strip(), cells)
    drafters = list(dict.fromkeys((*own, *facts.predicted)))
    lengths = {point.length for some in own.values() for point in some}
    lengths.update(length for curve in facts.predicted.values() for length in curve)
    values = [point.tok_s for some in own.values() for point in some]
    values += [tok_s for curve in facts.predicted.values() for tok_s in curve.values()]
    reach = [
        bound
        for some in own.values()
        for p in some
        for bound in (p.low, p.high)
        if bound is not None
    ]
    words = _legend(drafters, facts, bool(reach))
    head = chart.legend(words, cells)
    room = rows - len(head)
    y = chart.y_axis([*values, *(level.y for level in flat)], room, reach)
    flat = chart.apart(flat, y, room)
    margin = 2 + max((len(level.text) for level in flat), default=0)
    x, cell = chart.x_axis(min(lengths), max(lengths), cells, right=margin)
    below, above = [], []
    for number, drafter in enumerate(drafters):
        mark, role = _look(number)
        # Drafters stand apart, so that their intervals do at equal lengths.
        shift = (2 * number - len(drafters) + 1) * cell
        measured = own.get(drafter, [])
        tried = {point.length for point in measured}
        guess = [(n + shift, v, n in tried) for n, v in facts.predicted.get(drafter, {}).items()]
        hollow = [(n, tok_s) for n, tok_s, known in guess if not known]
        below.append(Curve([(n, tok_s) for n, tok_s, _ in guess], join=chart.DOTTED, role=role))
        below.append(Curve(hollow, _HOLLOW[mark], role=role))
        bars = [
            (p.length + shift, p.low, p.high)
            for p in measured
            if p.low is not None and p.high is not None
        ]
        known = [(p.length + shift, p.tok_s) for p in measured]
        above.append(Curve(known, mark, chart.SOLID, role, bars))
    return [*head, *chart.plot(cells, room, x, y, [*below, *above], flat)]


def _look(number: int) -> tuple[str, str]:
    full = list(_HOLLOW)
    return full[number % len(full)], chart.ROLES[number % len(chart.ROLES)]


def _legend(drafters: list[str], facts: Facts, intervals: bool) -> list[list[Span | str]]:
    entries: list[list[Span | str]] = []
    for number, drafter in enumerate(drafters):
        mark, role = _look(number)
        entries.append([Span(mark, role), f" {drafter}"])
    if facts.predicted:
        hollow = "".join(
            _HOLLOW[_look(n)[0]] for n, d in enumerate(drafters) if d in facts.predicted
        )
        entries.append([Span(f"··{hollow}··", "dim"), " predicted"])
    if intervals:
        entries.append([Span("│", "dim"), " interval against none"])
    return entries


def starts(facts: Facts) -> dict[str, list[tuple[int, float | None]]]:
    """(number of the start, tok/s) by setting; None where a start gave no figure."""
    found: dict[str, list[tuple[int, float | None]]] = {}
    for number, arm in enumerate(facts.arms, 1):
        counts = arm.state is ArmState.MEASURED
        tok_s = summary.tok_s(greedy(arm)) if counts else None
        found.setdefault(arm.setting, []).append((number, tok_s))
    return {
        setting: own for setting, own in found.items() if any(tok_s is not None for _, tok_s in own)
    }


def in_time(facts: Facts, cells: int, rows: int) -> list[Line]:
    """A mark per server start; starts of one setting are joined: a slope is drift."""
    own = starts(facts)
    if not own:
        return sentence("No server start has given a figure yet.", cells)
    names = sorted(own, key=lambda name: name != str(NONE))
    looks = dict(
        zip(
            [name for name in names if name != str(NONE)],
            zip(cycle(chart.MARKS), cycle(chart.ROLES), strict=False),
            strict=False,
        )
    )
    looks[str(NONE)] = ("×", "")
    words: list[list[Span | str]] = [[Span(*looks[name]), f" {name}"] for name in names]
    head = chart.legend(words, cells)
    room = rows - len(head)
    values = [tok_s for some in own.values() for _, tok_s in some if tok_s is not None]
    none = facts.none_tok_s
    flat = [Level(none, f"none {figures.rate(none)}")] if none is not None else []
    y = chart.y_axis([*values, *(level.y for level in flat)], room)
    margin = 2 + max((len(level.text) for level in flat), default=0)
    x, _ = chart.x_axis(1, len(facts.arms), cells, right=margin)
    curves = [
        Curve(
            [(n, tok_s) for n, tok_s in own[name] if tok_s is not None],
            looks[name][0],
            "" if name == str(NONE) else chart.SOLID,  # its level is there already
            looks[name][1],
        )
        for name in names
    ]
    return [*head, *chart.plot(cells, room, x, y, curves, flat)]
