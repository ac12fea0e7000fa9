"""The search on a real server: its steps, what does not fit, cancelling, the saved profile."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.runs.running import Running, running
from tuirig.errors import TuirigError
from tuirig.events import (
    PassesMeasured,
    PlanMade,
    PredictionsMade,
    ReplyDone,
    StartBegan,
    StartEnded,
    StartFlagged,
)
from tuirig.files.profiles import read_profile
from tuirig.measure.prompts import choose
from tuirig.records import Arm, Reply
from tuirig.rigs.schema import Drafter, Rig
from tuirig.runs.lifecycle import unfinished
from tuirig.runs.store import ArmState, RunState
from tuirig.runs.tune import tune
from tuirig.runs.tune_plan import TuneOptions, plan_tune
from tuirig.runs.tune_result import TuneResult
from tuirig.stats.search import Row

#: A minimal gain so large that no pair of finalists stays open.
SHORT = TuneOptions(
    prompts=choose(3),
    tokens=8,
    formats=("q4_0",),
    lengths=(0, 1, 2),
    min_gain=100.0,
)

#: The real server, but for one draft length, at which it ends like a card without memory.
UNFIT = """#!/bin/sh
case " $* " in *" --spec-draft-n-max 2 "*)
    echo "ggml_backend_cuda_buffer_type_alloc_buffer: cudaMalloc failed: out of memory" >&2
    exit 1;;
