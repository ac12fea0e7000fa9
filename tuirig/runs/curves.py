"""What the cost model predicts along the draft lengths of a stored tune."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tuirig.rigs.settings import parse_setting
from tuirig.runs.store import ArmState, StoredArm, StoredRun
from tuirig.runs.tune_result import TUNE
from tuirig.runs.tune_state import state_of
from tuirig.stats.choice import ALL
from tuirig.stats.cost_model import Prediction
from tuirig.stats.search import Plan, Row, predictions


class _Asked(msgspec.Struct, frozen=True):
    lengths: tuple[int, ...] = ()


def predicted_curves(
    run: StoredRun, arms: Sequence[StoredArm], lengths: Sequence[int]
) -> dict[str, tuple[Prediction, ...]]:
    """tok/s over all prompts by drafter, at measured lengths too; empty for runs of other kinds.

    Not stored: made of the arms as the search made them. lengths: of the rig, for a run that was
    asked for all of them.
    """
    if run.kind != TUNE:
        return {}
    asked = msgspec.json.decode(run.options, type=_Asked).lengths or tuple(lengths)
    ended = [arm for arm in arms if arm.state not in (ArmState.RUNNING, ArmState.BROKEN_OFF)]
    drafters = {parse_setting(arm.setting).drafter: None for arm in ended}
    rows = tuple(
        Row(drafter, tuple(sorted(length for length in asked if length > 0)))
        for drafter in drafters
        if drafter is not None
    )
    curves: dict[str, tuple[Prediction, ...]] = {}
    for cell, one in predictions(Plan(rows), state_of(ended, ALL), measured_too=True).items():
        curves[cell.drafter] = (*curves.get(cell.drafter, ()), one)
    return curves
