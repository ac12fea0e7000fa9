"""Lines that are longer than their place: a list to choose from, a text to scroll."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events
from textual.message import Message

from tuirig.tui.lines import Lines
from tuirig.tui.spans import Line, Span, line

WHEEL = 3


class Scrolling(Lines):
    """Rows of which some are shown, below fixed ones."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, classes="scrolled")
        self.top = 0
        self.length = 0
        self.room = 1

    def head(self, width: int) -> Sequence[Line]:
        """Rows that stay."""
        return ()

    def rows(self, width: int) -> Sequence[Line]:
        """All rows that move."""
        raise NotImplementedError

    def first(self) -> int:
        """The first row to show."""
        self.top = max(0, min(self.top, self.length - self.room))
        return self.top

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The fixed rows, and as many of the others as fit."""
        head, rows = self.head(width), self.rows(width)
        self.length, self.room = len(rows), max(1, height - len(head))
        first = self.first()
        return [*head, *rows[first : first + self.room]]

    def go_by(self, rows: int) -> None:
        """Down, or up, by so many rows."""
        self.top = max(0, min(self.top + rows, self.length - self.room))
        self.redraw()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel."""
        event.stop()
        self.go_by(WHEEL)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel."""
        event.stop()
        self.go_by(-WHEEL)


class Text(Scrolling):
    """A text that is given to it."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.content: Callable[[int], Sequence[Line]] = lambda width: ()

    def rows(self, width: int) -> Sequence[Line]:
        """The lines in this width."""
        return self.content(width)

    def show(self, content: Callable[[int], Sequence[Line]]) -> None:
        """Another text, from its start. content: its lines for a width in cells."""
        self.content, self.top = content, 0
        self.redraw()


class Choices(Scrolling):
    """A row per choice, one of them under the cursor."""

    class Moved(Message):
        """Another choice is under the cursor."""

    def __init__(self, *, id: str, nothing: str) -> None:
        """nothing: what stands there without choices."""
        super().__init__(id=id)
        self.cursor = 0
        self.count = 0
        self.nothing = nothing

    def row(self, index: int, width: int) -> Line:
        """A choice in a line."""
        raise NotImplementedError

    def rows(self, width: int) -> Sequence[Line]:
        """The choices."""
        if not self.count:
            return [line(Span(self.nothing, "dim"))]
        return [self._row(index, width) for index in range(self.count)]

    def _row(self, index: int, width: int) -> Line:
        spans = self.row(index, width)
        if index != self.cursor:
            return spans
        return line(*(Span(span.text, f"{span.roles} cursor".strip()) for span in spans))

    def first(self) -> int:
        """The cursor stays in sight."""
        self.top = max(self.cursor - self.room + 1, min(self.top, self.cursor))
        return super().first()

    def offer(self, count: int) -> None:
        """So many choices, the first one chosen."""
        self.count, self.cursor = count, 0
        self.redraw()
        self.post_message(self.Moved())

    def go_by(self, rows: int) -> None:
        """To another choice."""
        to = max(0, min(self.count - 1, self.cursor + rows))
        if to != self.cursor:
            self.cursor = to
            self.redraw()
            self.post_message(self.Moved())

    def on_click(self, event: events.Click) -> None:
        """Choose the row under the mouse."""
        offset = event.get_content_offset(self)
        if offset is not None:
            row = self.top + offset.y - len(self.head(self.content_size.width))
            if 0 <= row < self.count:
                self.go_by(row - self.cursor)
