"""The Textual program: look, signals, and an end in order."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from rich.console import RenderableType
from textual.app import App, SystemCommand
from textual.driver import Driver
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.theme import Theme

from tuirig.errors import ExitCode, FileError, TuirigError
from tuirig.files.config import config_path, read_config, remember_theme
from tuirig.files.layout import read_layout, remember_layout
from tuirig.runs.catalog import FoundRig, Listing, find_rig, list_rigs
from tuirig.tui.keys import TUNE, keys_of
from tuirig.tui.main_screen import MainScreen
from tuirig.tui.themes import HIGH_CONTRAST, theme_name

if TYPE_CHECKING:
    from tuirig.runs.session import Kept

SIGNALS = {
    signal.SIGTERM: ExitCode.TERMINATED,
    signal.SIGHUP: ExitCode.HANGUP,
    signal.SIGINT: ExitCode.INTERRUPTED,
}


class Told(NamedTuple):
    """A message that was shown. at: the clock's time."""

    at: str
    severity: str
    message: str


class TuirigApp(App[None]):
    """tuirig's terminal UI."""

    TITLE = "tuirig"
    CSS_PATH = "tuirig.tcss"
    ENABLE_COMMAND_PALETTE = True
    COMMAND_PALETTE_BINDING = "ctrl+p"

    def __init__(
        self,
        listings: tuple[Listing, ...],
        first: FoundRig,
        theme: str | None = None,
        hz: int | None = None,
        driver: type[Driver] | None = None,
    ) -> None:
        """theme, hz: as on the command line; else what config.toml says, else the defaults.

        driver: what draws, where it is not the terminal.
        """
        config = read_config()
        colourless = bool(os.environ.get("NO_COLOR"))
        super().__init__(driver_class=driver, ansi_color=True if colourless else None)
        self.register_theme(HIGH_CONTRAST)
        chosen = self._chosen_theme(theme, config.theme)
        if colourless:
            chosen = "ansi-dark"
        if chosen:
            self.theme = chosen
        self._remembered_theme = self.theme
        if os.environ.get("SSH_CONNECTION"):
            self.animation_level = "none"
        self.main = MainScreen(listings, first)
        self.main.rate_hz = hz or config.hz or self.main.rate_hz
        self.unexpected: Exception | None = None
        #: Every message so far, the oldest first.
        self.told: list[Told] = []
        self._keep_at_hangup = config.hangup == "keep"

    def _chosen_theme(self, given: str | None, configured: str | None) -> str | None:
        word = given or configured
        try:
            return theme_name(word, self.available_themes) if word else None
        except ValueError as error:
            if given:
                raise TuirigError(f"--theme: {error}", exit_code=ExitCode.USAGE) from None
            raise FileError(str(config_path()), str(error), key="theme") from None

    def get_default_screen(self) -> Screen[None]:
        """The main screen; Textual's own empty one would be styled and painted before it."""
        return self.main

    def on_mount(self) -> None:
        """Signals end the program in order: Textual itself has no handler for them."""
        loop = asyncio.get_running_loop()
        for number, code in SIGNALS.items():
            loop.add_signal_handler(number, self.end, code)
        self.call_after_refresh(gc.enable)
        self.theme_changed_signal.subscribe(self, self._keep_theme)

    def _keep_theme(self, theme: Theme) -> None:
        """Remember a theme that was chosen in the palette."""
        if theme.name == self._remembered_theme:
            return
        self._remembered_theme = theme.name
        try:
            remember_theme(theme.name)
        except TuirigError as error:
            self.notify(error.text(), severity="warning")

    def on_unmount(self) -> None:
        """Give the signals back."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a message, unless it is in sight already, and keep it to be read again."""
        seen = any(note.message == message and not note.has_expired for note in self._notifications)
        if not seen:
            self.told.append(Told(time.strftime("%H:%M:%S"), severity, message))
            super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def copy_to_clipboard(self, text: str) -> None:
        """Through the terminal, through tmux where it stands between, and into a file."""
        super().copy_to_clipboard(text)
        self.run_worker(self._copy(text), group="copy", exclusive=True)

    async def _copy(self, text: str) -> None:
        from tuirig.tui.clipboard import copy_path, copy_through_tmux, write_copy

        through = "tmux and the terminal" if await copy_through_tmux(text) else "the terminal"
        beside = f"; also in {copy_path()}" if await asyncio.to_thread(write_copy, text) else ""
        self.notify(f"copied through {through}{beside}", timeout=4, markup=False)

    def end(self, code: ExitCode) -> None:
        """Requests closed, server stopped or kept, terminal restored, then the exit code."""

        async def end() -> None:
            if code is ExitCode.HANGUP and self._keep_at_hangup:
                await self.main.keep_serving()
            await self.main.close_session()
            self.exit(return_code=code)

        self.run_worker(end(), group="end", exclusive=True)

    def exit(
        self,
        result: None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """Widgets vanish one by one from here on, so the screen stops showing."""
        self.main.look_away()
        super().exit(result, return_code, message)

    def action_show(self, name: str) -> None:
        """Another screen in the place of the open one; the grid stays below, and so does its work.

        Not while a question is open.
        """
        from tuirig.tui.screens import make_screen
        from tuirig.tui.screens.base import OtherScreen

        beside = isinstance(self.screen, OtherScreen)
        if getattr(self.screen, "NAME", TUNE) == name or not (beside or self.screen is self.main):
            return
        if name == TUNE:
            if beside:
                self.pop_screen()
        elif beside:
            self.switch_screen(make_screen(name))
        else:
            self.push_screen(make_screen(name))

    async def action_quit(self) -> None:
        """Textual's own Ctrl+Q: quit as `q` does, which asks about a running server."""
        self.main.action_leave()

    def action_help_quit(self) -> None:
        """Ctrl+C does not end the program; what does is said."""
        self.notify("q quits", timeout=3)

    def get_driver_class(self) -> type[Driver]:
        """On Unix, a driver that survives the loss of its terminal."""
        if os.name != "posix":
            return super().get_driver_class()
        from tuirig.tui.driver import TerminalDriver

        return TerminalDriver

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every action of the screen, then the theme."""
        name = TUNE if isinstance(screen, MainScreen) else getattr(screen, "NAME", "")
        if name:
            for key in keys_of(name):
                if key.in_palette:
                    yield SystemCommand(
                        key.title,
                        f"{key.help or key.title} ({key.shown})",
                        lambda action=key.action: screen.run_action(action),
                    )
        yield SystemCommand("Theme", "Change the colours", self.action_change_theme)

    def _handle_exception(self, error: Exception) -> None:
        """Keep an unexpected error for one line after the screen is gone; Textual would print it.

        Textual's own report shows local variables, which can hold keys.
        """
        if self.unexpected is None:
            self.unexpected = error
        if self.is_headless:
            super()._handle_exception(error)
        else:
            self.exit(return_code=ExitCode.FAILED)


def run(
    reference: str | None = None,
    theme: str | None = None,
    hz: int | None = None,
    driver: type[Driver] | None = None,
) -> int:
    """Open the screen; the exit code. Raises TuirigError when a named rig can't be opened."""
    listings, layout = list_rigs(), read_layout()
    first = find_rig(reference) if reference else _first(listings, layout.rig)
    app = TuirigApp(listings, first, theme, hz, driver)
    app.main.lay_out(layout)
    app.run()
    remember_layout(app.main.layout_now)
    if app.unexpected is not None:
        raise app.unexpected
    kept = app.main.kept
    if kept is not None:
        _tell_kept(kept, app.main.view.rig.name)
    return app.return_code or 0


def _tell_kept(kept: Kept, rig: str) -> None:
    """Where the server that goes on is found; nobody reads it where the terminal is gone."""
    with contextlib.suppress(OSError):
        print(f"still serving at {kept.url} (pid {kept.pid})", file=sys.stderr)
        print(f"API key: {kept.key_file}   log: {kept.log_file}", file=sys.stderr)
        print(f"end it with: tuirig stop {rig}", file=sys.stderr)


def _first(listings: tuple[Listing, ...], last: str) -> FoundRig:
    """The rig that was open last, else the first that can be read: one's own before a built-in."""
    there = [listing for listing in listings if listing.found is not None]
    for listing in sorted(there, key=lambda one: one.name != last):
        assert listing.found is not None
        return listing.found
    raise TuirigError("there is no rig to open", hint="tuirig rig new NAME")
