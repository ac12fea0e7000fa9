"""Makes the pictures beside it from the running program: real servers, real replies.

    uv run python screenshots/make.py [--gpu RIG]

Measures a part of demo-gemma4's grid, so it takes some minutes; the figures are those of the
machine that it runs on. --gpu makes gpu-120x36 alone, of a rig of tests.benchmarks.stand_ins.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from tests.tui.driving import Driver  # noqa: E402
from tuirig.demo.catalog import built_in_rig  # noqa: E402
from tuirig.rigs.settings import Setting, parse_setting  # noqa: E402
from tuirig.runs.catalog import find_rig, list_rigs  # noqa: E402
from tuirig.tui.app import TuirigApp  # noqa: E402

#: Size -> what is measured before the picture.
MEASURED = {
    "120x36": ("none", "q8_0:1", "q8_0:2", "q8_0:3", "q4_0:2", "f16:2"),
    "80x24": ("none", "q8_0:2"),
}
GPU_MEASURED = ("none", "f16:1", "f16:2", "f16:3", "q8_0:2", "q4_0:2")
SIZES = {"120x36": (120, 36), "80x24": (80, 24)}


def take(driver: Driver, name: str) -> None:
    """Write the screen as it is."""
    picture = driver.app.export_screenshot(title="tuirig demo")
    # The person's home and this machine's port and address of the program stay out.
    picture = re.sub(r"terminal-\d+", "terminal", picture)
    (HERE / f"{name}.svg").write_text(picture)
    print(name)


async def choose(driver: Driver, setting: Setting) -> None:
    """Put the cursor on a cell."""
    driver.screen.view.cursor = setting
    driver.screen._show()
    await driver.pilot.pause()


async def measure_and_stream(driver: Driver, names: Sequence[str], tokens: int) -> None:
    """Measure some cells, then stream a reply with the best setting until most of it is there."""
    view = driver.screen.view
    for name in names:
        setting = parse_setting(name)
        await choose(driver, setting)
        await driver.press("m")
        await driver.until(lambda s=setting: len(view.board.replies(s)) >= 12, timeout_s=300)
        await driver.until_quiet()
    best = next(cell.setting for cell in view.board.cells().values() if cell.best)
    await choose(driver, best)
    await driver.press("enter")
    await driver.until(lambda: view.running == best)
    await driver.until_quiet()
    driver.screen.tokens = tokens
    view.prompt_index = 12
    await driver.press("space")
    await driver.until(lambda: view.predicted_n > tokens * 5 // 8)


async def gpu_screen(rig: str) -> None:
    """The main screen while a GPU works."""
    app = TuirigApp(list_rigs(), find_rig(rig))
    async with app.run_test(size=SIZES["120x36"], notifications=True) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: driver.screen.is_mounted)
        await measure_and_stream(driver, GPU_MEASURED, 1500)
        take(driver, "gpu-120x36")
        await driver.screen.close_session()


async def main_screens(size: str) -> None:
    """Measure some cells, then show a reply while it streams, and the dialogs."""
    found = find_rig("demo-gemma4")
    app = TuirigApp(list_rigs(), found)
    async with app.run_test(size=SIZES[size], notifications=True) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: driver.screen.is_mounted)
        await pilot.pause(0.5)
        take(driver, f"first-start-{size}")
        await measure_and_stream(driver, MEASURED[size], 512)
        take(driver, f"main-{size}")
        await driver.press("escape")
        await driver.until_quiet()
        app.clear_notifications()
        for key, name in (("s", "save"), ("question_mark", "keys"), ("q", "quit")):
            await driver.press(key)
            await driver.until(lambda: app.screen is not driver.screen)
            await pilot.pause(0.2)
            take(driver, f"{name}-{size}")
            await driver.press("escape")
            await driver.until_quiet()
            await driver.until(lambda: app.screen is driver.screen)
        await driver.press("o")
        await pilot.pause(0.6)
        take(driver, f"log-{size}")
        await driver.screen.close_session()


async def main() -> None:
    """All pictures, or the one of a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", metavar="RIG")
    if rig := parser.parse_args().gpu:
        await gpu_screen(rig)
        return
    assert built_in_rig("demo-gemma4")
    for size in SIZES:
        await main_screens(size)


if __name__ == "__main__":
    asyncio.run(main())
