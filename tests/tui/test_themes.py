"""The theme and the frames per second of the screen, and where they come from."""

from __future__ import annotations

import pytest

from tests.tui.driving import driving, found
from tuirig.errors import ExitCode, FileError, TuirigError
from tuirig.files.config import config_path, read_config
from tuirig.rigs.schema import Rig
from tuirig.runs.catalog import Listing
from tuirig.tui.app import TuirigApp


def app_of(rig: Rig, theme: str | None = None, hz: int | None = None) -> TuirigApp:
    return TuirigApp((Listing(rig.name, found(rig)),), found(rig), theme, hz)


def configure(text: str) -> None:
    config_path().parent.mkdir(parents=True, exist_ok=True)
    config_path().write_text(text)


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("dark", "textual-dark"),
        ("light", "textual-light"),
        ("ansi", "ansi-dark"),
        ("high-contrast", "high-contrast"),
        ("nord", "nord"),
    ],
)
async def test_themes(tiny_gemma4_rig: Rig, word: str, name: str) -> None:
    app = app_of(tiny_gemma4_rig, word)
    async with app.run_test():
        assert app.theme == name
        assert app.native_ansi_color == (word == "ansi")


async def test_the_command_line_wins_over_the_file(tiny_gemma4_rig: Rig) -> None:
    assert app_of(tiny_gemma4_rig).main.rate_hz == 5
    configure('theme = "light"\nhz = 9\n')
    app = app_of(tiny_gemma4_rig)
    assert (app.theme, app.main.rate_hz) == ("textual-light", 9)
    app = app_of(tiny_gemma4_rig, "nord", 20)
    assert (app.theme, app.main.rate_hz) == ("nord", 20)


async def test_over_ssh(tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_CONNECTION", "1.2.3.4 5 6.7.8.9 22")
    assert app_of(tiny_gemma4_rig).main.rate_hz == 4
    assert app_of(tiny_gemma4_rig, hz=10).main.rate_hz == 10


async def test_an_unknown_theme(tiny_gemma4_rig: Rig) -> None:
    with pytest.raises(TuirigError, match="did you mean light") as caught:
        app_of(tiny_gemma4_rig, "lihgt")
    assert caught.value.exit_code == ExitCode.USAGE
    configure('theme = "lihgt"\n')
    with pytest.raises(FileError, match=r"config\.toml: theme: no theme 'lihgt'"):
        app_of(tiny_gemma4_rig)


async def test_a_theme_chosen_on_the_screen_is_remembered(tiny_gemma4_rig: Rig) -> None:
    configure("hz = 7\n")
    async with driving(tiny_gemma4_rig) as driver:
        assert config_path().read_text() == "hz = 7\n"
        driver.app.theme = "nord"  # what the palette's entry does
        await driver.until(lambda: read_config().theme == "nord")
    assert read_config().hz == 7
    assert app_of(tiny_gemma4_rig).theme == "nord"
