"""The command line: parse, run the command, turn whatever happens into a message and a code."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from tuirig.cli.output import say
from tuirig.cli.parser import opens_screen, parse
from tuirig.errors import ExitCode, TuirigError

if TYPE_CHECKING:
    from argparse import Namespace


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code. SystemExit only from argparse (usage, help, version)."""
    words = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: _run(words))


def guarded(work: Callable[[], int]) -> int:
    """The exit code of some work; a failure becomes a message and its code."""
    try:
        code = work()
    except TuirigError as error:
        say(f"tuirig: {error.text()}")
        return error.exit_code
    except KeyboardInterrupt:
        say("tuirig: cancelled")
        return ExitCode.INTERRUPTED
    except Exception as error:
        say(_unexpected(error))
        return ExitCode.FAILED
    return code


def _run(words: Sequence[str]) -> int:
    if opens_screen(words):
        from tuirig.cli.screen import open_rig

        return open_rig(words[0] if words else None)
    options = parse(words)
    run: Callable[[Namespace], int] = import_module(options.module).run
    gc.enable()
    return run(options)


def _unexpected(error: Exception) -> str:
    """One line about an error that nobody foresaw; its traceback goes to a file."""
    import time
    import traceback

    from tuirig import __version__, locations

    path = locations.state_folder() / "logs" / time.strftime("error-%Y%m%d-%H%M%S.log")
    where = f"the details are in {path}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [
            f"tuirig {__version__}, Python {sys.version}\n",
            *traceback.format_exception(error),
        ]
        path.write_text("".join(lines), encoding="utf-8")
    except OSError as problem:
        where = f"the details could not be written: {problem}"
    return f"tuirig: unexpected {type(error).__name__}: {error}\nnext: report it; {where}"
