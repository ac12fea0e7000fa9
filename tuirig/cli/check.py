"""`tuirig rig check RIG`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from tuirig.cli import signals
from tuirig.cli.narration import Narrator
from tuirig.cli.output import answer, answer_json, columns
from tuirig.runs.catalog import find_rig
from tuirig.runs.check import Check, CheckedSetting, check
from tuirig.tui.figures import memory


def run(options: argparse.Namespace) -> int:
    """Say what would run; OK if every setting can."""
    return signals.run(_check(options.rig, options.json))


async def _check(reference: str, as_json: bool) -> int:
    narrator = Narrator()
    try:
        result = await check(find_rig(reference), narrator)
    finally:
        narrator.close()
    if as_json:
        answer_json({"ok": not result.problems, **msgspec.to_builtins(result)})
    else:
        answer("\n".join(_report(result)))
    return result.exit_code


def _report(result: Check) -> Iterator[str]:
    yield f"rig      {result.rig} ({result.path or 'built in'})"
    yield f"program  {result.program or '–'}  {result.build or ''}".rstrip()
    yield f"card     {result.card.name if result.card else '–'}"
    yield f"memory   {_memory(result)}"
    yield f"port     {result.port} is free"
    yield from _files(result)
    yield from _processes(result)
    yield from _commands(result)
    yield ""
    if not result.problems:
        yield "every setting can run"
    for problem in result.problems:
        yield f"problem: {problem.message}"
        if problem.next:
            yield f"  next: {problem.next}"


def _memory(result: Check) -> str:
    forecast = result.memory
    if forecast is None:
        return "–"
    words = {True: "fit", False: "do not fit", None: "may fit"}[forecast.fits]
    return (
        f"weights of {memory(forecast.weights_mib)} {words} {memory(forecast.free_mib)} free of"
        f" {memory(forecast.total_mib)} (rough: file sizes; cache and buffers come on top)"
    )


def _files(result: Check) -> Iterator[str]:
    if result.files:
        yield ""
        yield from columns(
            [(f"  {file.row}", memory(file.size_mib), file.path) for file in result.files],
            right=(1,),
        )


def _processes(result: Check) -> Iterator[str]:
    if result.holders:
        yield ""
        yield "others on this card (left alone):"
    for holder in result.holders:
        yield f"  {holder}"
    if result.remembered:
        yield ""
        yield "servers of tuirig that run:"
    for server in result.remembered:
        end = (
            f"end it: tuirig stop {server.label}"
            if server.detached or server.is_orphan()
            else f"used by tuirig, process {server.owner_pid}"
        )
        yield f"  {server.label}, process {server.pid}, port {server.port}; {end}"


def _commands(result: Check) -> Iterator[str]:
    """Each row once: its settings, and the whole command line of the first that can run."""
    rows: dict[str, list[CheckedSetting]] = {}
    for setting in result.settings:
        rows.setdefault(setting.row, []).append(setting)
    for settings in rows.values():
        good = [setting for setting in settings if not setting.refusal]
        yield ""
        if not good:
            yield f"{settings[0].row}: can't run, {settings[0].refusal}"
            continue
        yield f"{', '.join(setting.setting for setting in good)}:"
        yield f"  {good[0].command}"
        for setting in settings:
            if setting.refusal:
                yield f"  {setting.setting}: {setting.refusal}"
