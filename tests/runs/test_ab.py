"""Two settings compared: the order of the starts, stopping, resuming, with a real server."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest

from tests.runs import stored
from tests.runs.running import Running, running
from tests.runs.stored import circumstances, reply
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import (
    ArmsStale,
    ComparisonMoved,
    PlanMade,
    ReplyDone,
    RunEnded,
    RunStarted,
    StartBegan,
    StartEnded,
    ignore,
)
from tuirig.measure.prompts import choose
from tuirig.records import Cooling
from tuirig.rigs.schema import Drafter, Rig
from tuirig.rigs.settings import parse_setting
from tuirig.runs.ab import AbOptions, AbResult, BlockStep, _Contest, ab
from tuirig.runs.lifecycle import start_noise, unfinished
from tuirig.runs.pace import Pace
from tuirig.runs.store import ArmState, RunState, StoredArm
from tuirig.runs.surroundings import surroundings_of
from tuirig.stats.comparison import Variance

PROMPTS = choose(6)
CARD = msgspec.json.encode(stored.CARD)
QUICK = AbOptions(a="none", b="q4_0:1", prompts=choose(2), tokens=8, blocks=1)


def contest(**options: Any) -> _Contest:
    wanted = AbOptions(a="none", b="q4_0:2", prompts=PROMPTS, **options)
    return _Contest(wanted, (), Pace(10.0, "a guess"))


def done(step: BlockStep, tok_s: float = 100.0, seconds: float = 10.0) -> StoredArm:
    replies = tuple(reply(tok_s + order, prompt.id) for order, prompt in enumerate(PROMPTS))
    return StoredArm(
        id=step.block * 10 + step.place,
        run=1,
        setting="none" if step.side == "A" else "q4_0:2",
        step=msgspec.Raw(msgspec.json.encode(step)),
        state=ArmState.MEASURED,
        started_at="",
        seconds=seconds,
        circumstances=circumstances(),
        cooling=Cooling(),
        replies=replies,
    )


def order_of(judge: _Contest, speeds: dict[str, float], seconds: float = 10.0) -> str:
    arms: list[StoredArm] = []
    while (step := judge.next_step(arms)) is not None:
        arms.append(done(step, speeds[step.side] * (1 + 0.03 * (len(arms) % 3)), seconds))
    return "".join(msgspec.json.decode(arm.step, type=BlockStep).side for arm in arms)


def test_blocks_are_mirrored_until_the_limit() -> None:
    assert order_of(contest(blocks=3), {"A": 100.0, "B": 100.0}) == "ABBABAABABBA"


def test_a_large_difference_settles_it_after_a_block() -> None:
    assert order_of(contest(blocks=3), {"A": 100.0, "B": 190.0}) == "ABBA"


@pytest.mark.parametrize(("seconds", "blocks"), [(40.0, 1), (14.0, 2), (6.0, 3), (1.0, 3)])
def test_a_quick_check_takes_the_blocks_that_fit(seconds: float, blocks: int) -> None:
    assert len(order_of(contest(), {"A": 100.0, "B": 100.0}, seconds)) == 4 * blocks


@pytest.mark.parametrize(("seconds", "count"), [(20.0, 12), (30.0, 12), (40.0, 8), (60.0, 6)])
def test_a_slow_rig_goes_on_with_fewer_prompts(seconds: float, count: int) -> None:
    options = AbOptions(a="none", b="q4_0:2", prompts=choose(12))
    judge = _Contest(options, (), Pace(10.0, "a guess"))
    first = done(BlockStep(block=1, place=0, side="A"), seconds=seconds)
    assert judge.prompts([]) == choose(12)
    assert judge.prompts([first]) == choose(12)[:count]
    patient = _Contest(msgspec.structs.replace(options, blocks=1), (), Pace(10.0, "a guess"))
    assert patient.prompts([first]) == choose(12)


def test_both_sides_are_told_on_the_prompts_that_were_compared() -> None:
    steps = [BlockStep(block=1, place=place, side=side) for place, side in enumerate("ABBA")]
    whole = done(steps[0])
    fewer = [msgspec.structs.replace(arm, replies=arm.replies[:3]) for arm in map(done, steps[1:])]
    result = contest().result(1, "example", [whole, *fewer])
    assert result.prompts == 3
    assert result.a.tok_s == pytest.approx(result.b.tok_s)


def test_a_missing_place_in_the_middle_comes_next() -> None:
    steps = [BlockStep(block=1, place=place, side=side) for place, side in enumerate("ABBA")]
    arms = [done(steps[0]), done(steps[3])]
    assert contest(blocks=1).next_step(arms) == steps[1]


def still(step: BlockStep) -> StoredArm:
    """An arm in which one reply stood still."""
    good = done(step)
    slow = reply(2.0, PROMPTS[0].id)
    return msgspec.structs.replace(good, replies=(slow, *good.replies[1:]))


def test_a_start_in_which_replies_stood_still_is_repeated_once_for_each_side() -> None:
    judge = contest(blocks=1)
    arms: list[StoredArm] = []
    while (step := judge.next_step(arms)) is not None:
        stalls = step.place in (0, 1) and not step.again
        arms.append(still(step) if stalls else done(step))
    places = [msgspec.json.decode(arm.step, type=BlockStep) for arm in arms]
    assert [(one.side, one.place, one.again) for one in places] == [
        ("A", 0, False), ("A", 0, True), ("B", 1, False), ("B", 1, True),
        ("B", 2, False), ("A", 3, False),
    ]  # fmt: skip
    result = judge.result(1, "example", arms)
    assert (result.ratio, result.blocks, result.starts) == (pytest.approx(1.0), 1, 6)
    assert (result.a.starts, len(result.a.flags)) == (2, 1)
    assert "1 of 6 replies stood still" in result.a.flags[0]


def test_a_side_that_stands_still_again_ends_the_comparison() -> None:
    judge = contest(blocks=3)
    first = BlockStep(block=1, place=0, side="A")
    arms = [still(first), still(msgspec.structs.replace(first, again=True))]
    assert judge.next_step(arms) is None
    result = judge.result(1, "example", arms)
    assert (result.verdict, result.interval, result.a.starts) == ("not measured", None, 0)
    assert result.settled == "replies of none stood still in two starts: they say nothing of it"


def test_longer_comparisons_are_foretold() -> None:
    steps = [BlockStep(block=1, place=place, side=side) for place, side in enumerate("ABBA")]
    arms = [done(step, 100.0 + place) for place, step in enumerate(steps)]
    result = contest(blocks=1).result(1, "example", arms)
    assert result.interval is not None and result.ratio is not None
    widths = [result.interval[1] / result.ratio - 1, *(more.half_width for more in result.more)]
    assert len(widths) > 2
    assert all(after < 0.9 * before for before, after in itertools.pairwise(widths))
    seconds = [40.0, *(more.seconds for more in result.more)]
    assert seconds == sorted(seconds)
    for more in result.more:
        assert more.prompts in (6, 36)
        assert more.seconds == pytest.approx(40.0 * more.blocks * more.prompts / 6)


def settings(ran: Running) -> list[str]:
    return [event.setting for event in ran.told(StartBegan)]


async def test_one_block_on_a_real_server(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        result = await ab(ran.session, QUICK, ran.store, ran.events.append)
        (run,) = ran.store.runs()
        arms = ran.store.arms(run.id)
    assert settings(ran) == ["none", "q4_0:1", "q4_0:1", "none"]
    assert [arm.setting for arm in arms] == settings(ran)
    assert all(arm.state is ArmState.MEASURED and len(arm.replies) == 2 for arm in arms)
    assert arms[1].arm is not None and arms[1].arm.proof.proven
    drafter = arms[1].circumstances.drafter
    assert drafter is not None and drafter.file == "gemma4-q4_0.gguf" and drafter.sha256
    assert (run.state, run.kind, run.starts) == (RunState.DONE, "ab", 4)
    assert run.result is not None
    assert msgspec.json.decode(run.result, type=AbResult) == result
    assert (result.starts, result.blocks, result.prompts) == (4, 1, 2)
    assert result.settled
    assert result.interval is not None and result.ratio is not None
    assert result.interval[0] < result.ratio < result.interval[1]
    moves = ran.told(ComparisonMoved)
    assert [(move.starts_a, move.starts_b) for move in moves] == [(1, 0), (1, 1), (1, 2), (2, 2)]
    assert [bool(move.settled) for move in moves] == [False, False, False, True]
    kinds = [type(event) for event in ran.events]
    assert kinds.index(PlanMade) < kinds.index(RunStarted) < kinds.index(StartBegan)
    assert ran.told(RunEnded)[-1].verdict == result.verdict


async def test_a_declined_plan_starts_nothing(tiny_gemma4_rig: Rig) -> None:
    async def decline(plan: PlanMade) -> bool:
        return False

    async with running(tiny_gemma4_rig) as ran:
        with pytest.raises(TuirigError, match="not started") as caught:
            await ab(ran.session, QUICK, ran.store, ran.events.append, agree=decline)
        assert ran.store.runs() == ()
    assert caught.value.exit_code is ExitCode.INTERRUPTED
    assert ran.told(StartBegan) == []


async def cancelled_at(ran: Running, reply_number: int) -> None:
    """Start a comparison and cancel it when so many replies have come."""
    seen = asyncio.Event()

    def emit(event: Any) -> None:
        ran.events.append(event)
        if len(ran.told(ReplyDone)) == reply_number:
            seen.set()

    ran.session._emit = emit
    task = asyncio.create_task(ab(ran.session, QUICK, ran.store, emit))
    await seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ran.session.server is None
    ran.session._emit = ran.events.append


async def test_a_cancelled_run_keeps_its_arms_and_goes_on(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        await cancelled_at(ran, 5)
        (run,) = ran.store.runs()
        assert run.state is RunState.CANCELLED
        states = [arm.state for arm in ran.store.arms(run.id)]
        assert states == [ArmState.MEASURED, ArmState.MEASURED, ArmState.BROKEN_OFF]
        assert len(ran.store.arms(run.id)[2].replies) == 1

        ran.events.clear()
        number, options = unfinished(ran.store, "ab", "tiny-gemma4", AbOptions, QUICK.__eq__)
        assert (number, options) == (run.id, QUICK)
        result = await ab(ran.session, options, ran.store, ran.events.append, resume=number)
        arms = ran.store.arms(run.id)
        assert len(ran.store.runs()) == 1
        with pytest.raises(TuirigError, match="is done: there is nothing to resume"):
            unfinished(ran.store, "ab", "tiny-gemma4", AbOptions, QUICK.__eq__)
    assert settings(ran) == ["q4_0:1", "none"]
    assert [event.number for event in ran.told(StartBegan)] == [3, 4]
    assert result.starts == 4
    assert [len(arm.replies) for arm in arms] == [2, 2, 1, 2, 2]


async def test_stale_arms_are_told_and_measured_again(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        await cancelled_at(ran, 3)
        ran.store._database.execute("UPDATE arms SET server_build = 'an older one'")
        ran.events.clear()
        result = await ab(ran.session, QUICK, ran.store, ran.events.append, resume=1)
    (stale,) = ran.told(ArmsStale)
    assert stale.arms == 1
    assert stale.changes[0].startswith("server build an older one -> ")
    assert settings(ran) == ["none", "q4_0:1", "q4_0:1", "none"]
    assert result.starts == 4


async def test_a_drafter_that_does_not_draft_is_not_measured(
    tiny_gemma4_rig: Rig, smollm2_files: Any
) -> None:
    wrong = Drafter(
        format="wrong", type="draft-simple", path=str(smollm2_files / "smollm2-q4_0.gguf")
    )
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(wrong,))
    options = msgspec.structs.replace(QUICK, b="wrong:2")
    async with running(rig) as ran:
        result = await ab(ran.session, options, ran.store, ran.events.append)
        arms = ran.store.arms(result.run)
    assert (result.verdict, result.ratio, result.interval) == ("not measured", None, None)
    assert result.settled.startswith("wrong:2 not proven: ")
    assert [arm.state for arm in arms] == [ArmState.MEASURED, ArmState.NOT_PROVEN]
    assert ran.told(StartEnded)[-1].outcome == "not proven"


async def test_the_noise_between_starts_of_earlier_runs(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        first = await ab(ran.session, QUICK, ran.store, ran.events.append)
        surroundings = await surroundings_of(ran.session, [parse_setting("q4_0:1")], ignore)
        store, rig = ran.store, ran.session.rig.name
        store._database.execute("UPDATE replies SET tok_s = 100 + number")
        noise = start_noise(store, rig, surroundings, None)
        assert noise == (Variance(pytest.approx(0.0), 1.0),) * 2
        assert start_noise(store, rig, surroundings, first.run) == ()
        store._database.execute("UPDATE arms SET driver = 'old', card = ?", (CARD,))
        assert start_noise(store, rig, surroundings, None) == ()
