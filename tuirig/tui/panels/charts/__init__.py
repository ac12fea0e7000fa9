"""The charts of a stored run, each made for a place of so many cells and rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tuirig.tui.panels import history
from tuirig.tui.panels.charts import acceptance, climate, memory, speeds
from tuirig.tui.panels.charts.facts import Facts
from tuirig.tui.spans import Line


class Chart(NamedTuple):
    """draw: the rows for a run, cells and rows; more rows than that are scrolled."""

    name: str
    draw: Callable[[Facts, int, int], list[Line]]


CHARTS = (
    Chart("tok/s by draft length", speeds.by_length),
    Chart("tok/s of each start", speeds.in_time),
    Chart("accepted by drafted position", acceptance.by_position),
    Chart("memory by setting", memory.by_setting),
    Chart("temperature and clock", climate.over_time),
    Chart("starts", lambda facts, cells, rows: history.starts(facts.arms, cells)),
)
