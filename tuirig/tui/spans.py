"""Text with roles: what panels are made of. Pure, so that panels are tested without a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from rich.cells import cell_len, set_cell_size

#: A word longer than a row is begun in a row that has so many cells left.
LEAST_PIECE = 6
#: Roles that a theme gives a look to; "" is plain text.
ROLES = (
    "dim",
    "title",
    "accent",
    "good",
    "bad",
    "warn",
    "best",
    "bar",
    "bar2",
    "bar3",
    "cursor",
)


class Span(NamedTuple):
    """A piece of a line. roles are names out of ROLES, separated by blanks."""

    text: str
    roles: str = ""


Line: TypeAlias = tuple[Span, ...]


def line(*parts: Span | str) -> Line:
    """A line of spans; a plain string is a span without a role."""
    return tuple(part if isinstance(part, Span) else Span(part) for part in parts if part)


def width(spans: Iterable[Span]) -> int:
    """Cells that the spans take."""
    return sum(cell_len(span.text) for span in spans)


def cut(spans: Line, cells: int) -> Line:
    """The line shortened to so many cells, with an ellipsis where something is lost."""
    if width(spans) <= cells:
        return spans
    return (*_take(spans, max(0, cells - 1)), Span("…", "dim")) if cells > 0 else ()


def _take(spans: Line, cells: int) -> Iterator[Span]:
    left = cells
    for span in spans:
        size = cell_len(span.text)
        if size > left:
            if left:
                yield Span(set_cell_size(span.text, left), span.roles)
            return
        yield span
        left -= size


def spread(left: Line, right: Line, cells: int) -> Line:
    """left and right at the two ends of a line of so many cells; left is shortened first."""
    room = cells - width(right) - 1
    if room < 8:
        return cut(left, cells)
    left = cut(left, room)
    return (*left, Span(" " * (cells - width(left) - width(right))), *right)


def wrap(text: str, cells: int) -> list[str]:
    """Text in rows of at most so many cells (at least 2), broken at blanks where there are any."""
    rows: list[str] = []
    for paragraph in text.expandtabs(4).split("\n"):
        row = ""
        for word in _words(paragraph):
            if cell_len(row) + cell_len(word) <= cells:
                row += word
                continue
            room = cells - cell_len(row)
            if row.strip() and (cell_len(word.strip()) <= cells or room < LEAST_PIECE):
                rows.append(row.rstrip())
                row, word, room = "", word.lstrip(" "), cells
            while cell_len(word) > room:
                head, word = _split(word, room)
                rows.append((row + head).rstrip())
                row, room = "", cells
            row += word
        rows.append(row.rstrip())
    return rows


def _words(paragraph: str) -> Iterator[str]:
    """Words with the blanks before them, so that joining them gives the paragraph back."""
    start = 0
    for index in range(1, len(paragraph) + 1):
        last = index == len(paragraph)
        if last or (paragraph[index] == " " and paragraph[index - 1] != " "):
            yield paragraph[start:index]
            start = index


def _split(word: str, cells: int) -> tuple[str, str]:
    """The longest head of at most so many cells (at least one character), and the rest."""
    head, size = 0, 0
    for character in word:
        size += cell_len(character)
        if size > cells and head:
            break
        head += 1
    return word[:head], word[head:]
