"""Readings of the card beside the measuring: one at a time, in a thread of their own."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tuirig.cards.base import Card
from tuirig.events import Emit, ReadingTaken
from tuirig.records import Reading

#: A card that is still being read when the sampler ends gets this long to answer.
_LAST_READING_S = 2.0


def _no_process() -> int | None:
    return None


def _always() -> bool:
    return True


class Sampler:
    """Reads a card `hz` times a second while its context is open, and emits ReadingTaken.

    pid: asked before each reading for the server's process, whose memory is wanted. While there is
    none, or it is not `busy`, the card is read `idle_hz` times a second. A card that answers slower
    than the rate is read less often: readings never pile up.
    """

    def __init__(
        self,
        card: Card,
        emit: Emit,
        *,
        hz: float = 2.0,
        idle_hz: float = 0.5,
        pid: Callable[[], int | None] = _no_process,
        busy: Callable[[], bool] = _always,
    ) -> None:
        self.last: Reading | None = None
        self._card = card
        self._emit = emit
        self._period_s = 1 / hz
        self._idle_period_s = 1 / min(hz, idle_hz)
        self._pid = pid
        self._busy = busy
        self._end = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._end.clear()
        self._task = asyncio.create_task(self._sample(), name="card sampler")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        assert task is not None
        self._end.set()
        try:
            await asyncio.wait({task}, timeout=_LAST_READING_S)
        finally:
            task.cancel()
        if task.done() and not task.cancelled():
            task.result()

    async def _sample(self) -> None:
        began_s = time.monotonic()
        due_s = began_s
        while not self._end.is_set():
            pid = self._pid()
            # An idle card is asked seldom, but whether it still is idle at every beat.
            if time.monotonic() >= due_s or (pid is not None and self._busy()):
                reading = await asyncio.to_thread(self._card.read, pid)
                self.last = reading
                self._emit(ReadingTaken(reading=reading))
                due_s = time.monotonic() + self._idle_period_s - self._period_s / 2
            period_s = self._period_s
            # The next beat after now; those that a slow card missed are gone.
            passed_s = time.monotonic() - began_s
            next_s = (math.floor(passed_s / period_s) + 1) * period_s
            try:
                async with asyncio.timeout(next_s - passed_s):
                    await self._end.wait()
            except TimeoutError:
                continue
