"""What a tune run is going to do: rig and options -> the plan of the search, in words, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tuirig.cards.detect import CPU
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import PlanMade
from tuirig.measure.prompts import Prompt
from tuirig.rigs.drafting import length_flag
from tuirig.rigs.schema import Drafter
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.flags import NO_CLOCK
from tuirig.runs.pace import Pace
from tuirig.runs.session import Session
from tuirig.stats.choice import PROMPTS_PER_KIND, Objective, parse_objective
from tuirig.stats.comparison import MIN_GAIN, Variance
from tuirig.stats.search import Passes, Plan, Row, forecast, uses_passes

TOKENS = 128
#: V(k) is asked of so many requests side by side at most.
_MOST_POSITIONS = 17


class TuneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked. lengths: 0 is no drafter, which is always measured. formats: rows of the rig.

    Empty lengths or formats: all of the rig. p_min: values of that knob to try. budget_s: no start
    begins that would end later. save: the outcome as the profile of this card and model.
    """

    prompts: tuple[Prompt, ...]
    tokens: int = TOKENS
    lengths: tuple[int, ...] = ()
    formats: tuple[str, ...] = ()
    objective: str = "all"
    p_min: tuple[float, ...] = ()
    exhaustive: bool = False
    min_gain: float = MIN_GAIN
    budget_s: float | None = None
    save: bool = True

    @property
    def kinds(self) -> dict[str, str]:
        """Prompt id -> kind."""
        return {prompt.id: prompt.kind for prompt in self.prompts}

    @property
    def parsed_objective(self) -> Objective:
        """The objective. Raises TuirigError."""
        try:
            objective = parse_objective(self.objective, set(self.kinds.values()))
            objective.weighting(self.kinds)
        except ValueError as error:
            raise TuirigError(str(error), exit_code=ExitCode.USAGE) from None
        return objective


@dataclass(frozen=True)
class TunePlan:
    """search: what the search follows. cannot: what can't be measured here, and why."""

    search: Plan
    cannot: tuple[str, ...]

    def as_event(self, options: TuneOptions, pace: Pace) -> PlanMade:
        """The plan in words, with the number of starts and the time to expect."""
        plan = self.search
        expected = forecast(plan)
        block = 4
        likely = expected.likely + (block if plan.finalist_blocks else 0) + plan.drift_check
        return PlanMade(
            steps=tuple(_steps(plan, options)),
            fewest=expected.fewest + plan.drift_check,
            likely=likely,
            most=expected.most + block * plan.finalist_blocks + plan.drift_check + plan.repeats,
            seconds=likely * pace.start_s,
            basis=pace.basis,
            cannot=self.cannot,
        )


async def plan_tune(
    session: Session, options: TuneOptions, history: Sequence[Variance]
) -> TunePlan:
    """Find out what can be measured on this rig and build the plan.

    history: start variances of earlier runs. Raises TuirigError for options that do not fit the
    rig, or an objective that the card can't be asked for.
    """
    objective = options.parsed_objective
    if objective.per == "joule" and (await session.read_card()).energy_j is None:
        raise TuirigError(
            f"objective energy: {session.card.info.name} has no energy counter",
            hint="choose another objective",
            exit_code=ExitCode.USAGE,
        )
    cannot: list[str] = []
    # A method that drafts in some steps only can't be predicted: models are searched first.
    rows = tuple(
        sorted(
            _rows(session, options, cannot),
            key=lambda row: _is_ngram(_drafter(session, row.drafter)),
        )
    )
    passes = _passes(session, rows, cannot)
    if session.card.info.kind == CPU:
        cannot.append(NO_CLOCK)
    cannot += _small_kinds(options)
    return TunePlan(
        Plan(
            rows=rows,
            passes=passes,
            exhaustive=options.exhaustive,
            p_min=options.p_min,
            min_gain=options.min_gain,
            objective=objective,
            kinds=options.kinds,
            history=() if objective.per == "joule" else tuple(history),
        ),
        tuple(cannot),
    )


