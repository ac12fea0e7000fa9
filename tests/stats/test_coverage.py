"""Small seeded versions of the coverage benchmark."""

import pytest

from tests.benchmarks.coverage import coverage


@pytest.mark.parametrize("noise", [0.003, 0.01])
@pytest.mark.parametrize("prompts", [6, 12, 24, 48])
def test_the_interval_covers_the_truth(prompts: int, noise: float) -> None:
    share, width, _, oracle = coverage(400, "normal", prompts, noise)
    assert share >= 0.93
    # Not by being useless: the start noise of two starts alone is not known better than this.
    assert width < 1.6 * oracle


@pytest.mark.parametrize("gains", ["skew 1", "skew 2"])
@pytest.mark.parametrize("prompts", [12, 24, 48])
def test_skewed_gains_are_covered_from_twelve_prompts_on(prompts: int, gains: str) -> None:
    share, _, _, _ = coverage(400, gains, prompts, 0.003)
    assert share >= 0.91
