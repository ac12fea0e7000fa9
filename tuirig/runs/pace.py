"""How long a server start and its replies take: guessed at first, then by what was seen."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence

from tuirig.cards.detect import CPU
from tuirig.rigs.schema import TARGET
from tuirig.rigs.settings import NONE
from tuirig.runs.session import Session
from tuirig.runs.store import PastStart, Store
from tuirig.runs.surroundings import Surroundings

#: Of earlier starts, so many of the latest.
_LATEST = 12

# A rough guess where nothing was seen: a token reads every weight once, and loading reads them,
# too. Bytes per second of a CPU's memory, of a card's, and of a disk.
_CPU_BYTES_S = 8e9
_CARD_BYTES_S = 200e9
_DISK_BYTES_S = 1e9
_START_S = 2.0


class Pace:
    """Seconds per start. basis: what the figure comes from, in words."""

    def __init__(self, guess_s: float, basis: str) -> None:
        self.basis = basis
        self._guess_s = guess_s
        self._seen: list[float] = []

    @property
    def start_s(self) -> float:
        """Seconds that one start takes, its replies included."""
        return statistics.fmean(self._seen) if self._seen else self._guess_s

    def took(self, seconds: float) -> None:
        """A start with all its replies took so long."""
        self._seen.append(seconds)


async def rig_pace(session: Session, tokens: int) -> Pace:
    """The pace to expect of a start with so many tokens, by every earlier start of the rig."""

    def past() -> tuple[PastStart, ...]:
        with Store() as store:
            return store.past_starts(session.rig.name)

    target = session.files.get(TARGET)
    return pace_of(
        await asyncio.to_thread(past),
        tokens,
        target_bytes=target.stat().st_size if target is not None else 0,
        on_gpu=session.card.info.kind != CPU,
    )


async def pace_on(
    session: Session, store: Store, surroundings: Surroundings, tokens: int, besides: int | None
) -> Pace:
    """The pace to expect of starts with so many tokens. besides: a run that is left out."""
    past = await asyncio.to_thread(store.past_starts, session.rig.name, besides=besides)
    return pace_of(
        past,
        tokens,
        target_bytes=surroundings.of(NONE).target.size or 0,
        on_gpu=session.card.info.kind != CPU,
    )


def pace_of(past: Sequence[PastStart], tokens: int, *, target_bytes: int, on_gpu: bool) -> Pace:
    """The pace to expect. past: measured starts of this rig. tokens: of a start to come."""
    latest = [start for start in past if start.tokens][-_LATEST:]
    if latest:
        per_token_s = statistics.fmean(start.seconds / start.tokens for start in latest)
        return Pace(per_token_s * tokens, f"{len(latest)} earlier starts of this rig")
    per_token_s = target_bytes / (_CARD_BYTES_S if on_gpu else _CPU_BYTES_S)
    guess_s = _START_S + target_bytes / _DISK_BYTES_S + tokens * per_token_s
    return Pace(guess_s, "the size of the target, a rough guess")
