"""Two settings compared in A B B A blocks, until the answer is settled."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import msgspec

from tuirig.cards.detect import CPU
from tuirig.events import ComparisonMoved, Emit, PlanMade
from tuirig.measure import summary
from tuirig.measure.prompts import PROMPTS, Prompt
from tuirig.rigs.settings import parse_setting
from tuirig.runs.arms import ArmRunner, Recipe, to_its_end
from tuirig.runs.flags import NO_CLOCK, Drift, drift, flags, stood_still
from tuirig.runs.lifecycle import Agree, always, open_run, propose, start_noise, still_valid
from tuirig.runs.pace import Pace, pace_on
from tuirig.runs.session import Session
from tuirig.runs.store import ArmState, Store, StoredArm
from tuirig.runs.surroundings import surroundings_of
from tuirig.stats.comparison import (
    MIN_GAIN,
    Comparison,
    Start,
    Variance,
    Verdict,
    compare,
    half_width_after,
)
from tuirig.stats.search import AGAIN
from tuirig.stats.stopping import Look, StoppingRule, block_order, look

KIND = "ab"
TOKENS = 48
#: Without a number of blocks: as many as fit in this time, 1 to MOST_BLOCKS; where not even one
#: does, with fewer prompts.
QUICK_S = 120.0
MOST_BLOCKS = 3
FEWEST_PROMPTS = 6
_STARTS = 4  #: of a block
_SIDES = ("A", "B")
_REPEATS = 1  #: of a side's starts in which replies stood still
_MORE_BLOCKS = (1, 2, 3, 5)
#: A longer comparison is worth mentioning when its interval is narrower by this factor.
_NARROWER = 0.9


class AbOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked. blocks: at most so many; None: as many as fit in a quick check."""

    a: str
    b: str
    prompts: tuple[Prompt, ...]
    tokens: int = TOKENS
    min_gain: float = MIN_GAIN
    blocks: int | None = None


