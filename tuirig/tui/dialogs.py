"""Dialogs: rigs, save, quit, yes or no, keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from tuirig.runs.catalog import Listing
from tuirig.tui.keys import TUNE, rows
from tuirig.tui.lines import Roles
from tuirig.tui.panels.grid import LEGEND
from tuirig.tui.spans import wrap
from tuirig.tui.view import View
from tuirig.tui.widgets import RigList

if TYPE_CHECKING:
    from tuirig.tui.app import Told

T = TypeVar("T")
CLOSE: list[BindingType] = [Binding("escape", "close", "Back", show=False)]


class Dialog(ModalScreen[T]):
    """Ends once: a second key may come before the dialog is gone.

    around: rows that are not the body's: border, title and keys, these two with a blank line.
    """

    around = 2 + 2 + 2

    def on_resize(self) -> None:
        """The body ends above the keys, which are docked and take no part in sharing the height."""
        for body in self.query(".dialog--body"):
            body.styles.max_height = max(1, self.app.size.height - self.around)

    def finish(self, result: T) -> None:
        """Close with a result."""
        if self.is_current:
            self.dismiss(result)


class Choice(Dialog[str]):
    """A question with one key per answer. Escape, and every other key, changes nothing."""

    BINDINGS = CLOSE

    def __init__(self, title: str, body: str, answers: Sequence[tuple[str, str, str]]) -> None:
        """answers: (key, result, what it does)."""
        super().__init__()
        self._title = title
        self._body = body
        self._answers = answers
        for key, result, words in answers:
            self._bindings.bind(key, f"answer('{result}')", words)

    def compose(self) -> ComposeResult:
        """Title, body, answers."""
        names = {"enter": "Enter"}
        answers = [f"{names.get(key, key)} {words}" for key, _, words in self._answers]
        keys = "   ".join([*answers, "Esc back"])
        dialog = Vertical(classes="dialog")
        # The keys stay in sight below a long body, docked; docked lines widen nothing.
        dialog.styles.min_width = max(44, cell_len(keys) + 4)
        with dialog:
            alone = "" if self._body else " -alone"
            yield Static(self._title, classes=f"dialog--title{alone}", markup=False)
            if self._body:
                with VerticalScroll(classes="dialog--body"):
                    cells = max(20, self.app.size.width - 6)
                    yield Static("\n".join(wrap(self._body, cells)), markup=False)
            yield Static(keys, classes="dialog--keys", markup=False)

    def action_answer(self, result: str) -> None:
        """Give an answer."""
        self.finish(result)

    def action_close(self) -> None:
        """No answer."""
        self.finish("")


class RigPicker(Dialog[Listing | None]):
    """The rigs, where the screen has no room for the list."""

    BINDINGS = CLOSE

    def __init__(self, listings: tuple[Listing, ...], view: View) -> None:
        super().__init__()
        self._listings = listings
        self._view = view

    def compose(self) -> ComposeResult:
        """The list and how to add a rig."""
        yield Roles()
        with Vertical(classes="dialog"):
            yield Static("Rigs", classes="dialog--title")
            yield RigList(self._listings, self._view.rig.name, id="picker")
            keys = "Enter opens it   Esc back\none of your own: tuirig rig new NAME"
            yield Static(keys, classes="dialog--keys")

    def on_mount(self) -> None:
        """As high as there are rigs."""
        picker = self.query_one(RigList)
        picker.view = self._view
        picker.styles.height = max(1, len(self._listings))
        picker.focus()

    def on_rig_list_chosen(self, message: RigList.Chosen) -> None:
        """Take it."""
        self.finish(message.listing)

    def action_close(self) -> None:
        """Keep the rig that is open."""
        self.finish(None)


class Messages(Dialog[None]):
    """What was told so far, the newest first."""

    around = 2  # title and keys stand in the border
    BINDINGS = [*CLOSE, Binding("n,q,enter", "close", "Back", show=False)]
    MARKS = {"error": "!", "warning": "?"}

    def __init__(self, told: Sequence[Told]) -> None:
        super().__init__()
        self._told = told

    def compose(self) -> ComposeResult:
        """A list that scrolls, its lines wrapped beside the time."""
        rows = []
        for one in reversed(self._told):
            head = f"{one.at} {self.MARKS.get(one.severity, ' ')} "
            for row in wrap(one.message, max(20, self.app.size.width - len(head) - 6)):
                rows.append(head + row)
                head = " " * len(head)
        dialog = Vertical(classes="dialog")
        dialog.border_title = "Messages"
        dialog.border_subtitle = "Esc back"
        with dialog, VerticalScroll(classes="dialog--body"):
            yield Static("\n".join(rows) or "none yet", markup=False)

    def action_close(self) -> None:
        """Back."""
        self.finish(None)


class KeyHelp(Dialog[None]):
    """The keys of a screen and the words on it."""

    around = 2  # title and keys stand in the border
    BINDINGS = [*CLOSE, Binding("question_mark,f1,q,enter", "close", "Back", show=False)]
    WORDS = (
        ("kept", "share of drafted tokens accepted (acceptance rate)"),
        ("a step", "tokens per verification step, the target's own included"),
        ("none", "the server without a drafter; gains are against it"),
        ("–", "unknown, never 0"),
    )

    def __init__(self, screen: str = TUNE) -> None:
        super().__init__()
        self._keys = rows(screen)
        self._marks = screen == TUNE

    def compose(self) -> ComposeResult:
        """Two short tables."""
        marks = tuple(part.split(" ", 1) for part in LEGEND) if self._marks else ()
        words = [*self._keys, ("", ""), *self.WORDS, *marks]
        table = [f"{keys:>15}  {does}" for keys, does in words]
        dialog = Vertical(classes="dialog")
        dialog.border_title = "Keys and words"
        more = "↑ ↓ scroll · " if len(table) + 2 > self.app.size.height else ""
        dialog.border_subtitle = f"{more}Esc back"
        with dialog, VerticalScroll(classes="dialog--body"):
            yield Static("\n".join(table), markup=False)

    def action_close(self) -> None:
        """Back."""
        self.finish(None)
