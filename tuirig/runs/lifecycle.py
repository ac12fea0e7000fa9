"""A stored run from its beginning, or its resumption, to its end, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import msgspec

from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.events import ArmsStale, Emit, PlanMade, RunEnded, RunStarted
from tuirig.runs.arms import to_its_end
from tuirig.runs.flags import stalled
from tuirig.runs.store import ArmState, RunState, Store, StoredArm
from tuirig.runs.surroundings import Surroundings
from tuirig.stats.comparison import Variance, start_variance

T = TypeVar("T")

#: Asked with the plan before anything starts.
Agree: TypeAlias = Callable[[PlanMade], Awaitable[bool]]


async def always(plan: PlanMade) -> bool:
    """An Agree for callers who do not ask."""
    return True


async def propose(plan: PlanMade, emit: Emit, agree: Agree) -> None:
    """Tell the plan and ask. Raises TuirigError if it is declined; nothing has been started."""
    emit(plan)
    if not await agree(plan):
        raise TuirigError("not started", exit_code=ExitCode.INTERRUPTED)


@dataclass
class OpenRun:
    """A run under way. result: what to store with it (JSON); verdict, setting: what to tell."""

    id: int
    result: object = None
    verdict: str = ""
    setting: str = ""


@asynccontextmanager
async def open_run(
    store: Store, kind: str, rig: str, options: object, emit: Emit, resume: int | None
) -> AsyncIterator[OpenRun]:
    """Begin a run, or go on with an unfinished one; its end is stored and told in any case.

    Raises InUseError if another tuirig is at it, StoreError.
    """
    if resume is None:
        run = OpenRun(await to_its_end(store.begin_run, kind, rig, options))
    else:
        run = OpenRun((await to_its_end(store.resume_run, resume)).id)
    emit(RunStarted(run=run.id, kind=kind, rig=rig, resumed=resume is not None))
    state = RunState.FAILED
    try:
        yield run
        state = RunState.DONE
    except asyncio.CancelledError:
        state = RunState.CANCELLED
        raise
    finally:
        store.end_run(run.id, state, run.result)
        emit(RunEnded(run=run.id, state=state, verdict=run.verdict, setting=run.setting))


def unfinished(
    store: Store, kind: str, rig: str, options: type[T], wanted: Callable[[T], bool]
) -> tuple[int, T]:
    """The newest run of this kind and rig whose options are wanted, to be resumed. Blocks.

    Raises MissingError if there is none, or if it is done.
    """
    for run in store.runs(rig=rig, kind=kind):
        found = msgspec.json.decode(run.options, type=options)
        if not wanted(found):
            continue
        if run.state is RunState.DONE:
            raise MissingError(
                f"run {run.id} is done: there is nothing to resume",
                hint=f"tuirig report {run.id} shows it; without --resume a new one begins",
            )
        return run.id, found
    raise MissingError(
        f"no unfinished run of this kind on {rig}",
        hint="start one without --resume; tuirig runs lists all",
    )


def still_valid(
    arms: Sequence[StoredArm], surroundings: Surroundings, emit: Emit
) -> tuple[StoredArm, ...]:
    """The complete arms that count now. Those made under other circumstances are stale: told."""
    valid = []
    stale = 0
    changes: dict[str, None] = {}
    for arm in arms:
        if arm.state in (ArmState.RUNNING, ArmState.BROKEN_OFF):
            continue
        changed = surroundings.changed_since(arm.setting, arm.circumstances)
        if changed:
            stale += 1
            changes.update(dict.fromkeys(changed))
        else:
            valid.append(arm)
    if stale:
        emit(ArmsStale(arms=stale, changes=tuple(changes)))
    return tuple(valid)


def start_noise(
    store: Store, rig: str, surroundings: Surroundings, besides: int | None
) -> tuple[Variance, ...]:
    """The variance between starts of one setting in each other run of this rig. Blocks.

    Within a run only, because days differ by more than starts do. Stale starts do not count, nor
    those in which replies stood still.
    """
    starts: dict[tuple[int, str], list[dict[str, float]]] = {}
    for past in store.past_starts(rig, besides=besides):
        tokens = past.tokens / max(1, len(past.speeds))
        still = stalled([(tok_s, tokens) for tok_s in past.speeds.values()])
        if not still and not surroundings.changed_since(past.setting, past.circumstances):
            starts.setdefault((past.run, past.setting), []).append(past.speeds)
    variances = (start_variance(found) for found in starts.values())
    return tuple(variance for variance in variances if variance is not None)
