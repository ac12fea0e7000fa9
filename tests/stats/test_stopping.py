import math
import random

import pytest

from tests.benchmarks.false_alarms import NOISES, false_alarms
from tests.benchmarks.starts import compare_in_blocks
from tuirig.stats.comparison import CONFIDENCE, Start, Variance, Verdict, compare
from tuirig.stats.stopping import StoppingRule, block_order, look, settled_because

QUIET = [Variance(0.001**2, 50.0)]


def starts_with(ratio: float, count: int) -> list[Start]:
    return [{f"p{i}": (50.0 + i) * ratio * (1.0 + 0.001 * (i % 3)) for i in range(12)}] * count


@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_all_looks_together_spend_the_error_rate(blocks: int) -> None:
    rule = StoppingRule(blocks, error_rate=0.05)
    spent = [1.0 - rule.confidence(block) for block in range(1, blocks + 1)]
    assert math.fsum(spent) == pytest.approx(0.05)
    assert spent == sorted(spent)


def test_a_single_look_is_the_plain_comparison() -> None:
    assert StoppingRule(1).confidence(1) == pytest.approx(CONFIDENCE)


@pytest.mark.parametrize(("blocks", "error_rate"), [(0, 0.05), (2, 0.0), (2, 1.0)])
def test_a_rule_without_a_meaning_is_refused(blocks: int, error_rate: float) -> None:
    with pytest.raises(ValueError, match="stopping rule"):
        StoppingRule(blocks, error_rate)


@pytest.mark.parametrize("block", [0, 4])
def test_a_block_beyond_the_rule_is_refused(block: int) -> None:
    with pytest.raises(ValueError, match=f"block {block} of 3"):
        look(StoppingRule(3), block, starts_with(1.0, 2), starts_with(1.0, 2))


def test_a_large_difference_is_settled_by_the_first_block() -> None:
    seen = look(StoppingRule(3), 1, starts_with(1.0, 2), starts_with(1.5, 2))
    assert (seen.settled, seen.comparison.verdict) == (True, Verdict.FASTER)
    assert seen.reason == "the interval excludes 1"
    assert seen.comparison.confidence == pytest.approx(1.0 - 0.05 / 9)


def test_no_difference_that_matters_is_settled_early_too() -> None:
    seen = look(StoppingRule(3), 1, starts_with(1.0, 2), starts_with(1.001, 2), history=QUIET)
    assert (seen.settled, seen.comparison.verdict) == (True, Verdict.LEVEL)
    assert "0.01" in seen.reason


def test_an_open_answer_asks_for_more_up_to_the_limit() -> None:
    rule = StoppingRule(2)
    first = look(rule, 1, starts_with(1.0, 2), starts_with(1.01, 2))
    last = look(rule, 2, starts_with(1.0, 4), starts_with(1.01, 4))
    assert (first.settled, first.reason) == (False, "")
    assert (last.settled, last.reason) == (True, "the limit is 2 blocks")
    assert last.comparison.verdict is Verdict.LEVEL


def test_nothing_measured_is_not_settled() -> None:
    assert settled_because(compare([], starts_with(1.0, 1))) == ""


def test_blocks_alternate_with_their_mirror() -> None:
    assert [block_order(block) for block in (1, 2, 3)] == ["ABBA", "BAAB", "ABBA"]


def test_a_falling_speed_does_not_move_the_ratio() -> None:
    comparison, _ = compare_in_blocks(random.Random(1), [0.0] * 400, 0.0, drift=-0.02)
    assert comparison.ratio == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("freedom", [0, 10])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("noise", NOISES)
def test_a_setting_is_seldom_called_different_from_itself(
    noise: float, blocks: int, freedom: int
) -> None:
    share, _, _ = false_alarms(200, noise, blocks, freedom)
    assert share <= 0.07


def test_the_interval_at_the_stop_still_covers_the_truth() -> None:
    rng, inside, blocks_used = random.Random(8), 0, []
    for _ in range(300):
        comparison, block = compare_in_blocks(
            rng, [math.log(1.025)] * 12, 0.01, blocks=3, freedom=10
        )
        assert comparison.low is not None and comparison.high is not None
        inside += comparison.low <= 1.025 <= comparison.high
        blocks_used.append(block)
    assert set(blocks_used) == {1, 2, 3}
    assert inside / 300 >= 0.93
