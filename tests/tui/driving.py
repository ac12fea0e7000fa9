"""Drives the screen as a person does, with a real server behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from textual.pilot import Pilot

from tuirig.rigs.schema import Rig
from tuirig.runs.catalog import FoundRig, Listing
from tuirig.tui.app import TuirigApp
from tuirig.tui.main_screen import MainScreen


def found(rig: Rig) -> FoundRig:
    """A rig as if it had been read from a file."""
    return FoundRig(rig, Path(f"{rig.name}.toml").absolute())


class Driver:
    """The screen of one or more rigs, the first one open."""

    def __init__(self, app: TuirigApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> MainScreen:
        return self.app.main

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def until(self, condition: Callable[[], object], timeout_s: float = 60) -> None:
        """Wait for a condition; AssertionError with the state of the screen after a time."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not condition():
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"never came true; the screen:\n{self.text()}")
            await self.pilot.pause(0.02)

    async def until_state(self, word: str) -> None:
        await self.until(lambda: str(self.screen.view.server.state) == word)

    async def until_quiet(self) -> None:
        await self.until(lambda: not self.screen.jobs.name)

    def text(self) -> str:
        """The screen as plain text."""
        width = self.app.size.width
        rows = self.app.screen._compositor.render_strips()
        return "\n".join(strip.crop(0, width).text.rstrip() for strip in rows)

    def toasts(self) -> str:
        """All notifications so far."""
        return "\n".join(item.message for item in self.app._notifications)


@asynccontextmanager
async def driving(
    *rigs: Rig, size: tuple[int, int] = (120, 36), path: Path | None = None
) -> AsyncIterator[Driver]:
    """Open the screen; at the end nothing is left running. path: the first rig's file."""
    places = [found(rig) for rig in rigs]
    if path is not None:
        places[0] = FoundRig(rigs[0], path)
    listings = tuple(Listing(place.rig.name, place) for place in places)
    app = TuirigApp(listings, places[0])
    async with app.run_test(size=size) as pilot:
        driver = Driver(app, pilot)
        await driver.until(lambda: driver.screen.is_mounted)
        try:
            yield driver
        finally:
            if app.is_running:
                await driver.screen.close_session()


def servers() -> list[psutil.Process]:
    """llama-servers among the descendants of this process."""
    return [
        child
        for child in psutil.Process().children(recursive=True)
        if child.is_running()
        and child.status() != psutil.STATUS_ZOMBIE
        and child.name() == "llama-server"
    ]
