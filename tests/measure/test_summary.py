from __future__ import annotations

from typing import Any

import pytest

from tuirig.measure import summary
from tuirig.records import Reply


def reply(prompt_id: str = "code-1", **fields: Any) -> Reply:
    return Reply(prompt_id=prompt_id, kind="code", **fields)


def test_nothing_is_known_of_no_replies() -> None:
    for function in (
        summary.tok_s,
        summary.ttft_ms,
        summary.kept,
        summary.accepted_per_position,
        summary.mean_accepted_length,
        summary.ended_by_itself,
    ):
        assert function([]) is None
    assert summary.tok_s_by_prompt([]) == {}


def test_nothing_is_known_of_replies_without_figures() -> None:
    bare = [reply(), reply("code-2")]
    assert summary.tok_s(bare) is None
    assert summary.ttft_ms(bare) is None
    assert summary.kept(bare) is None
    assert summary.accepted_per_position(bare) is None
    assert summary.mean_accepted_length(bare) is None


def test_each_prompt_counts_once_however_often_it_was_asked() -> None:
    replies = [reply("a", tok_s=50.0), reply("a", tok_s=200.0), reply("b", tok_s=25.0)]
    assert summary.tok_s_by_prompt(replies) == pytest.approx({"a": 100.0, "b": 25.0})
    assert summary.tok_s(replies) == pytest.approx(50.0)


def test_the_time_to_first_text_is_a_median() -> None:
    times = [reply(ttft_ms=ms) for ms in (10.0, 900.0, 30.0)]
    assert summary.ttft_ms([*times, reply()]) == 30.0


def test_kept_is_of_all_drafted_tokens_and_undrafted_replies_do_not_lower_it() -> None:
    replies = [reply(drafted=100, accepted=50), reply(drafted=10, accepted=10), reply()]
    assert summary.kept(replies) == pytest.approx(60 / 110)


def test_positions_are_pooled_by_the_drafts_behind_them() -> None:
    replies = [
        reply(drafted=20, accepted=8, drafts=10, accepted_per_position=(0.5, 0.3)),
        reply(drafted=60, accepted=60, drafts=30, accepted_per_position=(1.0, 1.0)),
        reply(drafts=0),
    ]
    pooled = summary.accepted_per_position(replies)
    assert pooled == pytest.approx((35 / 40, 33 / 40))
    assert summary.mean_accepted_length(replies) == pytest.approx(1 + sum(pooled or ()))


def test_positions_of_different_depth_join() -> None:
    replies = [
        reply(drafted=4, drafts=2, accepted_per_position=(0.5,)),
        reply(drafted=4, drafts=2, accepted_per_position=(1.0, 0.5)),
    ]
    assert summary.accepted_per_position(replies) == pytest.approx((0.75, 0.25))


def test_steps_stand_in_where_drafts_are_not_counted() -> None:
    assert summary.mean_accepted_length([reply(drafted=20, accepted=5, steps=10)]) == 1.5


def test_the_share_of_replies_that_ended_by_themselves() -> None:
    assert summary.ended_by_itself([reply(ended_by_itself=True), reply()]) == 0.5
