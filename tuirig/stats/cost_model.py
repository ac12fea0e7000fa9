"""The cost model: tok/s at every draft length from two or three server starts.

    a_i      share of verification steps in which the first i drafted tokens are all accepted
    E(n)     = 1 + a_1 + ... + a_n            tokens per step (Leviathan et al. 2023, without their
                                              assumption that acceptance is independent)
    t(n)     = V(n + 1) + f + n d             seconds per step; V(k): one target pass over k
                                              positions, f: fixed cost of drafting, d: per token
    tok/s(n) = E(n) / t(n)
    gain(n)  = E(n) t(0) / t(n)

One start at length n gives a_1 .. a_n for every shorter length too (prefix property).

With V(k) measured, f and d are estimated from the starts by Bayesian linear regression: noise of
a start on every observation, and a wide prior that splits the cost when only one drafted length was
measured. V(k) comes from another start or program, so it is scaled to agree with t(0) at k = 1.

Without V(k), t(n) is taken from the straight line through the two nearest measured drafted lengths
(through t(0) and the drafted one when there is just one). On published tables that is within 4 % on
an RTX 5090 and up to 10 % off on a V100: its intervals are wide.

Everything here is in seconds, tokens and tok/s; a_i are shares from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

#: Standard deviation of one start's speed, relative; the comparison's prior (1.5 %).
START_NOISE = 0.015

# Prior of the drafting costs as shares of an undrafted step: mean and standard deviation. Published
# drafters cost 0 to 0.1 of a step per token; the deviations also hold a separate draft model's 0.3.
_FIXED_COST = (0.02, 0.04)
_TOKEN_COST = (0.08, 0.15)

# Relative standard deviation of t(n) from a straight line, per published table (see above).
_LINE_NOISE = 0.03
# Relative standard deviation of one extrapolated a_i; published a_3 differ from a_2^2 / a_1 by
# 3 to 27 %.
_EXTRAPOLATED = 0.15

_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class DraftedStart:
    """What one start at a draft length showed.

    tok_s: geometric mean over the prompts. accepted: a_1 .. a_length.
    """

    length: int
    tok_s: float
    accepted: tuple[float, ...]

    @property
    def step_s(self) -> float:
        """t(n): seconds per verification step."""
        return tokens_per_step(self.accepted, self.length) / self.tok_s


@dataclass(frozen=True)
class Prediction:
    """tok/s to expect at a draft length, with the 95 % interval of what a start would measure."""

    length: int
    tok_s: float
    low: float
    high: float


def tokens_per_step(accepted: Sequence[float], length: int) -> float:
    """E(length) from a_1 .. a_length. Positions beyond the known ones are extrapolated."""
    return 1.0 + math.fsum(extrapolated(accepted, length)[:length])


def extrapolated(accepted: Sequence[float], length: int) -> tuple[float, ...]:
    """a_1 .. a_length, the unknown ones by a_(i+1) = a_i^2 / a_(i-1) (a_2 = a_1^2).

    That keeps the last known conditional acceptance. Raises ValueError if nothing is known.
    """
    if length > 0 and not accepted:
        raise ValueError("no acceptance is known")
    known = list(accepted)
    while len(known) < length:
        last = known[-1]
        before = known[-2] if len(known) > 1 else 1.0
        known.append(last * min(1.0, last / before) if before > 0.0 else 0.0)
    return tuple(known)


def accepted_from_kept(kept: Sequence[float]) -> tuple[float, ...]:
    """a_1 .. a_n from the acceptance rates at lengths 1 .. n (a published table's "kept").

    kept(n) = (a_1 + ... + a_n) / n, so a_n = n kept(n) - (n - 1) kept(n - 1).
    """
    sums = [n * rate for n, rate in enumerate(kept, start=1)]
    return tuple(s - before for s, before in zip(sums, [0.0, *sums], strict=False))


def accepted_between(first: float, total: float) -> tuple[float, float, float]:
    """a_1, a_2, a_3 from a_1 and a_1 + a_2 + a_3, with a_3 = a_2^2 / a_1.

    For tables that give the acceptance rate at lengths 1 and 3 alone. first must be above 0.
    """
    rest = max(total - first, 0.0)
    second = 0.5 * (math.sqrt(first * first + 4.0 * first * rest) - first)
    return first, second, rest - second


class CostModel:
    """Predicts tok/s at any draft length of one drafter.

    baseline_tok_s: measured without a drafter. starts: drafted starts, at least one; the longest
    gives the acceptance. passes_s: V(k) by k, None where it can't be measured; missing k between
    measured ones are interpolated. Raises ValueError without a drafted start.
    """

    def __init__(
        self,
        baseline_tok_s: float,
        starts: Sequence[DraftedStart],
        passes_s: Mapping[int, float] | None = None,
        *,
        noise: float = START_NOISE,
    ) -> None:
        if not starts:
            raise ValueError("the cost model needs a drafted start")
        self.baseline_tok_s = baseline_tok_s
        self.starts = tuple(sorted(starts, key=lambda start: start.length))
        self.accepted = max(self.starts, key=lambda start: len(start.accepted)).accepted
        self._noise = noise
        self._base_s = 1.0 / baseline_tok_s
        self._passes: dict[int, float] = {}
        if passes_s and 1 in passes_s:
            scale = self._base_s / passes_s[1]
            self._passes = {k: seconds * scale for k, seconds in passes_s.items()}
            self.fixed_s, self.token_s, self._covariance = self._fit()

    def pass_s(self, positions: int) -> float | None:
        """V(positions) on the scale of t(0): measured, or between measured; None beyond them."""
        passes = self._passes
        if positions in passes:
            return passes[positions]
        below = max((k for k in passes if k < positions), default=None)
        above = min((k for k in passes if k > positions), default=None)
        if below is None or above is None:
            return None
        share = (positions - below) / (above - below)
        return passes[below] + share * (passes[above] - passes[below])

    def step_s(self, length: int) -> float | None:
        """t(length) in seconds, None where it can't be told."""
        found = self._step(length)
        return found[0] if found else None

    def predict(self, length: int) -> Prediction | None:
        """tok/s at this length, None where V(k) does not reach so far."""
        if length == 0:
            return self._prediction(0, self.baseline_tok_s, self._noise**2)
        step = self._step(length)
        if step is None:
            return None
        seconds, variance = step
        tokens = tokens_per_step(self.accepted, length)
        guessed = extrapolated(self.accepted, length)[len(self.accepted) :]
        # Each extrapolated position builds on the one before: their errors add up, not average.
        spread = math.fsum(a * _EXTRAPOLATED * i for i, a in enumerate(guessed, start=1)) / tokens
        return self._prediction(length, tokens / seconds, variance + spread**2)

    def gain(self, length: int) -> float | None:
        """Predicted tok/s over the baseline's."""
        prediction = self.predict(length)
        return prediction.tok_s / self.baseline_tok_s if prediction else None

    def _prediction(self, length: int, tok_s: float, variance: float) -> Prediction:
        width = _NORMAL_95 * math.sqrt(variance)
        return Prediction(length, tok_s, tok_s * math.exp(-width), tok_s * math.exp(width))

    def _step(self, length: int) -> tuple[float, float] | None:
        """t(length) and the relative variance of a start that measures it."""
        if not self._passes:
            return self._step_on_line(length)
        target = self.pass_s(length + 1)
        if target is None:
            return None
        (ff, fd), (_, dd) = self._covariance
        seconds = target + self.fixed_s + length * self.token_s
        # A drafted step can't cost less than an undrafted one.
        seconds = max(seconds, self._base_s)
        variance = ff + 2.0 * length * fd + length * length * dd + (self._noise * target) ** 2
        return seconds, variance / seconds**2 + self._noise**2

    def _step_on_line(self, length: int) -> tuple[float, float]:
        nearest = sorted(self.starts, key=lambda start: (abs(start.length - length), start.length))
        points = {start.length: start.step_s for start in nearest[:2]}
        if len(points) == 1:
            points[0] = self._base_s
        (x0, y0), (x1, y1) = sorted(points.items())
        seconds = y0 + (length - x0) * (y1 - y0) / (x1 - x0)
        return max(seconds, self._base_s), self._noise**2 + _LINE_NOISE**2

    def _fit(self) -> tuple[float, float, tuple[tuple[float, float], tuple[float, float]]]:
        """f, d and their covariance: posterior of t(n) - V(n + 1) = f + n d."""
        base = self._base_s
        precision_f = (base * _FIXED_COST[1]) ** -2
        precision_d = (base * _TOKEN_COST[1]) ** -2
        ff, fd, dd = precision_f, 0.0, precision_d
        f, d = precision_f * base * _FIXED_COST[0], precision_d * base * _TOKEN_COST[0]
        for start in self.starts:
            target = self.pass_s(start.length + 1)
            if target is None:
                continue
            n, seconds = start.length, start.step_s
            weight = self._noise**-2 / (seconds**2 + target**2)
            ff += weight
            fd += weight * n
            dd += weight * n * n
            f += weight * (seconds - target)
            d += weight * n * (seconds - target)
        determinant = ff * dd - fd * fd
        fixed = (dd * f - fd * d) / determinant
        token = (ff * d - fd * f) / determinant
        return (
            fixed,
            token,
            (
                (dd / determinant, -fd / determinant),
                (-fd / determinant, ff / determinant),
            ),
        )
