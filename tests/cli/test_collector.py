"""The garbage collector rests while a program loads, and works again when it runs."""

from __future__ import annotations

import subprocess
import sys

from tests.terminal import PAINTED, Terminal

SHOW = (
    "import gc, sys, tuirig.cli.rigs as command\n"
    "command.run = lambda options: print(gc.isenabled()) or 0\n"
    "from tuirig.__main__ import main\n"
    "sys.argv = ['tuirig', 'rigs']\n"
    "main()\n"
)
SHOW_SCREEN = (
    "import gc, sys\n"
    "from tuirig.tui.main_screen import MainScreen\n"
    "MainScreen.action_copy_command = lambda screen: screen.notify(f'collects: {gc.isenabled()}')\n"
    "from tuirig.__main__ import main\n"
    "sys.argv = ['tuirig']\n"
    "main()\n"
)


def test_a_command_runs_with_the_collector() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SHOW], capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout == "True\n"


def test_the_screen_runs_with_the_collector() -> None:
    with Terminal([sys.executable, "-c", SHOW_SCREEN]) as terminal:
        terminal.wait_for(PAINTED)
        terminal.send("y")
        terminal.wait_for("collects: True")
        terminal.send("q")
        terminal.wait()
