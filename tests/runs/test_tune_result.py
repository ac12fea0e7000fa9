from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from tests.runs.stored import reply
from tests.runs.tuned import PROMPTS, block, passes, stalled, started
from tuirig.runs.store import ArmState, FailureNote, StoredArm
from tuirig.runs.tune_plan import TunePlan
from tuirig.runs.tune_result import TuneResult, result_of
from tuirig.runs.tune_state import CellStep
from tuirig.stats.choice import Objective
from tuirig.stats.comparison import Variance
from tuirig.stats.search import Passes, Plan, Row

KINDS = {prompt: prompt.partition("-")[0] for prompt in PROMPTS}
PLAN = Plan(
    rows=(Row("q4_0", (1, 2, 3)),),
    passes=Passes.UNAVAILABLE,
    kinds=KINDS,
    history=(Variance(0.002**2, 100.0),),
)


def result(arms: Sequence[StoredArm], plan: Plan = PLAN) -> TuneResult:
    return result_of(7, "example", TunePlan(plan, ("a reason",)), arms)


def test_the_best_is_chosen_against_none() -> None:
    found = result([started("none", 50.0), started("q4_0:1", 80.0), started("q4_0:2", 90.0)])
    assert (found.setting, found.compared, found.verdict) == ("q4_0:2", "q4_0:2", "faster")
    assert found.ratio == pytest.approx(1.8)
    assert found.interval is not None and found.interval[0] < 1.8 < found.interval[1]
    assert (found.run, found.rig, found.starts, found.seconds) == (7, "example", 3, 30.0)
    assert found.cannot == ("a reason",)
    none, one, two = found.settings
    assert (none.setting, none.gain, none.interval) == ("none", None, None)
    assert (one.gain, two.gain) == (pytest.approx(1.6), pytest.approx(1.8))
    assert (two.kept, two.memory_mib, two.starts) == (pytest.approx(0.5, abs=0.01), 1000.0, 1)
    assert msgspec.json.decode(msgspec.json.encode(found), type=TuneResult) == found


def test_a_drafter_that_does_not_pay_is_told_against_none() -> None:
    found = result([started("none", 50.0), started("q4_0:1", 45.0), started("q4_0:2", 40.0)])
    assert (found.setting, found.best) == ("none", "none")
    assert (found.compared, found.verdict) == ("q4_0:1", "slower")
    assert found.ratio == pytest.approx(0.9)


def test_level_settings_prefer_fewer_drafted_tokens() -> None:
    found = result([started("none", 50.0), started("q4_0:1", 80.0), started("q4_0:2", 80.1)])
    assert (found.setting, found.best) == ("q4_0:1", "q4_0:2")
    assert found.level == ("q4_0:1",)
    assert found.why == "level with q4_0:2, drafts fewer tokens"


def test_failures_are_results_with_a_reason() -> None:
    note = FailureNote(message="the card has not enough free memory")
    unfit = started("q4_0:3", 1.0, state=ArmState.DOES_NOT_FIT, failure=note, arm=None, replies=())
    found = result([started("none", 50.0), started("q4_0:1", 80.0), unfit])
    assert found.setting == "q4_0:1"
    last = found.settings[-1]
    assert (last.setting, last.outcome, last.tok_s) == ("q4_0:3", "does not fit", None)
    assert last.reason == note.message


def test_nothing_measured() -> None:
    failed = started("none", 1.0, state=ArmState.FAILED, arm=None, replies=())
    found = result([failed])
    assert (found.setting, found.verdict, found.interval) == (None, "not measured", None)


AGAIN = CellStep(reason="again: replies stood still", again=True)


