"""When a comparison in A B B A blocks may stop early without raising its error rate.

After every block the comparison is looked at. Looking several times at 95 % would call too many
equal settings different, so the error rate is *spent*: of L blocks at most, the looks up to block k
may use alpha (k / L)^2 in total (power family of Kim and DeMets 1987), and look k takes the
difference to the look before:

    alpha_k = alpha ((k / L)^2 - ((k - 1) / L)^2) = alpha (2 k - 1) / L^2

Look k shows the interval at confidence 1 - alpha_k. By Bonferroni's inequality all looks together
miss the truth with probability at most alpha, whatever their correlation: they are repeated
confidence intervals (Jennison and Turnbull 1989), so the interval shown when the comparison stops,
for whatever reason, is still one of confidence 1 - alpha. Little is spent early, where the start
noise is hardly known; that first look still settles large differences.

Settled: `faster` or `slower` by the comparison's own rule at that confidence, or an interval that
holds no difference of min_gain (settled `level`), or the last block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tuirig.stats.comparison import (
    CONFIDENCE,
    MIN_GAIN,
    Comparison,
    Start,
    Variance,
    Verdict,
    Weighting,
    compare,
)


@dataclass(frozen=True)
class StoppingRule:
    """At most this many A B B A blocks; error_rate is shared by all looks."""

    blocks: int = 3
    error_rate: float = 1.0 - CONFIDENCE

    def __post_init__(self) -> None:
        if self.blocks < 1 or not 0.0 < self.error_rate < 1.0:
            raise ValueError(f"stopping rule: {self.blocks} blocks, error rate {self.error_rate}")

    def confidence(self, block: int) -> float:
        """Confidence of the interval after this block, counted from 1."""
        if not 1 <= block <= self.blocks:
            raise ValueError(f"block {block} of {self.blocks}")
        return 1.0 - self.error_rate * (2 * block - 1) / self.blocks**2


@dataclass(frozen=True)
class Look:
    """What is known after a block. settled: no further block is needed; reason says why."""

    comparison: Comparison
    block: int
    settled: bool
    reason: str


def block_order(block: int) -> str:
    """The order of starts in a block, counted from 1: A B B A and its mirror in turn.

    Either order cancels a drift that is linear in time; alternating cancels more of what is not.
    """
    return "ABBA" if block % 2 else "BAAB"


def look(
    rule: StoppingRule,
    block: int,
    starts_a: Sequence[Start],
    starts_b: Sequence[Start],
    *,
    history: Sequence[Variance] = (),
    weighting: Weighting | None = None,
    min_gain: float = MIN_GAIN,
) -> Look:
    """Compare after this block (counted from 1) and say whether the answer is settled.

    starts_a, starts_b: all valid starts so far. Raises ValueError for a block beyond the rule.
    """
    comparison = compare(
        starts_a,
        starts_b,
        history=history,
        weighting=weighting,
        min_gain=min_gain,
        confidence=rule.confidence(block),
    )
    reason = settled_because(comparison)
    if not reason and block == rule.blocks:
        reason = f"the limit is {rule.blocks} block{'s' if rule.blocks > 1 else ''}"
    return Look(comparison, block, bool(reason), reason)


def settled_because(comparison: Comparison) -> str:
    """Why more starts would not change the verdict; empty while it is open."""
    if comparison.verdict in (Verdict.FASTER, Verdict.SLOWER):
        return "the interval excludes 1"
    if comparison.low is None or comparison.high is None:
        return ""
    band = 1.0 + comparison.min_gain
    if comparison.low > 1.0 / band and comparison.high < band:
        return f"no difference of {comparison.min_gain:.3g} is left in the interval"
    return ""
