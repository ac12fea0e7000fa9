"""The server's memory by setting, as bars like the main screen's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tuirig.records import MemoryParts, Reading
from tuirig.runs.store import StoredArm
from tuirig.tui import figures
from tuirig.tui.chart import legend
from tuirig.tui.panels.charts.facts import Facts, sentence
from tuirig.tui.panels.status import MIB_PARTS, REST, amounts, stacked
from tuirig.tui.spans import Line, Span, line

#: Servers that use less than this share of the card are drawn on a scale of their own.
_SMALL = 0.25


class Used(NamedTuple):
    """Memory of a setting's server in MiB: of its process, else what its log tells in parts."""

    setting: str
    used_mib: float | None
    parts: MemoryParts | None


def used(facts: Facts) -> list[Used]:
    """Every setting that was measured."""
    found = []
    for one in facts.settings:
        if not one.starts:
            continue
        told = sum(amount for _, amount, _, _ in amounts(one.memory_parts))
        found.append(Used(one.setting, one.memory_mib or told or None, one.memory_parts))
    return found


def total_mib(arms: Iterable[StoredArm]) -> float | None:
    """The memory of the card, or of the machine where there is none."""
    arms = list(arms)
    for arm in reversed(arms):
        for reading in _readings(arm):
            if reading.memory_total_mib is not None:
                return reading.memory_total_mib
    return next((arm.circumstances.card.memory_mib for arm in reversed(arms)), None)


def _readings(arm: StoredArm) -> Iterable[Reading]:
    for reply in arm.replies:
        if reply.reading_after is not None:
            yield reply.reading_after
    yield from arm.samples


def by_setting(facts: Facts, cells: int, rows: int) -> list[Line]:
    """A bar per setting; its parts in words below it where there is room."""
    own = used(facts)
    most = max((one.used_mib for one in own if one.used_mib is not None), default=None)
    if most is None:
        return sentence("No start of this run has told how much memory its server used.", cells)
    total = total_mib(facts.arms)
    small = total is None or most < _SMALL * total
    scale = most if small or total is None else total
    head = _head(own, total, small, cells)
    name = max(len(one.setting) for one in own) + 2
    room = rows - len(head)
    tall = 3 if 3 * len(own) - 1 <= room else 2 if 2 * len(own) <= room else 1
    lines = []
    for one in own:
        amount = f"{figures.memory(one.used_mib):>9}"
        bar = stacked(one.parts, one.used_mib or 0.0, scale, cells - name - len(amount) - 1)
        shown = bar if one.used_mib is not None else ()
        lines.append(line(f"{one.setting:<{name}}", f"{amount} ", *shown))
        if tall > 1:
            lines.append(line(" " * (name + len(amount) + 1), Span(_words(one), "dim")))
        if tall > 2:
            lines.append(())
    return [*head, *lines]


def _head(own: list[Used], total: float | None, small: bool, cells: int) -> list[Line]:
    told = {label for one in own for label, _, _, _ in amounts(one.parts)}
    entries: list[list[Span | str]] = [
        [Span(fill, role), f" {label}"] for label, _, fill, role in MIB_PARTS if label in told
    ]
    entries.append([Span(REST, "dim"), " rest" if told else " the server's process"])
    if not small:
        entries.append([Span("·", "dim"), f" up to {figures.memory(total)}"])
    else:
        of = f"of {figures.memory(total)}, " if total is not None else ""
        entries.append([Span(f"{of}bars up to the largest", "dim")])
    return [*legend(entries, cells), ()]


def _words(one: Used) -> str:
    parts = [f"{label} {figures.memory(amount)}" for label, amount, _, _ in amounts(one.parts)]
    return "  ".join(parts) or "parts not stored"
