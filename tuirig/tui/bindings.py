"""The bindings of a screen out of the table of keys."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from tuirig.tui.keys import keys_of, label


def bindings_of(screen: str) -> list[BindingType]:
    """All but the palette's, which Textual binds itself."""
    return [
        Binding(
            key.keys,
            key.action,
            label(key, screen) or key.title,
            show=bool(label(key, screen)),
            key_display=key.shown,
            id=key.action,
        )
        for key in keys_of(screen)
        if key.action != "command_palette"
    ]
