"""The History screen by its keys: runs, charts, a run that goes on."""

from __future__ import annotations

import re

import pytest

from tests.tui import example_runs
from tests.tui.driving import Driver, driving
from tests.tui.test_look import still
from tests.tui.test_main_screen import choose
from tests.tui.test_screens import go_to, shown
from tuirig.events import RunEnded, StartBegan
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting
from tuirig.runs.store import RunState, Store
from tuirig.tui.dialogs import Choice
from tuirig.tui.panels.charts import CHARTS
from tuirig.tui.screens.history import ChartPane, RunList

RIG = "3050-e4b"


def pane(driver: Driver) -> ChartPane:
    return driver.app.screen.query_one(ChartPane)


async def open_history(driver: Driver) -> None:
    await go_to(driver, "3")
    await driver.until(lambda: pane(driver).facts)


@pytest.mark.parametrize(("back", "on"), [("left", "right"), ("h", "l")])
async def test_the_keys_lead_round_the_charts(back: str, on: str) -> None:
    example_runs.store_tune(RIG)
    async with still("80x24") as driver:
        await open_history(driver)
        for number, chart in enumerate((*CHARTS[1:], CHARTS[0]), 2):
            await driver.press(on)
            title = f"{chart.name} · {(number - 1) % len(CHARTS) + 1} of {len(CHARTS)}"
            await driver.until(lambda title=title: title in driver.text())
        await driver.press(back)
        await driver.until(lambda: "starts · 6 of 6" in driver.text())


async def test_the_chosen_run_and_chart_are_still_there_after_another_screen() -> None:
    first, second = example_runs.store_bare(RIG), example_runs.store_tune(RIG)
    async with still("120x36") as driver:
        await open_history(driver)
        await driver.press("j", "right", "right")
        await driver.until(lambda: "kept .717" in driver.text())
        await go_to(driver, "5")
        await go_to(driver, "3")
        await driver.until(lambda: "kept .717" in driver.text())
        await driver.press("1")
        await driver.until(lambda: shown(driver) == "tune")
        await open_history(driver)
        listed = driver.app.screen.query_one(RunList)
        assert listed.runs[listed.cursor].id == first
        await driver.press("k")
        await driver.until(lambda: "q4_0:4 kept" in driver.text())
        assert listed.runs[listed.cursor].id == second


async def test_a_long_list_of_starts_is_scrolled() -> None:
    example_runs.store_tune(RIG)
    async with still("80x24") as driver:
        await open_history(driver)
        await driver.press("left")
        await driver.until(lambda: "PgDn the rest" in driver.text())
        assert " 12  none" not in driver.text()
        await driver.press("pagedown")
        await driver.until(lambda: " 12  none" in driver.text())
        await driver.press("pageup")
        await driver.until(lambda: "  1  none" in driver.text())


async def test_a_run_that_goes_on_is_read_at_each_start(monkeypatch: pytest.MonkeyPatch) -> None:
    run = example_runs.store_tune(RIG, starts=1, state=None)
    reads: list[int] = []
    arms = Store.arms
    monkeypatch.setattr(Store, "arms", lambda self, run: reads.append(run) or arms(self, run))
    async with still("80x24") as driver:
        await open_history(driver)
        await driver.press("left")
        await driver.until(lambda: "tune goes on: 1 server starts" in driver.text())
        for number in (2, 3):
            setting, tok_s = example_runs.TUNE[number - 1]
            with Store() as store:
                example_runs.add_start(store, run, number - 1, setting, tok_s)
            before = len(reads)
            began = StartBegan(
                number=number + 1, expected=12, setting="x", reason="", seconds_left=1.0
            )
            driver.screen._arrived([began])
            await driver.until(lambda: f"{number} server starts" in driver.text())  # noqa: B023
            for _ in range(5):
                driver.app.screen.look()  # type: ignore[attr-defined]
                await driver.pilot.pause()
            assert len(reads) == before + 1
        assert "93.4 tok/s" in driver.text()
        with Store() as store:
            store.end_run(run, RunState.CANCELLED)
        driver.screen._arrived([RunEnded(run=run, state="cancelled")])
        await driver.until(lambda: "cancelled" in driver.text())


async def test_a_chart_is_drawn_once_for_a_run_and_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    example_runs.store_tune(RIG)
    drawn: list[tuple[int, int]] = []
    chart = CHARTS[0]

    def draw(facts: object, cells: int, rows: int) -> object:
        drawn.append((cells, rows))
        return chart.draw(facts, cells, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(
        "tuirig.tui.screens.history.CHARTS", (chart._replace(draw=draw), *CHARTS[1:])
    )
    async with still("80x24") as driver:
        await open_history(driver)
        await driver.until(lambda: "predicted" in driver.text())
        for _ in range(5):
            driver.app.screen.look()  # type: ignore[attr-defined]
            pane(driver).refresh()
            await driver.pilot.pause()
        assert len(drawn) == len(set(drawn))
        await driver.pilot.resize_terminal(120, 36)
        await driver.until(lambda: drawn[-1][0] == pane(driver).content_size.width > 100)
        assert len(drawn) == len(set(drawn))
        assert "predicted" in driver.text()


async def test_a_real_comparison_grows_in_sight(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    monkeypatch.setattr("tuirig.runs.ab.MOST_BLOCKS", 1)
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("a")
        await choose(driver, Setting("q4_0", 1))
        await driver.press("b")
        await go_to(driver, "3")
        driver.screen.action_compare()  # the starts are quick: be there before the first one
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: re.search("ab goes on: [123] server starts", driver.text()), 120)
        assert "running" in driver.text()
        await driver.press("right")
        await driver.until(lambda: "tok/s of each start · 2 of 6" in driver.text())
        await driver.until(lambda: "q4_0:1 against none" in driver.text(), 120)
        found = pane(driver).facts
        assert found is not None and len(found.arms) == 4
        assert "● q4_0:1" in driver.text() and "× none" in driver.text()
        await driver.press("right", "right")
        await driver.until(lambda: "█ target" in driver.text())
        await driver.until_quiet()
