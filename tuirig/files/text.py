"""Reading the text of a rig or profile file."""

from __future__ import annotations

from pathlib import Path

from tuirig.errors import FileError


def read_text(path: Path) -> str:
    """The text of a file. Raises FileError where it can't be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise FileError(str(path), "not UTF-8 text", line=line) from None
    except OSError as error:
        raise FileError(str(path), error.strerror or str(error)) from None
