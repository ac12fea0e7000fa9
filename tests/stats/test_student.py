import math

import pytest
from scipy import special, stats

from tuirig.stats import student

DEGREES = [0.5, 0.8, 1.0, 1.7, 2.0, 2.6, 3.0, 4.4, 7.0, 11.3, 19.9, 40.0, 41.0, 250.5, 1e4, 1e6]
UPPER = [0.5005, 0.51, 0.6, 0.7, 0.74, 0.76, 0.8, 0.9, 0.975, 0.9972, 0.9995]
LOWER = [1e-12, 1e-8, 1e-5, 0.001, 0.025, 0.1, 0.249, 0.251, 0.4, 0.49]


@pytest.mark.parametrize("degrees", DEGREES)
def test_quantile_agrees_with_scipy(degrees: float) -> None:
    for probability in UPPER + LOWER:
        expected = stats.t.ppf(probability, degrees)
        assert student.quantile(probability, degrees) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("degrees", DEGREES)
def test_cdf_agrees_with_scipy_from_the_middle_to_far_out(degrees: float) -> None:
    for t in (1e-6, 0.01, 0.3, 1.0, 2.5, 6.0, 30.0, 1e4):
        for signed in (t, -t):
            expected = special.stdtr(degrees, signed)
            assert student.cdf(signed, degrees) == pytest.approx(expected, rel=1e-9, abs=1e-290)


@pytest.mark.parametrize("degrees", [0.5, 1.0, 2.0, 5.5, 300.0, math.inf])
def test_quantile_inverts_cdf(degrees: float) -> None:
    for probability in (0.003, 0.2, 0.5, 0.66, 0.99):
        t = student.quantile(probability, degrees)
        assert student.cdf(t, degrees) == pytest.approx(probability, rel=1e-12)


def test_infinite_degrees_of_freedom_are_the_normal_distribution() -> None:
    for probability in (1e-9, 0.025, 0.4, 0.8, 0.975):
        expected = stats.norm.ppf(probability)
        assert student.quantile(probability, math.inf) == pytest.approx(expected, rel=1e-12)


def test_one_degree_of_freedom_is_the_cauchy_distribution() -> None:
    assert student.quantile(0.75, 1.0) == pytest.approx(1.0, rel=1e-14)
    assert student.cdf(-1.0, 1.0) == pytest.approx(0.25, rel=1e-14)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_quantile_refuses_what_is_no_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="probability"):
        student.quantile(probability, 3.0)


@pytest.mark.parametrize("degrees", [0.0, -2.0, math.nan])
def test_degrees_of_freedom_are_above_zero(degrees: float) -> None:
    with pytest.raises(ValueError, match="degrees of freedom"):
        student.quantile(0.9, degrees)
    with pytest.raises(ValueError, match="degrees of freedom"):
        student.cdf(0.3, degrees)