def test_a_repeated_start_takes_the_place_of_one_in_which_replies_stood_still() -> None:
    arms = [
        started("none", 50.0), stalled("q4_0:2", 90.0), started("q4_0:2", 90.0, AGAIN),
        started("none", 50.0),
    ]  # fmt: skip
    found = result(arms)
    assert (found.setting, found.verdict, found.why) == ("q4_0:2", "faster", "highest ratio")
    assert found.ratio == pytest.approx(1.8)
    assert (found.starts, found.starts_to_finalists) == (4, 3)
    row = found.settings[1]
    assert (row.starts, row.gain) == (1, pytest.approx(1.8))
    assert row.flags == ("2 of 12 replies stood still: 4 tok/s and up, their median is 95",)


def test_what_stood_still_twice_is_not_in_the_choice_and_the_answer_says_so() -> None:
    arms = [started("none", 50.0), stalled("q4_0:2", 90.0), stalled("q4_0:2", 90.0)]
    arms[2] = msgspec.structs.replace(arms[2], step=msgspec.Raw(msgspec.json.encode(AGAIN)))
    found = result(arms)
    assert (found.setting, found.verdict, found.ratio) == ("none", "not measured", None)
    assert found.why.endswith("; q4_0:2 can't be told: replies stood still in all of its 2 starts")
    row = found.settings[1]
    assert (row.outcome, row.starts, row.gain, len(row.flags)) == ("measured", 0, None, 1)


def test_without_a_baseline_that_counts_there_is_no_verdict() -> None:
    arms = [stalled("none", 50.0), started("q4_0:1", 70.0), started("q4_0:2", 90.0)]
    found = result(arms)
    assert (found.setting, found.compared) == ("q4_0:2", "q4_0:2")
    assert (found.verdict, found.ratio, found.interval) == ("not measured", None, None)
    assert "none can't be told: replies stood still in its only start" in found.why
    assert [row.gain for row in found.settings] == [None, None, None]


def test_starts_and_seconds_before_the_finalists() -> None:
    arms = [
        started("none", 50.0),
        passes({1: 0.02, 2: 0.021}),
        started("q4_0:1", 80.0),
        started("q4_0:2", 80.5),
        *block(1, "q4_0:2", "q4_0:1", [80.0] * 4),
        started("none", 50.0),
    ]
    found = result(arms)
    assert (found.starts, found.starts_to_finalists) == (9, 4)
    assert (found.seconds, found.seconds_to_finalists) == (90.0, 40.0)
    assert found.drift is not None and found.drift.ratio == pytest.approx(1.0)
    assert found.passes_s == {1: 0.02, 2: 0.021}


def with_objective(plan: Plan, objective: Objective) -> Plan:
    return replace(plan, objective=objective)


def speeds(setting: str, code: float, story: float) -> StoredArm:
    kept = None if setting == "none" else 0.5
    by_kind = {"code": code, "story": story}
    replies = tuple(
        reply(by_kind[kind] * (1 + 0.002 * n), prompt, kept=kept)
        for n, (prompt, kind) in enumerate(KINDS.items())
    )
    return started(setting, 1.0, replies=replies)


def test_a_kind_with_another_best_setting_is_named() -> None:
    arms = [
        speeds("none", 50.0, 50.0), speeds("q4_0:1", 80.0, 75.0), speeds("q4_0:3", 120.0, 70.0),
    ]  # fmt: skip
    found = {one.kind: one for one in result(arms).per_kind}
    assert result(arms).setting == "q4_0:3"
    assert (found["code"].setting, found["code"].differs) == ("q4_0:3", False)
    assert (found["story"].setting, found["story"].differs) == ("q4_0:1", True)
    assert found["story"].gain == pytest.approx(1.5)


def test_an_objective_decides() -> None:
    arms = [
        speeds("none", 50.0, 50.0), speeds("q4_0:1", 80.0, 75.0), speeds("q4_0:3", 120.0, 70.0),
    ]  # fmt: skip
    story = with_objective(PLAN, Objective((("story", 1.0),)))
    assert result(arms, story).setting == "q4_0:1"
    assert result(arms, story).objective == "story"
    mix = with_objective(PLAN, Objective((("code", 1.0), ("story", 9.0))))
    assert result(arms, mix).setting == "q4_0:1"
