"""How the screen was left: a note of the program's own, not a person's file."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from tuirig import locations


class Layout(msgspec.Struct, frozen=True, kw_only=True):
    """rig: the one that was open. log: whether its log was. prompt: the test prompt's id."""

    rig: str = ""
    log: bool = False
    prompt: str = ""


def layout_path() -> Path:
    """Where it stands."""
    return locations.state_folder() / "screen.json"


def read_layout() -> Layout:
    """How it was left; the defaults where nothing is known or the note can't be read."""
    try:
        return msgspec.json.decode(layout_path().read_bytes(), type=Layout)
    except (OSError, msgspec.MsgspecError):
        return Layout()


def remember_layout(layout: Layout) -> None:
    """Write it down; a disk that refuses costs only the comfort."""
    from tuirig.atomic import write_atomically

    with contextlib.suppress(OSError):
        write_atomically(layout_path(), msgspec.json.encode(layout))
