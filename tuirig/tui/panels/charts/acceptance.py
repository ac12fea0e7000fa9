"""What share of drafts was accepted up to each drafted position."""

from __future__ import annotations

from typing import NamedTuple

from tuirig.measure import summary
from tuirig.rigs.settings import parse_setting
from tuirig.runs.settings_table import greedy_replies, measured_arms
from tuirig.tui import chart, figures
from tuirig.tui.chart import Axis, Curve
from tuirig.tui.panels.charts.facts import Facts, sentence
from tuirig.tui.spans import Line, Span


class Accepted(NamedTuple):
    """Shares by position, of the longest measured length of a drafter."""

    setting: str
    shares: tuple[float, ...]
    kept: float | None


def accepted(facts: Facts) -> list[Accepted]:
    """A drafter each, in the order of their first starts."""
    arms = measured_arms(facts.arms)
    longest: dict[str, tuple[int, str]] = {}
    for arm in arms:
        setting = parse_setting(arm.setting)
        if setting.drafter is None or setting.knobs:
            continue
        before = longest.get(setting.drafter)
        if before is None or before[0] < (setting.length or 0):
            longest[setting.drafter] = (setting.length or 0, arm.setting)
    found = []
    for _, name in longest.values():
        replies = greedy_replies([arm for arm in arms if arm.setting == name])
        shares = summary.accepted_per_position(replies)
        if shares:
            found.append(Accepted(name, shares, summary.kept(replies)))
    return found


def by_position(facts: Facts, cells: int, rows: int) -> list[Line]:
    """A line per drafter; each position counts the drafts that were accepted up to it."""
    own = accepted(facts)
    if not own:
        return sentence("No start with a drafter has told what was accepted.", cells)
    looks = [
        (chart.MARKS[n % len(chart.MARKS)], chart.ROLES[n % len(chart.ROLES)])
        for n in range(len(own))
    ]
    head = chart.legend(
        [
            [Span(mark, role), f" {one.setting}", Span(f" kept {figures.share(one.kept)}", "dim")]
            for one, (mark, role) in zip(own, looks, strict=True)
        ],
        cells,
    )
    room = rows - len(head)
    x, _ = chart.x_axis(1, max(len(one.shares) for one in own), cells)
    ticks = chart.round_numbers(0.0, 1.0, max(2, room // 3))
    y = Axis(0.0, 1.0, tuple((tick, chart.number(tick)) for tick in ticks))
    curves = [
        Curve(list(enumerate(one.shares, 1)), mark, chart.SOLID, role)
        for one, (mark, role) in zip(own, looks, strict=True)
    ]
    return [*head, *chart.plot(cells, room, x, y, curves)]
