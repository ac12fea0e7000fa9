"""Running the maker: one at a time, with progress, cancellable, its folder whole or absent."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from tuirig.atomic import put_in_place
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import Emit, Failed, Progress

_POLL_S = 0.1
#: One thread: the makers are quick enough, and another thread would only steal a core.
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

_OTHER_FOLDER = "free some space or choose another folder with XDG_CACHE_HOME or TUIRIG_HOME"


async def make_folder(
    name: str,
    folder: Path,
    *,
    mib: int,
    is_there: Callable[[], bool],
    emit: Emit,
) -> None:
    """Make a built-in rig's folder in a process of its own and put it in place in one step.

    mib: room it needs. is_there: asked again once nobody else is making the folder.
    """
    with _readable_errors(name, folder.parent):
        folder.parent.mkdir(parents=True, exist_ok=True)
        async with _alone(name, folder.parent, emit):
            if is_there():
                return
            for leftover in folder.parent.glob(f".{name}.*"):
                await asyncio.to_thread(shutil.rmtree, leftover)
            _require_room(name, folder.parent, mib)
            workplace = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=folder.parent))
            try:
                await _run_maker(name, workplace, emit)
                _put_in_place(workplace, folder)
            finally:
                shutil.rmtree(workplace, ignore_errors=True)
    emit(Progress(what=f"{name}: ready", done=1.0, total=1.0))


@contextmanager
def _readable_errors(name: str, parent: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TuirigError(
            f"{name} can't be made in {parent}: {error.strerror or error}",
            hint=_OTHER_FOLDER,
        ) from error


@asynccontextmanager
async def _alone(name: str, parent: Path, emit: Emit) -> AsyncIterator[None]:
    """Hold the lock file of a rig; the system lets go of it when a holder dies."""
    with (parent / f"{name}.lock").open("w") as lock:
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                waited = time.monotonic() - began
                emit(Progress(what=f"{name}: another tuirig is making it", done=waited, unit="s"))
                await asyncio.sleep(_POLL_S)
        yield


def _require_room(name: str, parent: Path, mib: int) -> None:
    free = shutil.disk_usage(parent).free // 2**20
    if free < mib:
        raise TuirigError(
            f"{name} needs {mib} MiB in {parent}; {free} MiB are free",
            hint=_OTHER_FOLDER,
        )


def maker_command(name: str, workplace: Path) -> tuple[str, ...]:
    """How the maker is started. -P: the current folder must not stand in for numpy."""
    return (sys.executable, "-P", "-m", "tuirig.demo.make", name, str(workplace))


async def _run_maker(name: str, workplace: Path, emit: Emit) -> None:
    process = await asyncio.create_subprocess_exec(
        *maker_command(name, workplace),
        env={**os.environ, **_ONE_THREAD, "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
        stdin=asyncio.subprocess.PIPE,  # held open: the maker ends when it closes
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    failure: Failed | None = None
    other_lines: deque[str] = deque(maxlen=12)
    try:
        async for line in process.stdout:
            try:
                report = msgspec.json.decode(line, type=Progress | Failed)
            except msgspec.DecodeError:
                other_lines.append(line.decode(errors="replace").rstrip())
                continue
            if isinstance(report, Failed):
                failure = report
            else:
                emit(report)
        code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if failure:
        raise TuirigError(
            failure.message,
            hint=failure.hint,
            evidence=failure.evidence,
            exit_code=ExitCode(code),
        )
    if code:
        raise TuirigError(
            f"making {name} ended with code {code}",
            evidence=tuple(other_lines),
            hint="try again; if memory is short, end other programs first",
        )


def _put_in_place(workplace: Path, folder: Path) -> None:
    """Rename the finished folder; an older one steps aside first and is removed."""
    aside = workplace.with_name(f"{workplace.name}.old")
    if folder.exists():
        folder.rename(aside)
    put_in_place(workplace, folder)
    shutil.rmtree(aside, ignore_errors=True)
