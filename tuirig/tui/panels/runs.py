"""Runs in words: the plan before they start, what they found after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuirig.events import PlanMade
from tuirig.tui import figures

#: An interval of a level pair that is wider than this tells little.
WIDE = 1.2

if TYPE_CHECKING:
    from tuirig.runs.tune_result import TuneResult


def plan_text(plan: PlanMade) -> str:
    """Steps, number of starts, time, and what can't be measured here."""
    starts = f"{plan.likely} server starts, {duration(plan.seconds)} ({plan.basis})"
    if plan.fewest != plan.most:
        starts += f"; at least {plan.fewest}, at most {plan.most}"
    cannot = [f"not here: {reason}" for reason in plan.cannot]
    return "\n".join([*(f"· {step}" for step in plan.steps), "", starts, *cannot])


def found(result: TuneResult) -> str:
    """The answer of a tune in a sentence or two."""
    if result.setting is None:
        return f"nothing was measured: {result.why}"
    text = f"best: {result.setting} ({result.why})"
    if result.ratio is not None and result.interval is not None:
        low, high = result.interval
        text += (
            f"\n{result.compared} against none: {result.verdict},"
            f" {figures.gain(result.ratio)} [{low:.2f}, {high:.2f}]"
        )
        if result.verdict == "level" and high / low > WIDE:
            text += "\nthe starts differed much: run it again when the machine is quiet"
    return f"{text}\n{result.starts} server starts, {duration(result.seconds)}"


def duration(seconds: float) -> str:
    """45 s, 3 min, 1 h 20 min."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
