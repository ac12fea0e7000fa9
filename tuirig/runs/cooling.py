"""The gate before a server start: a warm card clocks lower, so every start begins alike."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from tuirig.events import CoolingDown, Emit
from tuirig.records import Cooling, Reading

#: A card is cool enough at max(idle + MARGIN_C, FLOOR_C) (method: "One arm, one comparison").
MARGIN_C = 7.0
FLOOR_C = 45.0
LIMIT_S = 180.0
LOOK_S = 1.0


class Gate:
    """Waits until the card is cool enough. Ask it only while no server runs.

    read: one reading of the card; None for a machine without a GPU, which has no gate. idle_c: the
    coolest that was seen without a server, if known from before.
    """

    def __init__(
        self,
        read: Callable[[], Awaitable[Reading]] | None,
        emit: Emit,
        *,
        idle_c: float | None = None,
        limit_s: float | None = None,
        look_s: float | None = None,
    ) -> None:
        self._read = read
        self._emit = emit
        self._idle_c = idle_c
        self._limit_s = LIMIT_S if limit_s is None else limit_s
        self._look_s = LOOK_S if look_s is None else look_s

    async def wait(self) -> Cooling:
        """Wait for at most the limit; what was reached. No gate without a temperature."""
        if self._read is None:
            return Cooling()
        began_s = time.monotonic()
        start_c = (await self._read()).temperature_c
        now_c = start_c
        while now_c is not None:
            self._idle_c = now_c if self._idle_c is None else min(self._idle_c, now_c)
            target_c = max(self._idle_c + MARGIN_C, FLOOR_C)
            seconds = time.monotonic() - began_s
            if now_c <= target_c or seconds >= self._limit_s:
                return Cooling(
                    seconds=seconds,
                    start_c=start_c,
                    end_c=now_c,
                    target_c=target_c,
                    reached=now_c <= target_c,
                )
            self._emit(
                CoolingDown(
                    temperature_c=now_c,
                    target_c=target_c,
                    seconds=seconds,
                    limit_s=self._limit_s,
                )
            )
            await asyncio.sleep(self._look_s)
            now_c = (await self._read()).temperature_c
        return Cooling(seconds=time.monotonic() - began_s, start_c=start_c)
