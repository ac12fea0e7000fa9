"""How the charts of History look at three sizes, dark, light and without colour."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension

from tests.tui import example_runs
from tests.tui.test_history import RIG, open_history, pane
from tests.tui.test_look import still, svg
from tuirig.tui.panels.charts import CHARTS

LOOKS = [
    ("80x24", "textual-dark"),
    ("120x36", "textual-dark"),
    ("200x60", "textual-dark"),
    ("80x24", "textual-light"),
    ("80x24", "no colour"),
]


async def pictures(
    size: str,
    theme: str,
    pages: tuple[int, ...],
    snapshot: SnapshotAssertion,
    monkeypatch: pytest.MonkeyPatch,
    store: Callable[[], int],
) -> None:
    monkeypatch.setattr("tuirig.runs.store.now", lambda: "2026-11-30T22:10:00+00:00")
    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    store()
    picture = snapshot.use_extension(SVGImageSnapshotExtension)
    async with still(size, None if theme == "no colour" else theme) as driver:
        await open_history(driver)
        for page in range(1, len(CHARTS) + 1):
            await driver.until(lambda page=page: f"· {page} of " in driver.text())
            await driver.until(lambda: "other charts" in str(pane(driver).border_subtitle))
            await driver.pilot.pause()
            if page in pages:
                assert svg(driver) == picture(name=str(page))
            await driver.press("right")


@pytest.mark.parametrize(("size", "theme"), LOOKS)
async def test_charts_of_a_tune(
    size: str, theme: str, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tuple(range(1, len(CHARTS) + 1))
    await pictures(size, theme, pages, snapshot, monkeypatch, lambda: example_runs.store_tune(RIG))


async def test_charts_of_a_run_that_tells_little(
    snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pictures(
        "80x24",
        "textual-dark",
        (1, 2, 4, 5, 6),
        snapshot,
        monkeypatch,
        lambda: example_runs.store_bare(RIG),
    )


async def test_the_load_of_a_cpu(
    snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pictures(
        "80x24",
        "textual-dark",
        (4, 5),
        snapshot,
        monkeypatch,
        lambda: example_runs.store_bare(RIG, card=example_runs.CPU),
    )