class BlockStep(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An arm's place in the blocks: block counted from 1, place from 0. side: "A" or "B".

    again: the place had a start in which replies stood still.
    """

    block: int
    place: int
    side: str
    again: bool = False


class More(msgspec.Struct, frozen=True, kw_only=True):
    """What a longer comparison would tell.

    blocks, prompts: in all. seconds: for all of it. half_width: of its interval, relative.
    """

    blocks: int
    prompts: int
    seconds: float
    half_width: float


class SideResult(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a comparison. starts: those that count. flags: why any is suspicious."""

    setting: str
    tok_s: float | None
    kept: float | None
    memory_mib: float | None
    starts: int
    flags: tuple[str, ...]


class AbResult(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """B against A. ratio, interval: tok/s of B over that of A. setting: the faster one, or A.

    starts: server starts of the run, whatever came of them; seconds: spent in them. blocks:
    complete ones. settled: why the comparison ended. more: what further blocks would tell.
    """

    run: int
    kind: str
    rig: str
    verdict: str
    setting: str
    ratio: float | None
    interval: tuple[float, float] | None
    confidence: float
    detectable: float | None
    min_gain: float
    a: SideResult
    b: SideResult
    prompts: int
    tokens: int
    blocks: int
    starts: int
    seconds: float
    settled: str
    reason: str
    drift: Drift | None
    more: tuple[More, ...]
    schema: int = 1


async def ab(
    session: Session,
    options: AbOptions,
    store: Store,
    emit: Emit,
    *,
    resume: int | None = None,
    agree: Agree = always,
) -> AbResult:
    """Compare two settings; returns when the answer is settled or the blocks are used up.

    resume: an unfinished run with the same options; only what it misses is measured. Raises
    TuirigError where the whole run can't go on; a setting that fails gives `not measured`.
    Cancelling stops the server and keeps what was measured.
    """
    settings = {"A": parse_setting(options.a), "B": parse_setting(options.b)}
    rig = session.rig.name
    surroundings = await surroundings_of(session, settings.values(), emit)
    recipe = Recipe(options.prompts, options.tokens)
    history = await to_its_end(start_noise, store, rig, surroundings, resume)
    pace = await pace_on(session, store, surroundings, recipe.all_tokens, besides=resume)
    contest = _Contest(options, history, pace)
    await propose(_plan(options, contest, pace, session.card.info.kind), emit, agree)
    async with open_run(store, KIND, rig, options, emit, resume) as run:
        arms = still_valid(await to_its_end(store.arms, run.id), surroundings, emit)
        runner = ArmRunner(session, store, run.id, recipe, surroundings, pace, emit, arms)
        while (step := contest.next_step(runner.arms)) is not None:
            runner.expected = _STARTS * step.block
            runner.recipe = replace(recipe, prompts=contest.prompts(runner.arms))
            reason = f"{step.side}, block {step.block}" + f"; {AGAIN}" * step.again
            arm = await runner.measure(settings[step.side], step, reason)
            if arm.state is not ArmState.MEASURED:
                break
            emit(contest.moved(runner.arms))
        run.result = result = contest.result(run.id, rig, runner.arms)
        run.verdict, run.setting = result.verdict, result.setting
        return result


class _Contest:
    """What the arms so far say, and which one is missing next. Keeps no arms of its own."""

    def __init__(self, options: AbOptions, history: Sequence[Variance], pace: Pace) -> None:
        self._options = options
        self._history = history
        self._pace = pace

    def _first_s(self, arms: Sequence[StoredArm]) -> float | None:
        return next((arm.seconds for arm in _counting(arms) if arm.seconds), None)

    def rule(self, arms: Sequence[StoredArm]) -> StoppingRule:
        """How many blocks at most. A quick check decides by the time of its first start.

        That is before any ratio is known, so it does not touch the error rate.
        """
        if self._options.blocks is not None:
            return StoppingRule(self._options.blocks)
        block_s = _STARTS * (self._first_s(arms) or self._pace.start_s)
        return StoppingRule(max(1, min(MOST_BLOCKS, int(QUICK_S / block_s))))

    def prompts(self, arms: Sequence[StoredArm]) -> tuple[Prompt, ...]:
        """What the next start measures. On a slow rig a quick check goes on with fewer prompts.

        So many as fit in the time that the first start left; at least one of each kind. The
        comparison is over the prompts of all starts.
        """
        prompts, first_s = self._options.prompts, self._first_s(arms)
        if self._options.blocks is not None or first_s is None:
            return prompts
        left_s = max(0.0, QUICK_S - first_s) / (_STARTS - 1)
        return prompts[: max(FEWEST_PROMPTS, int(len(prompts) * left_s / first_s))]

    def next_step(self, arms: Sequence[StoredArm]) -> BlockStep | None:
        """The first place without an arm that counts; None when the answer is settled.

        Also where replies of a side stood still in a second start, as for a start that fails.
        """
        if _still_again(arms):
            return None
        rule = self.rule(arms)
        there = {(step.block, step.place) for step in map(_step, _counting(arms))}
        still = {(step.block, step.place) for step in map(_step, _still(arms))}
        for block in range(1, rule.blocks + 1):
            for place, side in enumerate(block_order(block)):
                if (block, place) not in there:
                    again = (block, place) in still
                    return BlockStep(block=block, place=place, side=side, again=again)
            if self._look(arms, block).settled:
                return None
        return None

    def moved(self, arms: Sequence[StoredArm]) -> ComparisonMoved:
        """The comparison so far, as an event."""
        comparison, blocks, settled = self._now(arms)
        return ComparisonMoved(
            a=self._options.a,
            b=self._options.b,
            verdict=comparison.verdict,
            ratio=comparison.ratio,
            low=comparison.low,
            high=comparison.high,
            confidence=comparison.confidence,
            detectable=comparison.detectable,
            starts_a=comparison.starts_a,
            starts_b=comparison.starts_b,
            blocks=blocks,
            settled=settled,
        )

    def result(self, run: int, rig: str, arms: Sequence[StoredArm]) -> AbResult:
        """The answer."""
        comparison, blocks, settled = self._now(arms)
        if side := _still_again(arms):
            setting = self._options.a if side == "A" else self._options.b
            settled = f"replies of {setting} stood still in two starts: they say nothing of it"
        failed = next((arm for arm in reversed(arms) if arm.failure), None)
        if failed is not None and failed is arms[-1] and failed.failure is not None:
            settled = f"{failed.setting} {failed.state}: {failed.failure.message}"
        known = comparison.low is not None and comparison.high is not None
        faster = comparison.verdict is Verdict.FASTER
        return AbResult(
            run=run,
            kind=KIND,
            rig=rig,
            verdict=comparison.verdict,
            setting=self._options.b if faster else self._options.a,
            ratio=comparison.ratio,
            interval=(comparison.low or 0.0, comparison.high or 0.0) if known else None,
            confidence=comparison.confidence,
            detectable=comparison.detectable,
            min_gain=comparison.min_gain,
            a=_side("A", self._options.a, arms, comparison.prompts),
            b=_side("B", self._options.b, arms, comparison.prompts),
            prompts=len(comparison.prompts),
            tokens=self._options.tokens,
            blocks=blocks,
            starts=len(arms),
            seconds=sum(arm.seconds or 0.0 for arm in arms),
            settled=settled,
            reason=comparison.reason,
            drift=drift(arms),
            more=tuple(self._more(comparison, blocks)),
        )

    def _now(self, arms: Sequence[StoredArm]) -> tuple[Comparison, int, str]:
        """(comparison, complete blocks, why it is settled)."""
        measured = _counting(arms)
        block = max((_step(arm).block for arm in measured), default=1)
        complete = sum(_step(arm).block == block for arm in measured) == _STARTS
        if complete:
            seen = self._look(arms, block)
            return seen.comparison, block, seen.reason
        comparison = compare(
            _starts("A", measured, block),
            _starts("B", measured, block),
            history=self._history,
            min_gain=self._options.min_gain,
            confidence=self.rule(arms).confidence(block),
        )
        return comparison, block - 1, ""

    def _look(self, arms: Sequence[StoredArm], block: int) -> Look:
        measured = _counting(arms)
        return look(
            self.rule(arms),
            block,
            _starts("A", measured, block),
            _starts("B", measured, block),
            history=self._history,
            min_gain=self._options.min_gain,
        )

    def _more(self, comparison: Comparison, done: int) -> Iterator[More]:
        """Longer comparisons, started anew, from short to long; each is narrower than the last."""
        if comparison.ratio is None or comparison.high is None or not done:
            return
        width = comparison.high / comparison.ratio - 1.0
        for more in sorted(self._longer(comparison, done), key=lambda one: one.seconds):
            if more.half_width < _NARROWER * width:
                width = more.half_width
                yield more

    def _longer(self, comparison: Comparison, done: int) -> Iterator[More]:
        """With more blocks the start part shrinks, with more prompts the prompt part."""
        prompt_part, prompts = comparison.prompt_part, len(comparison.prompts)
        built_in = all(prompt in PROMPTS for prompt in self._options.prompts)
        for count in {prompts, len(PROMPTS)} if built_in else {prompts}:
            for blocks in _MORE_BLOCKS:
                if blocks < done or (blocks, count) == (done, prompts) or prompt_part is None:
                    continue
                at_its_end = replace(
                    comparison,
                    confidence=StoppingRule(blocks).confidence(blocks),
                    prompt_part=Variance(prompt_part.value * prompts / count, count - 1.0),
                )
                half_width = half_width_after(at_its_end, 2 * (blocks - done))
                if half_width is not None:
                    yield More(
                        blocks=blocks,
                        prompts=count,
                        seconds=_STARTS * blocks * self._pace.start_s * count / prompts,
                        half_width=half_width,
                    )


def _plan(options: AbOptions, contest: _Contest, pace: Pace, card: str) -> PlanMade:
    most = contest.rule(()).blocks
    blocks = "1 block" if most == 1 else f"1 to {most} blocks, until the answer is settled"
    return PlanMade(
        steps=(
            f"A is {options.a}, B is {options.b}: A B B A, then its mirror; {blocks}",
            f"each start: {len(options.prompts)} prompts, {options.tokens} tokens each",
            "a start in which replies stand still: once more for each side",
        ),
        fewest=_STARTS,
        likely=_STARTS,
        most=_STARTS * most + len(_SIDES) * _REPEATS,
        seconds=_STARTS * pace.start_s,
        basis=pace.basis,
        cannot=(NO_CLOCK,) if card == CPU else (),
    )


def _measured(arms: Sequence[StoredArm]) -> list[StoredArm]:
    return [arm for arm in arms if arm.state is ArmState.MEASURED]


def _counting(arms: Sequence[StoredArm]) -> list[StoredArm]:
    return [arm for arm in _measured(arms) if not stood_still(arm)]


def _still(arms: Sequence[StoredArm]) -> list[StoredArm]:
    return [arm for arm in _measured(arms) if stood_still(arm)]


def _still_again(arms: Sequence[StoredArm]) -> str:
    """The side whose replies stood still more often than it is repeated, empty if none did."""
    sides = [_step(arm).side for arm in _still(arms)]
    return next((side for side in _SIDES if sides.count(side) > _REPEATS), "")


def _step(arm: StoredArm) -> BlockStep:
    return msgspec.json.decode(arm.step, type=BlockStep)


def _starts(side: str, arms: Sequence[StoredArm], block: int) -> list[Start]:
    """The starts of a side up to a block."""
    steps = ((arm, _step(arm)) for arm in arms)
    return [
        summary.tok_s_by_prompt(arm.replies)
        for arm, step in steps
        if step.side == side and step.block <= block
    ]


def _side(
    side: str, setting: str, arms: Sequence[StoredArm], prompts: Collection[str]
) -> SideResult:
    """One side, on the prompts that were compared (all of its own if none were)."""
    started = [arm for arm in _measured(arms) if _step(arm).side == side]
    own = [arm for arm in started if not stood_still(arm)]
    replies = [
        reply for arm in own for reply in arm.replies if not prompts or reply.prompt_id in prompts
    ]
    return SideResult(
        setting=setting,
        tok_s=summary.tok_s(replies),
        kept=summary.kept(replies),
        memory_mib=next((arm.arm.memory_mib for arm in reversed(own) if arm.arm), None),
        starts=len(own),
        flags=tuple(flag for arm in started for flag in flags(arm, _measured(arms))),
    )
