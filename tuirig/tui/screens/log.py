"""Log: all of the server's log that is kept in sight, followed while its end is shown."""

from __future__ import annotations

from textual.app import ComposeResult

from tuirig import locations
from tuirig.tui.bindings import bindings_of
from tuirig.tui.followed_log import FollowedLog, LogPane
from tuirig.tui.screens.base import OtherScreen


class LogScreen(OtherScreen):
    """The log of the open rig's server."""

    NAME = "log"
    BINDINGS = bindings_of(NAME)

    def body(self) -> ComposeResult:
        """Only the log."""
        pane = LogPane(locations.log_path(self.view.rig.name), id="whole-log")
        # The keys are the screen's own; the wheel works without the focus.
        pane.log_view.can_focus = False
        yield pane

    def look(self) -> None:
        """A failed start is shown at its line."""
        super().look()
        self.query_one(LogPane).explain_failure(self.view)

    def action_step(self, step: int) -> None:
        """A line up or down; away from the end nothing moves."""
        self._scroll_by(step)

    def action_page(self, step: int) -> None:
        """A page up or down."""
        self._scroll_by(step * max(1, self.query_one(FollowedLog).size.height - 1))

    def action_edge(self, step: int) -> None:
        """To the start, or to the end, which is followed from then on."""
        log = self.query_one(FollowedLog)
        log.scroll_to(y=0 if step < 0 else log.max_scroll_y, animate=False)

    def action_side(self, step: int) -> None:
        """Half a page to the left or right."""
        log = self.query_one(FollowedLog)
        log.scroll_relative(x=step * max(1, log.size.width // 2), animate=False)

    def _scroll_by(self, lines: int) -> None:
        self.query_one(FollowedLog).scroll_relative(y=lines, animate=False)
