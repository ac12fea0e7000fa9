"""The search against measuring every length, on a real server.

    python -m tests.benchmarks.tune_against_exhaustive [--rig demo-smollm2] [--formats q4_0]

Both run over lengths 0 to 7 with the same prompts; then the two settings that they chose are
compared (if they differ). Up to its finalists, tune may use 60 % of the time that the exhaustive
search uses up to its own, and its setting must not be slower. Half an hour on two quiet cores.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tuirig.events import Event, StartBegan, StartEnded
from tuirig.measure.prompts import choose
from tuirig.runs.ab import AbOptions, ab
from tuirig.runs.catalog import find_rig
from tuirig.runs.opening import open_session
from tuirig.runs.store import Store
from tuirig.runs.tune import tune
from tuirig.runs.tune_plan import TuneOptions
from tuirig.runs.tune_result import TuneResult

LENGTHS = tuple(range(8))
ALLOWED = 0.60


def tell(event: Event) -> None:
    """A line for every start."""
    if isinstance(event, StartBegan):
        print(f"  {event.setting:<8} {event.reason}", end="", flush=True)
    elif isinstance(event, StartEnded):
        speed = f"{event.tok_s:.1f} tok/s" if event.tok_s else event.outcome
        print(f": {speed}, {event.seconds:.0f} s", flush=True)


async def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Print both searches and the comparison; whether the limits are kept."""
    found: dict[str, TuneResult] = {}
    with Store(folder / "runs.sqlite") as store:
        async with open_session(find_rig(options.rig), tell, rate_hz=0) as session:
            for name in ("tune", "exhaustive"):
                print(name)
                wanted = TuneOptions(
                    prompts=choose(options.prompts),
                    tokens=options.tokens,
                    lengths=LENGTHS,
                    formats=tuple(options.formats.split(",")),
                    exhaustive=name == "exhaustive",
                    save=False,
                )
                found[name] = await tune(session, wanted, store, tell)
            for name, one in found.items():
                print(
                    f"{name:<10}  {one.setting:<8}  up to the finalists {one.starts_to_finalists}"
                    f" starts, {one.seconds_to_finalists:.0f} s; in all {one.starts} starts,"
                    f" {one.seconds:.0f} s"
                )
            a, b = found["exhaustive"].setting, found["tune"].setting
            verdict = "level"
            if a is not None and b is not None and a != b:
                contest = AbOptions(a=a, b=b, prompts=choose(options.prompts), blocks=3)
                compared = await ab(session, contest, store, tell)
                verdict = compared.verdict
                print(f"{b} against {a}: {compared.ratio} {compared.interval} {verdict}")
    share = found["tune"].seconds_to_finalists / found["exhaustive"].seconds_to_finalists
    print(f"time up to the finalists: {share:.0%} (limit {ALLOWED:.0%}); its setting is {verdict}")
    return share <= ALLOWED and verdict in ("level", "faster")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rig", default="demo-smollm2")
    parser.add_argument("--formats", default="q4_0")
    parser.add_argument("--prompts", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=128)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = asyncio.run(measure(options, Path(folder)))
    sys.exit(not kept)


if __name__ == "__main__":
    main()
