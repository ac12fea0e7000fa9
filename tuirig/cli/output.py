"""What a command was asked for goes to stdout, everything told on the way to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TextIO

#: The version of every JSON document. It rises when a field changes its meaning or goes away.
SCHEMA = 1


def say(text: str, *, end: str = "\n") -> None:
    """Text for people, on stderr. A terminal that is gone does not end the work."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        _discard(sys.stderr)


def answer(text: str) -> None:
    """The answer, whole, on stdout. A reader that has seen enough (`| head`) is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        _discard(sys.stdout)


def answer_json(document: Mapping[str, object]) -> None:
    """The answer as one JSON document."""
    import msgspec

    data = msgspec.json.encode({"schema": SCHEMA, **document})
    answer(msgspec.json.format(data, indent=2).decode())


def _discard(stream: TextIO) -> None:
    """Let what is left of a stream go nowhere, also when Python flushes it at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def is_screen(stream: TextIO) -> bool:
    """Whether a stream is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """Rows as lines of aligned columns; `right` names the columns with numbers."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
