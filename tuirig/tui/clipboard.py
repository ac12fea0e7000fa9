"""Copying text out of a terminal where OSC 52 does not come through: tmux's buffer, and a file."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from tuirig import locations
from tuirig.atomic import write_atomically


def copy_path() -> Path:
    """Where the last copied text stands, for terminals that let nothing through."""
    return locations.state_folder() / "copied.txt"


def write_copy(text: str) -> bool:
    """Write the text there. False where the disk refuses."""
    try:
        write_atomically(copy_path(), f"{text}\n")
    except OSError:
        return False
    return True


async def copy_through_tmux(text: str) -> bool:
    """Load text into tmux's buffer and the outer clipboard. False outside tmux or if it failed.

    A default tmux ignores OSC 52 of programs in it (`set-clipboard external`).
    """
    tmux = shutil.which("tmux")
    if not os.environ.get("TMUX") or tmux is None:
        return False
    process = await asyncio.create_subprocess_exec(
        tmux,
        "load-buffer",
        "-w",
        "-",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await process.communicate(text.encode())
    return process.returncode == 0
