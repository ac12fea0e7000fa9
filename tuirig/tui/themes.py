"""The names of the themes, and a theme of high contrast."""

from __future__ import annotations

from collections.abc import Iterable

from textual.theme import Theme

#: Short names for Textual's own.
_SHORT = {"dark": "textual-dark", "light": "textual-light", "ansi": "ansi-dark"}

HIGH_CONTRAST = Theme(
    name="high-contrast",
    primary="#5fd7ff",
    secondary="#ff87ff",
    accent="#ffff00",
    success="#00ff5f",
    warning="#ffd700",
    error="#ff5f5f",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#1c1c1c",
    text_alpha=1.0,
    variables={"text-muted": "#d0d0d0", "border": "#ffffff"},
)


def theme_name(word: str, known: Iterable[str]) -> str:
    """Textual's name for a theme. Raises ValueError, with what is known, for another word."""
    name = _SHORT.get(word, word)
    names = set(known)
    if name in names:
        return name
    from difflib import get_close_matches

    every = [*_SHORT, *sorted(names)]
    close = get_close_matches(word, every, 1)
    guess = f"did you mean {close[0]}? " if close else ""
    raise ValueError(f"no theme {word!r}; {guess}known: {', '.join(every)}")
