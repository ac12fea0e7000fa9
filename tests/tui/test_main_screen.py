"""The main job through the keyboard, with a real server."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil
import pytest

from tests.cli.support import save_rig
from tests.tui.driving import Driver, driving, servers
from tuirig import locations
from tuirig.files.profiles import read_profile, write_profile
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Tune
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.board import CellState
from tuirig.runs.catalog import find_rig
from tuirig.tui.dialogs import Choice, KeyHelp, RigPicker
from tuirig.tui.widgets import RigList

#: Tokens of a reply that is still streaming when the next key comes.
LONG = 1900


async def choose(driver: Driver, setting: Setting) -> None:
    """Move the cursor by keys alone."""
    view = driver.screen.view
    while view.place(view.cursor)[0] < view.place(setting)[0]:
        await driver.press("j")
    while view.place(view.cursor)[1] < view.place(setting)[1]:
        await driver.press("l")
    while view.place(view.cursor)[1] > view.place(setting)[1]:
        await driver.press("h")
    assert view.cursor == setting


async def test_choose_restart_stream_and_see_the_gain(tiny_gemma4_rig: Rig) -> None:
    drafted = Setting("q8_0", 2)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.press("space")
        await driver.until(lambda: view.board.replies(NONE))
        await driver.until_quiet()
        await choose(driver, drafted)
        assert "--spec-draft-n-max 2" in " ".join(
            driver.screen.query_one("#details").command.split()
        )
        await driver.press("enter")
        await driver.until(lambda: view.running == drafted)
        await driver.until_quiet()
        await driver.press("space")
        await driver.until(lambda: view.board.replies(drafted))
        await driver.until_quiet()
        cell = view.board.cell(drafted)
        reply = view.board.replies(drafted)[0]
        assert cell.state is CellState.MEASURED
        assert cell.gain == pytest.approx(reply.tok_s / view.board.replies(NONE)[0].tok_s)
        assert reply.accepted_per_position is not None
        assert len(reply.accepted_per_position) == 2
        shown = driver.text()
        for expected in ("ready q8_0:2", "kept", "target", "drafter", "128 tokens", "*"):
            assert expected in shown
        assert len(servers()) == 1
    assert not servers()


async def test_space_starts_a_server_when_none_runs_and_cancels_when_pressed_again(
    tiny_gemma4_rig: Rig,
) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        driver.screen.tokens = LONG
        await driver.press("space")
        await driver.until(lambda: view.streaming and view.predicted_n > 2)
        await driver.press("space")
        await driver.until_quiet()
        await driver.until_state("ready")
        assert not view.board.replies(NONE)
        driver.screen.tokens = 16
        await driver.press("space")
        await driver.until(lambda: view.board.replies(NONE))


async def test_escape_cancels_a_start_and_leaves_nothing(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    program = tmp_path / "never-ready"
    program.write_text(
        "#!/bin/sh\n"
        'case "$*" in *--help*|*--version*) '
        f'exec {tiny_gemma4_rig.server.program} "$@";; esac\n'
        "sleep 600 & wait\n"
    )
    program.chmod(0o755)
    slow = msgspec.structs.replace(tiny_gemma4_rig.server, program=str(program))
    rig = msgspec.structs.replace(tiny_gemma4_rig, server=slow)
    async with driving(rig) as driver:
        await driver.press("enter")
        await driver.until_state("starting")
        await driver.until(lambda: "sleep" in names_below())
        await driver.press("escape")
        await driver.until_quiet()
        await driver.until_state("stopped")
        assert "sleep" not in names_below()
        assert "cancelled" in driver.toasts()


def names_below() -> list[str]:
    """Names of the live descendants of this process."""
    alive = []
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE:
                alive.append(child.name())
    return alive


async def test_a_restart_while_a_reply_streams_ends_it_first(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        driver.screen.tokens = LONG
        await driver.press("space")
        await driver.until(lambda: view.streaming and view.predicted_n > 2)
        await choose(driver, Setting("q4_0", 1))
        await driver.press("enter")
        await driver.until(lambda: view.running == Setting("q4_0", 1))
        assert len(servers()) == 1


async def test_measure_fills_the_cell_with_twelve_prompts(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 3)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await choose(driver, Setting("ngram", 1))
        await driver.press("m")
        await driver.until(lambda: len(view.board.replies(Setting("ngram", 1))) == 3)
        await driver.until_quiet()
        assert view.board.cell(Setting("ngram", 1)).prompts == 3


@dataclass
class Fault:
    """A drafter that does not work, and what the cell has to say."""

    drafter: Drafter
    said: str


def faults(folder: Path, files: Path, smollm2: Path) -> dict[str, Fault]:
    torn = folder / "torn.gguf"
    torn.write_bytes((files / "gemma4-q4_0.gguf").read_bytes()[:200_000])
    return {
        "torn": Fault(Drafter(format="torn", type="draft-mtp", path=str(torn)), "cut short"),
        "other vocabulary": Fault(
            Drafter(format="other", type="draft-simple", path=str(smollm2)), "does not draft"
        ),
    }


@pytest.mark.parametrize("name", ["torn", "other vocabulary"])
async def test_a_drafter_that_does_not_work_is_a_red_cell_with_the_reason(
    name: str, tiny_gemma4_rig: Rig, demo_files: Path, smollm2_files: Path, tmp_path: Path
) -> None:
    fault = faults(tmp_path, demo_files, smollm2_files / "smollm2-q4_0.gguf")[name]
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(fault.drafter,))
    async with driving(rig) as driver:
        view = driver.screen.view
        setting = Setting(fault.drafter.row, 1)
        await choose(driver, setting)
        await driver.press("enter")
        await driver.until(lambda: view.board.failure(setting))
        await driver.until_quiet()
        await driver.pilot.pause()
        failure = view.board.failure(setting)
        assert failure is not None
        assert fault.said in failure.message
        assert failure.evidence
        assert "failed" in driver.text()
        assert fault.said in driver.text()
        # What the log explains is not told twice.
        assert driver.screen.has_class("-log") != (fault.said in driver.toasts())


async def test_a_server_that_dies_is_told_with_its_signal(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.until_quiet()
        servers()[0].send_signal(signal.SIGKILL)
        await driver.until_state("failed")
        await driver.until(lambda: "SIGKILL" in driver.text())
        await driver.press("enter")
        await driver.until_state("ready")


async def test_missing_files_are_told_and_nothing_starts(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    rig = msgspec.structs.replace(
        tiny_gemma4_rig, target=ModelFile(path=str(tmp_path / "gone.gguf"))
    )
    async with driving(rig) as driver:
        await driver.press("enter")
        await driver.until(lambda: "gone.gguf" in driver.toasts() or "missing" in driver.toasts())
        await driver.until_quiet()
        assert not servers()


async def test_an_edited_rig_is_read_again(tiny_gemma4_rig: Rig) -> None:
    path = save_rig(tiny_gemma4_rig)
    async with driving(find_rig(str(path)).rig, path=path) as driver:
        await choose(driver, Setting("q4_0", 1))
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.until_quiet()
        args = [word if word != "2048" else "1024" for word in tiny_gemma4_rig.server.args]
        server = msgspec.structs.replace(tiny_gemma4_rig.server, args=tuple(args))
        save_rig(msgspec.structs.replace(tiny_gemma4_rig, server=server))
        await driver.press("space")
        await driver.until(lambda: "was edited: read again" in driver.toasts())
        await driver.until(lambda: driver.screen.view.last_reply)
        await driver.until_quiet()
        assert driver.screen.view.cursor == Setting("q4_0", 1)
        (process,) = servers()
        assert "1024" in process.cmdline()

        path.write_text(path.read_text().replace("[target]", "[tarket]"))
        await driver.press("enter")
        await driver.until(lambda: "tarket" in driver.toasts())
        await driver.until_quiet()
        assert servers() == [process]


async def test_a_missing_drafter_blocks_its_row_alone(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    gone = Drafter(format="gone", type="draft-mtp", path=str(tmp_path / "gone.gguf"))
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(gone, *tiny_gemma4_rig.drafter))
    async with driving(rig) as driver:
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.until_quiet()
        await choose(driver, Setting("gone", 2))
        await driver.until(lambda: "no such file" in driver.text())
        await driver.press("enter")
        await driver.until(lambda: "gone.gguf" in driver.toasts())
        await driver.until_quiet()
        assert driver.screen.view.running == NONE
        assert len(servers()) == 1
        await choose(driver, Setting("q4_0", 1))
        await driver.press("enter")
        await driver.until(lambda: driver.screen.view.running == Setting("q4_0", 1))


async def test_save_shows_what_it_writes_and_then_the_difference(tiny_gemma4_rig: Rig) -> None:
    setting = Setting("q4_0", 1)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("s")
        await driver.until(lambda: "not measured yet" in driver.toasts())
        await choose(driver, setting)
        await driver.press("space")
        await driver.until(lambda: view.board.replies(setting))
        await driver.until_quiet()
        await driver.press("s")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.pilot.pause()
        assert "setting: q4_0:1" in driver.text()
        await driver.press("escape")
        await driver.until_quiet()
        assert not list(locations.profiles_folder().rglob("*.toml"))
        await driver.press("s")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: list(locations.profiles_folder().rglob("*.toml")))
        await driver.until_quiet()
        await driver.press("space")
        await driver.until(lambda: len(view.board.replies(setting)) == 2)
        await driver.until_quiet()
        await driver.press("s")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.pilot.pause()
        assert "evidence.tok_s:" in driver.text()
        assert "->" in driver.text()


async def test_quit_asks_and_stops(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("escape")
        await driver.until(lambda: driver.app.screen is driver.screen)
        assert servers()
        await driver.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("s")
        await driver.until(lambda: not driver.app.is_running or driver.app._exit)
    assert not servers()
    assert driver.app.return_code == 0


async def test_quit_can_keep_serving(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await choose(driver, Setting("q4_0", 1))
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.until_quiet()
        await driver.press("q")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("k")
        await driver.until(lambda: driver.screen.kept)
    kept = driver.screen.kept
    assert kept is not None
    server = psutil.Process(kept.pid)
    try:
        assert "--spec-draft-n-max" in server.cmdline()
        assert os.stat(kept.key_file).st_mode & 0o077 == 0
        assert kept.key_file.read_text().strip() not in " ".join(server.cmdline())
    finally:
        server.kill()
        server.wait()


async def test_quit_without_a_server_does_not_ask(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("q")
        await driver.until(lambda: driver.app._exit)
    assert driver.app.return_code == 0


async def test_another_rig_stops_the_first_one_after_asking(
    tiny_gemma4_rig: Rig, tiny_qwen35_rig: Rig
) -> None:
    async with driving(tiny_gemma4_rig, tiny_qwen35_rig) as driver:
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.until_quiet()
        await driver.press("r")
        await driver.until(lambda: driver.screen.query_one("#rigs", RigList).has_focus)
        await driver.press("down", "enter")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: driver.screen.view.rig.name == "tiny-qwen35")
        assert not servers()
        await choose(driver, Setting("inside", 1))
        await driver.press("enter")
        await driver.until(lambda: driver.screen.view.running == Setting("inside", 1))


async def test_narrow_screen_has_the_rigs_as_a_dialog(
    tiny_gemma4_rig: Rig, tiny_qwen35_rig: Rig
) -> None:
    async with driving(tiny_gemma4_rig, tiny_qwen35_rig, size=(80, 24)) as driver:
        await driver.press("r")
        await driver.until(lambda: isinstance(driver.app.screen, RigPicker))
        await driver.press("down", "enter")
        await driver.until(lambda: driver.screen.view.rig.name == "tiny-qwen35")


async def test_log_follows_the_server_and_closes_with_escape(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("o", "enter")
        await driver.until_state("ready")
        await driver.until(lambda: "listening" in driver.text() or "slot" in driver.text())
        await driver.press("escape")
        await driver.until(lambda: not driver.screen.has_class("-log"))


async def test_freeze_stops_the_panes_but_not_the_work(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("f")
        await driver.press("space")
        await driver.until(lambda: view.board.replies(NONE))
        await driver.pilot.pause()
        assert "stopped" in driver.text()
        assert "frozen" in driver.text()
        await driver.press("f")
        await driver.pilot.pause()
        assert "ready" in driver.text()


async def test_prompt_copy_help_and_stop(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        first = driver.screen.view.prompt
        await driver.press("p")
        assert driver.screen.view.prompt != first
        await driver.press("P")
        assert driver.screen.view.prompt == first
        await driver.until_quiet()
        await driver.until(lambda: driver.screen.holder.opened)
        await driver.press("y")
        await driver.until(lambda: "llama-server" in driver.app.clipboard)
        await driver.press("question_mark")
        await driver.until(lambda: isinstance(driver.app.screen, KeyHelp))
        await driver.press("escape")
        await driver.press("enter")
        await driver.until_state("ready")
        await driver.press("x")
        await driver.until_state("stopped")
        assert not servers()


async def test_a_click_chooses_a_cell_and_a_double_click_starts_it(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.pilot.click("#grid", offset=(16, 3))
        await driver.pilot.pause()
        assert view.cursor == Setting("f16", 1)
        await driver.pilot.click("#grid", offset=(16, 3), times=2)
        await driver.until(lambda: view.running == Setting("f16", 1))


async def test_compare_two_marked_settings(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    monkeypatch.setattr("tuirig.runs.ab.MOST_BLOCKS", 1)
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("c")
        assert "mark two settings" in driver.toasts()
        await driver.press("a")
        await choose(driver, Setting("q4_0", 1))
        await driver.press("b")
        assert view.marked == {"a": NONE, "b": Setting("q4_0", 1)}
        await driver.press("c")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.pilot.pause()
        assert "A B B A" in driver.text()
        await driver.press("enter")
        await driver.until(lambda: view.start)
        await driver.until(lambda: "against none: " in driver.toasts(), timeout_s=120)
        await driver.until_quiet()
        await driver.until(lambda: view.comparison and view.comparison.starts_a >= 2)
        assert "B/A" in driver.text()
        assert len(view.board.replies(NONE)) >= 4
        assert not servers()


async def test_marks_move_and_can_be_taken_away(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("a", "b")
        assert view.marked == {"b": NONE}
        await driver.press("b")
        assert view.marked == {}


async def test_tune_shows_its_plan_finds_the_best_and_offers_to_save_it(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    rig = msgspec.structs.replace(
        tiny_gemma4_rig, drafter=tiny_gemma4_rig.drafter[2:3], tune=Tune(lengths=(0, 1, 2))
    )
    async with driving(rig) as driver:
        view = driver.screen.view
        await driver.press("t")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.pilot.pause()
        assert "server starts" in driver.text()
        await driver.press("escape")
        await driver.until_quiet()
        assert not view.board.replies(NONE)
        await driver.press("t")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: driver.app.screen is driver.screen)
        await driver.until(lambda: isinstance(driver.app.screen, Choice), timeout_s=150)
        await driver.pilot.pause()
        assert "Save" in driver.text()
        assert "best: " in driver.text()
        await driver.press("enter")
        await driver.until(lambda: "best: " in driver.toasts())
        await driver.until(lambda: list(locations.profiles_folder().rglob("*.toml")))
        await driver.until_quiet()
        assert not servers()
        (path,) = locations.profiles_folder().rglob("*.toml")
        assert read_profile(path).evidence.starts == len(view.board.replies(view.cursor)) // 2
        assert view.saved is not None and view.mark(view.cursor) == "p"
        await driver.press("3")
        await driver.until(lambda: "tok/s" in driver.text() and "best: " in driver.text())
        assert "tune   done" in driver.text()
        assert "plotext" in sys.modules
        await driver.press("escape")
        await driver.until(lambda: driver.app.screen is driver.screen)


async def test_the_grid_begins_with_what_the_latest_run_has_measured(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    setting = Setting("q4_0", 1)
    async with driving(tiny_gemma4_rig) as driver:
        await driver.press("a")
        await choose(driver, setting)
        await driver.press("b", "c")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: "against none: " in driver.toasts(), timeout_s=120)
        await driver.until_quiet()
        measured = driver.screen.view.board.cell(setting).tok_s
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.until(lambda: view.board.cell(setting).tok_s == measured)
        await choose(driver, setting)
        await driver.until(lambda: "run 1 of " in driver.text())
        await driver.press("s")
        await driver.until(lambda: "is of run 1: m measures it now" in driver.toasts())
        await driver.press("space")
        await driver.until(lambda: view.board.earlier(setting) is None)
        await driver.until_quiet()
        assert len(view.board.replies(setting)) == 1
    server = msgspec.structs.replace(
        tiny_gemma4_rig.server, args=(*tiny_gemma4_rig.server.args, "-b", "512")
    )
    async with driving(msgspec.structs.replace(tiny_gemma4_rig, server=server)) as driver:
        await driver.until(lambda: driver.screen.view.mark(setting) == "?")
        await choose(driver, setting)
        await driver.until(lambda: "stale, run 1 of " in driver.text())


async def test_a_tune_that_was_cancelled_goes_on_where_it_was(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    rig = msgspec.structs.replace(tiny_gemma4_rig, tune=Tune(lengths=(0, 1)))
    async with driving(rig) as driver:
        view = driver.screen.view
        await driver.press("t")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: len(view.board.replies(NONE)) == 2)
        await driver.until(lambda: view.start is not None and view.start.number == 2)
        await driver.press("escape")
        await driver.until_quiet()
        await driver.press("t")
        await driver.until(lambda: "go on with it" in driver.text())
        await driver.press("enter")
        await driver.until(lambda: "server starts" in driver.text())
        await driver.press("enter")
        await driver.until(lambda: view.start is not None and view.start.setting != "none")
        assert len(view.board.replies(NONE)) == 2
        await driver.press("escape")
        await driver.until_quiet()


async def test_cells_wait_to_be_measured_one_after_the_other(tiny_gemma4_rig: Rig) -> None:
    async with driving(tiny_gemma4_rig) as driver:
        view = driver.screen.view
        await driver.press("m")
        await driver.until_state("running")
        (server,) = servers()
        server.suspend()  # the miniature is quick: time for the keys
        first, second = Setting("f16", 1), Setting("f16", 2)
        for setting in (first, second):
            await choose(driver, setting)
            await driver.press("m")
        assert view.waiting == [first, second]
        assert view.mark(first) == "+"
        await driver.press("m")  # once more takes it out of the queue
        assert view.waiting == [first]
        server.resume()
        await driver.until_quiet()
        await driver.until(lambda: len(view.board.replies(first)) == 12)
        assert len(view.board.replies(NONE)) == 12 and not view.board.replies(second)
        await driver.press("m")
        await driver.until(lambda: view.measuring == second)
        await choose(driver, first)
        await driver.press("m", "escape")
        await driver.until_quiet()
        assert not view.waiting and view.measuring is None


async def test_the_saved_profile_is_where_the_screen_begins(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.tui.main_screen.ARM_PROMPTS", 2)
    setting = Setting("f16", 2)
    async with driving(tiny_gemma4_rig) as driver:
        await choose(driver, setting)
        await driver.press("m")
        await driver.until(lambda: len(driver.screen.view.board.replies(setting)) == 2)
        await driver.until_quiet()
        await driver.press("s")
        await driver.until(lambda: isinstance(driver.app.screen, Choice))
        await driver.press("enter")
        await driver.until(lambda: "saved:" in driver.toasts())
    async with driving(tiny_gemma4_rig) as driver:
        await driver.until(lambda: driver.screen.view.cursor == setting)
        await driver.until(lambda: "p saved profile (measured)" in driver.text())
    (path,) = locations.profiles_folder().rglob("*.toml")
    old = read_profile(path)
    evidence = msgspec.structs.replace(old.evidence, server_build="b1-0000000")
    write_profile(msgspec.structs.replace(old, evidence=evidence))
    async with driving(tiny_gemma4_rig) as driver:
        await driver.until(lambda: driver.screen.view.mark(setting) == "?")
        await driver.until(lambda: "t tunes" in driver.text())


async def test_a_missing_file_with_a_source_is_fetched_when_asked_for(
    tiny_gemma4_rig: Rig, demo_files: Path, tmp_path: Path
) -> None:
    handler = functools.partial(QuietHandler, directory=str(demo_files))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        drafter = Drafter(
            format="q4_0",
            type="draft-mtp",
            path=str(tmp_path / "fetched.gguf"),
            url=f"http://127.0.0.1:{hub.server_port}/gemma4-q4_0.gguf",
        )
        rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(drafter,))
        async with driving(rig) as driver:
            await choose(driver, Setting("q4_0", 1))
            await driver.press("enter")
            await driver.until(lambda: isinstance(driver.app.screen, Choice))
            await driver.press("escape")
            await driver.until_quiet()
            assert not (tmp_path / "fetched.gguf").exists()
            await driver.press("enter")
            await driver.until(lambda: isinstance(driver.app.screen, Choice))
            await driver.press("enter")
            await driver.until_state("ready")
            assert (tmp_path / "fetched.gguf").stat().st_size > 0
        hub.shutdown()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, format: str, *args: object) -> None:
        return
