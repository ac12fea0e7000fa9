"""Past runs in words: a line per run, its answer, its starts in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tuirig.measure import summary
from tuirig.runs.flags import greedy
from tuirig.runs.settings_table import measures_passes
from tuirig.runs.store import ArmState, RunState
from tuirig.tui import figures
from tuirig.tui.panels.runs import duration, found
from tuirig.tui.spans import Line, Span, line, wrap

if TYPE_CHECKING:
    from tuirig.runs.store import StoredArm, StoredRun
    from tuirig.runs.tune_result import TuneResult


def title(run: StoredRun) -> str:
    """`12  tune  done  2026-11-30 22:10  5 starts`."""
    when = run.started_at.replace("T", " ")[:16]
    return f"{run.id:>4}  {run.kind:<5}  {run.state:<11}  {when}  {run.starts} starts"


def answer(run: StoredRun) -> str:
    """What the run found."""
    spent = f"{run.starts} server starts, {duration(run.seconds)}"
    if run.state is RunState.RUNNING:
        return f"{run.kind} goes on: {spent} so far"
    if run.result is None:
        return f"{run.kind} {run.state}: no result; tuirig {run.kind} {run.rig} --resume goes on"
    if run.kind == "tune":
        return found(tune_result(run))
    told = msgspec.json.decode(run.result, type=dict)
    lines = []
    if run.kind == "ab" and told.get("ratio") is not None:
        low, high = told.get("interval") or (0.0, 0.0)
        lines.append(
            f"{told['b']['setting']} against {told['a']['setting']}: {told['verdict']},"
            f" {told['ratio']:.3f} [{low:.3f}, {high:.3f}]"
        )
        lines.append(str(told.get("settled", "")))
    lines.append(spent)
    return "\n".join(filter(None, lines))


def tune_result(run: StoredRun) -> TuneResult:
    """The stored result of a tune."""
    from tuirig.runs.tune_result import TuneResult

    assert run.result is not None
    return msgspec.json.decode(run.result, type=TuneResult)


def starts(arms: Sequence[StoredArm], cells: int) -> list[Line]:
    """Every server start, oldest first: tok/s, kept, the card's temperature, what went wrong."""
    lines = []
    name = max((len(arm.setting) for arm in arms), default=0)
    for number, arm in enumerate(arms, 1):
        replies = greedy(arm)
        reading = replies[-1].reading_after if replies else None
        heat = reading.temperature_c if reading is not None else None
        kept = summary.kept(replies)
        speed = f"{figures.rate(summary.tok_s(replies)):>7} tok/s"
        if measures_passes(arm):
            speed = "target passes"
        words = [
            f"{number:>3}  {arm.setting:<{name}}",
            speed,
            f"{f'kept {figures.share(kept)}' if kept is not None else '':<9}",
            f"{'' if heat is None else f'{heat:.0f} °C':>6}",
            f"{'' if arm.seconds is None else duration(arm.seconds):>6}",
        ]
        counts = arm.state is ArmState.MEASURED
        state = Span("" if counts else f"  {arm.state}", "warn")
        lines.append(line(Span("  ".join(words)), state))
        if arm.failure is not None:
            lines += [
                line("     ", Span(row, "dim")) for row in wrap(arm.failure.message, cells - 5)
            ]
    return lines or [line(Span("nothing was started yet", "dim"))]
