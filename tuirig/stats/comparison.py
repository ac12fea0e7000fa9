"""The comparison of two settings: the ratio of tok/s on the same prompts, and its interval.

Two sources of noise, because a server start shifts all of its prompts together:

    y[s,p] = log tok/s of prompt p in start s
    r[p]   = mean over B's starts of y[s,p] - mean over A's starts of y[s,p]
    R      = mean of r[p] over the P prompts; the ratio is exp(R), a geometric mean
             (Fleming and Wallace 1986)
    V1     = var(r[p]) / P, with P - 1 degrees of freedom: the prompt part
    V2     = s2 (1/nA + 1/nB): the start part; s2 is the variance of start means
    SE^2   = V1 + V2, degrees of freedom by Welch (1938) and Satterthwaite (1946):
             SE^4 / (V1^2 / (P - 1) + V2^2 / df(s2))

The interval is R +- t SE with Student's t. V1 already contains part of the noise of single
replies; that errs on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tuirig.stats import student

#: One server start of one setting: prompt id -> tok/s (or any other rate, e.g. tokens per joule).
Start = Mapping[str, float]

MIN_GAIN = 0.01
CONFIDENCE = 0.95
POWER = 0.80


class Verdict(StrEnum):
    """What a comparison says about B against A."""

    FASTER = "faster"
    SLOWER = "slower"
    LEVEL = "level"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Variance:
    """An estimated variance of log tok/s and the degrees of freedom it is worth."""

    value: float
    degrees_of_freedom: float


@dataclass(frozen=True)
class Weighting:
    """What counts how much: weight of each prompt id, and the kind of each (its stratum).

    Prompts without a weight are left out.
    """

    weights: Mapping[str, float]
    kinds: Mapping[str, str]


#: s2 before anything was measured: 1.5 % standard deviation, worth 2 degrees of freedom.
PRIOR = Variance(0.015**2, 2.0)


@dataclass(frozen=True)
class Comparison:
    """B against A. ratio, low and high are tok/s of B over tok/s of A; None where unknown.

    confidence: of the interval (low, high). prompts: the prompts that all starts share.
    prompt_part, start_part: V1 and V2 of the log ratio. detectable: the smallest relative
    difference that would have been called faster or slower with 80 % power; it decides nothing.
    reason: why nothing was measured.
    """

    verdict: Verdict
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    degrees_of_freedom: float | None
    prompts: tuple[str, ...]
    starts_a: int
    starts_b: int
    prompt_part: Variance | None
    start_part: Variance | None
    detectable: float | None
    min_gain: float
    reason: str = ""


def compare(
    starts_a: Sequence[Start],
    starts_b: Sequence[Start],
    *,
    history: Sequence[Variance] = (),
    weighting: Weighting | None = None,
    min_gain: float = MIN_GAIN,
    confidence: float = CONFIDENCE,
    prior: Variance = PRIOR,
) -> Comparison:
    """Compare setting B with setting A on the prompts that all of their starts share.

    starts_a, starts_b: valid starts only. history: start_variance() of this rig's *other*
    settings that were started more than once, and of earlier runs; the starts given here are added
    by this function. weighting: of an objective; all prompts alike if None. The verdict is
    `faster` or `slower` when the interval excludes 1 and the faster one gains at least min_gain,
    else `level`; `not measured` without a start on one side, without a shared prompt, or when the
    spread between prompts is unknown because there is just one (of each kind).
    Raises ValueError for a rate that is not a positive number.

    With a weighting, R = sum w r (w scaled to the sum 1) is a stratified mean whose strata are the
    kinds (Cochran, Sampling Techniques, 1977, 5.3): the mix is given, so only the spread within
    kinds is noise. V1 = var(r within kinds, pooled) sum w^2, with P - kinds degrees of freedom;
    one kind gives the formulas above.
    """
    prompts = shared_prompts([*starts_a, *starts_b], weighting)
    strata = [weighting.kinds[prompt] if weighting else "" for prompt in prompts]
    missing = _missing(starts_a, starts_b, strata)
    logs_a, logs_b = _logs(starts_a, prompts), _logs(starts_b, prompts)
    share = _shares(prompts, weighting)
    ratios = (
        [_mean_at(logs_b, p) - _mean_at(logs_a, p) for p in range(len(prompts))]
        if logs_a and logs_b
        else []
    )
    log_ratio = math.fsum(w * r for w, r in zip(share, ratios, strict=True)) if ratios else None
    if missing or log_ratio is None:
        return Comparison(
            verdict=Verdict.NOT_MEASURED,
            ratio=None if log_ratio is None else math.exp(log_ratio),
            low=None,
            high=None,
            confidence=confidence,
            degrees_of_freedom=None,
            prompts=prompts,
            starts_a=len(starts_a),
            starts_b=len(starts_b),
            prompt_part=None,
            start_part=None,
            detectable=None,
            min_gain=min_gain,
            reason=missing,
        )

    prompt_part = _prompt_part(ratios, share, strata)
    spread = pool([prior, *history, *_own(logs_a, share), *_own(logs_b, share)])
    start_part = Variance(
        spread.value * (1.0 / len(starts_a) + 1.0 / len(starts_b)), spread.degrees_of_freedom
    )
    standard_error, freedom = _total(prompt_part, start_part)
    half_width = student.quantile(0.5 + 0.5 * confidence, freedom) * standard_error
    # A true difference this large passes both conditions of the verdict in 80 % of comparisons
    # (shifted t in place of the non-central t).
    threshold = max(half_width, math.log1p(min_gain))
    detectable = threshold + student.quantile(POWER, freedom) * standard_error
    return Comparison(
        verdict=_verdict(log_ratio, half_width, min_gain),
        ratio=math.exp(log_ratio),
        low=math.exp(log_ratio - half_width),
        high=math.exp(log_ratio + half_width),
        confidence=confidence,
        degrees_of_freedom=freedom,
        prompts=prompts,
        starts_a=len(starts_a),
        starts_b=len(starts_b),
        prompt_part=prompt_part,
        start_part=start_part,
        detectable=math.expm1(detectable),
        min_gain=min_gain,
    )


def half_width_after(comparison: Comparison, more_starts: int) -> float | None:
    """Relative half-width of the interval to expect after so many more starts of each setting.

    The prompt part stays, the start part shrinks and its degrees of freedom grow by one a start.
    None where nothing was measured.
    """
    prompt_part, start_part = comparison.prompt_part, comparison.start_part
    if prompt_part is None or start_part is None:
        return None
    a, b = comparison.starts_a, comparison.starts_b
    shrunk = (1.0 / (a + more_starts) + 1.0 / (b + more_starts)) / (1.0 / a + 1.0 / b)
    standard_error, freedom = _total(
        prompt_part,
        Variance(start_part.value * shrunk, start_part.degrees_of_freedom + 2 * more_starts),
    )
    critical = student.quantile(0.5 + 0.5 * comparison.confidence, freedom)
    return math.expm1(critical * standard_error)


def shared_prompts(starts: Sequence[Start], weighting: Weighting | None = None) -> tuple[str, ...]:
    """The prompts that every start measured and that carry weight, in the first start's order."""
    if not starts:
        return ()
    first, *others = starts
    return tuple(
        prompt
        for prompt in first
        if all(prompt in other for other in others)
        and (weighting is None or weighting.weights.get(prompt, 0.0) > 0.0)
    )


