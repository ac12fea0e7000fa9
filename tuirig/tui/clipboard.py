"""Copying text out of a terminal: OSC 52, and tmux's own buffer where tmux would drop that."""

from __future__ import annotations

import asyncio
import os
import shutil


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
