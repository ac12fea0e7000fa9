"""History: the runs of a rig, past and under way, and the charts of the chosen one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from textual import work
from textual.app import ComposeResult
from textual.widgets import Static

from tuirig.errors import TuirigError
from tuirig.tui.bindings import bindings_of
from tuirig.tui.panels import history
from tuirig.tui.panels.charts import CHARTS
from tuirig.tui.panels.charts.facts import Facts, facts_of
from tuirig.tui.screens.base import OtherScreen
from tuirig.tui.screens.parts import Choices, Scrolling
from tuirig.tui.spans import Line, line

if TYPE_CHECKING:
    from tuirig.runs.store import StoredArm, StoredRun
    from tuirig.tui.main_screen import MainScreen


@dataclass
class _Place:
    """What is looked at. runs: the chosen run by rig; none is the newest, whichever that is."""

    runs: dict[str, int] = field(default_factory=dict)
    chart: int = 0


#: The screen is made anew each time that it is opened; its place lasts as long as the program's.
_PLACES: WeakKeyDictionary[MainScreen, _Place] = WeakKeyDictionary()


class RunList(Choices):
    """The runs, newest first."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, nothing="no run yet: t tunes, c compares")
        self.runs: tuple[StoredRun, ...] = ()

    def row(self, index: int, width: int) -> Line:
        """A run."""
        return line(history.title(self.runs[index]))

    def show(self, runs: tuple[StoredRun, ...], chosen: int | None) -> None:
        """These runs, one of them chosen by its number, else the newest."""
        self.runs, self.count = runs, len(runs)
        numbers = [run.id for run in runs]
        self.cursor = numbers.index(chosen) if chosen in numbers else 0
        self.redraw()


class ChartPane(Scrolling):
    """One chart of a run. It is drawn when the run, the chart or the size is another one."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.facts: Facts | None = None
        self.number = 0
        self._content: list[Line] = []
        self._drawn_of: Facts | None = None
        self._drawn_as = (0, 0, 0)

    def show(self, facts: Facts | None, number: int) -> None:
        """A chart of a run."""
        if number != self.number or facts is None:
            self.top = 0
        self.facts, self.number = facts, number
        self.border_title = f"{CHARTS[number].name} · {number + 1} of {len(CHARTS)}"
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The rows in sight."""
        wanted = (self.number, width, height)
        if self._drawn_of is not self.facts or self._drawn_as != wanted:
            self._drawn_of, self._drawn_as = self.facts, wanted
            draw = CHARTS[self.number].draw
            self._content = draw(self.facts, width, height) if self.facts else []
            more = ", PgDn the rest" if len(self._content) > height else ""
            self.call_later(setattr, self, "border_subtitle", f"← → other charts{more}")
        return super().lines(width, height)

    def rows(self, width: int) -> Sequence[Line]:
        """All of the chart."""
        return self._content


class History(OtherScreen):
    """A list of runs above, the chosen one below."""

    NAME = "history"
    BINDINGS = bindings_of(NAME)

    def __init__(self) -> None:
        super().__init__()
        # Kept, not looked up: what is read beside the screen may come after it was left.
        self._list = RunList(id="runs")
        self._answer = Static(id="answer", markup=False)
        self._pane = ChartPane(id="chart")

    def body(self) -> ComposeResult:
        """List, answer, chart."""
        self._list.border_title = f"History of {self.view.rig.name}"
        yield self._list
        yield self._answer
        yield self._pane

    def on_mount(self) -> None:
        """Read the store beside the screen."""
        self._seen: object = None
        self._place = _PLACES.setdefault(self.main, _Place())
        super().on_mount()
        self._load()

    def look(self) -> None:
        """Read again when a start of a run has begun, and when the last one has ended."""
        super().look()
        seen = self.view.start
        if seen is not self._seen:
            self._seen = seen
            self._load()

    @work(exclusive=True, group="runs")
    async def _load(self) -> None:
        rig = self.view.rig.name
        try:
            runs = await asyncio.to_thread(_runs, rig)
        except TuirigError as error:
            self._answer.update(error.text())
            return
        self._list.show(runs, self._place.runs.get(rig))
        self._show_run()

    def on_choices_moved(self) -> None:
        """Another run."""
        listed, rig = self._list, self.view.rig.name
        if listed.cursor:
            self._place.runs[rig] = listed.runs[listed.cursor].id
        else:
            self._place.runs.pop(rig, None)
        self._show_run()

    @work(exclusive=True, group="run")
    async def _show_run(self) -> None:
        listed, pane = self._list, self._pane
        if not listed.runs:
            pane.show(None, self._place.chart)
            return
        run = listed.runs[listed.cursor]
        facts = await asyncio.to_thread(_facts, run, self.view.rig.tune.lengths)
        self._answer.update(history.answer(run))
        pane.show(facts, self._place.chart)

    def action_chart(self, step: int) -> None:
        """Another chart of the same run."""
        pane = self._pane
        self._place.chart = (self._place.chart + step) % len(CHARTS)
        pane.show(pane.facts, self._place.chart)

    def action_page(self, step: int) -> None:
        """Through a chart that is longer than its place."""
        self._pane.go_by(step * max(1, self._pane.room - 1))


def _runs(rig: str) -> tuple[StoredRun, ...]:
    from tuirig.runs.store import Store

    with Store() as store:
        return store.runs(rig=rig)


def _facts(run: StoredRun, lengths: Sequence[int]) -> Facts:
    from tuirig.runs.store import Store

    with Store() as store:
        arms: tuple[StoredArm, ...] = store.arms(run.id)
    return facts_of(run, arms, lengths)
