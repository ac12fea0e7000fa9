"""The same picture in fewer bytes: Textual names the whole style of every piece of a line.

Over SSH most of a repaint is colours that are set already.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
#: Moves that nothing is written between: the last one counts.
_MOVES = re.compile(r"\n?(?:\x1b\[\d+;\d+H)*(\x1b\[\d+;\d+H)")
_MOVES_ALONE = re.compile(r"(?:\n|\x1b\[\d+;\d+H)*")
_BLANK = re.compile(r"(?:\n|\x1b\[\d+;\d+H| )*")
#: Underlined, reversed, struck through: what is seen of a blank besides its background.
_SEEN_ON_BLANKS = frozenset(("4", "7", "9"))
#: Codes that end attributes.
_ENDS = {
    "22": {"1", "2"},
    "23": {"3"},
    "24": {"4", "21"},
    "25": {"5", "6"},
    "27": {"7"},
    "28": {"8"},
    "29": {"9"},
}


class _Look(NamedTuple):
    attributes: frozenset[str] = frozenset()
    foreground: str = ""
    background: str = ""


_PLAIN = _Look()


def shorter(data: str) -> str:
    """What a terminal in its plain style shows alike, and is left alike by. data: a whole frame."""
    if data.count("\x1b[") < 2:
        return data
    out: list[str] = []
    now = wanted = _PLAIN
    for index, part in enumerate(_STYLE.split(_MOVES.sub(r"\1", data))):
        if index % 2:
            wanted = _applied(part, wanted)
        elif part:
            # A move paints nothing, so the style may wait for what is written after it.
            if now != wanted and not _MOVES_ALONE.fullmatch(part):
                look = _for_blanks(now, wanted) if _BLANK.fullmatch(part) else wanted
                out.append(_change(now, look))
                now = look
            out.append(part)
    if now != wanted:
        out.append(_change(now, wanted))
    return "".join(out)


@lru_cache(1024)
def _applied(codes: str, look: _Look) -> _Look:
    """The look after a style sequence (ECMA-48, SGR)."""
    attributes, foreground, background = look
    numbers = iter(codes.split(";"))
    for number in numbers:
        value = int(number or 0)
        if value in (38, 48):
            kind = next(numbers, "5")
            rest = [next(numbers, "0") for _ in range(3 if kind == "2" else 1)]
            colour = ";".join((number, kind, *rest))
            foreground, background = (colour, background) if value == 38 else (foreground, colour)
        elif value == 0:
            attributes, foreground, background = _PLAIN
        elif value in range(30, 40) or value in range(90, 98):
            foreground = "" if value == 39 else number
        elif value in range(40, 50) or value in range(100, 108):
            background = "" if value == 49 else number
        elif number in _ENDS:
            attributes -= _ENDS[number]
        else:
            attributes |= {number}
    return _Look(attributes, foreground, background)


@lru_cache(4096)
def _for_blanks(now: _Look, wanted: _Look) -> _Look:
    """Blanks show no foreground: only the background has to change."""
    if (now.attributes | wanted.attributes) & _SEEN_ON_BLANKS:
        return wanted
    return now._replace(background=wanted.background)


@lru_cache(4096)
def _change(now: _Look, wanted: _Look) -> str:
    """The shortest sequence from one look to another."""
    if now == wanted:
        return ""
    if wanted == _PLAIN:
        return "\x1b[0m"
    codes = []
    if not now.attributes <= wanted.attributes:
        codes, now = ["0"], _PLAIN
    codes += sorted(wanted.attributes - now.attributes)
    if now.foreground != wanted.foreground:
        codes.append(wanted.foreground or "39")
    if now.background != wanted.background:
        codes.append(wanted.background or "49")
    return f"\x1b[{';'.join(codes)}m"
