"""What a person who knows the keyboard expects: nothing lost, nothing ended by mistake."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec
import psutil
import pyte
import pytest
from textual.widgets import Static

from tests.terminal import PAINTED, Terminal
from tests.tui.driving import Driver, driving, servers
from tests.tui.test_in_a_terminal import ready, rig_file  # noqa: F401
from tests.tui.test_look import SIZES, show_measured, still
from tests.tui.test_main_screen import LONG, choose
from tuirig import locations
from tuirig.events import ReplyStarted
from tuirig.files.config import config_path
from tuirig.files.layout import Layout, layout_path, read_layout, remember_layout
from tuirig.hosts.remembered import end_remembered, remembered_servers
from tuirig.measure.prompts import PROMPTS
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting
from tuirig.tui.app import TuirigApp
from tuirig.tui.dialogs import Choice, Messages
from tuirig.tui.followed_log import FollowedLog, LogPane
from tuirig.tui.keys import ALL, TUNE, keys_of
from tuirig.tui.panels import reply


async def test_measure_right_after_escape_is_a_new_queue(tiny_gemma4_rig: Rig) -> None:
    """The old queue is still ending then; joining it would lose the setting."""
    async with driving(tiny_gemma4_rig) as driver:
        view, screen = driver.screen.view, driver.screen
        await driver.press("m")
        await driver.until(lambda: view.measuring == NONE and view.streaming)
        await choose(driver, Setting("f16", 1))
        screen.jobs.cancel()
        screen.action_measure()
        assert screen.jobs.ending
        await driver.until(lambda: view.measuring == Setting("f16", 1))
        await driver.press("escape")
        await driver.until_quiet()
        assert not view.waiting and view.measuring is None


async def test_a_selection_is_measured_as_a_queue(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await choose(driver, Setting("f16", 1))
        await driver.press("v", "j", "l")
        chosen = [Setting(row, length) for row in ("f16", "q8_0") for length in (1, 2)]
        assert list(view.selection) == chosen
        assert {view.mark(setting) for setting in chosen} == {"v"}
        assert view.mark(NONE) == ""
        await driver.press("escape")
        assert not view.selection
        await driver.press("v", "k", "m")
        assert not view.selection
        for setting in (Setting("f16", 2), Setting("q8_0", 2)):
            await driver.until(lambda one=setting: len(view.board.replies(one)) == 2)
        await driver.until_quiet()
        assert not view.board.replies(Setting("f16", 1))


async def test_the_time_of_those_that_wait_is_told(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        view.waiting = [Setting("f16", 1), Setting("f16", 2)]
        assert view.waiting_s is None  # nothing is known yet
        view.measure_s = 12.0
        assert view.waiting_s == 24.0


@pytest.mark.parametrize("key", ["escape", "enter", "space", "t", "x"])
async def test_what_has_run_for_long_is_not_ended_by_one_key(
    key: str, tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.LONG_S", 0.0)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        driver.screen.tokens = LONG
        await driver.press("m")
        await driver.until(lambda: view.streaming and view.predicted_n > 2)
        await driver.press(key)
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.pilot.pause()
        assert "measure has run for" in driver.text()
        await driver.press("escape")
        await driver.until(lambda: driver.app.screen is driver.screen)
        assert driver.screen.jobs.name == "measure" and not driver.screen.jobs.ending
        await driver.press("escape")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until_quiet()


async def test_messages_can_be_read_again_and_are_not_doubled(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, Messages))
        await driver.pilot.pause()
        assert "none yet" in driver.text()
        await driver.press("escape")
        await driver.press("c", "c", "s")
        assert [one.message.split()[0] for one in driver.app.told] == ["mark", "none"]
        await driver.press("3")
        await driver.until(lambda: driver.app.screen is not driver.screen)
        await driver.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, Messages))
        await driver.pilot.pause()
        assert driver.text().index("is not measured yet") < driver.text().index("mark two settings")


async def failing(driver: Driver, key: str) -> str:
    """Start a server that fails; the screen then."""
    await driver.press(key)
    await driver.until_state("failed")
    await driver.until_quiet()
    await driver.until(lambda: "the target has no MTP layers" in driver.text())
    return driver.text()


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
@pytest.mark.parametrize("key", ["enter", "space"])
async def test_a_failed_start_opens_the_log_at_the_line_that_says_why(
    key: str, size: tuple[int, int], tiny_gemma4_rig: Rig
) -> None:
    args = (*tiny_gemma4_rig.server.args, "--spec-type", "draft-mtp")
    server = msgspec.structs.replace(tiny_gemma4_rig.server, args=args)
    rig = msgspec.structs.replace(tiny_gemma4_rig, server=server)
    async with driving(rig, size=size) as driver:
        shown = await failing(driver, key)
        assert "next: draft-mtp needs a drafter file" in shown
        assert "Enter starts it again" in shown
        assert driver.screen.has_class("-log")
        log = driver.screen.query_one(FollowedLog)
        (line,) = {number for number, line in enumerate(log.lines) if "contain MTP layers" in line}
        await driver.until(
            lambda: log.scroll_offset.y <= line < log.scroll_offset.y + log.size.height
        )
        # The next steps are keys: the files, the log's own screen, another try.
        await driver.press("6")
        await driver.until(lambda: driver.app.screen is not driver.screen)
        await driver.until(lambda: "the target has no MTP layers" in driver.text())
        await driver.press("escape", "enter")
        await driver.until(lambda: driver.screen.view.server.state == "failed")
        await driver.until_quiet()
        await driver.press("escape")
        await driver.until(lambda: not driver.screen.has_class("-log"))


async def test_a_held_log_loses_nothing(tiny_gemma4_rig: Rig) -> None:
    path = locations.log_path(tiny_gemma4_rig.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("first\n")
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("o")
        await driver.until(lambda: driver.screen.has_class("-log"))
        log = driver.screen.query_one(FollowedLog)
        await driver.until(lambda: list(log.lines)[:1] == ["first"])
        await driver.press("f")
        with path.open("a") as file:
            file.write("while it was held\n")
        assert log.held
        await driver.press("f")
        await driver.until(lambda: list(log.lines)[:2] == ["first", "while it was held"])


async def test_the_log_says_what_to_do_while_there_is_none(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("o")
        await driver.until(lambda: driver.screen.has_class("-log"))
        said = driver.screen.query_one(LogPane).query_one(".why", Static)
        assert said.display and "Enter in the grid starts a server" in str(said.render())


async def test_cells_are_still_there_when_a_rig_is_opened_again(
    tiny_gemma4_rig: Rig, tiny_qwen35_rig: Rig
) -> None:
    async with driving(tiny_gemma4_rig, tiny_qwen35_rig, size=(80, 24)) as driver:
        await driver.press("space")
        await driver.until(lambda: driver.screen.view.board.replies(NONE))
        await driver.until_quiet()
        for name in ("tiny-qwen35", "tiny-gemma4"):
            await driver.press("r")
            await driver.until(lambda: driver.app.screen is not driver.screen)
            await driver.press("down" if name == "tiny-qwen35" else "up", "enter")
            if name == "tiny-qwen35":
                await driver.until(lambda: isinstance(driver.app.screen, Choice))
                await driver.press("enter")
            await driver.until(lambda one=name: driver.screen.view.rig.name == one)
            await driver.until_quiet()
        assert driver.screen.view.board.replies(NONE)
        assert driver.screen.view.server.state == "stopped"
        assert not servers()


async def test_text_is_selected_with_the_mouse_and_copied() -> None:
    async with still("120x36") as driver:
        await show_measured(driver)
        text = driver.screen.query_one("#reply")
        await driver.pilot.mouse_down(text, offset=(2, 1))
        await driver.pilot.hover(text, offset=(20, 1))
        await driver.pilot.mouse_up(text, offset=(20, 1))
        await driver.pilot.pause()
        selected = driver.screen.get_selected_text()
        assert selected and selected in "Here is a function that walks"
        await driver.press("ctrl+c")
        await driver.until(lambda: "copied through the terminal" in driver.toasts())
        assert driver.app.clipboard == selected
        assert (locations.state_folder() / "copied.txt").read_text() == f"{selected}\n"


async def test_the_title_names_the_prompt_of_the_text() -> None:
    async with still("120x36") as driver:
        view = driver.screen.view
        ours, other = PROMPTS[0], PROMPTS[1]
        assert reply.title(view) == f"Space streams: {ours.kind} · {ours.title}"
        view.streaming = ReplyStarted(
            setting="none", prompt_id=other.id, kind=other.kind, token_limit=8
        )
        assert reply.title(view) == f"{other.kind} · {other.title}"
        assert "reading the prompt" in str(reply.text(view, 60, 4))


def test_the_layout_is_remembered(tmp_path: Path) -> None:
    assert read_layout() == Layout()
    left = Layout(rig="b", log=True, prompt=PROMPTS[2].id)
    remember_layout(left)
    assert read_layout() == left
    layout_path().write_text("{torn")
    assert read_layout() == Layout()


async def test_the_screen_begins_as_it_was_left(tiny_gemma4_rig: Rig) -> None:
    left = Layout(rig="", log=True, prompt=PROMPTS[2].id)
    async with driving(tiny_gemma4_rig) as driver:
        driver.screen.lay_out(left)
        await driver.until(lambda: driver.screen.has_class("-log"))
        assert driver.screen.view.prompt == PROMPTS[2]
        assert driver.screen.layout_now == msgspec.structs.replace(left, rig="tiny-gemma4")


def test_a_lost_line_keeps_the_server_where_that_is_chosen(rig_file: Path) -> None:  # noqa: F811
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text('hangup = "keep"\n')
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        ready(terminal)
        terminal.hang_up()
        assert terminal.process.wait(timeout=60) == 129
    (server,) = remembered_servers()
    assert server.is_running() and server.detached
    asyncio.run(end_remembered(server))


def input_threads(pid: int) -> int:
    """Threads of a process that read its keys."""
    names = [(task / "comm").read_text().strip() for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(name.startswith("textual-input") for name in names)


@pytest.mark.skipif(sys.platform != "linux", reason="names of threads are read from /proc")
def test_a_stopped_program_goes_on_with_one_reader_of_keys(rig_file: Path) -> None:  # noqa: F811
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        terminal.wait_for(PAINTED)
        pid = terminal.process.pid
        named = input_threads(pid)
        for _ in range(2):
            mark = len(terminal.output)
            os.kill(pid, signal.SIGSTOP)
            while psutil.Process(pid).status() != psutil.STATUS_STOPPED:
                terminal.pump(0.01)
            os.kill(pid, signal.SIGCONT)
            terminal.wait_for(PAINTED, since=mark)
        assert input_threads(pid) == named
        mark = len(terminal.output)
        terminal.send("?")
        terminal.wait_for("Keys and words", since=mark)


@pytest.mark.parametrize("screen", ALL)
async def test_every_key_of_the_help_does_what_the_table_says(
    screen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    async def record(app: object, action: str, *rest: object, **options: object) -> bool:
        done.append(action)
        return True

    async with still("80x24") as driver:
        number = {name: str(place) for place, name in enumerate(ALL, 1)}[screen]
        if screen != TUNE:
            await driver.press(number)
            await driver.until(lambda: getattr(driver.app.screen, "NAME", "") == screen)
        monkeypatch.setattr(TuirigApp, "run_action", record)
        for key in keys_of(screen):
            for name in key.keys.split(","):
                done.clear()
                await driver.press(name)
                # Ctrl+Q is Textual's own, which leaves as q does.
                wanted = "quit" if name == "ctrl+q" else key.action.removeprefix("app.")
                assert [one.removeprefix("app.") for one in done] == [wanted], name


@pytest.mark.parametrize("number", ["", "2", "3", "4", "5", "6"])
async def test_another_size_shows_what_a_start_in_that_size_shows(number: str) -> None:
    shown = {}
    for first, then in (("200x60", "80x24"), ("80x24", "80x24"), ("80x24", "200x60")):
        async with still(first) as driver:
            await show_measured(driver)
            if number:
                await driver.press(number)
                await driver.until(lambda: driver.app.screen is not driver.screen)
            await driver.until(
                lambda: (
                    not any(
                        one.is_running and one.group in ("runs", "run", "profiles", "files")
                        for one in driver.app.workers
                    )
                )
            )
            await driver.pilot.resize_terminal(*SIZES[then])
            await driver.pilot.pause()
            await driver.until(lambda: "tuirig" in driver.text() or "3050" in driver.text())
            shown[first, then] = driver.text()
    assert shown["200x60", "80x24"] == shown["80x24", "80x24"]
    width = max(len(row) for row in shown["80x24", "200x60"].splitlines())
    assert width > 150 and len(shown["80x24", "200x60"].splitlines()) == 60


async def test_how_long_a_measurement_takes_is_told_before(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.workflows.WORTH_TELLING_S", 0.0)
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("m")
        await driver.until(lambda: "12 prompts take about" in driver.toasts())
        assert driver.screen.view.measure_s
        await driver.press("escape")
        await driver.until_quiet()


@pytest.mark.parametrize("then", ["space", "m", "enter"])
@pytest.mark.parametrize("first", ["x", "enter"])
async def test_a_server_that_is_on_its_way_out_is_not_asked(
    first: str, then: str, tiny_gemma4_rig: Rig
) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        screen = driver.screen
        for turn in range(4):
            await driver.press("enter")
            await driver.until_state("ready")
            await driver.until_quiet()
            screen.view.move(1, 0)
            screen.jobs.latest = ""
            {"x": screen.action_stop, "enter": screen.action_restart}[first]()
            await driver.until(lambda: bool(screen.jobs.latest))
            for _ in range(turn * 3):  # some steps into the stopping, the next key comes
                await asyncio.sleep(0)
            {
                "space": screen.action_stream,
                "m": screen.action_measure,
                "enter": screen.action_restart,
            }[then]()
            await driver.until(lambda: screen.jobs.name not in ("", "stop"))
            await driver.until(lambda: screen.view.running is not None)
            screen.jobs.cancel()
            await driver.until_quiet()
        assert driver.app.unexpected is None


async def test_a_long_message_is_wrapped_to_be_read_again() -> None:
    async with still("80x24") as driver:
        words = [f"word{number}" for number in range(40)]
        driver.app.notify(" ".join(words), markup=False)
        await driver.press("n")
        await driver.until(lambda: isinstance(driver.app.screen, Messages))
        await driver.pilot.pause()
        assert all(word in driver.text() for word in words)


def test_ctrl_z_leads_to_the_shell_and_fg_back(rig_file: Path) -> None:  # noqa: F811
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        terminal.wait_for(PAINTED)
        mark = len(terminal.output)
        terminal.send("\x1a")
        while psutil.Process(terminal.process.pid).status() != psutil.STATUS_STOPPED:
            terminal.pump(0.01)
        assert b"\x1b[?1049l" in terminal.output[mark:]
        mark = len(terminal.output)
        os.kill(terminal.process.pid, signal.SIGCONT)
        terminal.wait_for(PAINTED, since=mark)


def test_the_terminal_knows_its_size_better_than_the_environment(
    rig_file: Path,  # noqa: F811
) -> None:
    argv = [sys.executable, "-m", "tuirig", str(rig_file)]
    env = {"COLUMNS": "200", "LINES": "60"}
    with Terminal(argv, env=env) as terminal:
        terminal.wait_for(PAINTED)
        screen = pyte.Screen(200, 60)
        pyte.Stream(screen).feed(terminal.output.decode())
        assert max(len(row.rstrip()) for row in screen.display) <= 80


def test_quick_resizes_leave_no_part_unpainted(rig_file: Path) -> None:  # noqa: F811
    """There and back within a moment: the terminal has lost cells, the size is the same."""
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        terminal.wait_for(PAINTED)
        for _ in range(3):
            mark = len(terminal.output)
            terminal.resize(60, 20)
            terminal.resize(80, 24)
            terminal.wait_for(f"(?s)tok/s.*{PAINTED}", since=mark)


@pytest.mark.parametrize("size", ["80x24", "120x36"])
async def test_the_end_of_a_long_dialog_can_be_read(size: str) -> None:
    async with still(size) as driver:
        lines = "\n".join(f"line {number} of a long text" for number in range(60))
        driver.app.push_screen(Choice("A title", lines, [("enter", "yes", "go")]))
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.pilot.pause()
        body = driver.app.screen.query_one(".dialog--body")
        keys = driver.app.screen.query_one(".dialog--keys")
        assert body.region.bottom <= keys.region.y
        await driver.press("end")
        await driver.until(lambda: "line 59 of a long text" in driver.text())
        assert "Esc back" in driver.text()
