import math
import random
import statistics

import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.starts import compare_in_blocks, start
from tuirig.stats.comparison import (
    PRIOR,
    Comparison,
    Start,
    Variance,
    Verdict,
    Weighting,
    compare,
    half_width_after,
    pool,
    shared_prompts,
    start_variance,
)

NO_START_NOISE = Variance(0.0, 1e12)


def starts_of(log_speeds: list[list[float]]) -> list[Start]:
    return [{f"p{i}": math.exp(y) for i, y in enumerate(row)} for row in log_speeds]


def bounds(comparison: Comparison) -> tuple[float, float]:
    assert comparison.low is not None and comparison.high is not None
    return comparison.low, comparison.high


def test_every_formula_by_an_independent_calculation() -> None:
    rng = np.random.default_rng(1)
    a = 4.0 + rng.normal(0.0, 0.02, (2, 12))
    b = 4.2 + rng.normal(0.0, 0.05, (3, 12))
    earlier = [Variance(0.004**2, 3.0), Variance(0.006**2, 1.0)]

    result = compare(starts_of(a.tolist()), starts_of(b.tolist()), history=earlier)

    r = b.mean(axis=0) - a.mean(axis=0)
    v1 = r.var(ddof=1) / 12
    squares = (
        2 * 0.015**2
        + 3 * 0.004**2
        + 0.006**2
        + a.mean(axis=1).var(ddof=1)
        + 2 * b.mean(axis=1).var(ddof=1)
    )
    freedom2 = 2 + 3 + 1 + 1 + 2
    v2 = squares / freedom2 * (1 / 2 + 1 / 3)
    freedom = (v1 + v2) ** 2 / (v1**2 / 11 + v2**2 / freedom2)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(v1 + v2)
    assert result.ratio == pytest.approx(math.exp(r.mean()), rel=1e-12)
    assert result.prompt_part == Variance(pytest.approx(v1, rel=1e-9), pytest.approx(11.0))
    assert result.start_part == Variance(pytest.approx(v2, rel=1e-9), freedom2)
    assert result.degrees_of_freedom == pytest.approx(freedom, rel=1e-9)
    assert bounds(result) == pytest.approx(
        (math.exp(r.mean() - half), math.exp(r.mean() + half)), rel=1e-9
    )
    detectable = half + stats.t.ppf(0.8, freedom) * math.sqrt(v1 + v2)
    assert result.detectable == pytest.approx(math.expm1(detectable), rel=1e-9)
    assert (result.starts_a, result.starts_b, len(result.prompts)) == (2, 3, 12)
    assert result.verdict is Verdict.FASTER


def test_without_start_noise_it_is_the_paired_t_interval() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(4.0, 0.3, 7), rng.normal(4.1, 0.3, 7)

    result = compare(
        starts_of([a.tolist()]), starts_of([b.tolist()]), prior=NO_START_NOISE, confidence=0.9
    )

    oracle = stats.ttest_rel(b, a)
    interval = oracle.confidence_interval(0.9)
    assert bounds(result) == pytest.approx((math.exp(interval.low), math.exp(interval.high)))
    assert result.degrees_of_freedom == pytest.approx(6.0)


def test_degrees_of_freedom_are_those_of_welch() -> None:
    rng = np.random.default_rng(3)
    gains, others = rng.normal(0.1, 0.04, 9), rng.normal(0.0, 0.05, 5)
    # A prior chosen so that V2 is the squared standard error of the second sample's mean.
    prior = Variance(others.var(ddof=1) / 5 / 2, 4.0)

    result = compare(starts_of([[0.0] * 9]), starts_of([gains.tolist()]), prior=prior)

    assert result.degrees_of_freedom == pytest.approx(
        stats.ttest_ind(gains, others, equal_var=False).df, rel=1e-9
    )


def test_swapping_the_sides_inverts_everything() -> None:
    rng = random.Random(4)
    a = [start(rng, [4.0 + 0.1 * i for i in range(8)], 0.01) for _ in range(2)]
    b = [start(rng, [4.3 + 0.09 * i for i in range(8)], 0.01) for _ in range(2)]

    there, back = compare(a, b), compare(b, a)

    assert there.ratio == pytest.approx(1.0 / (back.ratio or 0.0))
    assert bounds(there) == pytest.approx(tuple(1.0 / x for x in reversed(bounds(back))))
    assert (there.verdict, back.verdict) == (Verdict.FASTER, Verdict.SLOWER)
    assert there.detectable == pytest.approx(back.detectable)


