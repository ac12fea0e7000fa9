"""The screen as textual-serve runs it: packets on pipes in the place of a terminal.

It ends in order with its page, and with the program that serves it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from typing import Any, cast

from textual.drivers.web_driver import WebDriver

from tuirig.cli.main import guarded
from tuirig.errors import ExitCode
from tuirig.tui.app import run


class PageDriver(WebDriver):
    """Textual's driver for browsers, for which a closed page is a lost terminal."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)

        def write(data: bytes) -> None:
            with contextlib.suppress(OSError):
                os.write(self.fileno, data)

        self._write = cast(Any, write)

    def on_meta(self, packet_type: str, payload: dict[str, object]) -> None:
        """Textual would leave the program without stopping its server."""
        if packet_type == "quit":
            self._end()
        else:
            super().on_meta(packet_type, payload)

    def run_input_thread(self) -> None:
        """Read until the program ends, or whoever serves it is gone."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._end()

    def _end(self) -> None:
        self._app.call_later(self._app.end, ExitCode.HANGUP)  # type: ignore[attr-defined]


def main() -> int:
    """Show the screen; the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rig", nargs="?")
    parser.add_argument("--theme")
    parser.add_argument("--hz", type=int)
    options = parser.parse_args()
    return run(options.rig, options.theme, options.hz, PageDriver)


if __name__ == "__main__":
    sys.exit(guarded(main))
