"""Simulated server starts, for the benchmarks and tests of the comparison."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from tuirig.stats.comparison import Comparison, Start, Variance
from tuirig.stats.stopping import StoppingRule, block_order, look

#: Noise of one reply within a start, relative.
REPLY_NOISE = 0.005


def start(rng: random.Random, log_speeds: Sequence[float], start_noise: float) -> Start:
    """One start: a shift of all prompts together, and noise on every reply."""
    shift = rng.gauss(0.0, start_noise)
    return {
        f"prompt {number}": math.exp(speed + shift + rng.gauss(0.0, REPLY_NOISE))
        for number, speed in enumerate(log_speeds)
    }


def history(rng: random.Random, start_noise: float, freedom: int) -> list[Variance]:
    """What earlier runs of the same rig would have shown: an estimate with this much freedom."""
    if not freedom:
        return []
    squares = sum(rng.gauss(0.0, start_noise) ** 2 for _ in range(freedom))
    return [Variance(squares / freedom, float(freedom))]


def compare_in_blocks(
    rng: random.Random,
    log_gains: Sequence[float],
    start_noise: float,
    *,
    blocks: int = 1,
    freedom: int = 0,
    drift: float = 0.0,
) -> tuple[Comparison, int]:
    """A simulated comparison that stops when it is settled: (comparison, blocks used).

    log_gains: true log ratio of every prompt. drift: log change of the speed over one block.
    """
    rule = StoppingRule(blocks)
    earlier = history(rng, start_noise, freedom)
    starts: dict[str, list[Start]] = {"A": [], "B": []}
    log_speed = math.log(100.0)
    for block in range(1, blocks + 1):
        for side in block_order(block):
            speeds = [log_speed + (gain if side == "B" else 0.0) for gain in log_gains]
            starts[side].append(start(rng, speeds, start_noise))
            log_speed += drift / 4.0
        seen = look(rule, block, starts["A"], starts["B"], history=earlier)
        if seen.settled:
            break
    return seen.comparison, block
