"""Core events -> one message per frame: bursts are coalesced, at most `rate_hz` frames a second."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

from tuirig.events import Event, Progress, ReadingTaken, ServerChanged, TextArrived

Deliver = Callable[[Sequence[Event]], None]


class Bridge:
    """emit may be called from any thread; deliver is called in the loop that made the bridge."""

    def __init__(self, deliver: Deliver, rate_hz: float) -> None:
        self._deliver = deliver
        self._pause_s = 1.0 / rate_hz
        self._loop = asyncio.get_running_loop()
        self._events: deque[Event] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._free_at = 0.0
        self._closed = False

    def close(self) -> None:
        """Deliver nothing any more."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def emit(self, event: Event) -> None:
        """Take an event; it is shown in the next frame."""
        if self._closed:
            return
        self._events.append(event)
        if self._timer is None:
            try:
                self._loop.call_soon_threadsafe(self._schedule)
            except RuntimeError:  # the loop is closed: nobody looks any more
                self._events.clear()

    def _schedule(self) -> None:
        if self._timer is None and not self._closed:
            self._timer = self._loop.call_at(max(self._loop.time(), self._free_at), self._frame)

    def flush(self) -> None:
        """Deliver what waits at once."""
        if self._timer is not None:
            self._timer.cancel()
        self._frame()

    def _frame(self) -> None:
        self._timer = None
        self._free_at = self._loop.time() + self._pause_s
        events = []
        while self._events:
            events.append(self._events.popleft())
        if events:
            self._deliver(coalesce(events))


def coalesce(events: Sequence[Event]) -> list[Event]:
    """Join neighbouring texts; of neighbouring readings, progress and start lines keep the last."""
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextArrived) and isinstance(last, TextArrived):
            joined[-1] = TextArrived(
                text=last.text + event.text,
                predicted_n=event.predicted_n,
                tok_s=event.tok_s if event.tok_s is not None else last.tok_s,
            )
        elif (
            (isinstance(event, ReadingTaken) and isinstance(last, ReadingTaken))
            or (isinstance(event, Progress) and isinstance(last, Progress))
            or (
                isinstance(event, ServerChanged)
                and isinstance(last, ServerChanged)
                and event.state is last.state
            )
        ):
            joined[-1] = event
        else:
            joined.append(event)
    return joined
