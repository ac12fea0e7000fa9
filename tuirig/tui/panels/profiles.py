"""Profiles in words: a row each, why one is stale, the whole of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuirig.errors import FileError
from tuirig.tui import figures
from tuirig.tui.spans import Line, Span, cut, line, wrap

if TYPE_CHECKING:
    from tuirig.runs.profile_list import ListedProfile

#: (title, cells, at the right) of the columns after card and model.
COLUMNS = (
    ("setting", 9, False),
    ("tok/s", 6, True),
    ("gain", 6, True),
    ("source", 9, False),
    ("fits", 13, False),
)
_SHORT = {"same card, other memory": "other memory"}


def head(cells: int) -> Line:
    """The titles of the columns."""
    return _row(("card", "model"), tuple(title for title, _, _ in COLUMNS), cells, "dim")


def row(one: ListedProfile, cells: int) -> Line:
    """Card, model, setting, tok/s, gain, source, whether it fits this card or is stale."""
    profile = one.content
    if isinstance(profile, FileError):
        return cut(line(Span(f"{one.file.name}  ", "bad"), "file with an error"), cells)
    evidence = profile.evidence
    fits = "this, stale" if one.changes else _SHORT.get(one.fits, one.fits)
    role = "warn" if one.changes else "good" if one.fits == "this card" else "dim"
    figured = (
        profile.setting,
        figures.rate(evidence.tok_s),
        figures.gain(evidence.gain),
        profile.source,
        fits,
    )
    card = profile.card.name.removeprefix("NVIDIA ").removeprefix("GeForce ")
    return _row((card, profile.model.file), figured, cells, "", role)


def _row(
    names: tuple[str, str], figured: tuple[str, ...], cells: int, role: str, last: str = ""
) -> Line:
    """Card and model share what the columns leave; the card can do with less."""
    room = cells - sum(size + 1 for _, size, _ in COLUMNS) - 2
    card = min(30, room * 2 // 5)
    spans = [_pad(names[0], card, role), Span(" "), _pad(names[1], room - card, role)]
    for text, (_, size, right) in zip(figured, COLUMNS, strict=True):
        spans += [Span(" "), Span(f"{text:>{size}}", role) if right else _pad(text, size, role)]
    if last:
        spans[-1] = Span(spans[-1].text, last)
    return cut(line(*spans), cells)


def _pad(text: str, cells: int, role: str) -> Span:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > cells > 0:
        return Span(f"{set_cell_size(text, cells - 1)}…", role)
    return Span(set_cell_size(text, max(0, cells)), role)


def about(one: ListedProfile, cells: int) -> list[Line]:
    """Where it stands, what is wrong with it, why it is stale and what to do."""
    profile = one.content
    if isinstance(profile, FileError):  # it tells the place too
        return [line(Span(text, "bad")) for text in wrap(profile.text(), cells)]
    words = [(f"{one.file.path}{' (shipped)' if one.file.shipped else ''}", "dim")]
    if one.staleness is None:
        words.append((f"{one.fits}; whether it is stale can't be told here", ""))
    elif not one.changes:
        words.append((f"not stale, seen from rig {one.staleness.rig}", "good"))
    else:
        words += [(f"stale: {change}", "warn") for change in one.changes]
        words.append((f"next: {one.staleness.next_step}", ""))
    return [line(Span(text, role)) for said, role in words for text in wrap(said, cells)]


def whole(one: ListedProfile, cells: int) -> list[Line]:
    """The file as it would be written."""
    from tuirig.files.profiles import profile_text

    profile = one.content
    if isinstance(profile, FileError):
        return []
    return [line(text) for text in wrap(profile_text(profile), cells)]