esac
exec {program} "$@"
"""


def starts(ran: Running) -> list[str]:
    return [event.setting for event in ran.told(StartBegan)]


async def test_without_v_of_k_lengths_are_climbed_and_the_best_is_saved(
    tiny_gemma4_rig: Rig,
) -> None:
    async with running(tiny_gemma4_rig) as ran:
        result = await tune(ran.session, SHORT, ran.store, ran.events.append)
        (run,) = ran.store.runs()
        arms = ran.store.arms(run.id)
    assert starts(ran) == ["none", "q4_0:1", "q4_0:2", "none"]
    assert [arm.setting for arm in arms] == starts(ran)
    assert (run.kind, run.state, run.starts) == ("tune", RunState.DONE, 4)
    assert run.result is not None
    assert msgspec.json.decode(run.result, type=TuneResult) == result
    assert (result.starts, result.starts_to_finalists) == (4, 3)
    assert result.drift is not None and result.drift.setting == "none"
    assert result.setting in ("none", "q4_0:1", "q4_0:2")
    assert result.interval is not None and result.ratio is not None
    assert result.profile is not None
    profile = read_profile(Path(result.profile))
    assert (profile.setting, profile.objective, profile.source) == (
        result.setting, "all", "measured",
    )  # fmt: skip
    assert profile.evidence.starts == (2 if result.setting == "none" else 1)
    assert profile.model.sha256 and profile.card.name


async def test_every_setting_when_asked_for(tiny_gemma4_rig: Rig) -> None:
    options = msgspec.structs.replace(
        SHORT, exhaustive=True, formats=("q4_0", "f16"), lengths=(1, 2), save=False
    )
    async with running(tiny_gemma4_rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
    assert starts(ran) == ["none", "q4_0:1", "q4_0:2", "f16:1", "f16:2", "none"]
    assert result.profile is None
    (plan,) = ran.told(PlanMade)
    assert (plan.fewest, plan.likely, plan.most) == (6, 10, 21)
    assert any("every length of 1, 2" in step for step in plan.steps)
    assert any(reason.startswith("heat and clock") for reason in plan.cannot)
    assert any("needs 6 prompts of it" in reason for reason in plan.cannot)


async def test_drafters_that_can_be_predicted_come_first(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        options = msgspec.structs.replace(SHORT, formats=("ngram", "q4_0", "f16"), lengths=(3, 1))
        found = await plan_tune(ran.session, options, ())
    assert found.search.rows == (
        Row("q4_0", (1, 3)), Row("f16", (1, 3)), Row("ngram", (1, 3)),
    )  # fmt: skip


async def test_v_of_k_and_the_longest_length_predict_the_others(tiny_gemma4_rig: Rig) -> None:
    options = msgspec.structs.replace(SHORT, tokens=24, lengths=(1, 2, 3, 4, 5), save=False)
    async with running(tiny_gemma4_rig) as ran:
        await tune(ran.session, options, ran.store, ran.events.append)
        passes = ran.store.arms(1)[1]
    assert starts(ran)[:3] == ["none", "none", "q4_0:5"]
    (measured,) = ran.told(PassesMeasured)
    assert list(measured.passes_s) == [1, 2, 3, 4, 5, 6]
    assert passes.passes_s == measured.passes_s
    assert "-kvu" in passes.circumstances.argv
    after_longest = ran.told(PredictionsMade)[3]
    assert [one.setting for one in after_longest.predictions] == [
        "q4_0:1", "q4_0:2", "q4_0:3", "q4_0:4",
    ]  # fmt: skip
    assert all(one.low < one.tok_s < one.high for one in after_longest.predictions)
    # What is measured is predicted no more.
    last = {one.setting for one in ran.told(PredictionsMade)[-1].predictions}
    assert not last.intersection(starts(ran))


@pytest.fixture
def small_card_rig(tiny_gemma4_rig: Rig, tmp_path: Path) -> Rig:
    program = tmp_path / "llama-server"
    program.write_text(UNFIT.format(program=tiny_gemma4_rig.server.program))
    program.chmod(0o755)
    server = msgspec.structs.replace(tiny_gemma4_rig.server, program=str(program))
    return msgspec.structs.replace(tiny_gemma4_rig, server=server)


async def test_what_does_not_fit_is_a_result_and_the_search_goes_on(small_card_rig: Rig) -> None:
    options = msgspec.structs.replace(SHORT, lengths=(1, 2, 3), exhaustive=True, save=False)
    async with running(small_card_rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
        arms = ran.store.arms(result.run)
    assert starts(ran) == ["none", "q4_0:1", "q4_0:2", "none"]
    unfit = {one.setting: one for one in result.settings}["q4_0:2"]
    assert (unfit.outcome, unfit.tok_s) == ("does not fit", None)
    assert "the card has not enough free memory" in unfit.reason
    assert arms[2].state is ArmState.DOES_NOT_FIT
    assert arms[2].failure is not None and "cudaMalloc failed" in arms[2].failure.evidence[0]
    assert result.setting in ("none", "q4_0:1")


async def test_what_a_build_can_not_run_stands_in_the_plan(tiny_gemma4_rig: Rig) -> None:
    odd = Drafter(format="odd", type="draft-telepathy")
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(odd, *tiny_gemma4_rig.drafter))
    options = msgspec.structs.replace(SHORT, formats=("odd", "q4_0"), lengths=(1,), save=False)
    async with running(rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
    assert "has no type draft-telepathy" in ran.told(PlanMade)[0].cannot[0]
    assert result.cannot == ran.told(PlanMade)[0].cannot
    assert starts(ran) == ["none", "q4_0:1", "none"]


async def test_a_missing_drafter_stands_in_the_plan(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    gone = Drafter(format="gone", type="draft-mtp", path=str(tmp_path / "gone.gguf"))
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(gone, *tiny_gemma4_rig.drafter))
    options = msgspec.structs.replace(SHORT, formats=("gone", "q4_0"), lengths=(1,), save=False)
    async with running(rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
    assert result.cannot[0] == "gone: no such file: gone.gguf"
    assert {row.setting for row in result.settings} == {"none", "q4_0:1"}


async def test_the_budget_ends_the_search(tiny_gemma4_rig: Rig) -> None:
    options = msgspec.structs.replace(SHORT, budget_s=0.001)
    async with running(tiny_gemma4_rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
    assert starts(ran) == ["none"]
    assert result.stopped.startswith("the budget of ")
    assert result.setting == "none"


async def test_a_cancelled_search_keeps_its_arms_and_goes_on(tiny_gemma4_rig: Rig) -> None:
    seen = asyncio.Event()
    async with running(tiny_gemma4_rig) as ran:

        def emit(event: Any) -> None:
            ran.events.append(event)
            if len(ran.told(ReplyDone)) == 4:
                seen.set()

        ran.session._emit = emit
        task = asyncio.create_task(tune(ran.session, SHORT, ran.store, emit))
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ran.session.server is None
        assert ran.store.run(1).state is RunState.CANCELLED

        ran.events.clear()
        number, options = unfinished(ran.store, "tune", "tiny-gemma4", TuneOptions, SHORT.__eq__)
        result = await tune(ran.session, options, ran.store, emit, resume=number)
        arms = ran.store.arms(number)
    assert starts(ran) == ["q4_0:1", "q4_0:2", "none"]
    assert [event.number for event in ran.told(StartEnded)] == [2, 3, 4]
    assert [arm.state for arm in arms].count(ArmState.BROKEN_OFF) == 1
    assert (result.run, result.starts) == (number, 4)


def stall(ran: Running, *wanted: int) -> None:
    """Let the server tell of a reply that took minutes in these starts (counted from 1)."""
    measure, begun = ran.session.measure, itertools.count(1)

    async def stalling(*args: Any, keep: Any, **options: Any) -> Arm:
        number = next(begun)

        async def slowed(reply: Reply) -> None:
            if number in wanted and reply.order == 1:
                reply = msgspec.structs.replace(reply, tok_s=0.01)
            await keep(reply)

        return await measure(*args, keep=slowed, **options)

    ran.session.measure = stalling  # type: ignore[method-assign]


async def test_a_start_in_which_a_reply_stood_still_is_repeated(tiny_gemma4_rig: Rig) -> None:
    options = msgspec.structs.replace(SHORT, lengths=(1,), save=False)
    async with running(tiny_gemma4_rig) as ran:
        stall(ran, 1)
        result = await tune(ran.session, options, ran.store, ran.events.append)
        arms = ran.store.arms(result.run)
    assert starts(ran) == ["none", "none", "q4_0:1", "none"]
    began = ran.told(StartBegan)
    assert began[1].reason == "again: replies stood still"
    assert began[1].number <= began[1].expected
    assert began[3].reason == "the first setting again: drift check"
    (flagged,) = ran.told(StartFlagged)
    assert flagged.number == 1 and "1 of 3 replies stood still" in flagged.reasons[0]
    assert [arm.state for arm in arms] == [ArmState.MEASURED] * 4
    none = result.settings[0]
    assert (none.starts, none.flags) == (2, flagged.reasons)
    assert (result.starts, result.starts_to_finalists) == (4, 3)
    assert result.drift is not None
    assert "can't be told" not in result.why


async def test_a_resumed_search_repeats_what_stood_still_before_it_was_cancelled(
    tiny_gemma4_rig: Rig,
) -> None:
    options = msgspec.structs.replace(SHORT, lengths=(1,), save=False)
    ended = asyncio.Event()
    async with running(tiny_gemma4_rig) as ran:
        stall(ran, 1)

        def emit(event: Any) -> None:
            ran.events.append(event)
            if isinstance(event, StartEnded):
                ended.set()

        task = asyncio.create_task(tune(ran.session, options, ran.store, emit))
        await ended.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        ran.events.clear()
        stall(ran, 1)  # the repeated start, too
        result = await tune(ran.session, options, ran.store, ran.events.append, resume=1)
    assert starts(ran)[:2] == ["none", "q4_0:1"]
    assert ran.told(StartBegan)[0].reason == "again: replies stood still"
    assert (result.setting, result.verdict, result.ratio) == ("q4_0:1", "not measured", None)
    assert result.why.endswith("none can't be told: replies stood still in all of its 2 starts")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"formats": ("q5_0",)}, "has no drafter 'q5_0'; it has: f16, q8_0, q4_0, ngram"),
        ({"objective": "poems"}, "expected all, energy"),
        ({"objective": "mix:code=1,list=2"}, "is not KIND=SHARE"),
        ({"objective": "energy"}, "has no energy counter"),
    ],
)
async def test_options_that_do_not_fit_are_refused_before_anything_starts(
    tiny_gemma4_rig: Rig, changes: dict[str, Any], reason: str
) -> None:
    async with running(tiny_gemma4_rig) as ran:
        with pytest.raises(TuirigError, match=reason):
            options = msgspec.structs.replace(SHORT, **changes)
            await tune(ran.session, options, ran.store, ran.events.append)
        assert ran.store.runs() == ()


async def test_one_kind_has_a_profile_of_its_own(tiny_gemma4_rig: Rig) -> None:
    options = msgspec.structs.replace(
        SHORT, prompts=choose(2, ["story"]), objective="story", lengths=(1,)
    )
    async with running(tiny_gemma4_rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
    assert result.objective == "story"
    assert result.profile is not None and result.profile.endswith("--story.toml")
    assert read_profile(Path(result.profile)).evidence.prompts == 2


async def test_the_least_probability_is_an_axis_of_its_own(tiny_gemma4_rig: Rig) -> None:
    options = msgspec.structs.replace(SHORT, lengths=(1,), p_min=(0.1,), save=False)
    async with running(tiny_gemma4_rig) as ran:
        result = await tune(ran.session, options, ran.store, ran.events.append)
        arms = {arm.setting: arm for arm in ran.store.arms(result.run)}
    assert starts(ran) == ["none", "q4_0:1", "q4_0:1,p_min=0.1", "none"]
    argv = arms["q4_0:1,p_min=0.1"].circumstances.argv
    assert argv[argv.index("--spec-draft-p-min") + 1] == "0.1"
    assert {one.setting for one in result.settings} == {"none", "q4_0:1", "q4_0:1,p_min=0.1"}
