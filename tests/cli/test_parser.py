from __future__ import annotations

import re

import pytest

from tests.cli.support import Commands
from tuirig import __version__
from tuirig.cli.parser import COMMANDS, opens_screen, parse
from tuirig.errors import ExitCode


def test_help_has_every_exit_code_with_its_meaning(run: Commands) -> None:
    ran = run("--help")
    assert ran.code == ExitCode.OK
    for code in ExitCode:
        assert f"{code.value:>3}  {code.meaning}" in ran.stdout


def test_help_names_every_command(run: Commands) -> None:
    text = run("--help").stdout
    assert tuple(COMMANDS) == (
        "open", "demo", "rigs", "rig", "measure", "tune", "ab", "speed", "runs", "report",
        "compare", "serve", "stop", "profiles", "inspect", "fetch", "repack", "doctor",
        "completion", "help",
    )  # fmt: skip
    for name in COMMANDS:
        assert re.search(rf"^    {name}\s", text, re.MULTILINE)


@pytest.mark.parametrize(
    "words",
    [*((name,) for name in COMMANDS), ("rig", "new"), ("rig", "check"), ("rig", "discover")],
    ids=" ".join,
)
def test_every_command_has_help(run: Commands, words: tuple[str, ...]) -> None:
    ran = run(*words, "--help")
    assert ran.code == ExitCode.OK
    assert ran.stdout.startswith(f"usage: tuirig {' '.join(words)} ")
    assert ran.stderr == ""
    assert max(map(len, ran.stdout.splitlines())) <= 80
    assert run("help", *words).stdout == ran.stdout


def test_help_of_all_of_it(run: Commands) -> None:
    text = run("help").stdout
    assert text == run("--help").stdout
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("words", [("tun",), ("rig", "chek"), ("tune", "x")], ids=" ".join)
def test_help_of_a_command_that_is_not_there(run: Commands, words: tuple[str, ...]) -> None:
    ran = run("help", *words)
    assert ran.code == ExitCode.USAGE
    assert f"there is no command '{' '.join(words)}'" in ran.stderr


def test_version(run: Commands) -> None:
    assert run("--version").stdout == f"tuirig {__version__}\n"


def test_a_first_word_that_is_no_command_is_a_rig_to_open() -> None:
    for words in (["3050-e4b"], ["open", "3050-e4b"]):
        options = parse(words)
        assert (options.module, options.rig) == ("tuirig.cli.screen", "3050-e4b")
    assert parse([]).rig is None


def test_the_look_of_the_screen_stands_before_or_after_the_rig() -> None:
    for words in (["--theme", "light", "--hz", "10", "x"], ["x", "--theme=light", "--hz=10"]):
        options = parse(words)
        assert options.module == "tuirig.cli.screen"
        assert (options.rig, options.theme, options.hz) == ("x", "light", 10)
    assert parse(["--hz=30"]).hz == 30
    assert parse(["demo", "--theme", "ansi"]).theme == "ansi"


def test_the_screen_needs_no_parser() -> None:
    assert opens_screen([]) and opens_screen(["3050-e4b"])
    for words in (["rigs"], ["--help"], ["3050-e4b", "x"], ["open", "3050-e4b"]):
        assert not opens_screen(words)


def test_open_takes_a_rig_that_is_called_like_a_command() -> None:
    assert parse(["open", "rigs"]).rig == "rigs"


@pytest.mark.parametrize(
    "words",
    [
        ["measure", "demo-gemma4"],
        ["measure", "demo-gemma4", "--setting", "none", "--prompts", "0"],
        ["measure", "demo-gemma4", "--setting", "none", "--prompts", "37"],
        ["measure", "demo-gemma4", "--setting", "none", "--tokens", "1"],
        ["measure", "demo-gemma4", "--setting", "none", "--temperature", "-1"],
        ["measure", "demo-gemma4", "--setting", "none", "--temperature", "nan"],
        ["measure", "demo-gemma4", "--setting", "none", "--prompts", "2", "--prompt-file", "x"],
        ["measure", "demo-gemma4", "--sett", "none"],
        ["serve", "demo-gemma4", "--setting", "none", "--profile", "x"],
        ["serve", "demo-gemma4", "--port", "70000"],
        ["--hz", "31"],
        ["demo", "--hz", "0"],
        ["rig"],
        ["rig", "check"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line_is_a_usage_error(run: Commands, words: list[str]) -> None:
    ran = run(*words)
    assert ran.code == ExitCode.USAGE
    assert ran.stderr.startswith("usage: tuirig ")
    assert ran.stdout == ""
