"""What the charts of a run are drawn from: read and reckoned once, beside the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tuirig.errors import MissingError
from tuirig.rigs.settings import NONE
from tuirig.runs.curves import predicted_curves
from tuirig.runs.report import report
from tuirig.runs.settings_table import SettingResult
from tuirig.runs.store import StoredArm, StoredRun
from tuirig.tui.spans import Line, Span, line, wrap


class Facts(NamedTuple):
    """A run. predicted: tok/s by drafter, then by draft length."""

    run: StoredRun
    arms: tuple[StoredArm, ...]
    settings: tuple[SettingResult, ...] = ()
    predicted: dict[str, dict[int, float]] = {}

    @property
    def none_tok_s(self) -> float | None:
        """tok/s without a drafter."""
        return next((one.tok_s for one in self.settings if one.setting == str(NONE)), None)


def facts_of(run: StoredRun, arms: Sequence[StoredArm], lengths: Sequence[int]) -> Facts:
    """What is known of a run, under way or over. lengths: of its rig."""
    try:
        settings = report(run, arms).settings
    except MissingError:
        settings = ()
    curves = predicted_curves(run, arms, lengths)
    predicted = {
        drafter: {one.length: one.tok_s for one in curve} for drafter, curve in curves.items()
    }
    return Facts(run, tuple(arms), settings, predicted)


def sentence(text: str, cells: int) -> list[Line]:
    """What stands in the place of a chart that has nothing to show."""
    return [line(Span(row, "dim")) for row in wrap(text, cells)]
