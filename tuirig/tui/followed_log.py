"""The server's log as a widget: it follows the file, and can show the line that says why."""

from __future__ import annotations

import asyncio
from pathlib import Path

from rich.highlighter import Highlighter
from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Log, Static

from tuirig.tui.logtail import LogTail
from tuirig.tui.panels.failure import explained
from tuirig.tui.view import View

LOOK_S = 0.25
MOST_LINES = 10_000
#: Lines above the one that says why.
BEFORE = 3


class _Marked(Highlighter):
    """Marks the lines that hold one of some texts."""

    def __init__(self) -> None:
        self.texts: tuple[str, ...] = ()

    def highlight(self, text: Text) -> None:
        """A marked line is reversed as a whole, so that it is seen without colour, too."""
        if any(marked in text.plain for marked in self.texts):
            text.stylize("reverse")


class FollowedLog(Log):
    """Follows a log file while its end is shown; away from the end nothing moves."""

    def __init__(self, path: Path) -> None:
        super().__init__(max_lines=MOST_LINES, highlight=True)
        self.path = path
        #: Nothing is read while it is held, so nothing is lost either.
        self.held = False
        self._marked = _Marked()
        self.highlighter = self._marked
        self._to_show = False

    def on_mount(self) -> None:
        """Follow until the widget goes."""
        self._follow()

    @work(exclusive=True, group="follow")
    async def _follow(self) -> None:
        tail = LogTail(self.path)
        while True:
            if not self.held:
                self._take(*await asyncio.to_thread(tail.read))
            await asyncio.sleep(LOOK_S)

    def _take(self, fresh: bool, text: str) -> None:
        if fresh:
            self.clear()
            self.auto_scroll = True
        if text:
            self.write(text)
        if self._to_show:
            self._show_marked()

    def show_lines_with(self, texts: tuple[str, ...]) -> None:
        """Mark the lines that hold one of these texts, and bring the first of them into sight."""
        self._marked.texts = tuple(text.strip() for text in texts if text.strip())
        self._render_line_cache.clear()
        self._to_show = bool(self._marked.texts)
        self._show_marked()
        self.refresh()

    def _show_marked(self) -> None:
        for number, line in enumerate(self.lines):
            if any(text in line for text in self._marked.texts):
                self._to_show = self.auto_scroll = False
                self.call_after_refresh(
                    self.scroll_to, y=max(0, number - BEFORE), animate=False, force=True
                )
                return


class LogPane(Vertical):
    """The log of a rig's server; above it, after a failure, the cause and what can be done."""

    def __init__(self, path: Path, *, id: str) -> None:
        super().__init__(id=id)
        self.border_title = f"log · {path}"
        self.log_view = FollowedLog(path)
        self._told: tuple[str, tuple[str, ...]] = ("", ())
        self._why = Static(classes="why", markup=False)
        self._why.display = False

    def compose(self) -> ComposeResult:
        """The cause is hidden while there is none."""
        yield self._why
        yield self.log_view

    def explain_failure(self, view: View) -> None:
        """The cause above and the log at its line, as long as the last start is a failed one."""
        told = explained(view, log_is_there=self.log_view.path.exists())
        if told != self._told:
            self._told = told
            why, lines = told
            self._why.update(why)
            self._why.display = bool(why)
            self.log_view.show_lines_with(lines)
