"""What sampling the card costs: tok/s with it read 10 times a second against not at all.

    python -m tests.benchmarks.sampling RIG [--setting none] [--pairs 10] [--hz 10]

Both sides of a pair are 12 replies of one server; the order alternates.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics

from tuirig.events import ignore
from tuirig.measure.prompts import choose
from tuirig.measure.telemetry import Sampler
from tuirig.rigs.settings import parse_setting
from tuirig.runs.catalog import find_rig
from tuirig.runs.opening import open_session
from tuirig.runs.session import Session


async def tok_s(session: Session) -> float:
    """Tokens over seconds, by the server's own timings."""
    arm = await session.measure(choose(12), tokens=128)
    timed = [(reply.predicted_n, reply.tok_s) for reply in arm.replies if reply.tok_s]
    return sum(tokens for tokens, _ in timed) / sum(tokens / speed for tokens, speed in timed)


async def measure(options: argparse.Namespace) -> None:
    """Print every pair and what they say together."""
    async with open_session(find_rig(options.rig), ignore, rate_hz=0) as session:
        await session.restart(parse_setting(options.setting))
        server = session.server
        assert server is not None

        async def sampled() -> float:
            async with Sampler(session.card, ignore, hz=options.hz, pid=lambda: server.pid):
                return await tok_s(session)

        await tok_s(session)
        ratios: list[float] = []
        for pair in range(options.pairs):
            if pair % 2:
                with_it, without = await sampled(), await tok_s(session)
            else:
                without, with_it = await tok_s(session), await sampled()
            ratios.append(with_it / without)
            print(f"{with_it:7.1f} {without:7.1f} {ratios[-1]:.4f}", flush=True)
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    middle, mean = statistics.median(ratios), statistics.mean(ratios)
    print(f"sampled at {options.hz:g} Hz / not sampled, {options.pairs} pairs:", end=" ")
    print(f"median {middle:.4f}, mean {mean:.4f} +- {error:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rig")
    parser.add_argument("--setting", default="none")
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--hz", type=float, default=10)
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
