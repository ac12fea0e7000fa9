"""What the screens beside the grid have in common: head, footer, keys, and the view to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.screen import Screen
from textual.widgets import Footer

from tuirig.tui.lines import Roles
from tuirig.tui.panels import status
from tuirig.tui.screens.parts import Scrolling
from tuirig.tui.spans import Line
from tuirig.tui.view import View
from tuirig.tui.widgets import HeaderLine, Panel

if TYPE_CHECKING:
    from tuirig.tui.app import TuirigApp
    from tuirig.tui.main_screen import MainScreen


class Doing(Panel):
    """What the grid's screen is working on meanwhile."""

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """One line, without the key that cancels: it is the grid's."""
        return [status.busy(view)[:1]]


class OtherScreen(Screen[None]):
    """Subclasses compose their body in `body`. NAME: as in the table of keys."""

    NAME: ClassVar = ""
    AUTO_FOCUS = ""

    @property
    def main(self) -> MainScreen:
        """The grid's screen, which goes on below."""
        return cast("TuirigApp", self.app).main

    @property
    def view(self) -> View:
        """What is known of the open rig."""
        return self.main.view

    def compose(self) -> ComposeResult:
        """Rig and server, what runs, the body, the footer."""
        yield Roles()
        yield HeaderLine(id="header")
        yield Doing(id="doing")
        yield from self.body()
        yield Footer(show_command_palette=False, compact=True)

    def body(self) -> ComposeResult:
        """What the screen is for."""
        raise NotImplementedError

    def on_mount(self) -> None:
        """The grid's screen calls `look` when something changed."""
        self.look()

    def look(self) -> None:
        """Show what the view says now."""
        for panel in self.query(Panel):
            panel.view = self.view
            panel.redraw()

    def scrolled(self) -> Scrolling:
        """The part that the keys move in."""
        return self.query_one(".scrolled", Scrolling)

    def action_step(self, step: int) -> None:
        """A line up or down."""
        self.scrolled().go_by(step)

    def action_page(self, step: int) -> None:
        """A page up or down."""
        scrolled = self.scrolled()
        scrolled.go_by(step * max(1, scrolled.room - 1))

    def action_edge(self, step: int) -> None:
        """To the start or the end."""
        scrolled = self.scrolled()
        scrolled.go_by(step * scrolled.length)

    def action_keys(self) -> None:
        """Help."""
        from tuirig.tui.dialogs import KeyHelp

        self.app.push_screen(KeyHelp(self.NAME))

    def action_messages(self) -> None:
        """The messages so far, whichever screen they came up on."""
        self.main.action_messages()

    def action_leave(self) -> None:
        """Quit as the grid's screen does."""
        self.main.action_leave()
