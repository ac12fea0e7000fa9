from __future__ import annotations

import msgspec
import pytest

from tests.runs.stored import arm, reply
from tests.runs.tuned import block, passes, stalled, started
from tuirig.rigs.settings import parse_setting
from tuirig.runs.store import ArmState
from tuirig.runs.tune_state import (
    CellStep,
    cell_of,
    next_block,
    next_place,
    rates,
    setting_of,
    state_of,
    step_of,
)
from tuirig.stats.choice import ALL, Objective
from tuirig.stats.search import Cell, Outcome

ENERGY = Objective(per="joule")


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("none", Cell()),
        ("q4_0:2", Cell("q4_0", 2)),
        ("inside:5,p_min=0.3", Cell("inside", 5, 0.3)),
        ("cache", Cell("cache", None)),
    ],
)
def test_settings_and_cells(text: str, cell: Cell) -> None:
    assert cell_of(parse_setting(text)) == cell
    assert setting_of(cell) == parse_setting(text)


def test_arms_become_results_in_their_order() -> None:
    arms = [
        started("none", 50.0),
        passes({1: 0.02, 2: 0.021}),
        started("q4_0:2", 80.0),
        started("q4_0:7", 1.0, state=ArmState.DOES_NOT_FIT, arm=None, replies=()),
        started("wrong:2", 80.0, state=ArmState.NOT_PROVEN),
    ]
    state = state_of(arms, ALL)
    assert [(str(one.cell), one.outcome) for one in state.results] == [
        ("none", Outcome.MEASURED),
        ("q4_0:2", Outcome.MEASURED),
        ("q4_0:7", Outcome.DOES_NOT_FIT),
        ("wrong:2", Outcome.FAILED),
    ]
    assert state.passes_s == {1: 0.02, 2: 0.021}
    baseline, drafted, *_ = state.results
    assert baseline.speeds["code-1"] == pytest.approx(50.0)
    assert baseline.accepted is None
    assert drafted.accepted == pytest.approx((0.6, 0.4))
    assert drafted.memory_mib == 1000.0


def test_passes_that_failed_are_not_asked_for_again() -> None:
    state = state_of([started("none", 50.0), passes(None)], ALL)
    assert (state.passes_s, state.passes_failed) == (None, True)


def test_acceptance_counts_only_where_nearly_every_step_drafted() -> None:
    seldom = msgspec.structs.replace(reply(60.0, kept=0.5), steps=100, drafts=40)
    state = state_of([started("ngram:3", 60.0, replies=(seldom,), arm=arm("x", ()))], ALL)
    assert state.results[0].accepted is None


def test_sampled_replies_do_not_count() -> None:
    replies = (reply(50.0), reply(10.0, temperature=0.8))
    state = state_of([started("none", 50.0, replies=replies)], ALL)
    assert state.results[0].speeds == {"code-1": pytest.approx(50.0)}


def test_a_block_counts_when_it_is_whole() -> None:
    first = [started("none", 50.0), started("q4_0:1", 80.0), started("q4_0:2", 81.0)]
    arms = [*first, *block(1, "q4_0:2", "q4_0:1", [81.0, 80.0])]
    assert len(state_of(arms, ALL).results) == 3
    assert len(state_of(arms, ALL, whole_blocks=False).results) == 5
    assert state_of(arms, ALL).blocks == ()
    place = next_place(arms)
    assert place is not None
    assert (place.place, place.setting, place.block) == (2, "q4_0:1", 1)

    whole = [*first, *block(1, "q4_0:2", "q4_0:1", [81.0, 80.0, 80.0, 81.0])]
    state = state_of(whole, ALL)
    assert state.blocks == ((Cell("q4_0", 2), Cell("q4_0", 1)),)
    assert len(state.results) == 7
    assert next_place(whole) is None
    assert next_block(whole) == 2


def test_a_place_that_is_missing_in_the_middle_comes_next() -> None:
    arms = block(1, "q4_0:2", "q4_0:1", [81.0, 80.0, 80.0, 81.0])
    place = next_place([arms[0], arms[3]])
    assert place is not None and place.place == 1


def test_replies_that_stood_still_are_seen_in_a_stored_arm() -> None:
    again = CellStep(reason="again: replies stood still", again=True)
    state = state_of([stalled("none", 50.0), started("none", 50.0, again)], ALL)
    assert [(one.stood_still, one.again, one.counts) for one in state.results] == [
        (True, False, False), (False, True, True),
    ]  # fmt: skip


def test_a_place_in_which_replies_stood_still_comes_again() -> None:
    first, second, third, fourth = block(1, "q4_0:2", "q4_0:1", [81.0, 80.0, 80.0, 81.0])
    for arms in (
        [first, stalled("q4_0:1", 80.0, step_of(second))],
        [first, second, third, stalled("q4_0:2", 80.0, step_of(fourth))],
    ):
        place = next_place(arms, repeats_left=1)
        assert place is not None
        assert (place.place, place.setting, place.again) == (
            len(arms) - 1, arms[-1].setting, True,
        )  # fmt: skip
        assert place.reason == "again: replies stood still"
        for repeated in (started, stalled):
            after = next_place([*arms, repeated(place.setting, 80.0, place)], repeats_left=1)
            assert after is None or (after.place, after.again) == (len(arms), False)
    beyond = next_place([first, stalled("q4_0:1", 80.0, step_of(second))], repeats_left=0)
    assert beyond is not None and (beyond.place, beyond.again) == (2, False)


def test_a_block_with_a_repeated_place_is_one_block() -> None:
    first, second, *others = block(1, "q4_0:2", "q4_0:1", [81.0, 80.0, 80.0, 81.0])
    still = stalled("q4_0:1", 80.0, step_of(second))
    place = next_place([first, still], repeats_left=1)
    assert place is not None
    arms = [first, still, started("q4_0:1", 80.0, place), *others]
    state = state_of(arms, ALL)
    assert state.blocks == ((Cell("q4_0", 2), Cell("q4_0", 1)),)
    assert [one.counts for one in state.results].count(True) == 4
    assert next_place(arms, repeats_left=1) is None


def test_tokens_per_joule() -> None:
    replies = [reply(50.0, energy_j=64.0), reply(50.0, "story-1"), reply(50.0, energy_j=16.0)]
    assert rates(replies, ENERGY) == {"code-1": pytest.approx((128 / 64 * 128 / 16) ** 0.5)}
    assert rates(replies, ALL)["story-1"] == pytest.approx(50.0)
