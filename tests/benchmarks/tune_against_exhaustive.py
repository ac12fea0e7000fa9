"""The search against measuring every length, on a real server.

    python -m tests.benchmarks.tune_against_exhaustive [--rig RIG] [--formats q4_0] [--short]

Both run over lengths 0 to 7 with the same prompts; then the two settings that they chose are
compared (if they differ). Up to its finalists, tune may use 60 % of the time that the exhaustive
search uses up to its own, and its setting must not be slower. Half an hour on two quiet cores.

--short ends both before their finalists; regret is then what the exhaustive run's own figures say.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tuirig.events import Event, StartBegan, StartEnded, ignore
from tuirig.measure.prompts import choose
from tuirig.runs.ab import AbOptions, ab
from tuirig.runs.catalog import find_rig
from tuirig.runs.opening import open_session
from tuirig.runs.session import Session
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


@dataclass
class Search:
    """What one search measured up to its finalists."""

    tok_s: dict[str, float] = field(default_factory=dict)
    starts: int = 0
    seconds: float = 0.0
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def take(self, event: Event) -> None:
        """Follow the run; at its first finalist it is over."""
        if isinstance(event, StartBegan) and "finalist" in event.reason:
            self.over.set()
        elif isinstance(event, StartEnded) and not self.over.is_set():
            self.starts += 1
            if event.tok_s:
                self.tok_s.setdefault(event.setting, event.tok_s)
        tell(event)

    @property
    def best(self) -> str:
        """The fastest setting of those measured."""
        return max(self.tok_s, key=lambda setting: self.tok_s[setting])


async def search(session: Session, options: TuneOptions, store: Store) -> Search:
    """A tune, cancelled when it comes to its finalists."""
    found = Search()
    began_s = time.monotonic()
    run = asyncio.create_task(tune(session, options, store, found.take))
    over = asyncio.create_task(found.over.wait())
    await asyncio.wait({run, over}, return_when=asyncio.FIRST_COMPLETED)
    found.seconds = time.monotonic() - began_s
    run.cancel()
    over.cancel()
    await asyncio.gather(run, over, return_exceptions=True)
    await session.stop()
    return found


async def short(options: argparse.Namespace, folder: Path) -> bool:
    """Print starts, seconds and regret up to the finalists; whether the time is kept."""
    with Store(folder / "runs.sqlite") as store:
        async with open_session(find_rig(options.rig), ignore, rate_hz=0) as session:
            tuned = await search(session, tune_options(options, exhaustive=False), store)
            every = await search(session, tune_options(options, exhaustive=True), store)
    regret = 1 - every.tok_s.get(tuned.best, 0.0) / every.tok_s[every.best]
    share = tuned.seconds / every.seconds
    print(
        f"\n{options.rig}: tune {tuned.starts} starts, {tuned.seconds:.0f} s, {tuned.best};"
        f" exhaustive {every.starts} starts, {every.seconds:.0f} s, {every.best};"
        f" time {share:.0%}, regret {regret:.2%}"
    )
    return share <= ALLOWED


def tune_options(options: argparse.Namespace, *, exhaustive: bool) -> TuneOptions:
    """What both searches are asked."""
    return TuneOptions(
        prompts=choose(options.prompts),
        tokens=options.tokens,
        lengths=LENGTHS,
        formats=tuple(options.formats.split(",")),
        exhaustive=exhaustive,
        save=False,
    )


async def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Print both searches and the comparison; whether the limits are kept."""
    found: dict[str, TuneResult] = {}
    with Store(folder / "runs.sqlite") as store:
        async with open_session(find_rig(options.rig), tell, rate_hz=0) as session:
            for name in ("tune", "exhaustive"):
                print(name)
                wanted = tune_options(options, exhaustive=name == "exhaustive")
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
    parser.add_argument("--short", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compared = short if options.short else measure
        kept = asyncio.run(compared(options, Path(folder)))
    sys.exit(not kept)


if __name__ == "__main__":
    main()
