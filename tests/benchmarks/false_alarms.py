"""A/A by simulation: how often a setting is called faster or slower than itself.

    python -m tests.benchmarks.false_alarms [--comparisons 2000]

12 prompts, 0.5 % noise on every reply, an A B B A block or up to three with the stopping rule,
without and with ten degrees of freedom of history. The last rows let the speed fall by 2 % over a
block. Also printed: blocks used and half-width of the interval, both means.
"""

from __future__ import annotations

import argparse
import random
import statistics

from tests.benchmarks.starts import compare_in_blocks
from tuirig.stats.comparison import Verdict

NOISES = (0.0, 0.003, 0.005, 0.01, 0.02)
PROMPTS = 12


def false_alarms(
    comparisons: int, noise: float, blocks: int, freedom: int, drift: float = 0.0, seed: int = 3
) -> tuple[float, float, float]:
    """(share called faster or slower, mean blocks used, mean relative half-width)."""
    rng = random.Random(f"{seed}-{noise}-{blocks}-{freedom}-{drift}")
    alarms, used, widths = 0, [], []
    for _ in range(comparisons):
        comparison, block = compare_in_blocks(
            rng, [0.0] * PROMPTS, noise, blocks=blocks, freedom=freedom, drift=drift
        )
        alarms += comparison.verdict is not Verdict.LEVEL
        used.append(block)
        assert comparison.high is not None and comparison.ratio is not None
        widths.append(comparison.high / comparison.ratio - 1.0)
    return alarms / comparisons, statistics.mean(used), statistics.mean(widths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=2000)
    comparisons = parser.parse_args().comparisons
    print(f"{comparisons} comparisons of a setting with itself, {PROMPTS} prompts")
    print("blocks  history  drift  start noise  called different  blocks used  half-width")
    cases = [(blocks, freedom, 0.0) for blocks in (1, 3) for freedom in (0, 10)]
    for blocks, freedom, drift in [*cases, (1, 0, -0.02), (3, 10, -0.02)]:
        for noise in NOISES:
            share, used, width = false_alarms(comparisons, noise, blocks, freedom, drift)
            print(
                f"{blocks:>6}  {freedom:>4} df  {drift:>5.0%}  {noise:>11.1%}  {share:>16.1%}"
                f"  {used:>11.2f}  {width:>10.2%}"
            )


if __name__ == "__main__":
    main()