def test_prompts_that_one_start_lacks_are_left_out_everywhere() -> None:
    complete = {"p0": 50.0, "p1": 60.0, "p2": 70.0, "p3": 80.0}
    lacking = {"p0": 55.0, "p2": 80.0, "p3": 86.0}

    result = compare([complete], [lacking, complete])

    assert result.prompts == ("p0", "p2", "p3")
    same = [{p: s[p] for p in result.prompts} for s in (complete, lacking)]
    assert result == compare([same[0]], [same[1], same[0]])


def test_one_prompt_gives_a_ratio_but_no_verdict() -> None:
    result = compare([{"p": 50.0}], [{"p": 75.0}, {"p": 75.0}])
    assert result.ratio == pytest.approx(1.5)
    assert (result.verdict, result.low, result.detectable) == (Verdict.NOT_MEASURED, None, None)
    assert "one prompt" in result.reason


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([], [{"p": 1.0, "q": 1.0}], "no valid start of A"),
        ([{"p": 1.0, "q": 1.0}], [], "no valid start of B"),
        ([], [], "no valid start of A and B"),
        ([{"p": 1.0}], [{"q": 1.0}], "no prompt was measured in every start"),
    ],
)
def test_not_measured_says_why(a: list[Start], b: list[Start], reason: str) -> None:
    result = compare(a, b)
    assert (result.verdict, result.ratio, result.reason) == (Verdict.NOT_MEASURED, None, reason)


def test_no_variance_at_all_leaves_the_prior() -> None:
    a, b = [{"p": 50.0, "q": 60.0}] * 2, [{"p": 51.0, "q": 61.2}] * 2
    result = compare(a, b)
    assert result.prompt_part == Variance(pytest.approx(0.0, abs=1e-30), pytest.approx(1.0))
    # s2 = 2 * 0.015^2 / 4, V2 = s2, four degrees of freedom.
    half = stats.t.ppf(0.975, 4) * math.sqrt(0.015**2 / 2)
    assert bounds(result)[1] == pytest.approx(1.02 * math.exp(half))
    assert result.verdict is Verdict.LEVEL


def test_no_variance_and_no_prior_is_a_point() -> None:
    same = [{"p": 50.0, "q": 60.0}]
    result = compare(same, same, prior=NO_START_NOISE)
    assert bounds(result) == (1.0, 1.0)
    assert result.verdict is Verdict.LEVEL


@pytest.mark.parametrize(
    ("gain", "min_gain", "verdict"),
    [
        (0.009, 0.01, Verdict.LEVEL),
        (0.011, 0.01, Verdict.FASTER),
        (-0.011, 0.01, Verdict.SLOWER),
        (-0.009, 0.01, Verdict.LEVEL),
        (0.009, 0.005, Verdict.FASTER),
        (0.03, 0.05, Verdict.LEVEL),
    ],
)
def test_a_sure_difference_counts_from_the_minimal_gain_on(
    gain: float, min_gain: float, verdict: Verdict
) -> None:
    base = {f"p{i}": 40.0 + i for i in range(12)}
    ratio = 1.0 + gain if gain > 0 else 1.0 / (1.0 - gain)
    other = {p: s * ratio * (1.0 + 1e-6 * i) for i, (p, s) in enumerate(base.items())}
    result = compare([base], [other], prior=NO_START_NOISE, min_gain=min_gain)
    assert result.verdict is verdict
    assert (result.detectable or 0.0) >= min_gain


def test_the_same_difference_is_level_where_starts_are_noisy() -> None:
    base = {f"p{i}": 40.0 + i for i in range(12)}
    other = {p: s * 1.05 for p, s in base.items()}
    assert compare([base], [other]).verdict is Verdict.LEVEL
    quiet = [Variance(0.003**2, 20.0)]
    assert compare([base], [other], history=quiet).verdict is Verdict.FASTER


def test_a_weighting_of_one_kind_repeats_the_formulas() -> None:
    rng = random.Random(5)
    a = [start(rng, [4.0] * 6, 0.01) for _ in range(2)]
    b = [start(rng, [4.1, 4.2, 4.0, 4.1, 4.3, 4.2], 0.01) for _ in range(2)]
    alike = Weighting(dict.fromkeys(a[0], 2.5), dict.fromkeys(a[0], "code"))
    plain, weighted = compare(a, b), compare(a, b, weighting=alike)
    assert bounds(weighted) == pytest.approx(bounds(plain))
    assert weighted.degrees_of_freedom == pytest.approx(plain.degrees_of_freedom)