def _rows(session: Session, options: TuneOptions, cannot: list[str]) -> Iterator[Row]:
    rig = session.rig
    known = {drafter.row: drafter for drafter in rig.drafter}
    for format in options.formats or known:
        if format not in known:
            raise TuirigError(
                f"rig {rig.name} has no drafter {format!r}; it has: {', '.join(known)}",
                exit_code=ExitCode.USAGE,
            )
        drafter = known[format]
        settable = length_flag(drafter.types) is not None
        lengths = sorted({n for n in options.lengths or rig.tune.lengths if n > 0})
        if settable and not lengths:
            continue
        # What a build refuses it refuses at every length.
        refusal = session.refusal(Setting(format, lengths[0] if settable else None))
        if refusal:
            cannot.append(refusal if format in refusal else f"{format}: {refusal}")
        else:
            yield Row(format, tuple(lengths) if settable else ())


def _passes(session: Session, rows: Sequence[Row], cannot: list[str]) -> Passes:
    """Whether V(k) can be measured, and is worth it."""
    first = next((row for row in rows if row.lengths), None)
    if first is None or not uses_passes(Plan(rows=tuple(rows), passes=Passes.START), first):
        return Passes.UNAVAILABLE
    reason = _no_passes(session, _drafter(session, first.drafter), first.lengths[-1] + 1)
    if reason:
        cannot.append(f"target passes over several positions, so lengths are climbed: {reason}")
        return Passes.UNAVAILABLE
    return Passes.START


def _no_passes(session: Session, drafter: Drafter, positions: int) -> str:
    if _is_ngram(drafter):
        return "an n-gram method drafts in some steps only, so they would predict nothing"
    if positions > _MOST_POSITIONS:
        return f"{positions} requests side by side are too many"
    try:
        session.command(NONE, slots=positions)
    except TuirigError as error:
        return error.message
    return ""


def _drafter(session: Session, row: str) -> Drafter:
    return next(drafter for drafter in session.rig.drafter if drafter.row == row)


def _is_ngram(drafter: Drafter) -> bool:
    return any(kind.is_ngram for kind in drafter.types)


def _small_kinds(options: TuneOptions) -> Iterator[str]:
    counts = Counter(options.kinds.values())
    few = [kind for kind, count in counts.items() if count < PROMPTS_PER_KIND]
    if few:
        yield (
            f"the best setting of a kind of its own: needs {PROMPTS_PER_KIND} prompts of it,"
            f" there are fewer of {', '.join(few)}"
        )


def _steps(plan: Plan, options: TuneOptions) -> Iterator[str]:
    prompts = f"{len(options.prompts)} prompts, {options.tokens} tokens each"
    yield f"objective {plan.objective}; each start: {prompts}"
    yield "none: the baseline without a drafter"
    with_lengths = [row for row in plan.rows if row.lengths]
    without = [row.drafter for row in plan.rows if not row.lengths]
    if plan.exhaustive:
        for row in with_lengths:
            yield f"{row.drafter}: every length of {_listed(row.lengths)}"
    elif with_lengths:
        first, *others = with_lengths
        if uses_passes(plan, first):
            yield "the target's passes over several positions, in a start without a drafter"
            how = "the longest, the predicted best, its better neighbour"
        else:
            how = "climbing to the first drop"
        yield f"{first.drafter}: lengths {_listed(first.lengths)}: {how}"
        if others:
            names = ", ".join(row.drafter for row in others)
            yield f"{names}: at the best length; one more where another is predicted"
    if without:
        yield f"{', '.join(without)}: no length to choose, one start each"
    if plan.p_min:
        yield f"p_min {_listed(plan.p_min)} at the best length, its best one length deeper"
    yield "finalists whose verdict is open: A B B A; last, the first setting again (drift check)"
    yield f"a start in which replies stand still: once more, at most {plan.repeats} times in all"


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)
