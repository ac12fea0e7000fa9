from __future__ import annotations

import pytest

from tuirig.stats.ratio import geometric_mean, paired_gain


def test_geometric_mean_of_factors() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
    assert geometric_mean([2.0, 4.0, 8.0]) == pytest.approx(4.0)


def test_geometric_mean_of_nothing_is_unknown() -> None:
    assert geometric_mean([]) is None


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_geometric_mean_refuses_what_has_no_logarithm(value: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        geometric_mean([1.0, value])


def test_gain_uses_only_prompts_of_both() -> None:
    none = {"code-1": 50.0, "story-1": 100.0, "list-1": 1.0}
    drafted = {"code-1": 100.0, "story-1": 50.0, "advice-1": 1.0}
    assert paired_gain(none, drafted) == pytest.approx(1.0)


def test_gain_is_the_second_over_the_first_and_its_reverse_the_reciprocal() -> None:
    none, drafted = {"a": 50.0, "b": 80.0}, {"a": 90.0, "b": 90.0}
    gain = paired_gain(none, drafted)
    assert gain is not None
    assert gain == pytest.approx((1.8 * 1.125) ** 0.5)
    assert paired_gain(drafted, none) == pytest.approx(1 / gain)


def test_gain_without_a_common_prompt_is_unknown() -> None:
    assert paired_gain({"a": 1.0}, {"b": 1.0}) is None
