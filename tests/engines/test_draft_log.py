"""Counts of drafts that a build tells in its log alone."""

from __future__ import annotations

from tests.engines.builds import log_lines
from tuirig.engines.base import Counters
from tuirig.engines.llamacpp.draft_log import DraftLog


def counted(lines: list[str]) -> Counters:
    log = DraftLog()
    log.take(lines)
    return log.counters


def test_replies_are_added_up() -> None:
    lines = log_lines("drafts-b10068")
    ends = [at + 1 for at, line in enumerate(lines) if "stop processing" in line]
    assert [counted(lines[:end]) for end in ends] == [
        Counters(predicted=40, drafts=22, drafted=64, accepted=16, per_position=(14, 2)),
        Counters(predicted=80, drafts=47, drafted=136, accepted=30, per_position=(27, 3)),
        Counters(predicted=120, drafts=72, drafted=208, accepted=44, per_position=(40, 4)),
    ]


def test_nothing_counts_before_its_reply_has_ended() -> None:
    lines = log_lines("drafts-b10068")
    first = next(at for at, line in enumerate(lines) if "stop processing" in line)
    for end in range(first):
        assert counted(lines[:end]) == Counters()


def test_lines_may_come_one_by_one() -> None:
    lines = log_lines("drafts-b10068")
    log = DraftLog()
    for line in lines:
        log.take([line])
    assert log.counters == counted(lines)


def test_a_cancelled_reply_does_not_count() -> None:
    """Its drafts stand in the next statistics."""
    lines = log_lines("drafts-cancelled-b10068")
    ends = [at + 1 for at, line in enumerate(lines) if "stop processing" in line]
    totals = [counted(lines[:end]) for end in ends]
    assert [total.predicted for total in totals] == [10, 10, 70, 81]
    assert totals[0] == totals[1]
    assert [sum(total.per_position) for total in totals] == [total.accepted for total in totals]
    assert [total.drafts for total in totals] == [4, 4, 31, 36]


def test_the_words_of_older_builds() -> None:
    """Made after those of b9743, which was not run."""
    text = """\
slot print_timing: id  0 | task 7 | \
draft acceptance = 0.50000 (    3 accepted /     6 generated), mean acceptance length = 2.00, \
acceptance rate per position = (0.667, 0.333)
statistics draft: #calls = 3, #gen drafts = 3, #acc drafts = 2, #gen tokens = 6, #acc tokens = 3
slot      release: id  0 | task 7 | stop processing: n_past = 40, truncated = 0"""
    timing = "slot print_timing: id  0 | task 7 |        eval time =  10.00 ms /    8 tokens ("
    assert counted([timing, *text.splitlines()]) == Counters(
        predicted=8, drafts=3, drafted=6, accepted=3, per_position=(2, 1)
    )


def test_a_server_without_a_drafter_counts_tokens_alone() -> None:
    lines = [line for line in log_lines("drafts-b10068") if "statistics" not in line]
    assert counted(lines) == Counters(predicted=120)
