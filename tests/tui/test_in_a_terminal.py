"""The program in a real terminal: signals, a lost line, no terminal, unexpected errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.terminal import PAINTED, Terminal
from tuirig.rigs.schema import Rig

LEFT_THE_ALTERNATE_SCREEN = b"\x1b[?1049l"


@pytest.fixture
def rig_file(tiny_gemma4_rig: Rig, tmp_path: Path) -> Path:
    """The small rig as a file."""
    rig = tiny_gemma4_rig
    path = tmp_path / f"{rig.name}.toml"
    path.write_text(
        f'name = "{rig.name}"\ncard = "cpu"\n[target]\npath = "{rig.target.path}"\n'
        f'[[drafter]]\nformat = "q4_0"\ntype = "draft-mtp"\npath = "{rig.drafter[2].path}"\n'
        f'[server]\nprogram = "{rig.server.program}"\nargs = {list(rig.server.args)!r}\n'
    )
    return path


def llama_servers(parent: int) -> list[psutil.Process]:
    return [
        child
        for child in psutil.Process(parent).children(recursive=True)
        if child.name() == "llama-server"
    ]


def ready(terminal: Terminal) -> psutil.Process:
    """Start the chosen setting; its server."""
    terminal.wait_for(PAINTED)
    mark = len(terminal.output)
    terminal.send("\r")
    terminal.wait_for("ready", since=mark)
    (server,) = llama_servers(terminal.process.pid)
    return server


def gone(process: psutil.Process, within_s: float = 60) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
@pytest.mark.parametrize("streaming", [False, True])
def test_a_signal_ends_everything_in_order(
    number: signal.Signals, code: int, streaming: bool, rig_file: Path
) -> None:
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        server = ready(terminal)
        if streaming:
            mark = len(terminal.output)
            terminal.send(" ")
            terminal.wait_for("running", since=mark)
        os.kill(terminal.process.pid, number)
        assert terminal.wait() == code
        assert LEFT_THE_ALTERNATE_SCREEN in terminal.output
        assert "Traceback" not in terminal.text
        assert gone(server)


def test_a_lost_line_ends_the_program_and_its_server(rig_file: Path) -> None:
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        server = ready(terminal)
        terminal.hang_up()
        assert terminal.process.wait(timeout=60) == 129
        assert gone(server)


def test_no_server_outlives_a_killed_program(rig_file: Path) -> None:
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        server = ready(terminal)
        os.kill(terminal.process.pid, signal.SIGKILL)
        terminal.process.wait()
        assert gone(server)


def test_quit_through_the_keyboard_restores_the_terminal(rig_file: Path) -> None:
    with Terminal([sys.executable, "-m", "tuirig", str(rig_file)]) as terminal:
        server = ready(terminal)
        mark = len(terminal.output)
        terminal.send("q")
        terminal.wait_for("stop it and quit", since=mark)
        terminal.send("s")
        assert terminal.wait() == 0
        assert LEFT_THE_ALTERNATE_SCREEN in terminal.output
        assert gone(server)


def test_an_unexpected_error_is_one_line_and_a_log(rig_file: Path, home: Path) -> None:
    script = (
        "import sys\n"
        "from tuirig.cli.main import main\n"
        "from tuirig.tui.view import View\n"
        "def broken(*_): raise ZeroDivisionError('boom')\n"
        "View.move = broken\n"
        f"sys.exit(main([{str(rig_file)!r}]))\n"
    )
    with Terminal([sys.executable, "-c", script]) as terminal:
        terminal.wait_for(PAINTED)
        terminal.send("j")
        assert terminal.wait() == 1
        shown = terminal.output.split(LEFT_THE_ALTERNATE_SCREEN)[-1].decode()
        assert "unexpected ZeroDivisionError: boom" in shown
        assert "Traceback" not in shown
    (log,) = (home / "state" / "logs").glob("error-*.log")
    assert "ZeroDivisionError" in log.read_text()


def test_heavy_modules_come_after_the_first_paint() -> None:
    script = (
        "import asyncio, sys\n"
        "from tuirig.runs.catalog import list_rigs\n"
        "from tuirig.tui.app import TuirigApp, _first\n"
        "from tuirig.tui.main_screen import MainScreen\n"
        "seen = []\n"
        "def first_paint(screen):\n"
        "    heavy = ('httpx2', 'pynvml', 'huggingface_hub', 'numpy', 'gguf', 'plotext', 'psutil',"
        " 'sqlite3')\n"
        "    print('loaded:', [name for name in heavy if name in sys.modules])\n"
        "    seen.append(True)\n"
        "MainScreen._open_quietly = first_paint\n"
        "async def main():\n"
        "    listings = list_rigs()\n"
        "    async with TuirigApp(listings, _first(listings, '')).run_test() as pilot:\n"
        "        while not seen: await pilot.pause(0.02)\n"
        "asyncio.run(main())\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert "loaded: []" in result.stdout
