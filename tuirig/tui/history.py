"""Past runs of a rig: their answers, a chart, every start in the order of time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Static

from tuirig.errors import TuirigError
from tuirig.tui.lines import Lines, Roles
from tuirig.tui.panels import history
from tuirig.tui.spans import Line, Span, line

if TYPE_CHECKING:
    from tuirig.runs.store import StoredArm, StoredRun

CHART_ROWS = 14


class RunList(Lines, can_focus=True):
    """The runs, newest first."""

    class Moved(Message):
        """Another run is under the cursor."""

    BINDINGS = [
        Binding("up,k", "step(-1)", "Up", show=False),
        Binding("down,j", "step(1)", "Down", show=False),
    ]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.runs: tuple[StoredRun, ...] = ()
        self.cursor = 0

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """One line a run."""
        if not self.runs:
            return [line(Span("no run yet: t tunes, c compares", "dim"))]
        first = max(0, self.cursor - height + 1)
        return [
            line(Span(history.title(run), "cursor" if first + index == self.cursor else ""))
            for index, run in enumerate(self.runs[first : first + height])
        ]

    def action_step(self, step: int) -> None:
        """To the run above or below."""
        to = max(0, min(len(self.runs) - 1, self.cursor + step))
        if to != self.cursor:
            self.cursor = to
            self.redraw()
            self.post_message(self.Moved())


class History(ModalScreen[None]):
    """A list of runs above, the chosen one below."""

    BINDINGS = [
        Binding("escape,q,3", "close", "Back", show=False),
        Binding("pagedown", "scroll(1)", "Down", show=False),
        Binding("pageup", "scroll(-1)", "Up", show=False),
    ]
    AUTO_FOCUS = "#runs"

    def __init__(self, rig: str) -> None:
        super().__init__()
        self._rig = rig

    def compose(self) -> ComposeResult:
        """List, answer, chart, starts."""
        yield Roles()
        frame = Vertical(id="history", classes="dialog")
        frame.border_title = f"History of {self._rig}"
        frame.border_subtitle = "↑ ↓ runs   PgUp PgDn scroll   Esc back"
        with frame:
            yield RunList(id="runs")
            with VerticalScroll(id="run"):
                yield Static(id="answer", markup=False)
                yield Static(id="chart", markup=False)
                yield Static(id="starts", markup=False)

    def on_mount(self) -> None:
        """Read the store beside the screen."""
        self._load()

    @work(exclusive=True, group="runs")
    async def _load(self) -> None:
        try:
            runs = await asyncio.to_thread(_runs, self._rig)
        except TuirigError as error:
            self.query_one("#answer", Static).update(error.text())
            return
        listed = self.query_one(RunList)
        listed.runs = runs
        listed.redraw()
        self._show_run()

    def on_run_list_moved(self) -> None:
        """Another run."""
        self._show_run()

    @work(exclusive=True, group="run")
    async def _show_run(self) -> None:
        listed = self.query_one(RunList)
        if not listed.runs:
            return
        run = listed.runs[listed.cursor]
        arms = await asyncio.to_thread(_arms, run.id)
        self.query_one("#answer", Static).update(history.answer(run))
        self.query_one("#starts", Static).update("\n".join(history.starts(arms)))
        self.query_one("#chart", Static).update(self._chart(run, arms))

    def _chart(self, run: StoredRun, arms: Sequence[StoredArm]) -> Text:
        points, none_tok_s = history.points(run, arms)
        if not points:
            return Text("")
        from tuirig.tui.chart import by_length

        width = self.query_one("#run").content_size.width - 2
        return Text.from_ansi(by_length(points, none_tok_s, max(30, width), CHART_ROWS))

    def action_scroll(self, pages: int) -> None:
        """Through the chosen run."""
        view = self.query_one("#run", VerticalScroll)
        view.scroll_relative(y=pages * max(1, view.size.height - 1), animate=False)

    def action_close(self) -> None:
        """Back."""
        self.dismiss(None)


def _runs(rig: str) -> tuple[StoredRun, ...]:
    from tuirig.runs.store import Store

    with Store() as store:
        return tuple(sorted(store.runs(rig=rig), key=lambda run: -run.id))


def _arms(run: int) -> tuple[StoredArm, ...]:
    from tuirig.runs.store import Store

    with Store() as store:
        return store.arms(run)
