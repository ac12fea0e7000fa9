"""Progress with rate and time left, told often enough to follow and no oftener."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from tuirig.events import Emit, Progress

_INTERVAL_S = 0.1
_WINDOW_S = 5.0


class Pace:
    """Call it with (bytes done, bytes in all or None) as the work goes; it emits Progress.

    The rate is that of the last five seconds; what was there at the first call is not part of it.
    """

    def __init__(
        self, what: str, emit: Emit, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._what = what
        self._emit = emit
        self._clock = clock
        self._seen: deque[tuple[float, int]] = deque()
        self._told_s = float("-inf")

    def __call__(self, done: int, total: int | None) -> None:
        """Emit, unless the last time was just now and this is not the end."""
        now_s = self._clock()
        if now_s - self._told_s < _INTERVAL_S and done != total:
            return
        self._told_s = now_s
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()  # it began anew
        self._seen.append((now_s, done))
        while self._seen[0][0] < now_s - _WINDOW_S and len(self._seen) > 2:
            self._seen.popleft()
        per_s = self._rate()
        left_s = (total - done) / per_s if total is not None and per_s else None
        self._emit(
            Progress(what=self._what, done=done, total=total, unit="B", per_s=per_s, left_s=left_s)
        )

    def _rate(self) -> float | None:
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None
