from __future__ import annotations

import pytest

from tuirig.engines.base import Counters
from tuirig.measure.acceptance import acceptance, moved


def counted(drafts: int | None, *per_position: int) -> Counters:
    return Counters(predicted=128, drafts=drafts, per_position=per_position)


def test_a_reply_up_to_the_limit_has_one_step_that_drafts_nothing() -> None:
    # Seen with draft-mtp at length 3: 128 tokens, 69 of 168 accepted, 57 drafts.
    known = acceptance(128, 168, 69, counted(57, 28, 23, 18), 3)
    assert (known.steps, known.drafts) == (58, 57)
    assert known.kept == pytest.approx(69 / 168)
    assert known.accepted_per_position == pytest.approx((28 / 57, 23 / 57, 18 / 57))
    assert known.mean_accepted_length == pytest.approx(1 + sum(known.accepted_per_position or ()))


def test_a_reply_that_ends_inside_a_draft_has_the_steps_that_were_counted() -> None:
    # Seen with draft-simple at length 4: 154 tokens, 124 of 124 accepted in 31 drafts.
    assert acceptance(154, 124, 124, counted(31, 31, 31, 31, 31), 4).steps == 31


def test_without_counters_the_formula_stands_in() -> None:
    known = acceptance(128, 168, 69, None, 3)
    assert (known.steps, known.drafts) == (58, None)
    assert known.accepted_per_position is None
    assert known.mean_accepted_length == pytest.approx(127 / 58)


def test_positions_are_filled_up_to_the_draft_length() -> None:
    known = acceptance(10, 20, 2, counted(5, 2), 4)
    assert known.accepted_per_position == pytest.approx((0.4, 0.0, 0.0, 0.0))


def test_positions_past_the_draft_length_are_cut() -> None:
    known = acceptance(10, 20, 4, counted(5, 2, 1, 1), 2)
    assert known.accepted_per_position == pytest.approx((0.4, 0.2))


def test_a_method_without_a_length_has_as_many_positions_as_were_seen() -> None:
    known = acceptance(10, 20, 4, counted(5, 2, 1, 1), None)
    assert known.accepted_per_position == pytest.approx((0.4, 0.2, 0.2))


def test_no_drafts_is_unknown_not_zero() -> None:
    known = acceptance(128, None, None, counted(0), 2)
    assert known.steps == 127
    assert known.drafts == 0
    assert (known.drafted, known.kept) == (None, None)
    assert (known.accepted_per_position, known.mean_accepted_length) == (None, None)


def test_all_refused_is_zero_not_unknown() -> None:
    known = acceptance(11, 20, 0, counted(10), 2)
    assert known.steps == 10
    assert known.kept == 0.0
    assert known.accepted_per_position == (0.0, 0.0)
    assert known.mean_accepted_length == 1.0


def test_the_difference_of_two_looks_at_the_counters() -> None:
    before = Counters(predicted=16, drafts=7, drafted=21, accepted=8, per_position=(3, 3))
    after = Counters(predicted=80, drafts=34, drafted=101, accepted=43, per_position=(17, 16, 10))
    assert moved(before, after) == Counters(
        predicted=64, drafts=27, drafted=80, accepted=35, per_position=(14, 13, 10)
    )


def test_counters_that_a_build_lacks_stay_unknown() -> None:
    assert moved(Counters(predicted=1), Counters(predicted=4)) == Counters(predicted=3)
