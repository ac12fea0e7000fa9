"""The model files of a rig in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuirig.rigs.schema import TARGET
from tuirig.tui import figures
from tuirig.tui.spans import Line, Span, line, spread, wrap

if TYPE_CHECKING:
    from tuirig.files.inspection import Inspection
    from tuirig.runs.fitting import SettingMemory
    from tuirig.runs.rig_files import RigFile, RigFiles

_INDENT = "  "


def files(looked: RigFiles, cells: int) -> list[Line]:
    """A block per row: the file, what it is, whether it fits, what it needs."""
    there = TARGET in {file.row for file in looked.files if file.inspection is not None}
    lines: list[Line] = []
    for file in looked.files:
        lines += [*_block(file, looked.free_mib, cells, target_known=there), ()]
    rough = dict.fromkeys(
        reason for file in looked.files if file.memory for reason in file.memory.rough
    )
    lines += [line(Span(row, "dim")) for reason in rough for row in wrap(f"rough: {reason}", cells)]
    return lines


def _block(file: RigFile, free_mib: float | None, cells: int, *, target_known: bool) -> list[Line]:
    if not file.place:
        state = Span("no file of its own", "dim")
    elif file.present:
        state = Span(f"{figures.memory(file.size_mib)}  present", "good")
    else:
        state = Span("missing", "bad")
    words: list[tuple[str, str]] = []
    if file.place:
        words.append((file.place, "dim"))
    if file.inspection is not None:
        words.append((_what(file.inspection), ""))
    for problem in file.problems:
        words.append((problem.reason, "bad"))
        if problem.next_step:
            words.append((f"next: {problem.next_step}", ""))
    if file.row != TARGET and file.present and target_known and not file.problems:
        words.append(("fits the target", "good"))
    if file.memory is not None:
        words.append(_memory(file.memory, free_mib))
    title = line(Span(file.row, "title"), Span(f"  {file.type}", "dim"))
    return [
        spread(title, line(state), cells),
        *(
            line(f"{_INDENT}{row}" if not role else Span(f"{_INDENT}{row}", role))
            for text, role in words
            for row in wrap(text, cells - len(_INDENT))
        ),
    ]


def _what(found: Inspection) -> str:
    """Format and architecture by the header."""
    parts = [found.architecture or "no architecture", found.encoding or "no tensors"]
    if found.bits_per_weight is not None:
        parts.append(f"{found.bits_per_weight:.2f} bits a weight")
    parts += [f"{found.parameters / 1e6:,.0f} M parameters", f"{found.layers} layers"]
    if found.mtp_layers:
        parts.append(f"{found.mtp_layers} MTP layers")
    if found.context_length is not None:
        parts.append(f"context {found.context_length}")
    return " · ".join(parts)


def _memory(need: SettingMemory, free_mib: float | None) -> tuple[str, str]:
    """The forecast of the row at its longest draft length beside what is free."""
    words = f"memory of {need.setting}: {figures.memory(need.total_mib)}"
    if need.fits is None or free_mib is None:
        return f"{words} (how much is free is not known)", ""
    words += f" of {figures.memory(free_mib)} free"
    if need.fits:
        return f"{words}: fits", "good"
    context = need.largest_context
    return f"{words}: does not fit{f'; -c {context} would' if context else ', whatever -c'}", "bad"
