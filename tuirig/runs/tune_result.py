"""What a tune run found: choice, verdict, every setting, best per kind. Made from its arms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tuirig.rigs.settings import parse_setting
from tuirig.runs.flags import Drift, drift
from tuirig.runs.settings_table import SettingResult, interval_of, settings_table
from tuirig.runs.store import StoredArm
from tuirig.runs.tune_plan import TunePlan
from tuirig.runs.tune_state import CellStep, PassesStep, cell_of, state_of, step_of
from tuirig.stats.choice import Choice, choose_per_kind, compare_within
from tuirig.stats.comparison import Comparison, Verdict
from tuirig.stats.search import (
    BASELINE,
    Cell,
    Finished,
    Plan,
    State,
    candidates,
    next_step,
    untold,
    verdict,
)

TUNE = "tune"


class KindResult(msgspec.Struct, frozen=True, kw_only=True):
    """The best setting of one kind of work. setting None: can't be told, and why.

    differs: it beats the chosen setting on this kind by more than the detectable difference.
    """

    kind: str
    setting: str | None
    gain: float | None
    interval: tuple[float, float] | None
    differs: bool
    reason: str = ""


class TuneResult(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """What was found.

    setting: the chosen one; None if nothing was measured. verdict, ratio, interval: `compared`
    against `none`; compared is the chosen setting, or the best drafted one where none is chosen.
    best: the setting with the highest ratio; level: those that are level with it; why: how the
    choice between them was made, and without which settings. open: pairs whose verdict stayed
    open. stopped: why the search ended before it was done, empty if it was not. starts, seconds: of
    the whole run; starts_to_finalists, seconds_to_finalists: before the first finalist's block and
    drift check.
    """

    run: int
    kind: str
    rig: str
    objective: str
    setting: str | None
    compared: str | None
    verdict: str
    ratio: float | None
    interval: tuple[float, float] | None
    confidence: float | None
    detectable: float | None
    min_gain: float
    best: str | None
    level: tuple[str, ...]
    why: str
    settings: tuple[SettingResult, ...]
    per_kind: tuple[KindResult, ...]
    open: tuple[tuple[str, str], ...]
    stopped: str
    drift: Drift | None
    passes_s: dict[int, float] | None
    cannot: tuple[str, ...]
    starts: int
    seconds: float
    starts_to_finalists: int
    seconds_to_finalists: float
    profile: str | None
    schema: int = 1


def result_of(
    run: int, rig: str, plan: TunePlan, arms: Sequence[StoredArm], stopped: str = ""
) -> TuneResult:
    """What the arms of a run say, complete or not. stopped: why its search ended early."""
    search = plan.search
    state = state_of(arms, search.objective)
    choice = verdict(search, state)
    compared, comparison = _compared(search, state, choice)
    end = next_step(search, state)
    early = list(_before_finalists(arms))
    return TuneResult(
        run=run,
        kind=TUNE,
        rig=rig,
        objective=str(search.objective),
        setting=choice.setting if choice else None,
        compared=compared,
        verdict=comparison.verdict if comparison else Verdict.NOT_MEASURED,
        ratio=comparison.ratio if comparison else None,
        interval=interval_of(comparison),
        confidence=comparison.confidence if comparison else None,
        detectable=comparison.detectable if comparison else None,
        min_gain=search.min_gain,
        best=choice.best if choice else None,
        level=tuple(name for name in choice.tied if name != choice.best) if choice else (),
        why="; ".join((choice.reason if choice else "nothing was measured", *_untold(state))),
        settings=settings_table(
            arms, lambda name: between(search, state, BASELINE, cell_of(parse_setting(name)))
        ),
        per_kind=tuple(_per_kind(search, state, choice)),
        open=tuple((str(a), str(b)) for a, b in end.open) if isinstance(end, Finished) else (),
        stopped=stopped,
        drift=drift(arms),
        passes_s=dict(state.passes_s) if state.passes_s else None,
        cannot=plan.cannot,
        starts=len(arms),
        seconds=_seconds(arms),
        starts_to_finalists=len(early),
        seconds_to_finalists=_seconds(early),
        profile=None,
    )


def _untold(state: State) -> Iterator[str]:
    """The settings that the choice was made without."""
    for cell, starts in untold(state).items():
        times = "its only start" if starts == 1 else f"all of its {starts} starts"
        yield f"{cell} can't be told: replies stood still in {times}"


def _compared(
    plan: Plan, state: State, choice: Choice | None
) -> tuple[str | None, Comparison | None]:
    """(what the verdict is about, against the baseline)."""
    if choice is None:
        return None, None
    if choice.reference != str(BASELINE):
        return choice.setting, None
    if choice.setting != str(BASELINE):
        return choice.setting, choice.gain
    ratios = {name: found.ratio or 0.0 for name, found in choice.comparisons}
    rivals = {name: ratio for name, ratio in ratios.items() if name != str(BASELINE)}
    if choice.best != str(BASELINE):
        rivals = {choice.best: 1.0}
    if not rivals:
        return choice.setting, None
    rival = max(rivals, key=lambda name: rivals[name])
    return rival, between(plan, state, BASELINE, cell_of(parse_setting(rival)))


def _per_kind(plan: Plan, state: State, choice: Choice | None) -> Iterator[KindResult]:
    if choice is None:
        return
    for found in choose_per_kind(
        candidates(state), plan.kinds, choice, history=plan.history, min_gain=plan.min_gain
    ):
        best = found.choice
        yield KindResult(
            kind=found.kind,
            setting=best.setting if best else None,
            gain=best.gain.ratio if best else None,
            interval=interval_of(best.gain) if best else None,
            differs=found.differs,
            reason=found.reason,
        )


def _before_finalists(arms: Sequence[StoredArm]) -> Iterator[StoredArm]:
    """The starts before finalists and drift check, which repeat settings."""
    seen: set[str] = set()
    early = True
    for arm in arms:
        step = step_of(arm)
        if isinstance(step, CellStep):
            early = arm.setting not in seen or (step.again and early)
            seen.add(arm.setting)
        if isinstance(step, PassesStep) or (isinstance(step, CellStep) and early):
            yield arm


def between(plan: Plan, state: State, a: Cell, b: Cell) -> Comparison | None:
    """Two measured cells compared, None if one was not measured."""
    found = {candidate.setting: candidate for candidate in candidates(state)}
    if str(a) not in found or str(b) not in found:
        return None
    return compare_within(
        list(found.values()),
        found[str(a)],
        found[str(b)],
        plan.history,
        plan.objective.weighting(plan.kinds),
        plan.min_gain,
    )


def _seconds(arms: Sequence[StoredArm]) -> float:
    return sum(arm.seconds or 0.0 for arm in arms)
