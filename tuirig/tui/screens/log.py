"""Log: all of the server's log that is kept in sight, followed while its end is shown."""

from __future__ import annotations

import asyncio

from textual import work
from textual.app import ComposeResult
from textual.widgets import Log

from tuirig import locations
from tuirig.tui.logtail import LogTail
from tuirig.tui.screens.base import OtherScreen, bindings_of

LOOK_S = 0.25
MOST_LINES = 10_000


class LogScreen(OtherScreen):
    """The log of the open rig's server."""

    NAME = "log"
    BINDINGS = bindings_of(NAME)

    def body(self) -> ComposeResult:
        """Only the log."""
        log = Log(id="whole-log", max_lines=MOST_LINES)
        # The keys are the screen's own; the wheel works without the focus.
        log.can_focus = False
        log.border_title = str(locations.log_path(self.view.rig.name))
        log.border_subtitle = "no log yet: Enter in the grid starts a server"
        yield log

    def on_mount(self) -> None:
        """Follow the file until the screen is closed."""
        super().on_mount()
        self._follow()

    @work(exclusive=True, group="log")
    async def _follow(self) -> None:
        log, tail = self.query_one(Log), LogTail(locations.log_path(self.view.rig.name))
        while True:
            fresh, text = await asyncio.to_thread(tail.read)
            if fresh:
                log.clear()
            if text:
                log.write(text)
                log.border_subtitle = ""
            await asyncio.sleep(LOOK_S)

    def action_step(self, step: int) -> None:
        """A line up or down; away from the end nothing moves."""
        self._scroll_by(step)

    def action_page(self, step: int) -> None:
        """A page up or down."""
        self._scroll_by(step * max(1, self.query_one(Log).size.height - 1))

    def action_edge(self, step: int) -> None:
        """To the start, or to the end, which is followed from then on."""
        log = self.query_one(Log)
        log.scroll_to(y=0 if step < 0 else log.max_scroll_y, animate=False)

    def _scroll_by(self, lines: int) -> None:
        self.query_one(Log).scroll_relative(y=lines, animate=False)
