"""How the screen looks at three sizes, dark, light and without colour.

The pictures are SVG beside this file; `pytest --snapshot-update` makes them again.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension

from tests.tui import example
from tests.tui.driving import Driver, found
from tuirig.events import Failed, Progress, ReplyDone, ServerState
from tuirig.rigs.settings import Setting
from tuirig.runs.board import Earlier
from tuirig.runs.catalog import FoundRig, Listing
from tuirig.tui.app import TuirigApp
from tuirig.tui.dialogs import Choice, KeyHelp, RigPicker
from tuirig.tui.main_screen import MainScreen
from tuirig.tui.widgets import Details

SIZES = {"80x24": (80, 24), "120x36": (120, 36), "200x60": (200, 60)}
TEXT = "Here is a function that walks the list once and turns each link around.\n\n" + (
    "def reverse(head):\n    previous = None\n    while head:\n"
    "        head.next, previous, head = previous, head, head.next\n    return previous\n"
)


class StillScreen(MainScreen):
    """Shows what it is told and opens nothing."""

    def _open_quietly(self) -> None:
        return

    def _look_up_command(self) -> None:
        self.query_one(Details).command = (
            "llama-server -m /models/gemma-4-E4B-it-q4_0-exact.gguf -ngl 99 -c 8192 -fa on"
            " --host 127.0.0.1 --port 41873 -np 1 --metrics -md /models/assistant-q4_0.gguf"
            " --spec-type draft-mtp --spec-draft-n-max 2"
        )


@asynccontextmanager
async def still(size: str, theme: str | None = None) -> AsyncIterator[Driver]:
    """The example rig with its published figures, nothing running behind it."""
    places = [found(example.rig())]
    listings = (
        Listing("3050-e4b", places[0]),
        Listing("3050-e2b", FoundRig(example.rig(), None)),
        Listing("t4", FoundRig(example.rig(), None)),
    )
    app = TuirigApp(listings, places[0])
    app.main = StillScreen(listings, places[0])
    if theme:
        app.theme = theme
    async with app.run_test(size=SIZES[size]) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: driver.screen.is_mounted)
        yield driver


async def show_measured(driver: Driver) -> None:
    """The example, measured and ready."""
    driver.screen.view = example.measured()
    driver.screen.view.cursor = Setting("q4_0", 2)
    driver.screen.view.text = TEXT
    driver.screen.view.trend = [20, 60, 90, 97, 100, 99, 101, 100, 100, 98, 100]
    driver.screen._show_rig()
    await driver.pilot.pause()


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(SVGImageSnapshotExtension)


def svg(driver: Driver) -> str:
    """The screen without what differs between two equal pictures."""
    return re.sub(r"terminal-\d+", "terminal", driver.app.export_screenshot())


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize("size", SIZES)
async def test_measured(size: str, theme: str, picture: SnapshotAssertion) -> None:
    async with still(size, theme) as driver:
        await show_measured(driver)
        assert svg(driver) == picture


@pytest.mark.parametrize("size", SIZES)
async def test_measured_without_colour(
    size: str, picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with still(size) as driver:
        await show_measured(driver)
        assert svg(driver) == picture


@pytest.mark.parametrize("size", ["80x24", "120x36"])
async def test_first_start(size: str, picture: SnapshotAssertion) -> None:
    async with still(size) as driver:
        await driver.pilot.pause()
        assert svg(driver) == picture


@pytest.mark.parametrize("size", ["80x24", "120x36"])
async def test_an_earlier_run(size: str, picture: SnapshotAssertion) -> None:
    """Figures of now, of an earlier run, and stale ones."""
    async with still(size) as driver:
        view = driver.screen.view
        view.apply(ReplyDone(setting="none", reply=example.reply(58.3)), 0)
        older = {"q4_0:1": (89.8, ()), "q4_0:2": (100.0, ("driver 550.1 -> 560.2",))}
        view.board.begin_with(
            {
                setting: Earlier(12, "2026-11-30", (example.reply(tok_s),), changes)
                for setting, (tok_s, changes) in older.items()
            }
        )
        view.cursor = Setting("q4_0", 2)
        driver.screen._show()
        await driver.pilot.pause()
        assert svg(driver) == picture


@pytest.mark.parametrize("size", ["80x24", "120x36"])
async def test_busy_and_failed(size: str, picture: SnapshotAssertion) -> None:
    async with still(size) as driver:
        await show_measured(driver)
        view = driver.screen.view
        view.apply(example.server(ServerState.FAILED, "bf16:2"), 0)
        view.apply(
            Failed(
                message="the server did not start: the drafter is cut short (exit code 1)",
                hint="fetch the file again",
                evidence=("E llama_model_load: tensor data is not within the file bounds",),
                setting="bf16:2",
            ),
            0,
        )
        view.apply(Progress(what="hashing assistant-q4_0.gguf", done=30, total=100, unit="B"), 0)
        view.cursor = Setting("bf16", 2)
        driver.screen._show()
        await driver.pilot.pause()
        assert svg(driver) == picture


@pytest.mark.parametrize("size", ["80x24", "120x36"])
@pytest.mark.parametrize("dialog", ["keys", "rigs", "save", "quit"])
async def test_dialogs(dialog: str, size: str, picture: SnapshotAssertion) -> None:
    async with still(size) as driver:
        await show_measured(driver)
        screen = {
            "keys": lambda: KeyHelp(),
            "rigs": lambda: RigPicker(driver.screen.listings, driver.screen.view),
            "save": lambda: Choice(
                "Save q4_0:2 to ~/.local/share/tuirig/profiles/nvidia-geforce-rtx-3050/x.toml",
                "setting: q4_0:1 -> q4_0:2\nevidence.tok_s: 89.8 -> 100.0\n",
                [("enter", "save", "save")],
            ),
            "quit": lambda: Choice(
                "q4_0:2 is running at http://127.0.0.1:41873",
                "",
                [("s", "stop", "stop it and quit"), ("k", "keep", "keep serving and quit")],
            ),
        }[dialog]()
        driver.app.push_screen(screen)
        await driver.pilot.pause()
        assert svg(driver) == picture
