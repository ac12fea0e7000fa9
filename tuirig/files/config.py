"""config.toml beside the rigs: how the screen looks. A person's file; only a theme is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from tuirig import locations
from tuirig.errors import TuirigError
from tuirig.files.text import read_text
from tuirig.rigs.toml import TomlLines, convert, read_table

_THEME = re.compile(r"""^[ \t]*["']?theme["']?[ \t]*=.*$""", re.MULTILINE)


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """theme: a name that the screen knows. hz: frames of the screen per second.

    hangup: what becomes of a running server when the terminal is lost.
    """

    theme: str | None = None
    hangup: Literal["stop", "keep"] = "stop"
    hz: Annotated[int, msgspec.Meta(ge=1, le=30)] | None = None


def config_path() -> Path:
    """Where it stands."""
    return locations.config_folder() / "config.toml"


def read_config() -> Config:
    """What it says; nothing where it is not there. Raises FileError with path, line and key."""
    path = config_path()
    return _parsed(read_text(path), path) if path.exists() else Config()


def remember_theme(name: str) -> None:
    """Write the theme, whole or not at all; the rest of the file stays. Raises TuirigError."""
    from tuirig.atomic import write_atomically

    path = config_path()
    text = read_text(path) if path.exists() else ""
    _parsed(text, path)
    line = f'theme = "{name}"'
    changed = _THEME.sub(line, text, count=1) if _THEME.search(text) else f"{line}\n{text}"
    _parsed(changed, path)
    try:
        write_atomically(path, changed)
    except OSError as error:
        raise TuirigError(f"{path} can't be written: {error.strerror}") from None


def _parsed(text: str, path: Path) -> Config:
    return convert(read_table(text, str(path)), Config, str(path), TomlLines(text))
