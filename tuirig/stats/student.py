"""Student's t distribution for real-valued degrees of freedom.

Needed because Welch-Satterthwaite degrees of freedom are not whole numbers. Formulas: NIST Digital
Library of Mathematical Functions 8.17 (incomplete beta function); t distribution: Abramowitz and
Stegun 26.7.1. With degrees_of_freedom = math.inf every function is the normal distribution's.
"""

from __future__ import annotations

import math

_TINY = 1e-300
_EPSILON = 1e-16


def cdf(t: float, degrees_of_freedom: float) -> float:
    """Probability that a t variable is at most t. Raises ValueError if degrees_of_freedom <= 0."""
    tail = upper_tail(abs(t), degrees_of_freedom)
    return tail if t < 0 else 1.0 - tail


def upper_tail(t: float, degrees_of_freedom: float) -> float:
    """Probability that a t variable exceeds t >= 0; keeps its relative precision far out."""
    _check(degrees_of_freedom)
    if math.isinf(degrees_of_freedom):
        return 0.5 * math.erfc(t / math.sqrt(2.0))
    central = _central(t, degrees_of_freedom)
    if central < 0.5:
        return 0.5 - 0.5 * central
    half = 0.5 * degrees_of_freedom
    return 0.5 * _incomplete_beta(half, 0.5, *_shares(t, degrees_of_freedom))


def quantile(probability: float, degrees_of_freedom: float) -> float:
    """The t that a t variable stays under with this probability (0 < probability < 1).

    Raises ValueError for a probability outside (0, 1) or degrees_of_freedom <= 0.
    """
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability {probability}: expected more than 0 and less than 1")
    _check(degrees_of_freedom)
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -_positive_quantile(probability, 1.0 - 2.0 * probability, degrees_of_freedom)
    rest = 1.0 - probability
    return _positive_quantile(rest, 2.0 * probability - 1.0, degrees_of_freedom)


def _check(degrees_of_freedom: float) -> None:
    if not degrees_of_freedom > 0.0:
        raise ValueError(f"degrees of freedom {degrees_of_freedom}: expected more than 0")


def _positive_quantile(tail: float, central: float, degrees_of_freedom: float) -> float:
    """The t > 0 with P(T > t) = tail and P(|T| < t) = central.

    Newton steps on log t, kept inside a bracket. Near the middle the central probability is the
    well-conditioned one, outside the tail is: its logarithm is nearly straight in log t.
    """
    near_middle = central < 0.5

    def excess(t: float) -> float:
        """Above zero when t is too large."""
        if near_middle:
            return math.log(_central(t, degrees_of_freedom) / central)
        return math.log(tail / max(upper_tail(t, degrees_of_freedom), _TINY))

    low, high = 0.0, 1.0
    while excess(high) < 0.0:
        low, high = high, high * 4.0
    t = high if near_middle else max(low, 0.5 * high)
    for _ in range(200):
        value = excess(t)
        if value > 0.0:
            high = t
        else:
            low = t
        density = math.exp(_log_density(t, degrees_of_freedom))
        mass = 0.5 * central if near_middle else tail
        slope = t * density / (mass * math.exp(value if near_middle else -value))
        step = value / slope if slope > 0.0 else math.inf
        following = t * math.exp(-step) if abs(step) < 700.0 else -1.0
        if not low < following < high:
            following = 0.5 * high if low == 0.0 else math.sqrt(low) * math.sqrt(high)
        if abs(following - t) <= 1e-15 * t:
            return following
        t = following
    return t


def _shares(t: float, degrees_of_freedom: float) -> tuple[float, float]:
    """df / (df + t^2) and t^2 / (df + t^2), each without cancellation."""
    ratio = t / math.sqrt(degrees_of_freedom)
    square = ratio * ratio
    if math.isinf(square):
        return (1.0 / ratio) / ratio, 1.0
    return 1.0 / (1.0 + square), square / (1.0 + square)


def _central(t: float, degrees_of_freedom: float) -> float:
    """P(|T| < t)."""
    if math.isinf(degrees_of_freedom):
        return math.erf(t / math.sqrt(2.0))
    outer, inner = _shares(t, degrees_of_freedom)
    return _incomplete_beta(0.5, 0.5 * degrees_of_freedom, inner, outer)


def _log_density(t: float, degrees_of_freedom: float) -> float:
    if math.isinf(degrees_of_freedom):
        return -0.5 * t * t - 0.5 * math.log(2.0 * math.pi)
    half = 0.5 * degrees_of_freedom
    ratio = t / math.sqrt(degrees_of_freedom)
    log_of_shares = math.log1p(ratio * ratio) if ratio < 1e150 else 2.0 * math.log(ratio)
    return (
        _log_gamma_step(half)
        - 0.5 * math.log(degrees_of_freedom * math.pi)
        - (half + 0.5) * log_of_shares
    )


def _log_gamma_step(a: float) -> float:
    """log(gamma(a + 1/2) / gamma(a)); a series for large a, where the difference would cancel."""
    if a < 20.0:
        return math.lgamma(a + 0.5) - math.lgamma(a)
    inverse = 1.0 / a
    square = inverse * inverse
    series = 1 / 8 - square * (1 / 192 - square * (1 / 640 - square * 17 / 14336))
    return 0.5 * math.log(a) - inverse * series


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Regularised incomplete beta function I_x(a, b); rest = 1 - x; one of a, b is 1/2.

    Continued fraction DLMF 8.17.22, evaluated by the modified method of Lentz; the symmetry
    DLMF 8.17.4 keeps it on the side where it converges fast.
    """
    if x <= 0.0:
        return 0.0
    if rest <= 0.0:
        return 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, rest, x)
    other = b if a == 0.5 else a
    log_x = math.log(x) if x < 0.5 else math.log1p(-rest)
    log_rest = math.log(rest) if rest < 0.5 else math.log1p(-x)
    # 1 / B(a, b) = gamma(other + 1/2) / (gamma(other) gamma(1/2))
    log_front = a * log_x + b * log_rest + _log_gamma_step(other) - 0.5 * math.log(math.pi)
    return math.exp(log_front) / a * _continued_fraction(a, b, x)


def _continued_fraction(a: float, b: float, x: float) -> float:
    c = 1.0
    d = 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 / _away_from_zero(1.0 + even * d)
        c = _away_from_zero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 / _away_from_zero(1.0 + odd * d)
        c = _away_from_zero(1.0 + odd / c)
        step = d * c
        value *= step
        if abs(step - 1.0) <= _EPSILON * 4:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
