"""Random cards for the search simulation: true tok/s at every draft length, and noisy starts.

Three generators, on purpose different from each other and from the model that is fitted:
- roofline: a target pass costs its memory traffic or its arithmetic, whichever is larger, with a
  step where another kernel takes over; acceptance by position follows a logistic line.
- irregular: every further position costs a random amount, with one large jump on half the cards;
  conditional acceptance is a random walk.
- published: curves like the published tables (GTX 1650 Ti, RTX 3050, RTX 5090), stretched at
  random, and a step time that departs from the cost model by 2 % at each length.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from tuirig.stats.search import BASELINE, Cell, CellResult

LONGEST = 8


@dataclass(frozen=True)
class Card:
    """passes_s[k]: V(k). accepted: a_1 ... tok_s[n]: true speed at length n."""

    passes_s: dict[int, float]
    accepted: tuple[float, ...]
    tok_s: tuple[float, ...]

    @property
    def best(self) -> float:
        return max(self.tok_s)


def _card(
    passes: list[float], conditional: list[float], fixed: float, token: float, misfit: list[float]
) -> Card:
    """passes in units of V(1); costs too. Conditional acceptance becomes a_i by products."""
    base_s = 0.02
    accepted: list[float] = []
    for share in conditional:
        accepted.append(min(0.99, max(0.01, share)) * (accepted[-1] if accepted else 1.0))
    tok_s = [1.0 / base_s]
    for n in range(1, LONGEST + 1):
        step = (passes[n] + fixed + n * token) * math.exp(misfit[n]) * base_s
        tok_s.append((1.0 + sum(accepted[:n])) / step)
    passes_s = {k: passes[k - 1] * base_s for k in range(1, LONGEST + 2)}
    return Card(passes_s, tuple(accepted), tuple(tok_s))


def _log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def roofline(rng: random.Random) -> Card:
    arithmetic = _log_uniform(rng, 0.02, 0.7)
    sharpness = rng.uniform(2.0, 6.0)
    step_at, step = rng.choice((4, 8, 8, 8)), rng.uniform(0.0, 0.5)
    passes = []
    for k in range(1, LONGEST + 2):
        smooth = (1.0 + (arithmetic * k) ** sharpness) ** (1.0 / sharpness)
        passes.append(smooth * (1.0 + step * (k > step_at)))
    passes = [value / passes[0] for value in passes]
    level, slope = rng.uniform(-0.3, 2.5), rng.uniform(-0.25, 0.15)
    conditional = [1.0 / (1.0 + math.exp(-level - slope * i)) for i in range(LONGEST)]
    fixed, token = rng.uniform(0.0, 0.1), _log_uniform(rng, 0.005, 0.3)
    return _card(passes, conditional, fixed, token, [0.0] * (LONGEST + 1))


def irregular(rng: random.Random) -> Card:
    mean = _log_uniform(rng, 0.01, 0.5)
    jump_at = rng.randint(2, LONGEST + 1) if rng.random() < 0.5 else 0
    passes = [1.0]
    for k in range(2, LONGEST + 2):
        jump = rng.uniform(0.1, 0.8) if k == jump_at else 0.0
        passes.append(passes[-1] + rng.gammavariate(2.0, mean / 2.0) + jump)
    share, conditional = rng.betavariate(5.0, 2.5), []
    for _ in range(LONGEST):
        conditional.append(share)
        share = min(0.97, max(0.1, share + rng.gauss(0.0, 0.07)))
    fixed, token = rng.expovariate(1.0 / 0.03), rng.gammavariate(1.5, 0.06)
    return _card(passes, conditional, fixed, token, [0.0] * (LONGEST + 1))


# V(k) / V(1) for k = 1 .. 9 and conditional acceptance, read off the published tables.
_PUBLISHED = (
    ([1.0, 1.21, 1.48, 1.74, 1.96, 2.18, 2.4, 2.62, 3.1], [0.60, 0.56, 0.58]),
    ([1.0, 1.08, 1.37, 1.65, 1.9, 2.16, 2.41, 2.66, 3.2], [0.63, 0.59, 0.61]),
    ([1.0, 1.04, 1.1, 1.18, 1.27, 1.36, 1.45, 1.55, 2.0], [0.62, 0.55, 0.66]),
    ([1.0, 1.1, 1.19, 1.32, 1.43, 1.56, 1.7, 1.84, 2.1], [0.89, 0.78, 0.86, 0.69, 0.89, 0.73]),
)


def published(rng: random.Random) -> Card:
    shape, shares = rng.choice(_PUBLISHED)
    stretch, lift = _log_uniform(rng, 0.4, 2.0), rng.gauss(0.0, 0.5)
    passes = [1.0]
    for before, after in itertools.pairwise(shape):
        passes.append(passes[-1] + (after - before) * stretch * math.exp(rng.gauss(0.0, 0.3)))
    conditional = []
    for i in range(LONGEST):
        odds = math.log(shares[i % len(shares)] / (1.0 - shares[i % len(shares)]))
        conditional.append(1.0 / (1.0 + math.exp(-odds - lift - rng.gauss(0.0, 0.15))))
    fixed, token = rng.uniform(0.0, 0.06), _log_uniform(rng, 0.005, 0.15)
    misfit = [0.0, *(rng.gauss(0.0, 0.02) for _ in range(LONGEST))]
    return _card(passes, conditional, fixed, token, misfit)


GENERATORS: dict[str, Callable[[random.Random], Card]] = {
    "roofline": roofline,
    "irregular": irregular,
    "published": published,
}


def start(card: Card, cell: Cell, rng: random.Random, noise: float) -> CellResult:
    """Measure a cell: one shift for the whole start, acceptance counted over 1500 steps."""
    length = cell.length or 0
    speeds = {"all": card.tok_s[length] * math.exp(rng.gauss(0.0, noise))}
    if cell == BASELINE:
        return CellResult(cell, speeds=speeds)
    return CellResult(cell, speeds=speeds, accepted=_counted(card.accepted[:length], rng))


def measured_passes(
    card: Card, rng: random.Random, noise: float, bias: float = 0.0
) -> dict[int, float]:
    """V(k) from a start of its own: one shift for all k, and 0.3 % on each.

    bias: at the most positions V is wrong by up to this share, in proportion at fewer.
    """
    shift, tilt = rng.gauss(0.0, noise), rng.uniform(-bias, bias)
    return {
        k: s * math.exp(shift + tilt * (k - 1) / LONGEST + rng.gauss(0.0, 0.003))
        for k, s in card.passes_s.items()
    }


def _counted(
    accepted: tuple[float, ...], rng: random.Random, steps: int = 1500
) -> tuple[float, ...]:
    found: list[float] = []
    for share in accepted:
        before_true = accepted[len(found) - 1] if found else 1.0
        before = found[-1] if found else 1.0
        conditional = share / before_true
        deviation = math.sqrt(conditional * (1.0 - conditional) / max(steps * before, 1.0))
        found.append(before * min(1.0, max(0.0, rng.gauss(conditional, deviation))))
    return tuple(found)
