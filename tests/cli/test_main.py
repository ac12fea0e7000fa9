from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.support import TUIRIG, Commands, spawn
from tests.terminal import Terminal
from tuirig import locations
from tuirig.cli import rigs
from tuirig.errors import ExitCode


def test_an_error_is_told_with_its_next_step_and_sets_the_code(run: Commands) -> None:
    ran = run("rig", "check", "demo-gemma")
    assert ran.code == ExitCode.MISSING
    assert ran.stderr.startswith("tuirig: no rig 'demo-gemma'\n")
    assert ran.stderr.endswith("next: did you mean demo-gemma4?\n")
    assert ran.stdout == ""


def test_an_error_in_a_file_names_file_line_and_key(run: Commands) -> None:
    folder = locations.rigs_folder()
    folder.mkdir(parents=True)
    (folder / "mine.toml").write_text('name = "mine"\ncrad = "cpu"\n')
    ran = run("rig", "check", "mine")
    assert ran.code == ExitCode.BAD_FILE
    assert f"{folder / 'mine.toml'}:2: crad: unknown key; did you mean card?" in ran.stderr


def test_an_unexpected_error_is_one_line_and_a_log(
    run: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_rigs() -> None:
        raise ZeroDivisionError("no foresight")

    monkeypatch.setattr(rigs, "list_rigs", list_rigs)
    ran = run("rigs")
    assert ran.code == ExitCode.FAILED
    first, second = ran.stderr.splitlines()
    assert first == "tuirig: unexpected ZeroDivisionError: no foresight"
    (log,) = (locations.state_folder() / "logs").iterdir()
    assert second.endswith(str(log))
    assert "Traceback" in log.read_text()


def test_an_unexpected_error_is_told_where_no_log_can_be_written(
    run: Commands, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(rigs, "list_rigs", lambda: 1 / 0)
    home.write_text("a file where the folder would be")
    ran = run("rigs")
    assert ran.code == ExitCode.FAILED
    assert "could not be written" in ran.stderr


def test_an_interrupt_outside_the_event_loop(
    run: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_rigs() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(rigs, "list_rigs", list_rigs)
    ran = run("rigs")
    assert (ran.code, ran.stderr) == (ExitCode.INTERRUPTED, "tuirig: cancelled\n")


@pytest.mark.parametrize("words", [[], ["demo-gemma4"], ["open"], ["demo"]], ids=" ".join)
def test_without_a_terminal_the_screen_is_a_usage_error_and_no_hang(words: list[str]) -> None:
    process = spawn(*words)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == ExitCode.USAGE
    assert stdout == ""
    assert stderr.startswith("usage: tuirig [--theme NAME] [--hz N] [--web [--port N]] [RIG]\n")
    assert "needs a terminal" in stderr


def test_a_screen_that_would_be_drawn_into_a_file_is_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = f"exec {' '.join(TUIRIG)} 2>{log}"
    with Terminal(["/bin/sh", "-c", command]) as terminal:
        assert terminal.wait() == ExitCode.USAGE
    assert "needs a terminal" in log.read_text()


def test_a_terminal_that_can_not_move_its_cursor_is_no_screen() -> None:
    with Terminal(TUIRIG, env={"TERM": "dumb"}) as terminal:
        assert terminal.wait() == ExitCode.USAGE
        assert "TERM says it can't" in terminal.text
        assert b"\x1b" not in terminal.output


def test_a_misspelt_command_is_named(run: Commands) -> None:
    ran = run("mesure")
    assert ran.code == ExitCode.MISSING
    assert "did you mean the command `tuirig measure`?" in ran.stderr


def test_a_reader_that_has_seen_enough_is_no_failure() -> None:
    # A process that ends without reading: what `| head -0` is, without a race.
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [*TUIRIG, "rigs"],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=30,
        )
    finally:
        os.close(writer)
    assert (ran.returncode, ran.stderr) == (ExitCode.OK, "")


def test_narration_that_nobody_reads_does_not_end_the_command() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ran = subprocess.run(
            [*TUIRIG, "rig", "new", "mine"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=writer,
            text=True,
            timeout=30,
        )
    finally:
        os.close(writer)
    assert ran.returncode == ExitCode.OK
    assert ran.stdout == f"{locations.rigs_folder() / 'mine.toml'}\n"
