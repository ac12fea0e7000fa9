"""Every sort of drafter drafts for real, and greedy text stays what it is without one."""

from __future__ import annotations

from tests.demo.server import running
from tuirig.rigs.schema import Rig


def test_gemma4_with_an_assistant_of_its_own(tiny_gemma4_rig: Rig) -> None:
    _drafts_and_says_the_same(tiny_gemma4_rig, {"f16": 3, "q4_0": 1, "ngram": 3}, tokens=48)


def test_qwen35_with_the_head_inside(tiny_qwen35_rig: Rig) -> None:
    _drafts_and_says_the_same(tiny_qwen35_rig, {"inside": 2}, tokens=48)


def test_smollm2_with_a_small_model(smollm2_rig: Rig) -> None:
    _drafts_and_says_the_same(smollm2_rig, {"q4_0": 2, "ngram": 2}, tokens=20)


def _drafts_and_says_the_same(rig: Rig, lengths: dict[str, int], *, tokens: int) -> None:
    with running(rig) as server:
        plain = server.answers(tokens)
    assert sum(answer.drafted for answer in plain) == 0
    for drafter in rig.drafter:
        if drafter.row in lengths:
            with running(rig, drafter, lengths[drafter.row]) as server:
                drafted = server.answers(tokens)
            assert [answer.text for answer in drafted] == [answer.text for answer in plain]
            assert sum(answer.drafted for answer in drafted) > 0, drafter.row
            if drafter.row != "ngram":
                assert sum(answer.accepted for answer in drafted) > 0, drafter.row
