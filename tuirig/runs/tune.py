"""The best setting of a rig, found with few starts, proven, and saved as its profile."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tuirig.events import ComparisonMoved, Emit, Predicted, PredictionsMade
from tuirig.rigs.profile import Profile
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs import saving
from tuirig.runs.arms import ArmRunner, Recipe, to_its_end
from tuirig.runs.lifecycle import Agree, always, open_run, propose, start_noise, still_valid
from tuirig.runs.pace import pace_on
from tuirig.runs.session import Session
from tuirig.runs.settings_table import counting_arms, greedy_replies
from tuirig.runs.store import Store, StoredArm
from tuirig.runs.surroundings import surroundings_of
from tuirig.runs.tune_plan import TuneOptions, plan_tune
from tuirig.runs.tune_result import TUNE, TuneResult, between, result_of
from tuirig.runs.tune_state import (
    CellStep,
    FinalistStep,
    PassesStep,
    cell_of,
    next_block,
    next_place,
    setting_of,
    state_of,
)
from tuirig.stats.comparison import Verdict
from tuirig.stats.search import (
    Finished,
    MeasurePasses,
    Plan,
    RunBlock,
    StartCell,
    State,
    forecast,
    next_step,
    predictions,
    repeats_left,
)

_BLOCK = 4


async def tune(
    session: Session,
    options: TuneOptions,
    store: Store,
    emit: Emit,
    *,
    resume: int | None = None,
    agree: Agree = always,
) -> TuneResult:
    """Search the best setting of a rig for an objective.

    resume: an unfinished run with the same options; only what it misses is measured. A setting
    that fails or does not fit is a result, and the search goes on. Raises TuirigError for options
    that do not fit the rig, and where the whole run can't go on. Cancelling stops the server and
    keeps what was measured.
    """
    rig = session.rig
    rows = options.formats or [drafter.row for drafter in rig.drafter]
    settings = [NONE, *(Setting(row) for row in rows)]
    surroundings = await surroundings_of(session, settings, emit)
    history = await to_its_end(start_noise, store, rig.name, surroundings, resume)
    plan = await plan_tune(session, options, history)
    recipe = Recipe(options.prompts, options.tokens)
    pace = await pace_on(session, store, surroundings, recipe.all_tokens, besides=resume)
    await propose(plan.as_event(options, pace), emit, agree)
    async with open_run(store, TUNE, rig.name, options, emit, resume) as run:
        arms = still_valid(await to_its_end(store.arms, run.id), surroundings, emit)
        runner = ArmRunner(session, store, run.id, recipe, surroundings, pace, emit, arms)
        stopped = await _Search(plan.search, options, runner, emit).to_its_end()
        result = result_of(run.id, rig.name, plan, runner.arms, stopped)
        if options.save and result.setting is not None:
            profile = await tuned_profile(session, options, result, runner.arms, emit)
            path = await to_its_end(saving.save, profile)
            result = msgspec.structs.replace(result, profile=str(path))
        run.result, run.verdict, run.setting = result, result.verdict, result.setting or ""
        return result


class _Search:
    """Does what the search asks for, start by start."""

    def __init__(self, plan: Plan, options: TuneOptions, runner: ArmRunner, emit: Emit) -> None:
        self._plan = plan
        self._options = options
        self._runner = runner
        self._emit = emit

    async def to_its_end(self) -> str:
        """Search until there is nothing left to do; why it ended before that, empty if not."""
        self._tell_predictions()
        while True:
            # A block that was broken off is completed before anything else is decided.
            place = self._next_place()
            step = None if place else next_step(self._plan, self._state)
            if isinstance(step, Finished):
                return ""
            over = self._over_budget(step)
            if over:
                return over
            self._runner.expected = self._expected(step)
            match step:
                case MeasurePasses(positions):
                    await self._runner.measure_passes(
                        positions,
                        PassesStep(positions=positions),
                        f"target passes over 1 to {positions} positions",
                    )
                case StartCell(cell, reason, again):
                    of = CellStep(reason=reason, again=again)
                    await self._runner.measure(setting_of(cell), of, reason)
                case RunBlock(a, b, order, reason):
                    place = FinalistStep(
                        block=next_block(self._runner.arms),
                        a=str(a),
                        b=str(b),
                        order=order,
                        place=0,
                        reason=reason,
                    )
            while place is not None:
                await self._finalist(place)
                place = self._next_place()
            self._tell_predictions()

    def _next_place(self) -> FinalistStep | None:
        seen = state_of(self._runner.arms, self._plan.objective, whole_blocks=False)
        return next_place(self._runner.arms, repeats_left(self._plan, seen.results))

    @property
    def _state(self) -> State:
        return state_of(self._runner.arms, self._plan.objective)

    async def _finalist(self, step: FinalistStep) -> None:
        await self._runner.measure(parse_setting(step.setting), step, step.reason)
        state = state_of(self._runner.arms, self._plan.objective, whole_blocks=False)
        self._emit(_moved(self._plan, state, step))

    def _tell_predictions(self) -> None:
        found = predictions(self._plan, self._state)
        self._emit(
            PredictionsMade(
                predictions=tuple(
                    Predicted(setting=str(cell), tok_s=one.tok_s, low=one.low, high=one.high)
                    for cell, one in found.items()
                )
            )
        )

    def _over_budget(self, step: object) -> str:
        """Why the next step does not fit into the budget; the baseline always does."""
        budget_s = self._options.budget_s
        if budget_s is None or not self._runner.arms:
            return ""
        starts = _BLOCK if isinstance(step, RunBlock) else 1
        spent_s = sum(arm.seconds or 0.0 for arm in self._runner.arms)
        if spent_s + starts * self._runner.pace.start_s <= budget_s:
            return ""
        return f"the budget of {budget_s / 60:g} min is used up"

    def _expected(self, step: object) -> int:
        """Starts in all, as far as the search can tell now."""
        done = len(self._runner.arms)
        drift_check = int(self._plan.drift_check)
        if isinstance(step, StartCell | MeasurePasses):
            repeats = sum(result.again for result in self._state.results)
            likely = forecast(self._plan).likely + repeats + drift_check
            return max(done + 1, likely + (isinstance(step, StartCell) and step.again))
        return done + _BLOCK + drift_check


def _moved(plan: Plan, state: State, step: FinalistStep) -> ComparisonMoved:
    """B against A of a finalists' block, with every start that either has had."""
    a, b = (cell_of(parse_setting(text)) for text in (step.a, step.b))
    comparison = between(plan, state, a, b)
    return ComparisonMoved(
        a=step.a,
        b=step.b,
        verdict=comparison.verdict if comparison else Verdict.NOT_MEASURED,
        ratio=comparison.ratio if comparison else None,
        low=comparison.low if comparison else None,
        high=comparison.high if comparison else None,
        confidence=comparison.confidence if comparison else plan.rule.confidence(1),
        detectable=comparison.detectable if comparison else None,
        starts_a=comparison.starts_a if comparison else 0,
        starts_b=comparison.starts_b if comparison else 0,
        blocks=len(state.blocks),
    )


