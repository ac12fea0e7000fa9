"""The published speed protocol: every draft length in a server of its own, six prompts.

256 tokens, three greedy repeats and one sampled pass at temperature 0.8, prompt cache off; the card
cools down before each start; the first drafted setting runs again at the end, to see the drift.
Greedy figures are geometric means over the prompts; the sampled pass is reported apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tuirig.cards.detect import CPU
from tuirig.events import Emit, PlanMade
from tuirig.measure import summary
from tuirig.measure.prompts import Prompt
from tuirig.rigs.settings import NONE, parse_setting
from tuirig.runs.arms import ArmRunner, Recipe, to_its_end
from tuirig.runs.flags import NO_CLOCK, Drift, drift, greedy
from tuirig.runs.lifecycle import Agree, always, open_run, propose, still_valid
from tuirig.runs.pace import pace_on
from tuirig.runs.session import Session
from tuirig.runs.settings_table import measured_arms
from tuirig.runs.store import ArmState, Store, StoredArm
from tuirig.runs.surroundings import surroundings_of
from tuirig.stats.ratio import paired_gain

SPEED = "speed"
PROMPTS = 6
TOKENS = 256
REPEATS = 3
SAMPLED = 0.8


class SpeedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked. settings: in their order, `none` first, without the repetition at the end."""

    settings: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    tokens: int = TOKENS
    repeats: int = REPEATS
    sampled: float = SAMPLED

    @property
    def order(self) -> tuple[str, ...]:
        """Every start: the settings, and the first drafted one again."""
        drafted = [setting for setting in self.settings if setting != str(NONE)]
        return (*self.settings, *drafted[:1])


class SpeedStep(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An arm's place in the order."""

    place: int


class SpeedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the table. tok_s, gain, kept: greedy. sampled_tok_s: of the sampled pass.

    ended_by_itself: share of replies that ended before the token limit; their acceptance is
    understated. reason: why a setting has no figures.
    """

    setting: str
    outcome: str
    tok_s: float | None = None
    gain: float | None = None
    kept: float | None = None
    sampled_tok_s: float | None = None
    memory_mib: float | None = None
    ended_by_itself: float | None = None
    reason: str = ""


class SpeedResult(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """The table. drift: the repeated setting against its first start."""

    run: int
    kind: str
    rig: str
    rows: tuple[SpeedRow, ...]
    drift: Drift | None
    prompts: int
    tokens: int
    repeats: int
    sampled: float
    starts: int
    seconds: float
    schema: int = 1


async def speed(
    session: Session,
    options: SpeedOptions,
    store: Store,
    emit: Emit,
    *,
    resume: int | None = None,
    agree: Agree = always,
) -> SpeedResult:
    """Measure the table. A setting that fails is a row with its reason.

    resume: an unfinished run with the same options. Raises TuirigError where the whole run can't
    go on. Cancelling stops the server and keeps what was measured.
    """
    rig = session.rig.name
    settings = [parse_setting(text) for text in options.order]
    surroundings = await surroundings_of(session, settings, emit)
    recipe = Recipe(options.prompts, options.tokens, options.repeats, options.sampled)
    pace = await pace_on(session, store, surroundings, recipe.all_tokens, besides=resume)
    count = len(settings)
    plan = PlanMade(
        steps=(
            f"in this order: {', '.join(options.order)}",
            f"each start: {len(options.prompts)} prompts of {options.tokens} tokens,"
            f" {options.repeats} greedy rounds and one at temperature {options.sampled:g}",
        ),
        fewest=count,
        likely=count,
        most=count,
        seconds=count * pace.start_s,
        basis=pace.basis,
        cannot=(NO_CLOCK,) if session.card.info.kind == CPU else (),
    )
    await propose(plan, emit, agree)
    async with open_run(store, SPEED, rig, options, emit, resume) as run:
        arms = still_valid(await to_its_end(store.arms, run.id), surroundings, emit)
        runner = ArmRunner(session, store, run.id, recipe, surroundings, pace, emit, arms)
        runner.expected = count
        done = {msgspec.json.decode(arm.step, type=SpeedStep).place for arm in arms}
        for place, setting in enumerate(settings):
            if place not in done:
                again = " again" if place == len(options.settings) else ""
                await runner.measure(setting, SpeedStep(place=place), f"{setting}{again}")
        run.result = result = speed_result(run.id, rig, options, runner.arms)
        return result


def speed_result(
    run: int, rig: str, options: SpeedOptions, arms: Sequence[StoredArm]
) -> SpeedResult:
    """The table of the arms so far."""
    by_place = {msgspec.json.decode(arm.step, type=SpeedStep).place: arm for arm in arms}
    ordered = [by_place[place] for place in sorted(by_place)]
    baseline = next((arm for arm in measured_arms(ordered) if arm.setting == str(NONE)), None)
    none = summary.tok_s_by_prompt(greedy(baseline)) if baseline else {}
    repetition = by_place.get(len(options.settings))
    return SpeedResult(
        run=run,
        kind=SPEED,
        rig=rig,
        rows=tuple(_row(arm, none) for arm in ordered if arm is not repetition),
        drift=drift([arm for arm in ordered if arm.setting == options.order[-1]]),
        prompts=len(options.prompts),
        tokens=options.tokens,
        repeats=options.repeats,
        sampled=options.sampled,
        starts=len(arms),
        seconds=sum(arm.seconds or 0.0 for arm in arms),
    )


def _row(arm: StoredArm, none: Mapping[str, float]) -> SpeedRow:
    if arm.state is not ArmState.MEASURED:
        reason = arm.failure.message if arm.failure else ""
        return SpeedRow(setting=arm.setting, outcome=arm.state, reason=reason)
    replies = greedy(arm)
    drafted = arm.setting != str(NONE)
    return SpeedRow(
        setting=arm.setting,
        outcome=arm.state,
        tok_s=summary.tok_s(replies),
        gain=paired_gain(none, summary.tok_s_by_prompt(replies)) if drafted else None,
        kept=summary.kept(replies),
        sampled_tok_s=summary.tok_s([one for one in arm.replies if one.temperature]),
        memory_mib=arm.arm.memory_mib if arm.arm else None,
        ended_by_itself=summary.ended_by_itself(replies),
    )
