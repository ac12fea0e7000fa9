"""One server start after another: cooled down, measured, stored as it comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import msgspec

from tuirig.cards.detect import CPU
from tuirig.errors import (
    DoesNotFitError,
    InUseError,
    MissingError,
    NotProvenError,
    StoreError,
    TuirigError,
)
from tuirig.events import (
    Emit,
    Event,
    PassesMeasured,
    ReadingTaken,
    StartBegan,
    StartEnded,
    StartFlagged,
)
from tuirig.measure import summary
from tuirig.measure.prompts import Prompt
from tuirig.records import Arm, Reading, Reply
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.circumstances import Circumstances
from tuirig.runs.cooling import Gate
from tuirig.runs.flags import flags, greedy, stood_still
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
    expected: starts that the run needs in all, as far as known. recipe: of the starts to come. No
    server runs between arms. A setting that fails is a result; what concerns the whole run is
    raised: InUseError, MissingError and StoreError. Cancelling breaks the arm off and stops the
    server.
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
        self.recipe = recipe
        self._surroundings = surroundings
        self._emit = emit
        cooled = [arm.cooling.end_c for arm in arms if arm.cooling.end_c is not None]
        self._is_gpu = session.card.info.kind != CPU
        for arm in arms:
            self._learn_pace(arm)
        self._gate = Gate(
            session.read_card if self._is_gpu else None, emit, idle_c=min(cooled, default=None)
        )

    async def measure(self, setting: Setting, step: object, reason: str) -> StoredArm:
        """Measure a setting in a start of its own. step: what it is for, stored as JSON."""

        async def work(kept: _Kept) -> _Outcome:
            await self._session.restart(setting)
            async with self._sampler(kept):
                record = await self._replies(kept)
            if record.proof.proven:
                return _Outcome(ArmState.MEASURED, record)
            reason = FailureNote(message=f"drafting is not proven: {record.proof.reason}")
            return _Outcome(ArmState.NOT_PROVEN, record, reason)

        return await self._start(setting, 1, step, reason, work)

    async def measure_passes(self, positions: int, step: object, reason: str) -> StoredArm:
        """Measure V(1) .. V(positions) in a start of its own, without a drafter."""

        async def work(kept: _Kept) -> _Outcome:
            from tuirig.measure.passes import measure_passes

            await self._session.restart(NONE, slots=positions)
            server = self._session.server
            assert server is not None
            passes_s = await measure_passes(server, positions, emit=self._emit)
            self._emit(PassesMeasured(passes_s=passes_s))
            return _Outcome(ArmState.MEASURED, passes_s=passes_s)

        return await self._start(NONE, positions, step, reason, work)

    async def _start(
        self,
        setting: Setting,
        slots: int,
        step: object,
        reason: str,
        work: Callable[[_Kept], Awaitable[_Outcome]],
    ) -> StoredArm:
        number = len(self.arms) + 1
        expected = max(self.expected, number)
        left_s = (expected - number + 1) * self.pace.start_s
        self._emit(
            StartBegan(
                number=number,
                expected=expected,
                setting=str(setting),
                reason=reason,
                seconds_left=left_s,
            )
        )
        began_s = time.monotonic()
        await self._session.stop()
        cooling = await self._gate.wait()
        circumstances, refusal = self._circumstances(setting, slots)
        started_at = now()
        id = await to_its_end(
            self._store.begin_arm, self._run, str(setting), step, circumstances, cooling
        )
        kept = _Kept(self._store, id)
        try:
            outcome = refusal or await _outcome_of(work, kept)
        except BaseException:
            self._store.end_arm(id, ArmState.BROKEN_OFF, time.monotonic() - began_s)
            raise
        finally:
            await self._session.stop()
        arm = StoredArm(
            id=id,
            run=self._run,
            setting=str(setting),
            step=msgspec.Raw(msgspec.json.encode(step)),
            state=outcome.state,
            started_at=started_at,
            seconds=time.monotonic() - began_s,
            circumstances=circumstances,
            cooling=cooling,
            arm=outcome.record,
            failure=outcome.failure,
            passes_s=outcome.passes_s,
            replies=tuple(kept.replies),
            samples=tuple(kept.samples),
        )
        await to_its_end(
            self._store.end_arm,
            id,
            arm.state,
            arm.seconds or 0.0,
            record=arm.arm,
            failure=arm.failure,
            passes_s=arm.passes_s,
        )
        self._tell(arm, number)
        self.arms.append(arm)
        return arm

    def _circumstances(self, setting: Setting, slots: int) -> tuple[Circumstances, _Outcome | None]:
        """Those of `none`, and the outcome, for a setting that this build refuses."""
        try:
            return self._surroundings.of(setting, slots), None
        except TuirigError as error:
            return self._surroundings.of(NONE), _Outcome(ArmState.FAILED, failure=_note(error))

    async def _replies(self, kept: _Kept) -> Arm:
        recipe, session = self.recipe, self._session
        record = await session.measure(
            recipe.prompts, tokens=recipe.tokens, repeats=recipe.repeats, keep=kept.keep
        )
        if recipe.sampled is not None:
            await session.measure(
                recipe.prompts, tokens=recipe.tokens, temperature=recipe.sampled, keep=kept.keep
            )
        return msgspec.structs.replace(record, replies=tuple(kept.replies))

    def _sampler(self, kept: _Kept) -> AbstractAsyncContextManager[object]:
        """Looks at a GPU beside the work. Not at a CPU: a look would cost what is measured."""
        if not self._is_gpu:
            return nullcontext()
        from tuirig.measure.telemetry import Sampler

        server = self._session.server
        pid = server.pid if server else None
        return Sampler(self._session.card, kept.sample, hz=SAMPLES_HZ, pid=lambda: pid)

    def _learn_pace(self, arm: StoredArm) -> None:
        measured = arm.state is ArmState.MEASURED and arm.passes_s is None
        if measured and not stood_still(arm) and arm.seconds is not None:
            self.pace.took(arm.seconds)

    def _tell(self, arm: StoredArm, number: int) -> None:
        replies = greedy(arm)
        self._learn_pace(arm)
        self._emit(
            StartEnded(
                number=number,
                setting=arm.setting,
                outcome=arm.state,
                seconds=arm.seconds or 0.0,
                tok_s=summary.tok_s(replies),
                kept=summary.kept(replies),
                reason=arm.failure.message if arm.failure else "",
            )
        )
        reasons = flags(arm, self.arms) if arm.state is ArmState.MEASURED else ()
        if reasons:
            self._emit(StartFlagged(number=number, setting=arm.setting, reasons=reasons))


class _Kept:
    """The replies of one arm on their way into the store, and the samples taken meanwhile."""

    def __init__(self, store: Store, arm: int) -> None:
        self.replies: list[Reply] = []
        self.samples: list[Reading] = []
        self._store = store
        self._arm = arm
        self._stored_samples = 0

    async def keep(self, reply: Reply) -> None:
        """Store a reply. Its order is counted over all rounds of the arm."""
        number = len(self.replies)
        reply = msgspec.structs.replace(reply, order=number)
        samples = self.samples[self._stored_samples :]
        self._stored_samples += len(samples)
        await to_its_end(self._store.add_reply, self._arm, number, reply, samples)
        self.replies.append(reply)

    def sample(self, event: Event) -> None:
        """Take a reading from a sampler."""
        if isinstance(event, ReadingTaken):
            self.samples.append(event.reading)


async def _outcome_of(work: Callable[[_Kept], Awaitable[_Outcome]], kept: _Kept) -> _Outcome:
    """What came of a start. A setting that can't be served is a result, too."""
    try:
        return await work(kept)
    except (InUseError, MissingError, StoreError):
        raise  # nothing that another setting would do better with
    except NotProvenError as error:
        return _Outcome(ArmState.NOT_PROVEN, failure=_note(error))
    except DoesNotFitError as error:
        return _Outcome(ArmState.DOES_NOT_FIT, failure=_note(error))
    except TuirigError as error:
        return _Outcome(ArmState.FAILED, failure=_note(error))


def _note(error: TuirigError) -> FailureNote:
    return FailureNote(message=error.message, hint=error.hint, evidence=error.evidence)


async def to_its_end(function: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Run a function in a thread; it is waited for also when this task is cancelled meanwhile."""
    work = asyncio.ensure_future(asyncio.to_thread(function, *args, **options))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait((work,))
        raise
