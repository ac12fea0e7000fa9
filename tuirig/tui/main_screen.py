"""The main screen: the grid as control, live figures, the streaming text, the server's log."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, cast

from textual import work
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Footer

from tuirig import locations
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import Event, Failed, ServerState
from tuirig.files.layout import Layout
from tuirig.measure.prompts import PROMPTS
from tuirig.rigs.schema import TARGET
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.board import CellState
from tuirig.runs.catalog import FoundRig, Listing, find_rig
from tuirig.tui import figures, workflows
from tuirig.tui.bindings import bindings_of
from tuirig.tui.bridge import Bridge
from tuirig.tui.holder import SessionHolder
from tuirig.tui.jobs import Jobs
from tuirig.tui.keys import TUNE
from tuirig.tui.lines import Roles
from tuirig.tui.panels import reply
from tuirig.tui.view import View
from tuirig.tui.widgets import (
    FREQUENT,
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
    from tuirig.runs.session import Kept, Session
    from tuirig.tui.app import TuirigApp
    from tuirig.tui.followed_log import LogPane
    from tuirig.tui.screens.base import OtherScreen

#: What a rig's file decides, so that it is read again before if it was edited.
_BY_THE_RIG = ("restart", "stream", "measure", "compare", "tune")
ARM_PROMPTS = 12
TOKENS = 128
#: The first refresh comes before the first paint is out; imports would hold that up.
AFTER_FIRST_PAINT_S = 0.2
#: What has run longer is not ended by one key.
LONG_S = 60.0
RATE_HZ = 5.0
RATE_OVER_SSH_HZ = 4.0


def running_words(view: View) -> str:
    """What the server runs, for a sentence that `none` would turn around."""
    return "a server without a drafter" if view.running == NONE else view.server.setting


class MainScreen(Screen[None]):
    """One rig at a time. Workers run the core; handlers change the view and the widgets."""

    BINDINGS = bindings_of(TUNE)
    AUTO_FOCUS = "#grid"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]

    def __init__(self, listings: tuple[Listing, ...], first: FoundRig) -> None:
        super().__init__()
        self.listings = listings
        self.view = View(first.rig)
        self.tokens = TOKENS
        self.frozen = False
        over_ssh = bool(os.environ.get("SSH_CONNECTION"))
        self.rate_hz = RATE_OVER_SSH_HZ if over_ssh else RATE_HZ
        self.kept: Kept | None = None
        self.jobs = Jobs(failed=self.tell_error, broken=self._job_broken, changed=self._job_changed)
        self.found = first
        self._shows = False
        self._opens_log = self._wants_log = False
        self._views = {first.rig.name: self.view}
        self._models: dict[str, Model] = {}
        self._rest_mib: float | None = None  #: beside a server's buffers, as seen on this card

    def compose(self) -> ComposeResult:
        """Narrow: header, band, grid, text. Wide: rigs and live figures at the grid's sides."""
        # The size is known already: without this the first paint is narrow, the second one wide.
        width = self.app.size.width
        fit = [name for least, name in self.HORIZONTAL_BREAKPOINTS or () if width >= least]
        self.set_class(True, fit[-1])
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
        self.holder = SessionHolder(self.found, self.bridge.emit)
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
                self._tell_failure(event)
        kinds = frozenset(map(type, events))
        self._show(kinds if kinds <= FREQUENT else None)

    def _tell_failure(self, failure: Failed) -> None:
        """A server that could not be had is explained by its log; else a message tells it."""
        server = self.view.server
        ours = server.state is ServerState.FAILED and server.setting == failure.setting
        if ours and self.jobs.latest in ("restart", "stream") and not self.beside:
            if not self.has_class("-log"):
                self.action_log(by_hand=False)
            return
        self.tell(failure.message, failure.hint)

    @property
    def beside(self) -> OtherScreen | None:
        """The screen that is shown in the place of this one, if any."""
        from tuirig.tui.screens.base import OtherScreen

        return next((one for one in self.app.screen_stack if isinstance(one, OtherScreen)), None)

    def _show(self, kinds: frozenset[type[Event]] | None = None) -> None:
        """Let every panel that is seen repaint what changed.

        kinds: of the frequent events, where nothing else has happened.
        """
        if not self._shows:
            return
        beside = self.beside if len(self.app.screen_stack) > 1 else None
        if beside is not None:
            beside.look()
        elif not self.frozen:
            with self.app.batch_update():
                if kinds is None:
                    self._look_up_command()
                for panel in self.query(Panel):
                    if kinds is None or panel.follows & kinds:
                        panel.redraw()
                self._title("#reply", reply.title(self.view), reply.amount(self.view))
                if kinds is None and self.has_class("-log"):
                    self._log_pane().explain_failure(self.view)

    def on_screen_resume(self) -> None:
        """Show what came while another screen was shown."""
        if self._shows:
            self._show()

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
                known[str(setting)] = setting_memory(
                    self.view.rig, setting, self._models, reading, self._rest_mib
                )

    def tell(self, message: str, hint: str = "") -> None:
        """A failure as a readable message; the cell and the log keep the evidence."""
        text = f"{message}\nnext: {hint}" if hint else message
        if not self._shows:
            return
        self.notify(text, severity="error", timeout=8, markup=False)

    # -- jobs: what takes time, one at a time

    def _start(self, name: str, work_to_do: Callable[[Session], Awaitable[None]]) -> None:
        """Run a job on the session; one that still runs is ended first, a long one after asking.

        A rig file that was edited is read again before.
        """
        if name in _BY_THE_RIG and self._is_edited():
            self._read_again_then(name, work_to_do)
        elif self._runs_long():
            self._end_then(name, work_to_do)
        else:
            self._start_now(name, work_to_do)

    def _runs_long(self) -> bool:
        running = self.jobs.name not in ("", "open") and not self.jobs.ending
        return running and self.jobs.seconds >= LONG_S

    @work(exclusive=True, group="ask")
    async def _end_then(self, name: str, work_to_do: Callable[[Session], Awaitable[None]]) -> None:
        if await self._may_end(f"end it for {name}"):
            self._start_now(name, work_to_do)

    async def _may_end(self, words: str) -> bool:
        """Whether the person lets go of what has run for long."""
        name, lost = self.jobs.name, "What it has measured so far stays in the grid."
        if name in ("tune", "compare"):
            lost = "The starts that are done are kept."
        if self.view.waiting:
            lost += f"\n{len(self.view.waiting)} more wait behind it."
        title = f"{name} has run for {figures.clock(self.jobs.seconds)}"
        return bool(await self.ask(title, lost, [("enter", "end", words)]))

    def _start_now(self, name: str, work_to_do: Callable[[Session], Awaitable[None]]) -> None:

        async def job() -> None:
            from tuirig.runs.fitting import rig_models
            from tuirig.runs.rest import rest_on

            if name != "open":
                await self._look_for_files(all_rows=name in ("tune", "compare"))
            session = await self.holder.session()
            self.view.card = session.card.info
            self._show()
            if not self._models:
                self._rest_mib = await asyncio.to_thread(rest_on, session.card.info)
                self._models, _ = await asyncio.to_thread(rig_models, session.files)
            self._show()
            await work_to_do(session)

        before = self.jobs.name
        if before not in ("", "open", name) and not self.jobs.ending:
            self.notify(f"{before} was ended for {name}", timeout=4)
        self.jobs.start(name, job)

    def tell_error(self, error: TuirigError) -> None:
        """Tell what no event has told; what the person declined is no failure."""
        if error.exit_code is ExitCode.INTERRUPTED:
            return
        self.bridge.flush()  # its event may still wait for its frame
        failure = self.view.failure
        if failure is None or failure.message != error.message:
            evidence = f": {error.evidence[0]}" if error.evidence else ""
            self.tell(f"{error.message}{evidence}", error.hint)

    def _job_broken(self, error: Exception) -> None:
        self.app._handle_exception(error)

    def _job_changed(self) -> None:
        if not self.jobs.name:
            self.view.idle_again()
        self._show()

    async def ask(self, title: str, body: str, answers: Sequence[tuple[str, str, str]]) -> str:
        """The answer to a question (key, answer, what it does), empty for none."""
        from tuirig.tui.dialogs import Choice

        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.app.push_screen(Choice(title, body, answers), answer.set_result)
        return await answer or ""

    async def _look_for_files(self, *, all_rows: bool) -> None:
        """Where files are missing and the rig says where they come from, fetch them if asked to.

        all_rows: not only what the chosen cell needs.
        """
        session, found = self.holder.opened, self.found
        if found.built_in or (session is not None and not session.missing):
            return
        from tuirig.files import models
        from tuirig.runs.fetching import fetch_rig
        from tuirig.runs.opening import look_again

        sources = dict(models.model_files(found.rig))
        missing = await asyncio.to_thread(models.missing, found.rig, found.base)
        needed = sources if all_rows else (TARGET, self.view.cursor.drafter)
        wanted = [file for file in missing if file.row in needed and sources[file.row].has_source]
        if wanted:
            body = "\n".join(f"{file.row}: {file.file}" for file in wanted)
            title = f"{found.rig.name} needs files that are not here"
            if await self.ask(title, body, [("enter", "fetch", "fetch them")]) == "fetch":
                rows = [file.row for file in wanted]
                await fetch_rig(found, self.bridge.emit, rows=rows)
        if session is not None:
            await look_again(session, found, self.bridge.emit)
            self._models = {}

    def _open_quietly(self) -> None:
        """Look for card and program at once where that makes no files."""
        if self._opens_log and not self.has_class("-log"):
            self.action_log()
        self._opens_log = False
        if self.jobs.running or self.holder.opened is not None:
            return  # a key was quicker
        if self.found.built_in:
            from tuirig.demo.catalog import missing_files

            if missing_files(self.found.rig.name):
                return

        self._start("open", self._show_what_is_there)

    async def _show_what_is_there(self, session: Session) -> None:
        """What was measured before, the saved profile, and servers that were kept serving."""
        from tuirig.runs.earlier import earlier_replies
        from tuirig.runs.serving import leftovers, saved_for

        self.view.saved = await asyncio.to_thread(saved_for, session)
        self.view.board.begin_with(await asyncio.to_thread(earlier_replies, session))
        saved = self.view.saved
        untouched = self.view.board.earlier(NONE) or not self.view.board.replies(NONE)
        if saved is not None and self.view.cursor == NONE and untouched:
            self.view.cursor = saved.setting
        for server in await asyncio.to_thread(leftovers, self.view.rig.name):
            self.notify(
                f"a server of this rig still runs ({server.address})\n"
                f"end it with: tuirig stop {server.label}",
                timeout=10,
                markup=False,
            )

    # -- keys

    def action_move(self, rows: int, columns: int) -> None:
        """Choose the next cell."""
        if self.view.move(rows, columns):
            self._show()

    def choose_cell(self, setting: Setting) -> None:
        """Move the cursor to a cell."""
        self.view.cursor = setting
        self._show()

    def on_setting_grid_chosen(self, message: SettingGrid.Chosen) -> None:
        """A cell was clicked; a double click starts it."""
        self.choose_cell(message.setting)
        if message.again:
            self.action_restart()

    def action_select(self) -> None:
        """Begin a selection at the cursor, or give it up."""
        self.view.anchor = None if self.view.anchor is not None else self.view.cursor
        self._show()

    def action_restart(self) -> None:
        """Restart the server with the chosen setting."""
        setting = self.view.cursor
        self._start("restart", lambda session: session.restart(setting))

    def action_stream(self) -> None:
        """Stream the test prompt through the running server; start the chosen one if none runs."""
        if self.jobs.going_on("stream", "measure"):
            self.action_cancel()
            return
        prompt, chosen = self.view.prompt, self.view.cursor

        async def stream(session: Session) -> None:
            await workflows.ready(session, session.server.setting if session.server else chosen)
            await session.stream(prompt, tokens=self.tokens)

        self._start("stream", stream)

    def action_measure(self) -> None:
        """Measure the chosen settings with prompts of every kind, after what is being measured."""
        chosen = self.view.selection or (self.view.cursor,)
        self.view.anchor = None
        if self.jobs.going_on("measure"):
            self._queue(chosen)
            return
        waiting = list(chosen)

        def measure(session: Session) -> Awaitable[None]:
            self.view.waiting = waiting
            return workflows.measure(self, session, waiting, ARM_PROMPTS)

        self._start("measure", measure)
        self._show()

    def _queue(self, chosen: Sequence[Setting]) -> None:
        """Put settings in line; one that waits already, and is chosen alone, leaves it."""
        waiting = self.view.waiting
        if len(chosen) == 1 and chosen[0] in waiting:
            waiting.remove(chosen[0])
        else:
            there = (*waiting, self.view.measuring)
            waiting.extend(setting for setting in chosen if setting not in there)
        self._show()

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
        a, b = marked["a"], marked["b"]
        self._start("compare", lambda session: workflows.compare(self, session, a, b, ARM_PROMPTS))

    def action_tune(self) -> None:
        """Find the best setting."""
        self._start("tune", lambda session: workflows.tune(self, session, ARM_PROMPTS))

    def action_prompt(self, step: int) -> None:
        """Another test prompt."""
        self.view.prompt_index = (self.view.prompt_index + step) % len(PROMPTS)
        self._show()

    def action_stop(self) -> None:
        """Stop the server."""
        self._start("stop", lambda session: session.stop())

    def action_cancel(self) -> None:
        """Close the log, give up a selection, or cancel what runs."""
        if self.has_class("-log"):
            self.action_log()
        elif self.view.anchor is not None:
            self.action_select()
        elif self.jobs.name:
            self._cancel()
        elif not self.query_one(SettingGrid).has_focus:
            self.query_one(SettingGrid).focus()

    @work(exclusive=True, group="ask")
    async def _cancel(self) -> None:
        name = self.jobs.name
        if self._runs_long() and not await self._may_end("end it"):
            return
        if self.jobs.name != name:
            return  # it ended by itself meanwhile
        said = f"{name} cancelled"
        if name == "tune":
            said += "; what it has measured is kept, t goes on"
        if self.view.waiting:
            said += f", and {len(self.view.waiting)} that waited"
        self.jobs.cancel()
        self.notify(said, timeout=3)

    def action_freeze(self) -> None:
        """Freeze the panes; the work goes on."""
        self.frozen = not self.frozen
        self.query_one("#board").border_subtitle = "frozen · f goes on" if self.frozen else ""
        if self.has_class("-log"):
            self._log_pane().log_view.held = self.frozen
        self._show()

    def _log_pane(self) -> LogPane:
        from tuirig.tui.followed_log import LogPane

        return self.query_one("#log", LogPane)

    @work(exclusive=True, group="log")
    async def action_log(self, by_hand: bool = True) -> None:
        """Open or close the server's log; it follows the file while it is open.

        by_hand: a person wants it, at the next start, too.
        """
        from tuirig.tui.followed_log import LogPane

        self._wants_log = by_hand
        if self.has_class("-log"):
            self.remove_class("-log")
            self.query_one(SettingGrid).focus()
            await self._log_pane().remove()
            return
        pane = LogPane(locations.log_path(self.view.rig.name), id="log")
        pane.log_view.held = self.frozen
        pane.explain_failure(self.view)
        await self.mount(pane, before=self.query_one(Footer))
        self.add_class("-log")
        pane.log_view.focus()

    def action_messages(self) -> None:
        """What was told so far."""
        from tuirig.tui.dialogs import Messages

        self.app.push_screen(Messages(cast("TuirigApp", self.app).told))

    def action_keys(self) -> None:
        """Help."""
        from tuirig.tui.dialogs import KeyHelp

        self.app.push_screen(KeyHelp())

    def action_copy_command(self) -> None:
        """Copy the command line of the chosen setting."""
        command = self.query_one(Details).command
        if command:
            self.app.copy_to_clipboard(command)
        else:
            self.notify("no command line yet: the rig is not open", timeout=3)

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
            self.tell(listing.error.message if listing.error else "no such rig")
            return
        if listing.name == self.view.rig.name:
            return
        if self.view.running is not None:
            answer = await self.ask(
                f"{running_words(self.view)} is running on {self.view.rig.name}",
                "",
                [("enter", "switch", f"stop it and open {listing.name}")],
            )
            if answer != "switch":
                return
        await self._open(listing.found)
        self._open_quietly()

    async def _open(self, found: FoundRig) -> None:
        """Close the session and show another rig, or this one anew."""
        await self.close_session()
        self.bridge.flush()  # what is left is about the rig that was open
        if self.has_class("-log"):
            self.action_log()
        self.found = found
        self.view = self._views.setdefault(found.rig.name, View(found.rig))
        self._models = {}
        self.holder = SessionHolder(found, self.bridge.emit)
        self._show_rig()

    def _is_edited(self) -> bool:
        """Whether the rig's file says something else by now."""
        if self.found.path is None or not self.found.path.is_file():
            return False
        try:
            return find_rig(str(self.found.path)).rig != self.found.rig
        except TuirigError:
            return True  # reading it again tells why

    @work(exclusive=True, group="rig")
    async def _read_again_then(
        self, name: str, work_to_do: Callable[[Session], Awaitable[None]]
    ) -> None:
        try:
            found = find_rig(str(self.found.path))
        except TuirigError as error:
            self.tell(error.message, error.hint)
            return
        if self._runs_long() and not await self._may_end(f"end it for {name}"):
            return
        cursor = self.view.cursor
        del self._views[self.found.rig.name]  # its figures are of another command line
        await self._open(found)
        if cursor in found.rig.settings():
            self.view.cursor = cursor
        self.notify(f"{found.path} was edited: read again", timeout=5, markup=False)
        self._start_now(name, work_to_do)

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
        earlier = self.view.board.earlier(setting)
        if earlier is not None:
            self.notify(f"{setting} is of run {earlier.run}: m measures it now", timeout=6)
            return
        if self.jobs.name:
            self.notify(f"wait for {self.jobs.name}, or cancel it with Esc", timeout=3)
            return
        self._start("save", lambda session: workflows.save(self, session, setting))

    def lay_out(self, layout: Layout) -> None:
        """Begin as the screen was left."""
        ids = [prompt.id for prompt in PROMPTS]
        if layout.prompt in ids:
            self.view.prompt_index = ids.index(layout.prompt)
        self._opens_log = layout.log

    @property
    def layout_now(self) -> Layout:
        """How the screen is left."""
        return Layout(
            rig=self.view.rig.name,
            log=self._wants_log and self.has_class("-log"),
            prompt=self.view.prompt.id,
        )

    async def keep_serving(self) -> bool:
        """Let a running server go on without this program; False, told, where that fails."""
        if self.view.running is None or self.jobs.name in ("tune", "compare"):
            return False  # a server that a run started is nobody's choice
        await self.jobs.end()
        session = await self.holder.session()
        try:
            self.kept = await session.keep_serving()
        except TuirigError as error:
            self.tell(error.message, error.hint)
            return False
        return True

    @work(exclusive=True, group="leave")
    async def action_leave(self) -> None:
        """Quit; ask when a server is running."""
        if self.view.running is not None:
            answer = await self.ask(
                f"{running_words(self.view)} is running at {self.view.server.url}",
                "",
                [("s", "stop", "stop it and quit"), ("k", "keep", "keep serving and quit")],
            )
            if not answer:
                return
            if answer == "keep" and not await self.keep_serving():
                return
        await self.close_session()
        self.app.exit(return_code=0)
