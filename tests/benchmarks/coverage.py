"""Coverage of the 95 % interval by simulation, beside an oracle that knows the variances.

    python -m tests.benchmarks.coverage [--comparisons 2000]

One A B B A block; the true gains of the prompts spread by 8 % around a true ratio of 1.3, normal
or skewed (gamma, skewness 1 and 2); start noise and 0.5 % noise on every reply. The oracle's
interval is R +- 1.96 SE with the true SE.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections.abc import Callable

from tests.benchmarks.starts import REPLY_NOISE, compare_in_blocks

TRUE_LOG_RATIO = math.log(1.3)
SPREAD = 0.08


def _gamma(shape: float) -> Callable[[random.Random], float]:
    """Mean 0, standard deviation 1, skewness 2 / sqrt(shape)."""
    return lambda rng: (rng.gammavariate(shape, 1.0) - shape) / math.sqrt(shape)


GAINS: dict[str, Callable[[random.Random], float]] = {
    "normal": lambda rng: rng.gauss(0.0, 1.0),
    "skew 1": _gamma(4.0),
    "skew 2": _gamma(1.0),
}


def coverage(
    comparisons: int, gains: str, prompts: int, noise: float, freedom: int = 0, seed: int = 5
) -> tuple[float, float, float, float]:
    """(coverage, mean half-width, the oracle's coverage, its half-width), half-widths of log."""
    rng = random.Random(f"{seed}-{gains}-{prompts}-{noise}-{freedom}")
    # Two starts on each side: their noise halves, twice.
    error = math.sqrt((SPREAD**2 + REPLY_NOISE**2) / prompts + noise**2)
    oracle = 1.959964 * error
    inside, oracle_inside, widths = 0, 0, []
    for _ in range(comparisons):
        log_gains = [TRUE_LOG_RATIO + SPREAD * GAINS[gains](rng) for _ in range(prompts)]
        comparison, _ = compare_in_blocks(rng, log_gains, noise, freedom=freedom)
        assert comparison.low and comparison.high and comparison.ratio
        inside += math.log(comparison.low) <= TRUE_LOG_RATIO <= math.log(comparison.high)
        oracle_inside += abs(math.log(comparison.ratio) - TRUE_LOG_RATIO) <= oracle
        widths.append(0.5 * math.log(comparison.high / comparison.low))
    return inside / comparisons, statistics.mean(widths), oracle_inside / comparisons, oracle


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=2000)
    comparisons = parser.parse_args().comparisons
    print(f"{comparisons} comparisons each, nominal 95 %, one A B B A block")
    print("gains   start noise  history  prompts  coverage  half-width  oracle's  its half-width")
    for gains in GAINS:
        for noise, freedom in ((0.003, 0), (0.01, 0), (0.02, 0), (0.003, 10), (0.01, 10)):
            for prompts in (6, 12, 24, 48):
                share, width, oracle_share, oracle = coverage(
                    comparisons, gains, prompts, noise, freedom
                )
                print(
                    f"{gains:<7} {noise:>11.1%}  {freedom:>4} df  {prompts:>7}  {share:>8.1%}"
                    f"  {width:>10.2%}  {oracle_share:>8.1%}  {oracle:>14.2%}"
                )


if __name__ == "__main__":
    main()
