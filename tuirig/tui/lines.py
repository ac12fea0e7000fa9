"""A widget that shows lines of spans and repaints only the cells that changed.

Over SSH every repainted cell costs bytes; a Static repaints itself whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.selection import Selection
from textual.strip import Strip
from textual.widget import Widget

from tuirig.tui.spans import ROLES, Line, cut

#: Roles that change attributes alone.
PLAIN = ("title", "cursor")


class Roles(Widget):
    """The looks of the roles for all lines of a screen: one invisible widget that takes styles.

    Component classes on every panel would cost a style computation each, at every change of focus.
    """

    COMPONENT_CLASSES = {f"roles--{role}" for role in ROLES}
    DEFAULT_CSS = """
    Roles {
        display: none;
        .roles--dim { color: $text-muted; }
        .roles--title { text-style: bold; }
        .roles--accent { color: $text-accent; }
        .roles--good { color: $text-success; }
        .roles--bad { color: $text-error; text-style: bold; }
        .roles--warn { color: $text-warning; }
        .roles--best { color: $text-success; text-style: bold; }
        .roles--bar { color: $primary; }
        .roles--bar2 { color: $secondary; }
        .roles--bar3 { color: $warning; }
        .roles--cursor { text-style: reverse; }
        &:ansi {
            .roles--dim { color: ansi_default; text-style: dim; }
            .roles--accent { color: ansi_cyan; }
            .roles--good { color: ansi_green; }
            .roles--bad { color: ansi_red; text-style: bold; }
            .roles--warn { color: ansi_yellow; }
            .roles--best { color: ansi_green; text-style: bold; }
            .roles--bar { color: ansi_blue; }
            .roles--bar2 { color: ansi_magenta; }
            .roles--bar3 { color: ansi_yellow; }
        }
    }
    """

    def look(self, roles: str) -> Style:
        """Colour and attributes of the roles; the background stays the panel's own."""
        look = Style()
        for role in roles.split():
            full = self.get_component_rich_style(f"roles--{role}")
            look += Style(
                color=None if role in PLAIN else full.color,
                bold=full.bold,
                dim=full.dim,
                reverse=full.reverse,
            )
        return look


class Lines(Widget):
    """Subclasses build their lines in `lines(width, height)` and call `redraw` on a change.

    The screen holds a Roles widget.
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._shown: list[Line] = []
        self._shown_size = Size()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The content for a size in cells."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Build the lines again and repaint the cells that differ."""
        if not self.content_size or self._shown_size != self.content_size:
            return  # not painted in this size yet: painting will build the lines
        width = self.content_size.width
        old, new = self._shown, self._build()
        self._shown = new
        regions = []
        for row in range(max(len(old), len(new))):
            before = old[row] if row < len(old) else ()
            after = new[row] if row < len(new) else ()
            changed = _changed_cells(before, after, width)
            if changed:
                start, end = changed
                regions.append(Region(start, row, end - start, 1))
        if regions:
            self.refresh(*regions)

    def _build(self) -> list[Line]:
        width, height = self.content_size
        return [cut(line, width) for line in self.lines(width, height)[:height]]

    def notify_style_update(self) -> None:
        """A theme change repaints all."""
        super().notify_style_update()
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row, from the lines built last; they are built here when the size is new."""
        width = self.content_size.width
        if self._shown_size != self.content_size:
            self._shown_size = self.content_size
            self._shown = self._build()
        base = self.rich_style
        roles = self.screen.query_one(Roles)
        if y >= len(self._shown):
            return Strip.blank(width, base)
        segments = [
            Segment(span.text, base + roles.look(span.roles) if span.roles else base)
            for span in self._shown[y]
        ]
        strip = Strip(segments).adjust_cell_length(width, base)
        selection = self.text_selection
        chosen = selection.get_span(y) if selection is not None else None
        if chosen is not None:
            start, end = chosen[0], width if chosen[1] < 0 else min(width, chosen[1])
            look = self.screen.get_component_rich_style("screen--selection")
            left, middle, right = strip.divide([start, end, width])
            strip = Strip.join([left, middle.apply_style(look), right])
        # Offsets tell the mouse which text it is on.
        return strip.apply_offsets(0, y)

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text that the mouse selected, as it is shown."""
        rows = ("".join(span.text for span in row).rstrip() for row in self._shown)
        return selection.extract("\n".join(rows)), "\n"


def _changed_cells(before: Line, after: Line, width: int) -> tuple[int, int] | None:
    """The first and one past the last cell that differ between two lines, None if none does."""
    if before == after:
        return None
    old, new = _cells(before, width), _cells(after, width)
    differ = [index for index in range(width) if old[index] != new[index]]
    return (differ[0], differ[-1] + 1) if differ else None


def _cells(spans: Line, width: int) -> list[tuple[str, str]]:
    """Each cell as (character, roles); the second cell of a wide character is empty."""
    from rich.cells import cell_len

    cells: list[tuple[str, str]] = []
    for text, roles in spans:
        if text.isascii():
            cells.extend((character, roles) for character in text)
            continue
        for character in text:
            size = cell_len(character)
            if size == 0 and cells:
                cells[-1] = (cells[-1][0] + character, roles)
            elif size:
                cells.append((character, roles))
                cells.extend([("", roles)] * (size - 1))
    cells.extend([(" ", "")] * (width - len(cells)))
    return cells
