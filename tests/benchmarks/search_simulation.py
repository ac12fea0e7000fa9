"""The search against exhaustive search and climbing on random cards.

    python -m tests.benchmarks.search_simulation [--cards 3000] [--noise 0.003 0.01 0.02]

Prints, for each noise per start, the mean number of server starts (V(k)'s own start counted; A B B
A of the finalists and the drift check apart, they are the same for all) and the mean regret: how
far the true speed of the setting with the best measured speed lies below the true best.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.benchmarks.cards import GENERATORS, LONGEST, Card, measured_passes, start
from tuirig.stats.search import (
    MeasurePasses,
    Passes,
    Plan,
    Row,
    StartCell,
    State,
    next_step,
)

#: How V(k) is had, and by how much it is wrong at the most positions.
STRATEGIES = {
    "exhaustive": (None, 0.0),
    "climbing": (Passes.UNAVAILABLE, 0.0),
    "plan, V(k) from a start": (Passes.START, 0.0),
    "the same, V up to 15 % off": (Passes.START, 0.15),
    "plan, V(k) from a program": (Passes.PROGRAM, 0.0),
}


@dataclass(frozen=True)
class Result:
    """starts and regret (a share of the best tok/s) of each simulated search."""

    starts: list[int]
    regrets: list[float]


def plan_for(strategy: str, longest: int) -> Plan:
    passes, _ = STRATEGIES[strategy]
    return Plan(
        rows=(Row("drafter", tuple(range(1, longest + 1))),),
        passes=passes or Passes.UNAVAILABLE,
        exhaustive=passes is None,
        finalist_blocks=0,
        drift_check=False,
    )


def search(
    card: Card, plan: Plan, rng: random.Random, noise: float, bias: float = 0.0
) -> tuple[int, float]:
    """Drive one search to its end: (server starts, regret)."""
    state, starts = State(), 0
    while True:
        step = next_step(plan, state)
        if isinstance(step, MeasurePasses):
            starts += plan.passes is Passes.START
            passes = measured_passes(card, rng, noise, bias)
            state = replace(state, passes_s={k: passes[k] for k in range(1, step.positions + 1)})
        elif isinstance(step, StartCell):
            starts += 1
            result = start(card, step.cell, rng, noise)
            state = replace(state, results=(*state.results, result))
        else:
            break
    best = max(state.results, key=lambda result: result.speeds["all"])
    longest = plan.rows[0].lengths[-1]
    return starts, 1.0 - card.tok_s[best.cell.length or 0] / max(card.tok_s[: longest + 1])


def simulate(
    strategy: str, generators: Sequence[str], cards: int, noise: float, longest: int, seed: int = 7
) -> Result:
    """cards searches, the generators in turn; the same cards for every strategy."""
    plan, result = plan_for(strategy, longest), Result([], [])
    for number in range(cards):
        rng = random.Random(f"{seed}-{number}")
        card = GENERATORS[generators[number % len(generators)]](rng)
        starts, regret = search(card, plan, rng, noise, STRATEGIES[strategy][1])
        result.starts.append(starts)
        result.regrets.append(regret)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cards", type=int, default=3000)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.003, 0.01, 0.02])
    parser.add_argument("--longest", type=int, default=LONGEST)
    arguments = parser.parse_args()
    print(f"{arguments.cards} cards, draft lengths 0 to {arguments.longest}")
    print(f"{'noise':>6}  {'strategy':<26} {'starts':>6} {'most':>4}  mean regret  worst 1 %")
    for noise in arguments.noise:
        for strategy in STRATEGIES:
            result = simulate(strategy, list(GENERATORS), arguments.cards, noise, arguments.longest)
            worst = sorted(result.regrets)[int(0.99 * len(result.regrets))]
            print(
                f"{noise:>6.1%}  {strategy:<26} {statistics.mean(result.starts):>6.2f} "
                f"{max(result.starts):>4}  {statistics.mean(result.regrets):>10.3%}  {worst:>9.2%}"
            )
            for at, name in enumerate(GENERATORS):
                part = slice(at, None, len(GENERATORS))
                print(
                    f"{'':>6}    {name:<24} {statistics.mean(result.starts[part]):>6.2f} {'':>4}"
                    f"  {statistics.mean(result.regrets[part]):>10.3%}"
                )


if __name__ == "__main__":
    main()
