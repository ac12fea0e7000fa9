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
from tuirig.runs.fitting import SettingMemory
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
    yield f"port     {result.port} is free"
    yield from _files(result)
    yield from _memory(result)
    yield from _processes(result)
    yield from _commands(result)
    yield ""
    for note in result.notes:
        yield f"note: {note}"
    if not result.problems:
        yield "every setting can run"
    for problem in result.problems:
        yield f"problem: {problem.message}"
        if problem.next:
            yield f"  next: {problem.next}"


def _memory(result: Check) -> Iterator[str]:
    """What is free, and a line for `none` and each row at its longest draft length."""
    found = result.memory
    if found is None:
        return
    yield ""
    yield (
        f"memory: {memory(found.free_mib)} free of {memory(found.total_mib)}; needed, by the"
        " models' headers:"
    )
    rows: list[tuple[str, ...]] = [
        ("", "TARGET", "CACHE", "BUFFERS", "DRAFTER", "REST", "IN ALL", "")
    ]
    for need in found.settings:
        parts = need.card
        sizes = (parts.target_mib, parts.cache_mib, parts.buffers_mib, parts.drafter_mib)
        rows.append(
            (
                f"  {need.setting}",
                *(memory(size) for size in sizes),
                memory(need.rest_mib or None),
                memory(need.total_mib),
                _fit(need),
            )
        )
    yield from columns(rows, right=(1, 2, 3, 4, 5, 6))
    for reason in dict.fromkeys(reason for need in found.settings for reason in need.rough):
        yield f"  rough: {reason}"


def _fit(need: SettingMemory) -> str:
    if need.fits is None:
        return ""
    if need.fits:
        return "fits"
    context = need.largest_context
    return f"does not fit; -c {context} would" if context else "does not fit, whatever -c"


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
