"""Size and hash of model files, found in a thread."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from tuirig.events import Emit, Progress
from tuirig.files import hashes
from tuirig.records import FileIdentity


async def identity_of(path: Path, emit: Emit, name: str = "") -> FileIdentity:
    """Size and hash of a model file, with Progress in bytes; a remembered hash costs nothing.

    name: what a person calls it, if not by its file's name. Cancelling ends the thread's work, too.
    Raises TuirigError if the file can't be read.
    """
    loop = asyncio.get_running_loop()
    cancelled = threading.Event()
    what = f"hashing {name or path.name}"

    def progress(done: int, total: int) -> None:
        loop.call_soon_threadsafe(emit, Progress(what=what, done=done, total=total, unit="B"))

    try:
        return await asyncio.to_thread(
            hashes.identity,
            path,
            compute=True,
            on_progress=progress,
            cancelled=cancelled.is_set,
        )
    finally:
        cancelled.set()
