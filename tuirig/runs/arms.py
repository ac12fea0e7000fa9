"""One server start after another: cooled down, measured, stored as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import msgspec

from tuirig.cards.cpu import CPU
from tuirig.errors import (
    DoesNotFitError,
    InUseError,
    MissingError,
    NotProvenError,
    StoreError,
    TuirigError,
)
from tuirig.events import Emit, Event, PassesMeasured, ReadingTaken, StartBegan, StartEnded, StartFlagged
from tuirig.measure import summary
from tuirig.measure.prompts import Prompt
from tuirig.records import Arm, Reading, Reply
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.cooling import Gate
from tuirig.runs.flags import flags, greedy
from tuirig.runs.pace import Pace
from tuirig.runs.session import Session
from tuirig.runs.store import ArmState, FailureNote, Store, StoredArm, now
from tuirig.runs.surroundings import Surroundings

#: How often a GPU is looked at while an arm is measured.
SAMPLES_HZ = 1.0

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Recipe:
    """What is measured in each start.

    repeats: greedy rounds through the prompts. sampled: temperature of one more round, apart.
    """

    prompts: tuple[Prompt, ...]
    tokens: int
    repeats: int = 1
    sampled: float | None = None

    @property
    def all_tokens(self) -> int:
        """Tokens of a start in all, if no reply ends by itself."""
        rounds = self.repeats + (self.sampled is not None)
        return rounds * len(self.prompts) * self.tokens


@dataclass(frozen=True)
class _Outcome:
    state: ArmState
    record: Arm | None = None
    failure: FailureNote | None = None
    passes_s: dict[int, float] | None = None


class ArmRunner:
    """Measures settings in starts of their own, as arms of one stored run.

    arms: those of the run that count, in the order of their starts; new ones are appended.
    expected: starts that the run needs in all, as far as known. No server runs between arms. A
    setting that fails is a result; what concerns the whole run is raised: InUseError, MissingError
    and StoreError. Cancelling breaks the arm off and stops the server.
    """

    def __init__(
        self,
        session: Session,
        store: Store,
        run: int,
        recipe: Recipe,
        surroundings: Surroundings,
        pace: Pace,
        emit: Emit,
        arms: Sequence[StoredArm] = (),
    ) -> None:
        self.arms = list(arms)
        self.expected = 0
        self.pace = pace
        self._session = session
        self._store = store
        self._run = run
        self._recipe = recipe
        self._surroundings = surroundings
        self._emit = emit
        cooled = [arm.cooling.end_c for arm in arms if arm.cooling.end_c is not None]
        self._is_gpu = session.card.info.kind != CPU
        self._gate = Gate(
            session.read_card if self._is_gpu else None, emit, idle_c=min(cooled, default=None)
        )

    async def measure(self, setting: Setting, step: object, reason: str) -> StoredArm:
        """Measure a setting in a start of its own. step: what it is for, stored as JSON."""
        return await self._start(setting, step, reason, 1, self._replies)

    async def measure_passes(self, positions: int, step: object, reason: str) -> StoredArm:
        """Measure V(1) .. V(positions) in a start of its own, without a drafter."""
        return await self._start(NONE, step, reason, positions, self._passes)

    async def _start(
        self,
        setting: Setting,
        step: object,
        reason: str,
        slots: int,
        work: Callable[[Setting, int, int], Any],
    ) -> StoredArm:
        session, store = self._session, self._store
        number = len(self.arms) + 1
        expected = max(self.expected, number)
        self._emit(
            StartBegan(
                number=number,
                expected=expected,
                setting=str(setting),
                reason=reason,
                seconds_left=(expected - number + 1) * self.pace.start_s,
            )
        )
        began_s = time.monotonic()
        await session.stop()
        cooling = await self._gate.wait()
        circumstances = self._surroundings.of(setting, slots)
        started_at = now()
        id = await to_the_end(
            store.begin_arm, self._run, str(setting), step, circumstances, cooling
        )
        try:
            outcome: _Outcome = await work(setting, slots, id)
        except BaseException:
            store.end_arm(id, ArmState.BROKEN_OFF, time.monotonic() - began_s)
            raise
        finally:
            await session.stop()
        seconds = time.monotonic() - began_s
        await to_the_end(
            store.end_arm,
            id,
            outcome.state,
            seconds,
            record=outcome.record,
            failure=outcome.failure,
            passes_s=outcome.passes_s,
        )
        arm = StoredArm(
            id=id,
            run=self._run,
            setting=str(setting),
            step=msgspec.Raw(msgspec.json.encode(step)),
            state=outcome.state,
            started_at=started_at,
            seconds=seconds,
            circumstances=circumstances,
            cooling=cooling,
            arm=outcome.record,
            failure=outcome.failure,
            passes_s=outcome.passes_s,
            replies=outcome.record.replies if outcome.record else (),
            samples=tuple(self._samples),
        )
        self._tell(arm, number)
        self.arms.append(arm)
        return arm
