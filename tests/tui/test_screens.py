"""The screens beside the grid, by their keys."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from textual.app import App
from textual.command import CommandPalette
from textual.screen import Screen
from textual.widgets import Log

from tests.rigs.test_profile import PROFILE
from tests.runs.stored import arm, circumstances, reply
from tests.tui.driving import Driver, driving, servers
from tests.tui.test_look import show_measured, still
from tests.tui.test_main_screen import LONG, choose
from tuirig.files.profiles import all_profiles, write_profile
from tuirig.records import Cooling
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.store import ArmState, RunState, Store
from tuirig.tui.app import TuirigApp
from tuirig.tui.dialogs import Choice, KeyHelp
from tuirig.tui.keys import ALL, KEYS, OTHERS, TUNE, keys_of, rows
from tuirig.tui.main_screen import MainScreen
from tuirig.tui.screens import make_screen
from tuirig.tui.screens.base import OtherScreen
from tuirig.tui.screens.compare import Texts
from tuirig.tui.screens.history import RunList
from tuirig.tui.screens.profiles import ProfileTable

NUMBERS = {key.keys: key.action.split("'")[1] for key in KEYS if key.keys.isdigit()}


def shown(driver: Driver) -> str:
    """The name of the screen that is seen."""
    screen = driver.app.screen
    return TUNE if screen is driver.screen else getattr(screen, "NAME", "")


async def go_to(driver: Driver, key: str) -> None:
    await driver.press(key)
    await driver.until(lambda: shown(driver) == NUMBERS[key])
    await driver.pilot.pause()


def test_every_screen_beside_the_grid_has_its_number() -> None:
    assert tuple(NUMBERS.values()) == OTHERS
    assert tuple(NUMBERS) == ("2", "3", "4", "5", "6")


@pytest.mark.parametrize("start", ["", *NUMBERS])
async def test_numbers_lead_from_everywhere_and_1_and_escape_back(start: str) -> None:
    async with still("80x24") as driver:
        for number in NUMBERS:
            if start:
                await go_to(driver, start)
            await go_to(driver, number)
            assert len(driver.app.screen_stack) == 2
            await driver.press("1" if int(number) % 2 else "escape")
            await driver.until(lambda: shown(driver) == TUNE)


@pytest.mark.parametrize("start", ["", "5"])
async def test_the_palette_leads_there_too(start: str) -> None:
    async with still("120x36") as driver:
        if start:
            await go_to(driver, start)
        await driver.press("ctrl+p")
        await driver.until(lambda: isinstance(driver.app.screen, CommandPalette))
        await driver.press(*"profiles")
        await driver.until(lambda: "which are stale" in driver.text())
        await driver.press("down", "enter")
        await driver.until(lambda: shown(driver) == "profiles")


@pytest.mark.parametrize("number", NUMBERS)
async def test_help_shows_the_keys_of_the_screen(number: str) -> None:
    async with still("200x60") as driver:
        await go_to(driver, number)
        await driver.press("question_mark")
        await driver.until(lambda: isinstance(driver.app.screen, KeyHelp))
        await driver.pilot.pause()
        for keys, does in rows(NUMBERS[number]):
            assert f"{keys}  {does}" in driver.text()
        assert "restart the server" not in driver.text()
        await driver.press("escape")
        await driver.until(lambda: shown(driver) == NUMBERS[number])


def test_every_action_has_a_key_and_stands_in_the_help() -> None:
    screens = {TUNE: MainScreen, **{name: type(make_screen(name)) for name in OTHERS}}
    assert tuple(screens) == ALL
    for name, screen in screens.items():
        keyed = {action(key.action) for key in keys_of(name)}
        own = {
            attribute.removeprefix("action_")
            for kind in (TuirigApp, *screen.__mro__)
            if kind.__module__.startswith("tuirig.")
            for attribute in vars(kind)
            if attribute.startswith("action_")
            and not hasattr(App, attribute)
            and not hasattr(Screen, attribute)
        }
        assert own <= keyed, f"{name}: {own - keyed} can't be reached"
        for one in keyed:
            assert any(hasattr(kind, f"action_{one}") for kind in (TuirigApp, screen)), one
        told = rows(name)
        for key in keys_of(name):
            assert any(
                key.shown in keys and does == (key.help or key.title) for keys, does in told
            ), key


def test_every_line_of_the_help_fits_into_80_columns() -> None:
    assert max(len(f"{keys:>15}  {does}") for keys, does in rows()) <= 80 - 4


def action(of: str) -> str:
    found = re.match(r"(?:app\.)?(\w+)", of)
    assert found
    return found[1]


async def test_what_runs_goes_on_and_is_seen(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        driver.screen.tokens = LONG
        await driver.press("space")
        await driver.until(lambda: view.streaming and view.predicted_n > 2)
        await go_to(driver, "2")
        await driver.press("escape")
        await driver.until(lambda: shown(driver) == TUNE)
        await driver.until(lambda: view.board.replies(NONE))  # a cancelled reply leaves none
        await driver.until_quiet()
        await go_to(driver, "4")
        await driver.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("escape")
        await driver.until(lambda: shown(driver) == "profiles")
        assert len(servers()) == 1


async def test_compare_says_what_to_do() -> None:
    async with still("80x24") as driver:
        await go_to(driver, "2")
        for expected in ("no cell is marked", "press a", "press b", "A B B A"):
            assert expected in driver.text()
        await driver.press("1")
        await driver.press("a")
        await go_to(driver, "2")
        assert "A is none, the other one is not marked" in driver.text()


async def test_compare_is_followed_live_with_both_texts(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    monkeypatch.setattr("tuirig.runs.ab.MOST_BLOCKS", 1)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("a")
        await choose(driver, Setting("q4_0", 1))
        await driver.press("b")
        await go_to(driver, "2")
        assert "not compared yet: c compares" in driver.text()
        await driver.press("c")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: shown(driver) == "compare" and "/4 " in driver.text())
        await driver.until(lambda: "against none: " in driver.toasts(), timeout_s=120)
        await driver.until_quiet()
        await driver.until(lambda: f"2+2    {view.moves[-1].ratio:.3f}" in driver.text())
        assert len(view.moves) >= 3
        texts = driver.app.screen.query_one(Texts)
        first, number, count = texts.prompt
        assert (number, count) == (1, 2)
        written = view.board.replies(NONE)[-1].text.split()[0]
        assert written in driver.text()
        await driver.press("p")
        assert texts.prompt[0] != first
        await driver.press("p")
        assert texts.prompt[0] == first


async def test_history_lists_runs_and_shows_the_chosen_one() -> None:
    rig = "3050-e4b"
    with Store() as store:
        for speed in (58.3, 61.7):
            run = store.begin_run("ab", rig, {})
            number = store.begin_arm(run, "none", {}, circumstances(), Cooling())
            answer = reply(speed)
            store.add_reply(number, 0, answer)
            store.end_arm(number, ArmState.MEASURED, 4.0, record=arm("none", (answer,)))
            store.end_run(run, RunState.CANCELLED)
    async with still("80x24") as driver:
        await go_to(driver, "3")
        await driver.until(lambda: "61.7 tok/s" in driver.text())
        await driver.press("j")
        await driver.until(lambda: "58.3 tok/s" in driver.text())
        await driver.press("home")
        await driver.until(lambda: "61.7 tok/s" in driver.text())
        assert driver.app.screen.query_one(RunList).count == 2


async def test_profiles_of_the_table_and_the_whole_of_one() -> None:
    write_profile(PROFILE)
    async with still("120x36") as driver:
        await go_to(driver, "4")
        table = driver.app.screen.query_one(ProfileTable)
        await driver.until(lambda: table.count)
        assert [one.file.name for one in table.listed] == [file.name for file in all_profiles()]
        mine = next(n for n, one in enumerate(table.listed) if not one.file.shipped)
        await driver.press(*["j"] * mine)
        await driver.until(lambda: table.cursor == mine)
        profile = table.listed[mine].content
        await driver.until(lambda: str(table.listed[mine].file.path.name) in driver.text())
        assert "schema = 1" not in driver.text()
        await driver.press("enter")
        await driver.until(lambda: "schema = 1" in driver.text())
        assert f'setting = "{profile.setting}"' in driver.text()
        await driver.press("end")
        await driver.until(lambda: "reference" in driver.text() or "note" in driver.text())
        assert table.cursor == mine
        await driver.press("enter")
        await driver.until(
            lambda: "schema = 1" not in driver.text() and "note" not in driver.text()
        )


async def test_a_broken_profile_is_shown_with_its_place() -> None:
    path = write_profile(PROFILE)
    path.write_text("schema = 1\nsetting = 3\n")
    async with still("200x60") as driver:
        await go_to(driver, "4")
        await driver.until(lambda: "file with an error" in driver.text())
        table = driver.app.screen.query_one(ProfileTable)
        broken = next(n for n, one in enumerate(table.listed) if one.file.path == path)
        await driver.press(*["j"] * broken)
        await driver.until(lambda: table.cursor == broken)
        await driver.until(lambda: "expected a string" in driver.text())


async def test_files_by_their_headers(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    first, *others = tiny_gemma4_rig.drafter
    absent = msgspec.structs.replace(first, path=str(tmp_path / "absent.gguf"))
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(absent, *others))
    async with driving(rig, size=(200, 60)) as driver:
        await go_to(driver, "5")
        await driver.until(lambda: "fits the target" in driver.text())
        said = driver.text()
        for expected in (
            "absent.gguf", "missing", "no such file", "next: ", "gemma4 · ", "gemma4-assistant",
            "q8_0 · ", "memory of none: ", "no file of its own", "free: fits",
        ):  # fmt: skip
            assert expected in said


async def test_the_log_is_followed_and_scrolled(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig, size=(80, 24)) as driver:
        await go_to(driver, "6")
        assert "no log yet" in driver.text()
        await driver.press("1", "enter")
        await driver.until_state("ready")
        await go_to(driver, "6")
        log = driver.app.screen.query_one(Log)
        await driver.until(lambda: log.line_count > 40)
        await driver.until(lambda: log.is_vertical_scroll_end)
        await driver.press("home")
        await driver.until(lambda: log.scroll_y == 0)
        await driver.press("j", "pagedown")
        await driver.until(lambda: log.scroll_y > 1)
        await driver.press("end")
        await driver.until(lambda: log.is_vertical_scroll_end)
        lines = log.line_count
        await driver.press("1", "space")
        await driver.until(lambda: driver.screen.view.board.replies(NONE))
        await go_to(driver, "6")
        log = driver.app.screen.query_one(Log)
        await driver.until(lambda: log.line_count > lines and log.is_vertical_scroll_end)


async def test_a_screen_keeps_nothing_open_that_it_replaced() -> None:
    async with still("80x24") as driver:
        await show_measured(driver)
        await go_to(driver, "6")
        first = driver.app.screen
        await go_to(driver, "2")
        await driver.until(lambda: not first.is_attached)
        assert not any(worker.node is first and worker.is_running for worker in driver.app.workers)
        assert isinstance(driver.app.screen, OtherScreen)


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_screen_that_is_left_at_once_breaks_nothing(number: str) -> None:
    """What it reads beside the screen comes when its widgets are gone."""
    async with still("80x24") as driver:
        for _ in range(5):
            await driver.press(number, "escape")
        await driver.until(lambda: shown(driver) == TUNE)
        await driver.until(lambda: not any(one.is_running for one in driver.app.workers))