def mean_log(start: Start, prompts: Sequence[str], weighting: Weighting | None) -> float:
    """The weighted mean of log tok/s over these prompts; exp of it is the geometric mean."""
    (logs,) = _logs([start], prompts)
    return math.fsum(w * y for w, y in zip(_shares(prompts, weighting), logs, strict=True))


def start_variance(starts: Sequence[Start], weighting: Weighting | None = None) -> Variance | None:
    """Variance between the starts of one setting, over the prompts that they share.

    None for fewer than two starts or without a shared prompt.
    """
    prompts = shared_prompts(starts, weighting)
    if len(starts) < 2 or not prompts:
        return None
    return _variance([mean_log(start, prompts, weighting) for start in starts])


def pool(variances: Sequence[Variance]) -> Variance:
    """Variances pooled by their degrees of freedom, e.g. the prior and the rig's history.

    Raises ValueError when there are no degrees of freedom at all.
    """
    freedom = math.fsum(one.degrees_of_freedom for one in variances)
    if not freedom > 0.0:
        raise ValueError("pooling needs at least one variance with degrees of freedom")
    total = math.fsum(one.value * one.degrees_of_freedom for one in variances)
    return Variance(total / freedom, freedom)


def _missing(a: Sequence[Start], b: Sequence[Start], strata: Sequence[str]) -> str:
    if not a or not b:
        sides = [name for name, starts in (("A", a), ("B", b)) if not starts]
        return f"no valid start of {' and '.join(sides)}"
    if not strata:
        return "no prompt was measured in every start"
    if len(set(strata)) == len(strata):
        few = "one prompt only" if len(strata) == 1 else "one prompt of each kind only"
        return f"{few}: the spread between prompts is unknown"
    return ""