async def tuned_profile(
    session: Session,
    options: TuneOptions,
    result: TuneResult,
    arms: Sequence[StoredArm],
    emit: Emit,
) -> Profile:
    """The profile of the chosen setting, with the verdict in its evidence; not saved yet.

    arms: of the run. Raises as saving.profile_of does, ValueError if nothing was chosen.
    """
    setting = parse_setting(result.setting or "")
    good = counting_arms(arms)
    own = [arm for arm in good if arm.setting == str(setting)]
    last = own[-1]
    kinds = {kind for kind, _ in options.parsed_objective.mix} or set(options.kinds.values())
    profile = await saving.profile_of(
        session,
        setting,
        [reply for reply in greedy_replies(own) if reply.kind in kinds],
        [
            reply
            for reply in greedy_replies([arm for arm in good if arm.setting == str(NONE)])
            if reply.kind in kinds
        ],
        server_build=last.circumstances.server_build,
        argv=last.circumstances.argv,
        env=last.circumstances.env,
        memory_mib=last.arm.memory_mib if last.arm else None,
        memory_source=last.arm.memory_source if last.arm else "",
        emit=emit,
    )
    drafted = result.compared == result.setting and setting != NONE
    evidence = msgspec.structs.replace(
        profile.evidence,
        verdict=result.verdict if drafted else None,
        interval=_rounded(result.interval) if drafted else None,
        starts=len(own),
    )
    return msgspec.structs.replace(profile, objective=result.objective, evidence=evidence)


def _rounded(interval: tuple[float, float] | None) -> tuple[float, float] | None:
    return None if interval is None else (round(interval[0], 4), round(interval[1], 4))
