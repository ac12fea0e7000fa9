"""The main screen: the grid as control, live figures, the streaming text, the server's log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer

from tuirig import locations
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import Event, Failed, PlanMade
from tuirig.measure.prompts import PROMPTS, choose
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.board import CellState
from tuirig.runs.catalog import FoundRig, Listing
from tuirig.tui.bridge import Bridge
from tuirig.tui.holder import SessionHolder
from tuirig.tui.jobs import Jobs
from tuirig.tui.keys import TUNE, keys_of
from tuirig.tui.lines import Roles
from tuirig.tui.logtail import LogTail
from tuirig.tui.panels import reply
from tuirig.tui.view import View
from tuirig.tui.widgets import (
    Band,
    Details,
    HeaderLine,
    Now,
    Panel,
    ReplyText,
    RigList,
    SettingGrid,
)

if TYPE_CHECKING:
    from tuirig.files.gguf_model import Model
    from tuirig.rigs.profile import Profile
    from tuirig.runs.session import Kept, Session
    from tuirig.runs.store import Store
    from tuirig.runs.tune_plan import TuneOptions

ARM_PROMPTS = 12
TOKENS = 128
#: The first refresh comes before the first paint is out; imports would hold that up.
AFTER_FIRST_PAINT_S = 0.2
LOG_LOOK_S = 0.25
RATE_HZ = 5.0
RATE_OVER_SSH_HZ = 4.0


class MainScreen(Screen[None]):
    """One rig at a time. Workers run the core; handlers change the view and the widgets."""

    BINDINGS = [
        Binding(
            key.keys,
            key.action,
            key.footer or key.title,
            show=bool(key.footer),
            key_display=key.shown,
            id=key.action,
        )
        for key in keys_of(TUNE)
        if key.action != "command_palette"
    ]
    AUTO_FOCUS = "#grid"
    BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
    HORIZONTAL_BREAKPOINTS = BREAKPOINTS

    def __init__(self, listings: tuple[Listing, ...], first: FoundRig) -> None:
        super().__init__()
        self.listings = listings
        self.view = View(first.rig)
        self.tokens = TOKENS
        self.frozen = False
        over_ssh = bool(os.environ.get("SSH_CONNECTION"))
        self.rate_hz = RATE_OVER_SSH_HZ if over_ssh else RATE_HZ
        self.kept: Kept | None = None
        self.jobs = Jobs(
            failed=self._job_failed, broken=self._job_broken, changed=self._job_changed
        )
        self._found = first
        self._shows = False
        self._models: dict[str, Model] = {}

    def compose(self) -> ComposeResult:
        """Narrow: header, band, grid, text. Wide: rigs and live figures at the grid's sides."""
        # The size is known already: without this the first paint is narrow, the second one wide.
        width = self.app.size.width
        self.set_class(True, [name for least, name in self.BREAKPOINTS if width >= least][-1])
        yield Roles()
        yield HeaderLine(id="header")
        yield Band(id="band")
        with Horizontal(id="middle"):
            yield RigList(self.listings, self.view.rig.name, id="rigs", title="Rigs")
            board = Vertical(id="board")
            board.border_title = "tok/s by drafter format and draft length"
            with board:
                yield SettingGrid(id="grid")
                yield Details(id="details")
            yield Now(id="now", title="Now")
        yield ReplyText(id="reply")
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Show the first rig; look for the card only after the first paint."""
        self.bridge = Bridge(self._arrived, self.rate_hz)
        self.holder = SessionHolder(self._found, self.bridge.emit)
        self._shows = True
        self._show_rig()
        self.set_timer(AFTER_FIRST_PAINT_S, self._open_quietly)

    def look_away(self) -> None:
        """The program ends: show nothing any more. The session is closed by whoever ends it."""
        if self._shows:
            self._shows = False
            self.bridge.close()

    def on_unmount(self) -> None:
        """A job that is still there has nobody to tell."""
        self.look_away()
        self.jobs.cancel()

    @property
    def found(self) -> FoundRig:
        """The open rig and where its file stands."""
        return self._found

    # -- what is shown

    def _show_rig(self) -> None:
        for panel in self.query(Panel):
            panel.view = self.view
        self._show()

    def _arrived(self, events: Sequence[Event]) -> None:
        """A frame of events from the core."""
        now_s = monotonic()
        for event in events:
            self.view.apply(event, now_s)
            if isinstance(event, Failed):
                self._tell(event.message, event.hint)
        self._show()

    def _show(self) -> None:
        """Let every panel repaint what changed."""
        if self.frozen or not self._shows:
            return
        with self.app.batch_update():
            self._look_up_command()
            for panel in self.query(Panel):
                panel.redraw()
            self._title("#reply", reply.title(self.view), reply.amount(self.view))

    def _title(self, selector: str, title: str, subtitle: str) -> None:
        widget = self.query_one(selector)
        if widget.border_title != title:
            widget.border_title = title
        if widget.border_subtitle != subtitle:
            widget.border_subtitle = subtitle

    def _look_up_command(self) -> None:
        details = self.query_one(Details)
        session = self.holder.opened
        if session is None:
            details.refusal = details.command = ""
            return
        self._forecast(self.view.cursor, *([self.view.running] if self.view.running else []))
        details.refusal = session.refusal(self.view.cursor)
        details.command = "" if details.refusal else session.command(self.view.cursor).shell()

    def _forecast(self, *settings: Setting) -> None:
        """How much memory settings need, by the headers of the rig's files."""
        known = self.view.forecasts
        if not self._models or all(str(setting) in known for setting in settings):
            return
        from tuirig.runs.fitting import setting_memory

        reading = None if self.view.running else self.view.reading
        for setting in settings:
            if str(setting) not in known:
                known[str(setting)] = setting_memory(self.view.rig, setting, self._models, reading)

    def _tell(self, message: str, hint: str = "") -> None:
        """A failure as a readable message; the cell and the log keep the evidence."""
        text = f"{message}\nnext: {hint}" if hint else message
        if not self._shows:
            return
        self.notify(text, severity="error", timeout=8, markup=False)

    # -- jobs: what takes time, one at a time

    def _start(self, name: str, work_to_do: Callable[[Session], Awaitable[None]]) -> None:
        """Run a job on the session; a job that still runs is cancelled first."""

        async def job() -> None:
            from tuirig.runs.fitting import rig_models

            if name != "open":
                await self._offer_to_fetch()
            session = await self.holder.session()
            self.view.card = session.card.info
            self._show()
            if not self._models:
                self._models, _ = await asyncio.to_thread(rig_models, session.files)
            self._show()
            await work_to_do(session)

        before = self.jobs.name
        if before not in ("", "open"):
            self.notify(f"{before} was ended for {name}", timeout=4)
        self.jobs.start(name, job)

    def _job_failed(self, error: TuirigError) -> None:
        """Tell what no event has told; what the person declined is no failure."""
        if error.exit_code is ExitCode.INTERRUPTED:
            return
        failure = self.view.failure
        if failure is None or failure.message != error.message:
            evidence = f": {error.evidence[0]}" if error.evidence else ""
            self._tell(f"{error.message}{evidence}", error.hint)

    def _job_broken(self, error: Exception) -> None:
        self.app._handle_exception(error)

    def _job_changed(self) -> None:
        if not self.jobs.name:
            self.view.idle_again()
        self._show()

    async def _ask(self, title: str, body: str, answers: Sequence[tuple[str, str, str]]) -> str:
        """The answer to a question (key, answer, what it does), empty for none."""
        from tuirig.tui.dialogs import Choice

        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.app.push_screen(Choice(title, body, answers), answer.set_result)
        return await answer or ""

    async def _offer_to_fetch(self) -> None:
        """Where files are missing and the rig says where they come from, fetch them if asked to."""
        found = self._found
        if found.built_in or self.holder.opened is not None:
            return
        from tuirig.files import models
        from tuirig.runs.fetching import fetch_rig

        sources = dict(models.model_files(found.rig))
        missing = await asyncio.to_thread(models.missing, found.rig, found.base)
        wanted = [file for file in missing if sources[file.row].has_source]
        if not wanted:
            return
        body = "\n".join(f"{file.row}: {file.file}" for file in wanted)
        title = f"{found.rig.name} needs files that are not here"
        if await self._ask(title, body, [("enter", "fetch", "fetch them")]) == "fetch":
            await fetch_rig(found, self.bridge.emit)

    def _open_quietly(self) -> None:
        """Look for card and program at once where that makes no files."""
        if self.jobs.running or self.holder.opened is not None:
            return  # a key was quicker
        if self._found.built_in:
            from tuirig.demo.catalog import missing_files

            if missing_files(self._found.rig.name):
                return

        self._start("open", self._show_what_is_there)

    async def _show_what_is_there(self, session: Session) -> None:
        """The saved profile of this card and model, and servers that were kept serving."""
        from tuirig.runs.serving import leftovers, saved_for

        self.view.saved = await asyncio.to_thread(saved_for, session)
        saved = self.view.saved
        if saved is not None and self.view.cursor == NONE and not self.view.board.replies(NONE):
            self.view.cursor = saved.setting
        for server in await asyncio.to_thread(leftovers, self.view.rig.name):
            where = f"port {server.port}" if server.port else f"process {server.pid}"
            self.notify(
                f"a server of this rig still runs ({where})\n"
                f"end it with: tuirig stop {server.label}",
                timeout=10,
                markup=False,
            )

    async def _ready(self, session: Session, setting: Setting) -> None:
        if session.server is None or session.server.setting != setting:
            await session.restart(setting)

    # -- keys

    def action_move(self, rows: int, columns: int) -> None:
        """Choose the next cell."""
        if self.view.move(rows, columns):
            self._show()

    def on_setting_grid_chosen(self, message: SettingGrid.Chosen) -> None:
        """A cell was clicked; a double click starts it."""
        self.view.cursor = message.setting
        self._show()
        if message.again:
            self.action_restart()

    def action_restart(self) -> None:
        """Restart the server with the chosen setting."""
        setting = self.view.cursor
        self._start("restart", lambda session: session.restart(setting))

    def action_stream(self) -> None:
        """Stream the test prompt through the running server; start the chosen one if none runs."""
        if self.jobs.name in ("stream", "measure"):
            self.action_cancel()
            return
        prompt, chosen = self.view.prompt, self.view.cursor

        async def stream(session: Session) -> None:
            await self._ready(session, session.server.setting if session.server else chosen)
            await session.stream(prompt, tokens=self.tokens)

        self._start("stream", stream)

    def action_measure(self) -> None:
        """Measure the chosen setting with prompts of every kind, after what is being measured."""
        setting, waiting = self.view.cursor, self.view.waiting
        if self.jobs.name == "measure":
            if setting in waiting:
                waiting.remove(setting)
            elif setting != self.view.measuring:
                waiting.append(setting)
            self._show()
            return
        self.view.waiting = [setting]
        self._start("measure", self._measure_waiting)

    async def _measure_waiting(self, session: Session) -> None:
        """One setting after the other; one that fails does not end the queue."""
        try:
            while self.view.waiting:
                self.view.measuring = setting = self.view.waiting.pop(0)
                try:
                    await self._ready(session, setting)
                    await session.measure(choose(ARM_PROMPTS), tokens=self.tokens)
                except TuirigError as error:
                    self._job_failed(error)
        finally:
            self.view.measuring, self.view.waiting = None, []

    def action_mark(self, letter: str) -> None:
        """Mark the chosen setting as A or B of a comparison; once more takes the mark away."""
        marked, setting = self.view.marked, self.view.cursor
        if marked.get(letter) == setting:
            del marked[letter]
        else:
            self.view.marked = {
                **{key: other for key, other in marked.items() if other != setting},
                letter: setting,
            }
        self._show()

    def action_compare(self) -> None:
        """Compare A with B in server starts of their own."""
        marked = self.view.marked
        if set(marked) != {"a", "b"}:
            self.notify("mark two settings first: a on the one, b on the other", timeout=6)
            return
        self._start("compare", lambda session: self._compare(session, marked["a"], marked["b"]))

    async def _compare(self, session: Session, a: Setting, b: Setting) -> None:
        from tuirig.runs.ab import AbOptions, ab
        from tuirig.runs.store import Store

        options = AbOptions(a=str(a), b=str(b), prompts=choose(ARM_PROMPTS))
        store = await asyncio.to_thread(Store)
        try:
            result = await ab(session, options, store, self.bridge.emit, agree=self._agree)
        finally:
            store.close()
        ratio = "" if result.ratio is None else f" ({result.ratio:.3f}x)"
        self.notify(f"{b} against {a}: {result.verdict}{ratio}. {result.settled}", timeout=10)

    async def _to_resume(self, store: Store, options: TuneOptions) -> int | None:
        """The unfinished tune that these options would go on with, if the person wants that."""
        from tuirig.errors import MissingError
        from tuirig.runs.lifecycle import unfinished
        from tuirig.runs.tune_plan import TuneOptions

        name = self.view.rig.name
        try:
            number, _ = await asyncio.to_thread(
                unfinished, store, "tune", name, TuneOptions, options.__eq__
            )
        except MissingError:
            return None
        answer = await self._ask(
            f"A tune of {name} was ended before it was done",
            f"What run {number} has measured is kept.",
            [("enter", "resume", "go on with it"), ("n", "new", "begin anew")],
        )
        if not answer:
            raise TuirigError("not started", exit_code=ExitCode.INTERRUPTED)
        return number if answer == "resume" else None

    async def _agree(self, plan: PlanMade) -> bool:
        """Show what a run is going to do and how long it takes, before it starts."""
        from tuirig.tui.panels.runs import plan_text

        title = f"{self.jobs.name} on {self.view.rig.name}"
        return await self._ask(title, plan_text(plan), [("enter", "start", "start")]) == "start"

    def action_tune(self) -> None:
        """Find the best setting; the plan is shown first, the profile before it is saved."""
        self._start("tune", self._tune)

    async def _tune(self, session: Session) -> None:
        from tuirig.runs.store import Store
        from tuirig.runs.tune import tune, tuned_profile
        from tuirig.runs.tune_plan import TuneOptions
        from tuirig.tui.panels.runs import found

        emit, profile = self.bridge.emit, None
        store = await asyncio.to_thread(Store)
        try:
            options = TuneOptions(prompts=choose(ARM_PROMPTS), save=False)
            unfinished = await self._to_resume(store, options)
            result = await tune(session, options, store, emit, resume=unfinished, agree=self._agree)
            if result.setting is not None:
                arms = await asyncio.to_thread(store.arms, result.run)
                profile = await tuned_profile(session, options, result, arms, emit)
        finally:
            store.close()
        self.notify(found(result), timeout=15, markup=False)
        if profile is not None:
            self.view.cursor = profile.parsed_setting
            self._show()
            await self._offer_to_save(profile)

    def action_prompt(self, step: int) -> None:
        """Another test prompt."""
        self.view.prompt_index = (self.view.prompt_index + step) % len(PROMPTS)
        self._show()

    def action_stop(self) -> None:
        """Stop the server."""
        self._start("stop", lambda session: session.stop())

    def action_cancel(self) -> None:
        """Close the log, or cancel what runs."""
        if self.has_class("-log"):
            self.action_log()
        elif self.jobs.name:
            self.notify(f"{self.jobs.cancel()} cancelled", timeout=3)
        elif not self.query_one(SettingGrid).has_focus:
            self.query_one(SettingGrid).focus()

    def action_freeze(self) -> None:
        """Freeze the panes; the work goes on."""
        self.frozen = not self.frozen
        self.query_one("#board").border_subtitle = "frozen · f goes on" if self.frozen else ""
        self._show()

    @work(exclusive=True, group="log")
    async def action_log(self) -> None:
        """Open or close the server's log; it follows the file while it is open."""
        from textual.widgets import Log

        if self.has_class("-log"):
            self.remove_class("-log")
            self.query_one(SettingGrid).focus()
            await self.query_one(Log).remove()
            return
        log = Log(id="log", max_lines=2000)
        path = locations.log_path(self.view.rig.name)
        log.border_title = f"log · {path}"
        await self.mount(log, before=self.query_one(Footer))
        self.add_class("-log")
        log.focus()
        tail = LogTail(path)
        while log.is_attached and path == locations.log_path(self.view.rig.name):
            fresh, text = await asyncio.to_thread(tail.read)
            if fresh:
                log.clear()
            if text and not self.frozen:
                log.write(text)
            await asyncio.sleep(LOG_LOOK_S)

    def action_keys(self) -> None:
        """Help."""
        from tuirig.tui.dialogs import KeyHelp

        self.app.push_screen(KeyHelp())

    @work(exclusive=True, group="copy")
    async def action_copy_command(self) -> None:
        """Copy the command line of the chosen setting."""
        from tuirig.tui.clipboard import copy_through_tmux

        command = self.query_one(Details).command
        if not command:
            self.notify("no command line yet: the rig is not open", timeout=3)
            return
        self.app.copy_to_clipboard(command)
        through = "tmux and the terminal" if await copy_through_tmux(command) else "the terminal"
        self.notify(f"command line copied through {through}", timeout=3)

    # -- rigs

    def action_rigs(self) -> None:
        """To the list of rigs, or the list as a dialog where there is no room for it."""
        rigs = self.query_one("#rigs", RigList)
        if rigs.size.width:
            rigs.focus()
        else:
            from tuirig.tui.dialogs import RigPicker

            self.app.push_screen(RigPicker(self.listings, self.view), self._picked)

    def _picked(self, listing: Listing | None) -> None:
        if listing is not None:
            self._choose_rig(listing)

    def on_rig_list_chosen(self, message: RigList.Chosen) -> None:
        """A rig of the list was chosen."""
        self._choose_rig(message.listing)

    @work(exclusive=True, group="rig")
    async def _choose_rig(self, listing: Listing) -> None:
        self.query_one(SettingGrid).focus()
        if listing.error is not None or listing.found is None:
            self._tell(listing.error.message if listing.error else "no such rig")
            return
        if listing.name == self.view.rig.name:
            return
        if self.view.running is not None:
            answer = await self._ask(
                f"{self.view.server.setting} is running on {self.view.rig.name}",
                "",
                [("enter", "switch", f"stop it and open {listing.name}")],
            )
            if answer != "switch":
                return
        await self.close_session()
        if self.has_class("-log"):
            self.action_log()
        self._found = listing.found
        self.view = View(listing.found.rig)
        self._models = {}
        self.holder = SessionHolder(listing.found, self.bridge.emit)
        self._show_rig()
        self._open_quietly()

    async def close_session(self) -> None:
        """Cancel what runs, stop the server, let the card go."""
        await self.jobs.end()
        await self.holder.close()

    # -- save and leave

    def action_save(self) -> None:
        """Save the chosen setting as the profile of this card and model."""
        setting = self.view.cursor
        if self.view.board.cell(setting).state is not CellState.MEASURED:
            self.notify(f"{setting} is not measured yet: Space or m measures it", timeout=6)
            return
        if self.jobs.name:
            self.notify(f"wait for {self.jobs.name}, or cancel it with Esc", timeout=3)
            return
        self._start("save", lambda session: self._save(session, setting))

    async def _save(self, session: Session, setting: Setting) -> None:
        from tuirig.runs import saving

        replies = self.view.board.replies(setting)
        server = session.server
        same = server is not None and server.setting == setting
        command = server.command if server is not None and same else session.command(setting)
        reading = replies[-1].reading_after
        profile = await saving.profile_of(
            session,
            setting,
            replies,
            self.view.board.replies(NONE),
            server_build=session.engine.build,
            argv=command.argv,
            env=command.env,
            memory_mib=reading.process_memory_mib if reading else None,
            memory_source=reading.process_memory_source if reading else "",
            emit=self.bridge.emit,
        )
        await self._offer_to_save(profile)

    async def _offer_to_save(self, profile: Profile) -> None:
        """Show what saving would write, and write it if asked to."""
        from tuirig.runs import saving
        from tuirig.runs.serving import Saved

        before = saving.saved_profile(profile)
        body = saving.preview(profile, before)
        answer = await self._ask(
            f"Save {profile.setting} as the profile of this card and model",
            f"{saving.profile_path(profile)}\n\n{body}",
            [("enter", "save", "save"), ("s", "save", "save")],
        )
        if answer == "save":
            path = await asyncio.to_thread(saving.save, profile)
            self.view.saved = Saved(profile)
            self.notify(f"saved: {path}", timeout=6, markup=False)

    @work(exclusive=True, group="leave")
    async def action_leave(self) -> None:
        """Quit; ask when a server is running."""
        if self.view.running is not None:
            answer = await self._ask(
                f"{self.view.server.setting} is running at {self.view.server.url}",
                "",
                [("s", "stop", "stop it and quit"), ("k", "keep", "keep serving and quit")],
            )
            if not answer:
                return
            if answer == "keep":
                await self.jobs.end()
                session = await self.holder.session()
                try:
                    self.kept = await session.keep_serving()
                except TuirigError as error:
                    self._tell(error.message, error.hint)
                    return
        await self.close_session()
        self.app.exit(return_code=0)
