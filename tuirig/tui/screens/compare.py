"""Compare: how sure the answer is, and what A and B wrote."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from tuirig.tui.bindings import bindings_of
from tuirig.tui.panels import compare
from tuirig.tui.screens.base import OtherScreen
from tuirig.tui.screens.parts import Scrolling
from tuirig.tui.spans import Line, Span, line
from tuirig.tui.view import View
from tuirig.tui.widgets import Panel


class Answer(Panel):
    """The ratio, its interval, the starts so far."""

    def panel(self, view: View, width: int, height: int) -> Sequence[Line]:
        """As many starts as fit, the last ones."""
        return compare.answer(view, width, height)


class Texts(Panel, Scrolling):
    """Both texts of one prompt."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, title="Texts")
        self.number = 0
        self._told: tuple[str, str] | None = None

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Scrolled, not all of them."""
        return Scrolling.lines(self, width, height) if self.view else ()

    @property
    def prompt(self) -> tuple[str, int, int]:
        """(the prompt, empty for none; its number; of how many)."""
        shared = compare.shared_prompts(self.view) if self.view else ()
        if not shared:
            return "", 0, 0
        self.number %= len(shared)
        return shared[self.number], self.number + 1, len(shared)

    def head(self, width: int) -> Sequence[Line]:
        """Whose texts these are."""
        return compare.head(self.view, *self.prompt, width) if self.view else ()

    def rows(self, width: int) -> Sequence[Line]:
        """The texts; a new pair is shown from where it parts."""
        last = compare.replies(self.view, self.prompt[0]) if self.view else None
        if last is None:
            words = "no prompt has a text of both yet: Space streams one, m and c measure 12"
            return [line(Span(words, "dim"))]
        told = (last[0].text, last[1].text)
        rows, parts_at = compare.texts(*told, width)
        if told != self._told:
            self._told = told
            self.top = parts_at - 2 if parts_at >= self.content_size.height - 2 else 0
        return rows


class Compare(OtherScreen):
    """A against B."""

    NAME = "compare"
    BINDINGS = bindings_of(NAME)

    def body(self) -> ComposeResult:
        """The answer above, the texts below."""
        yield Answer(id="compared", title="B against A")
        yield Texts(id="texts")

    def action_compare(self) -> None:
        """Compare A with B, as in the grid."""
        self.main.action_compare()

    def action_prompt(self, step: int) -> None:
        """The texts of another prompt."""
        texts = self.query_one(Texts)
        texts.number += step
        texts.redraw()
