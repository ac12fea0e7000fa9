"""`tuirig speed RIG`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

import msgspec

from tuirig.cli import signals
from tuirig.cli.output import answer, columns
from tuirig.cli.running import opened, settings_of, time
from tuirig.errors import ExitCode, TuirigError
from tuirig.measure.prompts import choose
from tuirig.rigs.drafting import length_flag
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.catalog import FoundRig, find_rig
from tuirig.runs.lifecycle import unfinished
from tuirig.runs.speed import PROMPTS, SPEED, SpeedOptions, SpeedResult, speed
from tuirig.runs.store import ArmState
from tuirig.tui.figures import gain, memory, rate, share


def run(options: argparse.Namespace) -> int:
    """Measure the table; SERVER if a setting failed."""
    found = find_rig(options.rig)
    settings = _settings(found.rig, options.formats, options.lengths)
    wanted = SpeedOptions(settings=settings, prompts=choose(PROMPTS), tokens=options.tokens)
    return signals.run(_speed(options, found, wanted))


def _settings(rig: Rig, formats: tuple[str, ...], lengths: tuple[int, ...]) -> tuple[str, ...]:
    """`none`, then every drafter with every length. Raises TuirigError."""
    known = {drafter.row: drafter for drafter in rig.drafter}
    settings = [NONE]
    for format in formats or tuple(known)[:1]:
        if format not in known:
            raise TuirigError(
                f"rig {rig.name} has no drafter {format!r}; it has: {', '.join(known)}",
                exit_code=ExitCode.USAGE,
            )
        if length_flag(known[format].types) is None:
            settings.append(Setting(format))
        else:
            settings.extend(Setting(format, length) for length in lengths if length)
    return tuple(str(setting) for setting in settings_of(map(str, settings), rig))


async def _speed(options: argparse.Namespace, found: FoundRig, wanted: SpeedOptions) -> int:
    async with opened(options, found) as ready:
        number = None
        if options.resume:
            number, wanted = await asyncio.to_thread(
                unfinished, ready.store, SPEED, found.rig.name, SpeedOptions, wanted.__eq__
            )
        result = await speed(
            ready.session, wanted, ready.store, ready.emit, resume=number, agree=ready.agree
        )
    if options.json:
        answer(msgspec.json.encode(result).decode())
    else:
        answer("\n".join(_report(result)))
    failed = any(row.outcome != ArmState.MEASURED for row in result.rows)
    return ExitCode.SERVER if failed else ExitCode.OK


def _report(result: SpeedResult) -> Iterator[str]:
    yield ""
    rows: list[tuple[str, ...]] = [("SETTING", "TOK/S", "GAIN", "KEPT", "SAMPLED", "MEMORY")]
    for row in result.rows:
        figures = (rate(row.tok_s), gain(row.gain), share(row.kept), rate(row.sampled_tok_s))
        rows.append((row.setting, *figures, memory(row.memory_mib)))
    yield from columns(rows, right=(1, 2, 3, 4, 5))
    yield ""
    for row in result.rows:
        if row.reason:
            yield f"{row.setting} {row.outcome}: {row.reason}"
        if row.ended_by_itself:
            part = f"{row.ended_by_itself:.0%} of the replies ended by themselves"
            yield f"{row.setting}: {part}, so kept is understated"
    yield (
        f"greedy, geometric mean over {result.prompts} prompts of {result.tokens} tokens,"
        f" {result.repeats} repeats; sampled at {result.sampled:g}"
    )
    if result.drift is not None:
        flagged = ", so mind the order of the starts" if result.drift.flagged else ""
        moved = result.drift.ratio - 1
        yield f"{result.drift.setting} again at the end: {moved:+.1%}{flagged}"
    yield f"{result.starts} server starts, {time(result.seconds)}"
