"""Trying again after faults that pass: cut connections, busy servers, limits of rate."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from tuirig.errors import TuirigError

T = TypeVar("T")
#: Sleeps for some seconds.
Wait: TypeAlias = Callable[[float], Awaitable[None]]

#: Tries without anything new before giving up.
_TRIES = 6
_LONGEST_PAUSE_S = 16.0
#: A server that asks for a longer pause is not waited for.
_LONGEST_WISH_S = 300.0
#: Answers that may be others next time.
PASSING = (408, 425, 429, 500, 502, 503, 504)


class PassingError(Exception):
    """It may go well next time. error: what to say if not. after_s: what the server asks for."""

    def __init__(self, error: TuirigError, after_s: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.after_s = after_s


async def persistently(
    attempt: Callable[[], Awaitable[T]],
    *,
    progress: Callable[[], object],
    tell: Callable[[str, float], None],
    wait: Wait,
) -> T:
    """The attempt's result. It is made again after a PassingError, a few times.

    progress: when it returned something new since the last try, counting starts anew. tell: called
    with the cause and the seconds until the next try.
    """
    tries = 0
    while True:
        before = progress()
        try:
            return await attempt()
        except PassingError as fault:
            tries = 1 if progress() != before else tries + 1
            pause_s = min(2.0 ** (tries - 1), _LONGEST_PAUSE_S)
            if fault.after_s is not None:
                pause_s = max(fault.after_s, 1.0)
            if tries >= _TRIES or pause_s > _LONGEST_WISH_S:
                raise fault.error from None
            tell(fault.error.message, pause_s)
        await wait(pause_s)


def wished_pause_s(header: str | None) -> float | None:
    """Seconds that a Retry-After header asks for, as a number or a date; None for neither."""
    if not header:
        return None
    header = header.strip()
    if header.isascii() and header.isdigit() and len(header) < 9:
        return float(header)
    from datetime import UTC, datetime
    from email.utils import parsedate_to_datetime

    try:
        until = parsedate_to_datetime(header)
    except (TypeError, ValueError):
        return None
    return max(0.0, (until - datetime.now(UTC)).total_seconds()) if until.tzinfo else None