def test_a_mix_counts_the_spread_within_kinds_only() -> None:
    kinds = {"c1": "code", "c2": "code", "c3": "code", "s1": "story", "s2": "story", "l1": "list"}
    weights = {"c1": 1.0, "c2": 1.0, "c3": 1.0, "s1": 0.5, "s2": 0.5}
    gains = {"c1": 2.0, "c2": 2.1, "c3": 1.9, "s1": 1.0, "s2": 1.1, "l1": 0.1}

    result = compare([dict.fromkeys(gains, 1.0)], [gains], weighting=Weighting(weights, kinds))

    logs = {p: math.log(g) for p, g in gains.items()}
    code, story = [logs[p] for p in ("c1", "c2", "c3")], [logs[p] for p in ("s1", "s2")]
    assert result.prompts == ("c1", "c2", "c3", "s1", "s2")
    mean = 0.75 * statistics.fmean(code) + 0.25 * statistics.fmean(story)
    assert result.ratio == pytest.approx(math.exp(mean))
    pooled = (2 * statistics.variance(code) + statistics.variance(story)) / 3
    v1 = pooled * (0.75**2 / 3 + 0.25**2 / 2)
    assert result.prompt_part == Variance(pytest.approx(v1), 3.0)


def test_one_prompt_of_each_kind_gives_a_mix_no_verdict() -> None:
    speeds = {"c": 50.0, "s": 40.0}
    mix = Weighting({"c": 3.0, "s": 1.0}, {"c": "code", "s": "story"})
    result = compare([speeds], [speeds], weighting=mix)
    assert (result.ratio, result.verdict) == (pytest.approx(1.0), Verdict.NOT_MEASURED)
    assert "one prompt of each kind" in result.reason


@pytest.mark.parametrize("rate", [0.0, -3.0, math.nan, math.inf])
def test_a_rate_that_is_no_positive_number_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="prompt p1"):
        compare([{"p0": 1.0, "p1": rate}], [{"p0": 1.0, "p1": 1.0}])


def test_start_variance_is_over_the_prompts_that_the_starts_share() -> None:
    starts = [{"p": 10.0, "q": 20.0}, {"p": 11.0, "q": 20.0, "r": 1.0}, {"q": 19.0, "p": 10.0}]
    means = [statistics.fmean(map(math.log, (s["p"], s["q"]))) for s in starts]
    found = start_variance(starts)
    assert found == Variance(pytest.approx(statistics.variance(means)), 2.0)
    assert start_variance(starts[:1]) is None
    assert start_variance([{"p": 1.0}, {"q": 1.0}]) is None
    assert shared_prompts(starts) == ("p", "q")


def test_pooling_weighs_by_degrees_of_freedom() -> None:
    assert pool([PRIOR]) == PRIOR
    assert pool([Variance(4.0, 1.0), Variance(1.0, 3.0)]) == Variance(1.75, 4.0)
    with pytest.raises(ValueError, match="degrees of freedom"):
        pool([])


def test_half_width_after_more_starts_foretells_the_next_interval() -> None:
    base = {f"p{i}": 40.0 + i for i in range(12)}
    other = {p: s * (1.2 + 0.01 * i) for i, (p, s) in enumerate(base.items())}
    now = compare([base], [other])
    # Two more starts that show no noise: s2 shrinks further than foretold.
    later = compare([base] * 3, [other] * 3)
    assert later.ratio is not None and now.start_part is not None
    assert later.start_part is not None
    foretold = half_width_after(now, 2)
    assert foretold is not None
    assert bounds(later)[1] / later.ratio - 1.0 < foretold < bounds(now)[1] / later.ratio - 1.0
    steady = [Variance(0.015**2, 1e9)]
    now, later = (compare([base] * n, [other] * n, history=steady) for n in (1, 3))
    assert half_width_after(now, 2) == pytest.approx(
        bounds(later)[1] / (later.ratio or 0.0) - 1.0, rel=1e-6
    )
    assert half_width_after(compare([], [base]), 1) is None


def test_a_difference_over_the_detectable_one_is_found_in_its_direction() -> None:
    rng, found, stated = random.Random(6), 0, 0
    for _ in range(200):
        comparison, _ = compare_in_blocks(rng, [math.log(1.04)] * 12, 0.005, freedom=10)
        assert comparison.verdict is not Verdict.SLOWER
        if comparison.detectable is not None and comparison.detectable <= 0.04:
            stated += 1
            found += comparison.verdict is Verdict.FASTER
    assert stated > 150
    assert found / stated >= 0.8
