"""`tuirig [RIG]`: the screen, where there is one."""

from __future__ import annotations

import gc
import os
import sys
from typing import TYPE_CHECKING

from tuirig.cli.output import say
from tuirig.errors import ExitCode, MissingError, TuirigError

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Open the screen on a rig, or on the list of rigs."""
    if options.web:
        from tuirig.cli import web

        if options.rig:
            _check_rig(options.rig)
        return web.run(options)
    if options.port:
        raise TuirigError("--port needs --web", exit_code=ExitCode.USAGE)
    return open_rig(options.rig, options.theme, options.hz)


def open_rig(reference: str | None, theme: str | None = None, hz: int | None = None) -> int:
    """Open the screen on a rig, or on the list of rigs. Raises TuirigError for a bad rig."""
    if reference:
        _check_rig(reference)
    return open_screen(reference, theme, hz)


def open_screen(reference: str | None, theme: str | None = None, hz: int | None = None) -> int:
    """The screen's exit code; USAGE at once where there is no terminal to draw on."""
    reason = _no_screen()
    if reason:
        from tuirig.cli.parser import usage

        say(f"{usage()}\ntuirig: {reason}\nnext: use a command, e.g. tuirig rigs; tuirig --help")
        return ExitCode.USAGE
    # The terminal knows its size; what a shell may have exported beats it in Textual.
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)
    # The collector rests while code loads; the program wakes it after its first paint.
    gc.disable()
    from tuirig.tui.app import run as run_app

    return run_app(reference, theme, hz)


def _no_screen() -> str:
    # Textual reads stdin and draws on stderr; without them it would wait for ever.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return "the screen needs a terminal on standard input, output and error"
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        return "the screen needs a terminal that can move its cursor, and TERM says it can't"
    return ""


def _check_rig(reference: str) -> None:
    """A misspelt command looks like a rig's name: name the command, too."""
    from tuirig.runs.catalog import find_rig

    try:
        find_rig(reference)
    except MissingError as error:
        from difflib import get_close_matches

        from tuirig.cli.parser import COMMANDS

        close = get_close_matches(reference, COMMANDS, 1)
        command = f"; did you mean the command `tuirig {close[0]}`?" if close else ""
        raise MissingError(
            error.message, hint=f"{error.hint}{command}".lstrip("; "), evidence=error.evidence
        ) from None
