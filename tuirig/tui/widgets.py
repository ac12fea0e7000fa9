"""The widgets of the main screen: each shows one panel of the view."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.geometry import Size
from textual.message import Message

from tuirig.events import Event, ReadingTaken, TextArrived
from tuirig.rigs.settings import Setting
from tuirig.runs.catalog import Listing
from tuirig.tui.lines import Lines
from tuirig.tui.panels import grid, reply, status
from tuirig.tui.spans import Line, Span, line
from tuirig.tui.view import View

#: Events that come many times a second, or while nobody does anything.
FREQUENT: frozenset[type[Event]] = frozenset((TextArrived, ReadingTaken))


class Panel(Lines):
    """Lines that show a view. follows: the frequent events that it shows."""

    follows: frozenset[type[Event]] = frozenset()

    def __init__(self, *, id: str, title: str = "") -> None:
        super().__init__(id=id)
        self.border_title = title
        self.view: View | None = None

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The panel's lines, nothing while there is no rig."""
        return self.panel(self.view, width, height) if self.view else ()

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """The content for a view."""
        raise NotImplementedError


class HeaderLine(Panel):
    """Rig, target, server state, card."""

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """One line."""
        return [status.header(view, width)]


class Band(Panel):
    """The live figures of the narrow screen."""

    follows = FREQUENT

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """Two lines."""
        return status.band(view, width)


class Now(Panel):
    """The live figures of the wide screen."""

    follows = FREQUENT

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """As many lines as fit."""
        return status.now(view, width, height)


class ReplyText(Panel):
    """The streaming text, its end in sight."""

    follows = frozenset((TextArrived,))

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """The last rows of the text."""
        return reply.text(view, width, height)


class Details(Panel):
    """What is known of the chosen cell, and its command line."""

    refusal = ""
    command = ""

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """Words first, then as much of the command line as fits."""
        return reply.details(view, self.refusal, self.command, width, height)


class SettingGrid(Panel, can_focus=True):
    """The grid as the control: it has the keyboard, a click chooses a cell."""

    ALLOW_SELECT = False

    class Chosen(Message):
        """A cell was clicked."""

        def __init__(self, setting: Setting, again: bool) -> None:
            super().__init__()
            self.setting = setting
            self.again = again

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._drawn: tuple[object, list[Line]] | None = None

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """Head and rows; the last ones while nothing has changed, since a frame asks every time."""
        marked = tuple(view.marked.items())
        board = view.board.cells()
        marks = (marked, tuple(view.waiting), view.saved)
        state = (width, height, board, view.cursor, view.running, marks, view.predicted)
        if self._drawn is None or self._drawn[0] != state:
            self._drawn = (state, grid.grid(view, width, height))
        return self._drawn[1]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Two lines a row where a line is left for the details, else one."""
        if self.view is None:
            return 1
        rows = len(self.view.rows)
        room = container.height - 1
        return max(2, 1 + 2 * rows if 1 + 2 * rows <= room else min(1 + rows, room))

    def on_click(self, event: events.Click) -> None:
        """Choose the cell under the mouse; a double click starts it."""
        if self.view is None:
            return
        offset = event.get_content_offset(self)
        if offset is None:
            return
        part = grid.frame(self.view, *self.content_size)
        row = part.first_row + (offset.y - 1) // (2 if part.tall else 1)
        column = part.first_column + (offset.x - part.label) // part.cell
        if offset.y < 1 or offset.x < part.label:
            return
        if row < len(self.view.rows) and column < len(self.view.columns):
            setting = self.view.at(row, column)
            if setting is not None:
                self.post_message(self.Chosen(setting, again=event.chain > 1))


class RigList(Panel, can_focus=True):
    """The rigs that can be chosen; the one of the view is marked as open."""

    ALLOW_SELECT = False

    class Chosen(Message):
        """A rig was chosen."""

        def __init__(self, listing: Listing) -> None:
            super().__init__()
            self.listing = listing

    BINDINGS = [
        ("up,k", "step(-1)", "Up"),
        ("down,j", "step(1)", "Down"),
        ("enter,space", "choose", "Choose"),
    ]

    def __init__(
        self, listings: tuple[Listing, ...], current: str, *, id: str, title: str = ""
    ) -> None:
        super().__init__(id=id, title=title)
        self.listings = listings
        names = [listing.name for listing in listings]
        self.cursor = names.index(current) if current in names else 0

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """One line a rig: mark, name, state or error."""
        first = max(0, self.cursor - height + 1)
        return [self._line(view, index) for index in range(first, len(self.listings))]

    def _line(self, view: View, index: int) -> Line:
        listing = self.listings[index]
        open_here = listing.name == view.rig.name
        chosen = self.has_focus and index == self.cursor
        name = Span(
            f"{'▸' if open_here else ' '} {listing.name}",
            " ".join(filter(None, ("title" if open_here else "", "cursor" if chosen else ""))),
        )
        if listing.error:
            return line(name, Span("  ! bad file", "bad"))
        if open_here:
            mark, role = status.MARKS[view.server.state]
            return line(name, "  ", Span(mark, role))
        return line(name)

    def action_step(self, step: int) -> None:
        """Move among the rigs."""
        if self.listings:
            self.cursor = max(0, min(len(self.listings) - 1, self.cursor + step))
            self.redraw()

    def action_choose(self) -> None:
        """Choose the rig under the cursor."""
        if self.listings:
            self.post_message(self.Chosen(self.listings[self.cursor]))

    def on_click(self, event: events.Click) -> None:
        """Choose the rig under the mouse."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y < len(self.listings):
            self.cursor = offset.y
            self.action_choose()

    def on_focus(self) -> None:
        """The cursor is shown while the list has the keyboard."""
        self.redraw()

    def on_blur(self) -> None:
        """The cursor is hidden again."""
        self.redraw()
