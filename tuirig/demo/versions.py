"""Which maker made a folder: files of an older tuirig are made again."""

from __future__ import annotations

from pathlib import Path

#: Raised when what a maker writes changes.
VERSIONS = {"demo-gemma4": 2, "demo-qwen35": 1, "demo-smollm2": 2}
_FILE = "version"


def is_current(name: str, folder: Path) -> bool:
    """Whether this tuirig's maker made the folder."""
    try:
        return (folder / _FILE).read_text("utf-8") == _mark(name)
    except OSError:
        return False


def write_version(name: str, folder: Path) -> None:
    """Say in the folder which maker made it."""
    (folder / _FILE).write_text(_mark(name), "utf-8")


def _mark(name: str) -> str:
    return f"{name} {VERSIONS[name]}\n"
