from __future__ import annotations

import pytest

from tuirig.measure.proof import prove
from tuirig.records import Reply


def reply(speculative: bool | None, drafted: int | None) -> Reply:
    return Reply(prompt_id="code-1", kind="code", speculative=speculative, drafted=drafted)


def test_a_drafter_that_ran_is_proven() -> None:
    proof = prove(True, [reply(True, 20), reply(True, None), reply(True, 5)])
    assert proof.proven
    assert (proof.asked, proof.speculative, proof.drafted, proof.reason) == (True, True, 25, "")


def test_no_drafter_and_no_drafts_is_proven() -> None:
    proof = prove(False, [reply(False, None)])
    assert proof.proven
    assert (proof.speculative, proof.drafted, proof.reason) == (False, None, "")


def test_a_build_that_does_not_say_is_trusted_only_without_a_drafter() -> None:
    assert prove(False, [reply(None, None)]).proven
    proof = prove(True, [reply(None, 20)])
    assert not proof.proven
    assert "does not say" in proof.reason


@pytest.mark.parametrize(
    ("asked", "replies", "reason"),
    [
        (True, [], "no reply"),
        (False, [], "no reply"),
        (True, [reply(False, None)], "runs without the drafter"),
        (True, [reply(True, 20), reply(False, None)], "runs without the drafter"),
        (True, [reply(True, None), reply(True, 0)], "drafted nothing in 2 replies"),
        (False, [reply(True, None)], "although no drafter"),
        (False, [reply(False, 3)], "although no drafter"),
    ],
)
def test_what_is_not_proven_says_why(asked: bool, replies: list[Reply], reason: str) -> None:
    proof = prove(asked, replies)
    assert not proof.proven
    assert reason in proof.reason


def test_the_log_has_the_last_word_when_the_drafter_is_not_used() -> None:
    proof = prove(True, [reply(False, None)], "the vocabularies are not compatible")
    assert proof.reason.endswith(": the vocabularies are not compatible")
    assert prove(True, [reply(True, 9)], "an old line").reason == ""
