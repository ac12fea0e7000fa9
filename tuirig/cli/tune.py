"""`tuirig tune RIG`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator

import msgspec

from tuirig.cli import signals
from tuirig.cli.output import answer, columns
from tuirig.cli.prompts import prompts_of
from tuirig.cli.running import THAN, interval, opened, time
from tuirig.errors import ExitCode, TuirigError
from tuirig.runs.catalog import FoundRig, find_rig
from tuirig.runs.lifecycle import unfinished
from tuirig.runs.store import ArmState
from tuirig.runs.tune import tune
from tuirig.runs.tune_plan import TuneOptions
from tuirig.runs.tune_result import TUNE, TuneResult
from tuirig.stats.choice import PROMPTS_PER_KIND, parse_objective
from tuirig.tui.figures import gain, memory, rate, share

_PROMPTS = 12


def run(options: argparse.Namespace) -> int:
    """Search; NOT_PROVEN or SERVER if no setting gave figures that count."""
    found = find_rig(options.rig)
    kinds = _kinds(options)
    if options.prompts is None:
        options.prompts = PROMPTS_PER_KIND * len(kinds) or _PROMPTS
    wanted = TuneOptions(
        prompts=prompts_of(options, kinds),
        tokens=options.tokens,
        lengths=options.lengths,
        formats=options.formats,
        objective=options.objective,
        p_min=options.p_min,
        exhaustive=options.exhaustive,
        min_gain=options.min_gain,
        budget_s=None if options.budget is None else options.budget * 60,
    )
    return signals.run(_tune(options, found, wanted))


def _kinds(options: argparse.Namespace) -> list[str]:
    """The kinds of built-in prompts that the objective is about; none for all of them."""
    from tuirig.measure.prompts import KINDS

    if options.prompt_file is not None:
        return []
    try:
        return [kind for kind, _ in parse_objective(options.objective, KINDS).mix]
    except ValueError as error:
        raise TuirigError(f"--objective: {error}", exit_code=ExitCode.USAGE) from None


async def _tune(options: argparse.Namespace, found: FoundRig, wanted: TuneOptions) -> int:
    async with opened(options, found) as ready:
        number = None
        if options.resume:
            number, wanted = await asyncio.to_thread(
                unfinished, ready.store, TUNE, found.rig.name, TuneOptions, wanted.__eq__
            )
        result = await tune(
            ready.session, wanted, ready.store, ready.emit, resume=number, agree=ready.agree
        )
    if options.json:
        answer(msgspec.json.encode(result).decode())
    else:
        answer("\n".join(report(result)))
    if result.setting is not None:
        return ExitCode.OK
    unproven = any(one.outcome == ArmState.NOT_PROVEN for one in result.settings)
    return ExitCode.NOT_PROVEN if unproven else ExitCode.SERVER


def report(result: TuneResult) -> Iterator[str]:
    """The answer in lines."""
    yield ""
    yield from columns(_settings(result), right=(1, 2, 4, 5, 6))
    yield ""
    for one in result.settings:
        if one.reason:
            yield f"{one.setting} {one.outcome}: {one.reason}"
        if one.flags:
            yield f"{one.setting}: {'; '.join(one.flags)}"
    if result.setting is None:
        yield f"not measured: {result.why}"
        return
    yield f"best for {result.objective}: {result.setting} ({result.why})"
    if result.ratio is not None and result.compared is not None:
        yield (
            f"  {result.compared} is {THAN[result.verdict]} none: {result.ratio:.3f} times its"
            f" tok/s, {result.confidence:.1%} interval {interval(*(result.interval or (0, 0)))},"
            f" smallest difference to be seen {result.detectable:.1%}"
        )
    for a, b in result.open:
        yield f"  {b} and {a} could not be told apart with these blocks; more prompts would help"
    for kind in result.per_kind:
        if kind.differs and kind.setting is not None:
            yield f"  for {kind.kind} alone {kind.setting} is better: {gain(kind.gain)}"
    if result.drift is not None:
        flagged = ", so mind the order of the starts" if result.drift.flagged else ""
        moved = result.drift.ratio - 1
        yield f"  drift: {result.drift.setting} moved by {moved:+.1%} over the run{flagged}"
    if result.stopped:
        yield f"  stopped early: {result.stopped}"
    yield (
        f"  {result.starts} server starts, {time(result.seconds)}; before the finalists"
        f" {result.starts_to_finalists}, {time(result.seconds_to_finalists)}"
    )
    if result.profile:
        yield f"  saved: {result.profile}"


def _settings(result: TuneResult) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        ("SETTING", "TOK/S", "GAIN", "INTERVAL", "KEPT", "MEMORY", "STARTS")
    ]
    for one in result.settings:
        mark = "*" if one.setting == result.setting else "=" if one.setting in result.level else ""
        between = interval(*(one.interval or (None, None)))
        figures = (rate(one.tok_s), gain(one.gain), between, share(one.kept))
        rows.append((f"{one.setting} {mark}", *figures, memory(one.memory_mib), str(one.starts)))
    return rows
