"""What takes time, one at a time: a new job first ends the one before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic

from tuirig.errors import TuirigError


class Jobs:
    """Owns at most one running task of one event loop.

    failed: told of a TuirigError. broken: told of any other error. changed: a job began or ended.
    """

    def __init__(
        self,
        *,
        failed: Callable[[TuirigError], None],
        broken: Callable[[Exception], None],
        changed: Callable[[], None],
    ) -> None:
        self.name = ""
        #: The name of the job that runs or ran last: its events may come after it has ended.
        self.latest = ""
        #: The job was told to end and has not ended yet: nothing can join it any more.
        self.ending = False
        self._began_s = 0.0
        self._failed = failed
        self._broken = broken
        self._changed = changed
        self._task: asyncio.Task[None] | None = None

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run work after the job before it was cancelled and is gone."""
        self.ending = self.running
        self._task = asyncio.create_task(self._run(name, work, self._task), name=name)

    async def _run(
        self, name: str, work: Callable[[], Awaitable[None]], before: asyncio.Task[None] | None
    ) -> None:
        if before is not None and not before.done():
            before.cancel()
            await asyncio.wait((before,))
        self.name = self.latest = name
        self._began_s = monotonic()
        self._changed()
        try:
            await work()
        except TuirigError as error:
            self._failed(error)
        except Exception as error:
            self._broken(error)
        finally:
            self.name, self.ending = "", False
            self._changed()

    @property
    def running(self) -> bool:
        """Whether a job is there, begun or about to begin."""
        return self._task is not None and not self._task.done()

    @property
    def seconds(self) -> float:
        """How long the job has run, 0 when none does."""
        return monotonic() - self._began_s if self.name else 0.0

    def going_on(self, *names: str) -> bool:
        """Whether one of these runs and was not told to end."""
        return self.name in names and not self.ending

    def cancel(self) -> None:
        """Tell what runs to end."""
        if self._task is not None:
            self.ending = self.running
            self._task.cancel()

    async def end(self) -> None:
        """Cancel what runs and wait until it is gone."""
        task, self._task = self._task, None
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait((task,))
