"""Makes the pictures beside it from the running program: real servers, real replies.

    uv run python screenshots/make.py [--gpu RIG]

Each screen at 120x36 and 80x24, in a home of its own: first start, the plan of a tune, the tune's
outcome and profile, a comparison, a streaming reply (dark; light and ansi at 120x36), the screens
beside the grid, keys, quit, and a server that fails to start. A tune and a comparison of
demo-gemma4 are run for it with 6 prompts a start, which takes about five minutes on two quiet
cores; the figures are those of the machine that it runs on. --gpu makes gpu-120x36 alone, of a rig
of tests.benchmarks.stand_ins.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from textual.screen import ModalScreen  # noqa: E402

from screenshots.home import at_home, tidied  # noqa: E402
from tests.tui.driving import Driver  # noqa: E402
from tuirig import locations  # noqa: E402
from tuirig.demo.catalog import built_in_text, ensure  # noqa: E402
from tuirig.events import ServerState, ignore  # noqa: E402
from tuirig.rigs.settings import NONE, Setting, parse_setting  # noqa: E402
from tuirig.runs.catalog import find_rig, list_rigs  # noqa: E402
from tuirig.tui import main_screen  # noqa: E402
from tuirig.tui.app import TuirigApp  # noqa: E402

RIG = "demo-gemma4"
GPU_MEASURED = ("none", "f16:1", "f16:2", "f16:3", "q8_0:2", "q4_0:2")
SIZES = {"80x24": (80, 24), "120x36": (120, 36)}
SCREENS = {"2": "compare", "3": "history", "4": "profiles", "5": "files", "6": "log"}
#: A tune on two busy cores.
LONG_S = 1800


def take(driver: Driver, name: str) -> None:
    """Write the screen as it is."""
    picture = driver.app.export_screenshot(title="tuirig")
    picture = re.sub(r"terminal-\d+", "terminal", picture)
    (HERE / f"{name}.svg").write_text(tidied(picture))
    print(name, flush=True)


async def take_both(driver: Driver, name: str) -> None:
    """The screen at both sizes; it ends at the larger one."""
    for size, (width, height) in SIZES.items():
        await driver.pilot.resize_terminal(width, height)
        await driver.pilot.pause(0.3)
        take(driver, f"{name}-{size}")


@asynccontextmanager
async def opened(rig: str) -> AsyncIterator[Driver]:
    """The program on a rig."""
    app = TuirigApp(list_rigs(), find_rig(rig))
    async with app.run_test(size=SIZES["120x36"], notifications=True) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: driver.screen.is_mounted)
        await driver.pilot.pause(0.5)
        await driver.until_quiet()
        yield driver
        await driver.screen.close_session()


async def choose(driver: Driver, setting: Setting) -> None:
    """Put the cursor on a cell."""
    driver.screen.view.cursor = setting
    driver.screen._show()
    await driver.pilot.pause()


async def dialog(driver: Driver, key: str = "", timeout_s: float = 60) -> None:
    """Press a key, if any, and wait for a dialog."""
    if key:
        await driver.press(key)
    await driver.until(lambda: isinstance(driver.app.screen, ModalScreen), timeout_s)
    driver.app.clear_notifications()
    await driver.pilot.pause(0.3)


async def closed(driver: Driver, key: str) -> None:
    """Answer the dialog and wait until it is gone."""
    await driver.press(key)
    await driver.until(lambda: not isinstance(driver.app.screen, ModalScreen))


async def stream(driver: Driver, setting: Setting, tokens: int) -> None:
    """Stream a reply until most of it is there."""
    view = driver.screen.view
    await choose(driver, setting)
    await driver.press("enter")
    await driver.until(lambda: view.running == setting)
    await driver.until_quiet()
    driver.app.clear_notifications()
    driver.screen.tokens = tokens
    view.prompt_index = 12
    await driver.press("space")
    await driver.until(lambda: view.streaming and view.predicted_n > tokens * 5 // 8)


def best(driver: Driver) -> Setting:
    """The setting with the star."""
    return next(cell.setting for cell in driver.screen.view.board.cells().values() if cell.best)


async def measure(driver: Driver, names: Sequence[str]) -> None:
    """Measure some cells."""
    replies = driver.screen.view.board.replies
    for name in names:
        setting = parse_setting(name)
        await choose(driver, setting)
        await driver.press("m")
        await driver.until(lambda s=setting: len(replies(s)) >= 12, timeout_s=300)
        await driver.until_quiet()


async def gpu_screen(rig: str) -> None:
    """The main screen while a GPU works."""
    async with opened(rig) as driver:
        await measure(driver, GPU_MEASURED)
        await stream(driver, best(driver), 1500)
        take(driver, "gpu-120x36")


async def runs(driver: Driver) -> None:
    """A tune, its profile saved, and a comparison of its outcome with no drafter."""
    await dialog(driver, "t")
    await take_both(driver, "plan")
    await closed(driver, "enter")
    await dialog(driver, timeout_s=LONG_S)
    await take_both(driver, "save")
    await closed(driver, "enter")
    await driver.until_quiet()
    tuned = driver.screen.view.cursor
    await choose(driver, NONE)
    await driver.press("a")
    await choose(driver, tuned)
    await driver.press("b")
    await dialog(driver, "c")
    await closed(driver, "enter")
    await driver.until(lambda: not driver.screen.jobs.name, LONG_S)
    driver.app.clear_notifications()


async def main_screens(driver: Driver) -> None:
    """A reply while it streams, and the same screen in other colours."""
    await stream(driver, best(driver), 1024)
    await take_both(driver, "main")
    await driver.press("escape")
    await driver.until_quiet()
    driver.app.clear_notifications()
    dark = driver.app.theme
    for word, theme in (("light", "textual-light"), ("ansi", "ansi-dark")):
        driver.app.theme = theme
        await driver.pilot.pause(0.3)
        take(driver, f"main-{word}-120x36")
    driver.app.theme = dark
    await driver.pilot.pause(0.3)


async def beside(driver: Driver) -> None:
    """The screens beside the grid, keys and quit."""
    for key, name in SCREENS.items():
        await driver.press(key)
        await driver.until(lambda name=name: getattr(driver.app.screen, "NAME", "") == name)
        await driver.pilot.pause(1)
        await take_both(driver, name)
    await driver.press("1")
    for key, name in (("question_mark", "keys"), ("q", "quit")):
        await dialog(driver, key)
        await take_both(driver, name)
        await closed(driver, "escape")


async def failed_start() -> None:
    """A rig of one's own that names an adapter which is not there."""
    text = built_in_text(RIG).replace(RIG, "my-rig", 1).replace("Built in. ", "", 1)
    locations.rigs_folder().mkdir(parents=True, exist_ok=True)
    path = locations.rigs_folder() / "my-rig.toml"
    lacking = text.replace('"off"]', '"off", "--lora", "advice-lora.gguf"]')
    assert lacking != text
    path.write_text(lacking, encoding="utf-8")
    async with opened("my-rig") as driver:
        await driver.press("enter")
        await driver.until(lambda: driver.screen.view.server.state is ServerState.FAILED)
        await driver.until_quiet()
        await driver.pilot.pause(0.5)
        await take_both(driver, "failed")


async def pictures() -> None:
    """All pictures of the built-in rig; 6 prompts a start, half of what the program takes."""
    main_screen.ARM_PROMPTS = 6
    async with opened(RIG) as driver:
        await take_both(driver, "first-start")
    await ensure(RIG, ignore)
    async with opened(RIG) as driver:
        await runs(driver)
        await main_screens(driver)
        await beside(driver)
    await failed_start()


def main() -> None:
    """All pictures, or the one of a GPU."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpu", metavar="RIG")
    if rig := parser.parse_args().gpu:
        asyncio.run(gpu_screen(rig))
    else:
        at_home(lambda: asyncio.run(pictures()))


if __name__ == "__main__":
    main()
