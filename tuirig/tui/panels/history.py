"""Past runs in words: a line per run, its answer, its starts in the order of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from tuirig.measure import summary
from tuirig.rigs.settings import parse_setting
from tuirig.tui import figures
from tuirig.tui.chart import Point
from tuirig.tui.panels.runs import duration, found

if TYPE_CHECKING:
    from tuirig.runs.store import StoredArm, StoredRun
    from tuirig.runs.tune_result import TuneResult


def title(run: StoredRun) -> str:
    """`12  tune  done  2026-11-30 22:10  5 starts`."""
    when = run.started_at.replace("T", " ")[:16]
    return f"{run.id:>4}  {run.kind:<5}  {run.state:<11}  {when}  {run.starts} starts"


def answer(run: StoredRun) -> str:
    """What the run found."""
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
    lines.append(f"{run.starts} server starts, {duration(run.seconds)}")
    return "\n".join(filter(None, lines))


def tune_result(run: StoredRun) -> TuneResult:
    """The stored result of a tune."""
    from tuirig.runs.tune_result import TuneResult

    assert run.result is not None
    return msgspec.json.decode(run.result, type=TuneResult)


def points(run: StoredRun, arms: Sequence[StoredArm]) -> tuple[list[Point], float | None]:
    """(points with intervals where the run knows them, tok/s of `none`)."""
    none = _tok_s([arm for arm in arms if arm.setting == "none"])
    intervals = {}
    if run.kind == "tune" and run.result is not None:
        intervals = {one.setting: one.interval for one in tune_result(run).settings}
    drawn = []
    for name in dict.fromkeys(arm.setting for arm in arms):
        setting = parse_setting(name)
        speed = _tok_s([arm for arm in arms if arm.setting == name])
        if setting.drafter is None or setting.length is None or setting.knobs or speed is None:
            continue
        low, high = intervals.get(name) or (0.0, 0.0)
        known = none is not None and high > 0
        bounds = (low * (none or 0), high * (none or 0)) if known else (speed, speed)
        drawn.append(Point(setting.drafter, setting.length, speed, *bounds))
    return drawn, none


def starts(arms: Sequence[StoredArm]) -> list[str]:
    """A line per server start, oldest first: tok/s and the card's temperature at its end."""
    lines = []
    for number, arm in enumerate(arms, 1):
        reading = arm.replies[-1].reading_after if arm.replies else None
        heat = reading.temperature_c if reading is not None else None
        speed = figures.rate(_tok_s([arm]))
        words = f"{number:>3}  {arm.setting:<12} {speed:>7} tok/s"
        if heat is not None:
            words += f"  {heat:.0f} °C"
        if arm.failure is not None:
            words += f"  {arm.state}: {arm.failure.message}"
        lines.append(words)
    return lines


def _tok_s(arms: Sequence[StoredArm]) -> float | None:
    replies = [reply for arm in arms for reply in arm.replies if reply.temperature == 0]
    return summary.tok_s(replies)
