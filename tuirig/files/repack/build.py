"""Repack a checkpoint into a template's layout, or check a file that is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from tuirig.errors import ExitCode, TuirigError
from tuirig.files.gguf import KEYS_START
from tuirig.files.repack.layout import BF16, Q4_0, READABLE, LaidTensor, read_layout
from tuirig.files.repack.matrices import Matrix, checked
from tuirig.files.repack.names import sources
from tuirig.files.repack.plan import not_written, plan, the_source, why_copied
from tuirig.files.repack.report import RefusedError, Report, TensorReport, Verdict
from tuirig.files.repack.safetensors import SourceTensor, read_snapshot
from tuirig.files.repack.writing import copied, header, padding, part_of

#: Called with bytes done and bytes in all.
OnProgress: TypeAlias = Callable[[int, int], None]
#: What can be written, and GGML's number of its encoding.
FORMATS = {"q4_0": Q4_0, "bf16": BF16}


class CancelledError(Exception):
    """`cancelled()` turned true; nothing was left behind."""


def repack(
    snapshot: Path,
    template: Path,
    out: Path,
    format: str,
    *,
    on_progress: OnProgress = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Report:
    """Write `out` with the template's keys and every known matrix from the snapshot.

    format: "q4_0" or "bf16". Whole or not at all. Blocks; memory stays at a few MB. Raises
    RefusedError where the snapshot can't be written exactly, MissingError or TuirigError for files
    that are absent, damaged or unwritable, CancelledError.
    """
    tensors = read_snapshot(snapshot)
    layout = read_layout(template)
    out = Path(os.path.realpath(out))
    _keep_inputs(out, template, tensors)
    steps = plan(layout, tensors)
    rewritten = {step.tensor.name for step in steps if step.source}
    before, after, size = header(layout, dict.fromkeys(rewritten, FORMATS[format]))
    reports: dict[str, TensorReport] = {}
    with part_of(out, size) as file:

        def write(pieces: Iterable[bytes]) -> None:
            for piece in pieces:
                if cancelled():
                    raise CancelledError
                file.write(piece)
                if file.tell() < size:
                    on_progress(file.tell(), size)

        write((before,))
        write(copied(template, KEYS_START, layout.keys_end))
        write((after,))
        for step in steps:
            tensor = step.tensor
            if step.source is None:
                write(copied(template, tensor.start, tensor.start + tensor.size))
                reports[tensor.name] = _as_it_was(tensor, Verdict.COPIED, step.reason)
            else:
                matrix = Matrix(tensor, template, step.source)
                write(matrix.encoded(format))
                reports[tensor.name] = matrix.report(format)
            file.write(padding(file.tell(), layout.alignment))
    on_progress(size, size)
    return Report(
        file=str(out),
        snapshot=str(snapshot),
        template=str(template),
        size=size,
        tensors=tuple(reports[tensor.name] for tensor in layout.tensors),
        not_written=not_written(
            frozenset(step.source.name for step in steps if step.source), tensors
        ),
    )


def _keep_inputs(out: Path, template: Path, tensors: Mapping[str, SourceTensor]) -> None:
    for path in {template, *(tensor.file for tensor in tensors.values())}:
        if out == Path(os.path.realpath(path)):
            raise TuirigError(
                f"{out} is read for the repack, so it can't be written",
                hint="choose another name for the new file",
                exit_code=ExitCode.USAGE,
            )


def verify(
    snapshot: Path,
    file: Path,
    *,
    on_progress: OnProgress = lambda done, total: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Report:
    """Compare every known matrix of a GGUF with the snapshot. Blocks.

    Raises MissingError or TuirigError for files that are absent or damaged, CancelledError.
    """
    tensors = read_snapshot(snapshot)
    layout = read_layout(file)
    found = sources([tensor.name for tensor in layout.tensors], tensors)
    matched = [
        (tensor, _source_or_report(tensor, found.get(tensor.name, ()), tensors))
        for tensor in layout.tensors
    ]
    total = sum(tensor.size for tensor, source in matched if isinstance(source, SourceTensor))
    done = 0
    reports = []
    for tensor, source in matched:
        pieces = checked(tensor, file, source) if isinstance(source, SourceTensor) else (source,)
        for piece in pieces:
            if cancelled():
                raise CancelledError
            if isinstance(piece, TensorReport):
                reports.append(piece)
            else:
                done += piece
                on_progress(done, total)
    return Report(
        file=str(file),
        snapshot=str(snapshot),
        template=None,
        size=os.path.getsize(file),
        tensors=tuple(reports),
        not_written=not_written(
            frozenset(report.source for report in reports if report.source), tensors
        ),
    )


def _source_or_report(
    tensor: LaidTensor, candidates: tuple[str, ...], tensors: Mapping[str, SourceTensor]
) -> SourceTensor | TensorReport:
    """What a tensor is compared with, or the report of one that is not."""
    reason = why_copied(tensor, candidates)
    if not reason and tensor.kind not in READABLE:
        reason = f"{tensor.type.name} is not read"
    if reason:
        return _as_it_was(tensor, Verdict.NOT_COMPARED, reason)
    try:
        return the_source(tensor, candidates, tensors)
    except RefusedError as error:
        return _as_it_was(tensor, Verdict.NOT_EXACT, error.refusal.reason)


def _as_it_was(tensor: LaidTensor, verdict: Verdict, reason: str) -> TensorReport:
    return TensorReport(
        name=tensor.name,
        shape=tensor.shape,
        type=tensor.type.name,
        verdict=verdict,
        reason=reason,
    )
