"""One setting measured, and saved if asked to: against `none`, in a start of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuirig.engines.base import Command
from tuirig.errors import NotProvenError
from tuirig.events import Emit
from tuirig.measure.prompts import Prompt
from tuirig.records import Arm
from tuirig.rigs.profile import Profile
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs import saving
from tuirig.runs.session import Session


@dataclass(frozen=True)
class Outcome:
    """What came out.

    arm: None if the server did not draft from the start; `not_proven` then has its log lines.
    profile, path: what was saved; None unless it was asked for and drafting is proven.
    """

    command: Command
    arm: Arm | None
    not_proven: NotProvenError | None = None
    profile: Profile | None = None
    path: Path | None = None


async def measure_setting(
    session: Session,
    setting: Setting,
    prompts: Sequence[Prompt],
    *,
    tokens: int,
    temperature: float = 0.0,
    save: bool = False,
    emit: Emit,
    show: Callable[[Command], None],
) -> Outcome:
    """Measure a setting in one server start, and `none` before it when the result is to be saved.

    show: told each command line before it runs. Raises as Session.restart and Session.measure do,
    except for drafting that is not proven: that is an outcome.
    """

    async def arm_of(wanted: Setting) -> Arm:
        await session.stop()
        show(session.command(wanted))
        await session.restart(wanted)
        return await session.measure(prompts, tokens=tokens, temperature=temperature)

    none = await arm_of(NONE) if save and setting != NONE else None
    command = session.command(setting)
    try:
        arm = await arm_of(setting)
    except NotProvenError as error:
        return Outcome(command, None, not_proven=error)
    finally:
        await session.stop()
    if not arm.proof.proven:
        return Outcome(command, arm, not_proven=NotProvenError(f"{setting}: {arm.proof.reason}"))
    if not save:
        return Outcome(command, arm)
    profile = await saving.profile_of(
        session,
        setting,
        arm.replies,
        none.replies if none else (),
        server_build=arm.server_build,
        argv=arm.argv,
        env=command.env,
        memory_mib=arm.memory_mib,
        memory_source=arm.memory_source,
        emit=emit,
    )
    return Outcome(command, arm, profile=profile, path=saving.save(profile))
