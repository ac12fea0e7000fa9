"""How the screens beside the grid look at three sizes, dark, light and without colour."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension
from textual.widgets import Log

from tests.rigs.test_profile import LEAST, PROFILE
from tests.runs.stored import circumstances, reply
from tests.tui import test_compare_panel
from tests.tui.driving import Driver, found
from tests.tui.test_look import SIZES, show_measured, still, svg
from tests.tui.test_screens import NUMBERS, go_to
from tuirig.errors import FileError
from tuirig.files.profiles import ProfileFile
from tuirig.records import Cooling
from tuirig.rigs.schema import Rig
from tuirig.runs.fitting import Unfit
from tuirig.runs.profile_list import ListedProfile
from tuirig.runs.rig_files import RigFiles, look_at_files
from tuirig.runs.staleness import Staleness
from tuirig.runs.store import ArmState, Store
from tuirig.tui.screens.files import FileList
from tuirig.tui.screens.profiles import ProfileTable

TEXT = (
    "Here is a function that walks the list once and turns each link around.\n\n"
    "def reverse(head):\n    previous = None\n    while head:\n"
)
LOG = "".join(f"srv  update_slots: id  0 | task {n} | new prompt\n" for n in range(80))


def listed() -> tuple[ListedProfile, ...]:
    """One that is stale, one of another card, one whose file is broken."""
    folder = Path("/home/me/.local/share/tuirig/profiles")

    def file(name: str, content: object) -> ProfileFile:
        return ProfileFile(name, folder / f"{name}.toml", False, content)  # type: ignore[arg-type]

    changes = ("server build b1-7e4c0a9 -> b2-1234567", "driver 615.1 -> 616.0")
    broken = FileError(str(folder / "b/broken.toml"), "expected a string", line=2, key="setting")
    return (
        ListedProfile(
            file("card-one/target-q4-0", PROFILE), "this card", Staleness("rig", changes)
        ),
        ListedProfile(file("cpu/m", LEAST), "other card"),
        ListedProfile(file("b/broken", broken)),
    )


def looked(rig: Rig) -> RigFiles:
    """The small rig's files as if they stood elsewhere, one of them missing, one not fitting."""
    files = [
        replace(one, place=f"/models/{Path(one.place).name}" if one.place else "")
        for one in look_at_files(found(rig), server_runs=True).files
    ]
    absent = Unfit("f16", "no such file", "tuirig fetch rig")
    files[1] = replace(files[1], size_mib=None, inspection=None, memory=None, problems=(absent,))
    files[2] = replace(files[2], problems=(Unfit("q8_0", "it is for another target"),))
    return RigFiles(tuple(files), None)


def store_runs() -> None:
    """A run of two starts; its time is not shown in the picture."""
    with Store() as store:
        run = store.begin_run("ab", "3050-e4b", {})
        for setting, speed in (("none", 58.3), ("q4_0:2", 100.0)):
            arm = store.begin_arm(run, setting, {}, circumstances(setting), Cooling())
            store.add_reply(arm, 0, reply(speed, kept=0.48 if setting != "none" else None))
            store.end_arm(arm, ArmState.FAILED, 4.0)


@asynccontextmanager
async def opened(
    name: str, size: str, theme: str | None, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Driver]:
    """A screen with something on it."""

    async def profiles() -> tuple[ListedProfile, ...]:
        return listed()

    monkeypatch.setattr("tuirig.runs.profile_list.listed_profiles", profiles)
    monkeypatch.setattr("tuirig.runs.store.now", lambda: "2026-11-30T22:10:00+00:00")
    store_runs()
    async with still(size, theme) as driver:
        await show_measured(driver)
        driver.screen.view = test_compare_panel.compared(
            f"{TEXT}        head.next, previous = previous, head\n    return previous\n",
            f"{TEXT}        # the next one comes first\n    return previous\n",
        )
        if name == "log":
            # The path of its file is not the same twice.
            log_path = Path("/var/tuirig/3050-e4b.log")
            monkeypatch.setattr("tuirig.locations.log_path", lambda rig: log_path)
        await go_to(driver, {shown: number for number, shown in NUMBERS.items()}[name])
        screen = driver.app.screen
        if name == "log":
            screen.query_one(Log).write(LOG)
        elif name == "files":
            listing = screen.query_one(FileList)
            await driver.until(lambda: listing.looked)
            listing.looked = looked(rig)
            listing.redraw()
        elif name == "profiles":
            await driver.until(lambda: screen.query_one(ProfileTable).count)
        elif name == "history":
            await driver.until(lambda: "goes on" in driver.text() and "of 6" in driver.text())
        await driver.pilot.pause()
        yield driver


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(SVGImageSnapshotExtension)


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", "no colour"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NUMBERS.values())
async def test_screens(
    name: str,
    size: str,
    theme: str,
    picture: SnapshotAssertion,
    tiny_gemma4_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if theme == "no colour":
        monkeypatch.setenv("NO_COLOR", "1")
    colours = None if theme == "no colour" else theme
    async with opened(name, size, colours, tiny_gemma4_rig, monkeypatch) as driver:
        assert svg(driver) == picture


@pytest.mark.parametrize("size", SIZES)
async def test_a_whole_profile(
    size: str,
    picture: SnapshotAssertion,
    tiny_gemma4_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with opened("profiles", size, None, tiny_gemma4_rig, monkeypatch) as driver:
        await driver.press("enter")
        await driver.until(lambda: "schema = 1" in driver.text())
        assert svg(driver) == picture


@pytest.mark.parametrize("size", ["80x24", "120x36"])
async def test_nothing_to_compare(size: str, picture: SnapshotAssertion) -> None:
    async with still(size) as driver:
        await go_to(driver, "2")
        assert svg(driver) == picture
