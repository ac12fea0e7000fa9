"""Past runs of a rig: their answers, a chart, every start in the order of time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text
from textual import work
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from tuirig.errors import TuirigError
from tuirig.tui.bindings import bindings_of
from tuirig.tui.panels import history
from tuirig.tui.screens.base import OtherScreen
from tuirig.tui.screens.parts import Choices
from tuirig.tui.spans import Line, line

if TYPE_CHECKING:
    from tuirig.runs.store import StoredArm, StoredRun

CHART_ROWS = 14


class RunList(Choices):
    """The runs, newest first."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, nothing="no run yet: t tunes, c compares")
        self.runs: tuple[StoredRun, ...] = ()

    def row(self, index: int, width: int) -> Line:
        """A run."""
        return line(history.title(self.runs[index]))


class History(OtherScreen):
    """A list of runs above, the chosen one below."""

    NAME = "history"
    BINDINGS = bindings_of(NAME)

    def body(self) -> ComposeResult:
        """List, answer, chart, starts."""
        runs = RunList(id="runs")
        runs.border_title = f"History of {self.view.rig.name}"
        yield runs
        # The keys are the screen's own; the wheel works without the focus.
        with VerticalScroll(id="run", can_focus=False):
            yield Static(id="answer", markup=False)
            yield Static(id="chart", markup=False)
            yield Static(id="starts", markup=False)

    def on_mount(self) -> None:
        """Read the store beside the screen."""
        super().on_mount()
        self._load()

    @work(exclusive=True, group="runs")
    async def _load(self) -> None:
        try:
            runs = await asyncio.to_thread(_runs, self.view.rig.name)
        except TuirigError as error:
            self.query_one("#answer", Static).update(error.text())
            return
        listed = self.query_one(RunList)
        listed.runs = runs
        listed.offer(len(runs))

    def on_choices_moved(self) -> None:
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

    def action_page(self, step: int) -> None:
        """Through the chosen run."""
        view = self.query_one("#run", VerticalScroll)
        view.scroll_relative(y=step * max(1, view.size.height - 1), animate=False)


def _runs(rig: str) -> tuple[StoredRun, ...]:
    from tuirig.runs.store import Store

    with Store() as store:
        return tuple(sorted(store.runs(rig=rig), key=lambda run: -run.id))


def _arms(run: int) -> tuple[StoredArm, ...]:
    from tuirig.runs.store import Store

    with Store() as store:
        return store.arms(run)
