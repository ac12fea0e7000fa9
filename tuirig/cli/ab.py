"""`tuirig ab RIG A B`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

import msgspec

from tuirig.cli import signals
from tuirig.cli.output import answer, columns
from tuirig.cli.prompts import prompts_of
from tuirig.cli.running import THAN, interval, opened, settings_of, time
from tuirig.errors import ExitCode
from tuirig.runs.ab import KIND, AbOptions, AbResult, ab
from tuirig.runs.catalog import FoundRig, find_rig
from tuirig.runs.lifecycle import unfinished
from tuirig.stats.comparison import Verdict
from tuirig.tui.figures import memory, rate, share


def run(options: argparse.Namespace) -> int:
    """Compare; NOT_PROVEN if one of the two gave no figures that count."""
    found = find_rig(options.rig)
    a, b = settings_of((options.a, options.b), found.rig)
    wanted = AbOptions(
        a=str(a),
        b=str(b),
        prompts=prompts_of(options),
        tokens=options.tokens,
        min_gain=options.min_gain,
        blocks=options.blocks,
    )
    return signals.run(_ab(options, found, wanted))


async def _ab(options: argparse.Namespace, found: FoundRig, wanted: AbOptions) -> int:
    async with opened(options, found) as ready:
        number = None
        if options.resume:
            number, wanted = await asyncio.to_thread(
                unfinished, ready.store, KIND, found.rig.name, AbOptions, wanted.__eq__
            )
        result = await ab(
            ready.session, wanted, ready.store, ready.emit, resume=number, agree=ready.agree
        )
    if options.json:
        answer(msgspec.json.encode(result).decode())
    else:
        answer("\n".join(_report(result)))
    return ExitCode.NOT_PROVEN if result.verdict == Verdict.NOT_MEASURED else ExitCode.OK


def _report(result: AbResult) -> Iterator[str]:
    a, b = result.a, result.b
    yield ""
    rows = [("", "SETTING", "TOK/S", "KEPT", "MEMORY", "STARTS")]
    for name, side in (("A", a), ("B", b)):
        starts, kept = str(side.starts), share(side.kept)
        rows.append((name, side.setting, rate(side.tok_s), kept, memory(side.memory_mib), starts))
    yield from columns(rows, right=(2, 3, 4, 5))
    yield ""
    if result.verdict == Verdict.NOT_MEASURED:
        yield f"not measured: {result.settled or result.reason}"
        return
    between = interval(*(result.interval or (None, None)))
    yield (
        f"{b.setting} is {THAN[result.verdict]} {a.setting}: {result.ratio:.3f} times its tok/s,"
        f" {result.confidence:.1%} interval {between}"
    )
    yield f"  {result.settled}; smallest difference to be seen {result.detectable:.1%}"
    if result.drift is not None:
        flagged = ", so mind the order of the starts" if result.drift.flagged else ""
        moved = result.drift.ratio - 1
        yield f"  drift: {result.drift.setting} moved by {moved:+.1%} over the run{flagged}"
    for more in result.more:
        yield (
            f"  --blocks {more.blocks} --prompts {more.prompts} (about {time(more.seconds)}) would"
            f" narrow it to ±{more.half_width:.1%}"
        )
