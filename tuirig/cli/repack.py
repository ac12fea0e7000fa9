"""`tuirig repack SNAPSHOT TEMPLATE.gguf OUT.gguf`, and `--verify FILE`."""

from __future__ import annotations

import argparse
import asyncio
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tuirig.cli import signals
from tuirig.cli.narration import Narrator
from tuirig.cli.output import answer, answer_json, columns
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import Event
from tuirig.files.repack import need_numpy
from tuirig.files.repack.report import Closeness, RefusedError, Report, TensorReport, Verdict
from tuirig.tui.figures import DASH

if TYPE_CHECKING:
    from pathlib import Path

_MOST_NAMED = 5


def run(options: argparse.Namespace) -> int:
    """Write the file, or check one; FAILED if it can't be exact or is not."""
    _require_paths(options)
    need_numpy()
    return signals.run(_repack(options))


def _require_paths(options: argparse.Namespace) -> None:
    given = [path for path in (options.template, options.out) if path is not None]
    if options.verify is None and len(given) < 2:
        message = "repack needs SNAPSHOT, TEMPLATE.gguf and OUT.gguf"
    elif options.verify is not None and given:
        message = "--verify FILE takes only SNAPSHOT beside it"
    else:
        return
    raise TuirigError(message, hint="tuirig repack --help", exit_code=ExitCode.USAGE)


async def _repack(options: argparse.Namespace) -> int:
    from tuirig.files.repack.build import repack, verify

    if options.verify is not None:
        file: Path = options.verify
        what = f"checking {file.name}"
        work: Callable[..., Report] = partial(verify, options.snapshot, file)
    else:
        what = f"writing {options.out.name}"
        format = "bf16" if options.bf16 else "q4_0"
        work = partial(repack, options.snapshot, options.template, options.out, format)
    try:
        report = await _in_thread(work, what)
    except RefusedError as error:
        if options.json:
            answer_json({"ok": False, "refusal": error.refusal})
        raise
    if options.json:
        answer_json({"ok": report.exact, "refusal": None, **msgspec.to_builtins(report)})
    else:
        answer("\n".join(_text(report)))
    return ExitCode.OK if report.exact else ExitCode.FAILED


async def _in_thread(work: Callable[..., Report], what: str) -> Report:
    """The work's result, with its progress told; cancelling ends the thread's work, too."""
    from tuirig.files.pace import Pace

    loop = asyncio.get_running_loop()
    narrator = Narrator()
    cancelled = threading.Event()

    def tell(event: Event) -> None:
        loop.call_soon_threadsafe(narrator, event)

    pace = Pace(what, tell)
    try:
        return await asyncio.to_thread(work, on_progress=pace, cancelled=cancelled.is_set)
    finally:
        cancelled.set()
        narrator.close()


def _text(report: Report) -> Iterator[str]:
    head = ("TENSOR", "TYPE", "ERROR", "SAME FP32", "SAME BF16", "TEMPLATE'S ERROR", "VERDICT")
    yield from columns([head, *map(_row, report.tensors)], right=(2, 3, 4, 5))
    yield ""
    if report.not_written:
        named = ", ".join(report.not_written[:_MOST_NAMED])
        more = len(report.not_written) - _MOST_NAMED
        yield f"not in the file: {named}{f' and {more} more' if more > 0 else ''}"
    counts = (
        (verdict, sum(tensor.verdict is verdict for tensor in report.tensors))
        for verdict in Verdict
    )
    found = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    yield f"{report.file}: {report.size / 1e6:.1f} MB, {found}"


def _row(tensor: TensorReport) -> tuple[str, ...]:
    own = tensor.against_source
    return (
        tensor.name,
        tensor.type,
        _error(own),
        f"{100 * own.identical_fp32:.1f} %" if own else "",
        f"{100 * own.identical_bf16:.1f} %" if own else "",
        _error(tensor.template_against_source),
        f"{tensor.verdict}: {tensor.reason}" if tensor.reason else str(tensor.verdict),
    )


def _error(closeness: Closeness | None) -> str:
    if closeness is None:
        return ""
    return DASH if closeness.error is None else f"{closeness.error:.5f}"
