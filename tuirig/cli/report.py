"""`tuirig report RUN`."""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence

import msgspec

from tuirig.cli.output import answer, answer_json
from tuirig.cli.running import time
from tuirig.errors import ExitCode
from tuirig.runs.report import FormatComparison, Report, report_of
from tuirig.runs.settings_table import SettingResult
from tuirig.runs.store import Store, StoredArm
from tuirig.tui.figures import DASH, gain, memory, rate, share

_COLUMNS = (
    *("rig", "card", "setting", "outcome", "tok_s", "gain", "low", "high", "verdict", "kept"),
    *("memory_mib", "starts"),
)


def run(options: argparse.Namespace) -> int:
    """Print the report of a stored run."""
    with Store() as store:
        report, arms = report_of(store, options.run)
    if options.format == "json":
        answer_json(_document(report, arms))
    elif options.format == "csv":
        answer(_csv(report).rstrip("\n"))
    else:
        answer("\n".join(_markdown(report)))
    return ExitCode.OK


def _document(report: Report, arms: Sequence[StoredArm]) -> dict[str, object]:
    """Everything, so that every table can be made again: arms with replies and readings."""
    return {**msgspec.to_builtins(report), "result": report.result, "arms": arms}


def _csv(report: Report) -> str:
    """A line per setting; what is not known is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "rig",
            "card",
            "setting",
            "outcome",
            "tok_s",
            "gain",
            "low",
            "high",
            "verdict",
            "kept",
            "memory_mib",
            "starts",
        ]
    )
    for one in report.settings:
        low, high = one.interval or (None, None)
        figures = (one.tok_s, one.gain, low, high, one.verdict, one.kept, one.memory_mib)
        writer.writerow(
            [report.rig, report.card.name, one.setting, one.outcome, *figures, one.starts]
        )
    return text.getvalue()


def _markdown(report: Report) -> Iterator[str]:
    card = report.card
    driver = f", driver {card.driver}" if card.driver else ""
    yield f"# {report.kind} of {report.rig}: run {report.run}"
    yield ""
    yield f"- card: {card.name}{driver}"
    yield f"- server: {report.server_build}"
    yield f"- target: {report.target.file}, sha256 {report.target.sha256 or 'unknown'}"
    yield f"- each start: {report.prompts} prompts, {report.tokens} tokens, greedy"
    yield (
        f"- {report.state}, {report.started_at}, {report.starts} server starts,"
        f" {time(report.seconds)}, tuirig {report.tuirig}"
    )
    yield from _verdict(report)
    yield ""
    yield "## Settings"
    yield ""
    head = ("setting", "tok/s", "gain", "95 % interval", "verdict", "kept", "memory", "starts")
    yield from _table(head, [_setting(one) for one in report.settings])
    notes = [f"{one.setting} {one.outcome}: {one.reason}" for one in report.settings if one.reason]
    notes += [f"{one.setting}: {'; '.join(one.flags)}" for one in report.settings if one.flags]
    if notes:
        yield ""
        yield from (f"- {note}" for note in notes)
    for comparison in report.formats:
        yield ""
        yield from _formats(comparison)
    yield ""
    yield from _memory(report)


class _Found(msgspec.Struct, frozen=True):
    """What the results of every kind may say."""

    setting: str | None = None
    verdict: str = ""
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    why: str = ""
    settled: str = ""


def _verdict(report: Report) -> Iterator[str]:
    if report.result is None:
        return
    found = msgspec.json.decode(report.result, type=_Found)
    if found.ratio is not None and found.interval is not None:
        low, high = found.interval
        yield f"- verdict: {found.verdict}, {found.ratio:.3f} [{low:.3f}, {high:.3f}]"
    if found.setting:
        yield f"- chosen: {found.setting} ({found.why})"
    if found.settled:
        yield f"- {found.settled}"


def _setting(one: SettingResult) -> tuple[str, ...]:
    interval = "[{:.3f}, {:.3f}]".format(*one.interval) if one.interval else DASH
    figures = (rate(one.tok_s), gain(one.gain), interval, one.verdict or DASH, share(one.kept))
    return (one.setting, *figures, memory(one.memory_mib), str(one.starts))


def _formats(comparison: FormatComparison) -> Iterator[str]:
    yield f"## Formats at {comparison.length} drafted tokens"
    yield ""
    rows = [
        (
            row.format,
            rate(row.tok_s),
            gain(row.gain),
            share(row.kept),
            memory(row.memory_mib),
            memory(row.more_mib),
        )
        for row in comparison.rows
    ]
    head = ("format", "tok/s", "gain", "kept", "memory", "on top of none")
    yield from _table(head, rows)
    yield ""
    told = f"{comparison.identical} of {comparison.prompts} greedy replies are the same in all"
    if comparison.identical_to_none is not None:
        told += f"; {comparison.identical_to_none} also without a drafter"
    yield f"{told}."


def _memory(report: Report) -> Iterator[str]:
    yield "## Memory"
    yield ""
    rows = []
    for one in report.settings:
        parts = one.memory_parts
        if parts is not None:
            purposes = (parts.target_mib, parts.drafter_mib, parts.cache_mib, parts.buffers_mib)
            rows.append((one.setting, memory(one.memory_mib), *map(memory, purposes)))
    head = ("setting", "process", "target", "drafter", "cache", "buffers")
    yield from _table(head, rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