def _logs(starts: Sequence[Start], prompts: Sequence[str]) -> list[list[float]]:
    rows = []
    for start in starts:
        for prompt in prompts:
            if not 0.0 < start[prompt] < math.inf:
                raise ValueError(f"prompt {prompt}: {start[prompt]} is not a positive rate")
        rows.append([math.log(start[prompt]) for prompt in prompts])
    return rows


def _shares(prompts: Sequence[str], weighting: Weighting | None) -> list[float]:
    """Weights that sum to 1."""
    raw = [weighting.weights[prompt] if weighting else 1.0 for prompt in prompts]
    total = math.fsum(raw)
    return [weight / total for weight in raw]


def _mean_at(rows: Sequence[Sequence[float]], column: int) -> float:
    return math.fsum(row[column] for row in rows) / len(rows)


def _own(rows: Sequence[Sequence[float]], share: Sequence[float]) -> list[Variance]:
    """The variance of start means of one side, as a list that is empty for a single start."""
    if len(rows) < 2:
        return []
    return [_variance([math.fsum(map(float.__mul__, share, row)) for row in rows])]


def _variance(values: Sequence[float]) -> Variance:
    mean = math.fsum(values) / len(values)
    freedom = len(values) - 1
    return Variance(math.fsum((v - mean) ** 2 for v in values) / freedom, float(freedom))


def _prompt_part(
    ratios: Sequence[float], share: Sequence[float], strata: Sequence[str]
) -> Variance:
    within: dict[str, list[float]] = {}
    for stratum, ratio in zip(strata, ratios, strict=True):
        within.setdefault(stratum, []).append(ratio)
    pooled = pool([_variance(found) for found in within.values() if len(found) > 1])
    return Variance(pooled.value * math.fsum(w * w for w in share), pooled.degrees_of_freedom)


def _total(one: Variance, other: Variance) -> tuple[float, float]:
    """Standard error and Welch-Satterthwaite degrees of freedom of a sum of two parts."""
    total = one.value + other.value
    if total == 0.0:
        return 0.0, one.degrees_of_freedom + other.degrees_of_freedom
    # Shares of the total, because squares of small variances would underflow.
    a, b = one.value / total, other.value / total
    freedom = 1.0 / (a * a / one.degrees_of_freedom + b * b / other.degrees_of_freedom)
    return math.sqrt(total), freedom


def _verdict(log_ratio: float, half_width: float, min_gain: float) -> Verdict:
    if abs(log_ratio) <= half_width or math.expm1(abs(log_ratio)) < min_gain:
        return Verdict.LEVEL
    return Verdict.FASTER if log_ratio > 0.0 else Verdict.SLOWER
