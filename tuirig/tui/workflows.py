"""What the screen does with a session when it takes several steps: measure, compare, tune, save."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING

from tuirig.errors import ExitCode, TuirigError
from tuirig.measure.prompts import choose
from tuirig.rigs.settings import NONE, Setting
from tuirig.tui.panels.runs import duration

#: What takes longer is told before.
WORTH_TELLING_S = 10.0

if TYPE_CHECKING:
    from tuirig.events import PlanMade
    from tuirig.rigs.profile import Profile
    from tuirig.runs.session import Session
    from tuirig.runs.store import Store
    from tuirig.runs.tune_plan import TuneOptions
    from tuirig.tui.main_screen import MainScreen


async def ready(session: Session, setting: Setting) -> None:
    """A server with the setting, started if it is not there."""
    if session.server is None or session.server.setting != setting:
        await session.restart(setting)


async def measure(
    screen: MainScreen, session: Session, waiting: list[Setting], prompts: int
) -> None:
    """One setting after the other; one that fails does not end the queue."""
    view = screen.view
    try:
        if view.measure_s is None:
            await _estimate(screen, session, prompts)
        while waiting:
            view.measuring = setting = waiting.pop(0)
            began_s = monotonic()
            try:
                await ready(session, setting)
                await session.measure(choose(prompts), tokens=screen.tokens)
            except TuirigError as error:
                screen.tell_error(error)
            view.measure_s = monotonic() - began_s
    finally:
        view.measuring = None
        if view.waiting is waiting:  # else somebody has begun another queue
            view.waiting = []


async def _estimate(screen: MainScreen, session: Session, prompts: int) -> None:
    """Tell how long the first one will take, where that is long."""
    from tuirig.runs.pace import rig_pace

    pace = await rig_pace(session, prompts * screen.tokens)
    screen.view.measure_s = pace.start_s
    if pace.start_s >= WORTH_TELLING_S:
        screen.notify(
            f"{prompts} prompts take about {duration(pace.start_s)} ({pace.basis})", timeout=5
        )


async def compare(
    screen: MainScreen, session: Session, a: Setting, b: Setting, prompts: int
) -> None:
    """A against B in server starts of their own, after the plan was agreed to."""
    from tuirig.runs.ab import AbOptions, ab
    from tuirig.runs.store import Store

    options = AbOptions(a=str(a), b=str(b), prompts=choose(prompts))
    store = await asyncio.to_thread(Store)
    try:
        result = await ab(
            session, options, store, screen.bridge.emit, agree=lambda plan: _agree(screen, plan)
        )
    finally:
        store.close()
    ratio = "" if result.ratio is None else f" ({result.ratio:.3f}x)"
    verdict = "no difference seen" if result.verdict == "level" else str(result.verdict)
    screen.notify(f"{b} against {a}: {verdict}{ratio}. {result.settled}", timeout=10)


async def tune(screen: MainScreen, session: Session, prompts: int) -> None:
    """Find the best setting; the plan is shown first, the profile before it is saved."""
    from tuirig.runs.store import Store
    from tuirig.runs.tune import tune, tuned_profile
    from tuirig.runs.tune_plan import TuneOptions
    from tuirig.tui.panels.runs import found

    emit, profile = screen.bridge.emit, None
    store = await asyncio.to_thread(Store)
    try:
        options = TuneOptions(prompts=choose(prompts), save=False)
        unfinished = await _to_resume(screen, store, options)
        result = await tune(
            session,
            options,
            store,
            emit,
            resume=unfinished,
            agree=lambda plan: _agree(screen, plan),
        )
        if result.setting is not None:
            arms = await asyncio.to_thread(store.arms, result.run)
            profile = await tuned_profile(session, options, result, arms, emit)
    finally:
        store.close()
    if profile is not None:
        screen.choose_cell(profile.parsed_setting)
        await _offer_to_save(screen, profile, found(result))
    screen.notify(found(result), timeout=15, markup=False)


async def _to_resume(screen: MainScreen, store: Store, options: TuneOptions) -> int | None:
    """The unfinished tune that these options would go on with, if the person wants that."""
    from tuirig.errors import MissingError
    from tuirig.runs.lifecycle import unfinished
    from tuirig.runs.tune_plan import TuneOptions

    name = screen.view.rig.name
    try:
        number, _ = await asyncio.to_thread(
            unfinished, store, "tune", name, TuneOptions, options.__eq__
        )
    except MissingError:
        return None
    answer = await screen.ask(
        f"A tune of {name} was ended before it was done",
        f"What run {number} has measured is kept.",
        [("enter", "resume", "go on with it"), ("n", "new", "begin anew")],
    )
    if not answer:
        raise TuirigError("not started", exit_code=ExitCode.INTERRUPTED)
    return number if answer == "resume" else None


async def _agree(screen: MainScreen, plan: PlanMade) -> bool:
    """Show what a run is going to do and how long it takes, before it starts."""
    from tuirig.tui.panels.runs import plan_text

    title = f"{screen.jobs.name} on {screen.view.rig.name}"
    return await screen.ask(title, plan_text(plan), [("enter", "start", "start")]) == "start"


async def save(screen: MainScreen, session: Session, setting: Setting) -> None:
    """The measured setting as the profile of this card and model, after it was shown."""
    from tuirig.runs import saving

    board = screen.view.board
    replies = board.replies(setting)
    server = session.server
    same = server is not None and server.setting == setting
    command = server.command if server is not None and same else session.command(setting)
    reading = replies[-1].reading_after
    profile = await saving.profile_of(
        session,
        setting,
        replies,
        () if board.earlier(NONE) else board.replies(NONE),
        server_build=session.engine.build,
        argv=command.argv,
        env=command.env,
        memory_mib=reading.process_memory_mib if reading else None,
        memory_source=reading.process_memory_source if reading else "",
        emit=screen.bridge.emit,
    )
    await _offer_to_save(screen, profile)


async def _offer_to_save(screen: MainScreen, profile: Profile, why: str = "") -> None:
    """Show what saving would write, and write it if asked to. why: what was found."""
    from tuirig.runs import saving
    from tuirig.runs.serving import Saved

    before = saving.saved_profile(profile)
    body = saving.preview(profile, before)
    answer = await screen.ask(
        f"Save {profile.setting} as the profile of this card and model",
        f"{why}\n\n{saving.profile_path(profile)}\n\n{body}".lstrip(),
        [("enter", "save", "save"), ("s", "save", "save")],
    )
    if answer == "save":
        path = await asyncio.to_thread(saving.save, profile)
        screen.view.saved = Saved(profile)
        screen.notify(f"saved: {path}", timeout=6, markup=False)
