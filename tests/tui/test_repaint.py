"""Only cells that changed are painted: what goes over a slow line is counted in cells."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tui.driving import Driver
from tests.tui.test_look import show_measured, still
from tuirig.events import ReadingTaken, ReplyStarted, TextArrived
from tuirig.records import Reading
from tuirig.tui.lines import Lines


class Painted:
    """Cells that the panels asked to be painted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells = 0
        original = Lines.refresh

        def refresh(lines: Lines, *regions: Any, **options: Any) -> Any:
            area = sum(region.area for region in regions) if regions else lines.content_size.area
            self.cells += area
            return original(lines, *regions, **options)

        monkeypatch.setattr(Lines, "refresh", refresh)

    def take(self) -> int:
        cells, self.cells = self.cells, 0
        return cells


async def frame(driver: Driver, *events: Any) -> None:
    driver.screen._arrived(events)
    await driver.pilot.pause()


@pytest.mark.parametrize("size", ["80x24", "120x36", "200x60"])
async def test_nothing_new_paints_nothing(size: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with still(size) as driver:
        await show_measured(driver)
        painted = Painted(monkeypatch)
        await frame(driver, ReadingTaken(reading=driver.screen.view.reading))
        driver.screen._show()
        await driver.pilot.pause()
        assert painted.take() == 0


async def test_a_reading_paints_its_figures_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    async with still("80x24") as driver:
        await show_measured(driver)
        painted = Painted(monkeypatch)
        before = driver.screen.view.reading
        assert before is not None
        warmer = Reading(
            at_s=2,
            memory_used_mib=4600,
            memory_total_mib=8192,
            process_memory_mib=4495,
            temperature_c=63,
            power_w=98,
            sm_clock_mhz=1905,
            throttle=(),
        )
        await frame(driver, ReadingTaken(reading=warmer))
        assert 0 < painted.take() <= 4


async def test_a_frame_of_tokens_paints_about_its_own_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with still("80x24") as driver:
        await show_measured(driver)
        await frame(
            driver,
            ReplyStarted(setting="q4_0:2", prompt_id="code-1", kind="code", token_limit=128),
            TextArrived(text="Here is ", predicted_n=2, tok_s=90.0),
        )
        painted = Painted(monkeypatch)
        await frame(driver, TextArrived(text="a function that ", predicted_n=12, tok_s=90.0))
        assert 0 < painted.take() <= 60


async def test_moving_the_cursor_paints_two_cells_of_the_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with still("120x36") as driver:
        await show_measured(driver)
        grid = driver.screen.query_one("#grid")
        await driver.press("left")
        await driver.pilot.pause()
        regions: list[Any] = []
        monkeypatch.setattr(grid, "refresh", lambda *areas, **_: regions.extend(areas))
        await driver.press("right")
        await driver.pilot.pause()
        assert sum(region.area for region in regions) <= 4 * 8
