"""First paint, memory, idle and live bytes of the screen, beside an empty Textual program.

    uv run python tests/benchmarks/screen_budgets.py [--rounds 9]

Ready: a tmux of 120x36 is asked every 8 ms for its text until a mark of the program stands there;
programs take turns. Bytes and CPU: the program in a bare pseudo terminal of 80x24; live while a
reply of demo-gemma4 streams. Only ratios and byte counts travel to another machine.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.terminal import PAINTED, Terminal

HERE = Path(__file__).parent
PROGRAMS = {
    "python -c print": ([sys.executable, "-c", "print('READY-MARK'); input()"], "READY-MARK"),
    "empty Textual program": ([sys.executable, str(HERE / "empty_textual.py")], "READY-MARK"),
    "tuirig": ([sys.executable, "-m", "tuirig"], "demo-smollm2"),
}


def tmux(socket: str, *words: str) -> str:
    """One command of a tmux of our own; a socket for each, since a server takes a while to end."""
    command = ["tmux", "-L", socket, "-f", "/dev/null", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def ready(argv: list[str], mark: str) -> tuple[float, float]:
    """(ms until the mark is on a screen of 120x36, MiB resident of program and children)."""
    socket = f"tuirig-benchmark-{time.monotonic_ns()}"
    command = f"exec {shlex.join(argv)}"
    begun = time.perf_counter()
    tmux(socket, "new-session", "-d", "-s", "t", "-x", "120", "-y", "36", command)
    deadline = begun + 20
    while mark not in (shown := tmux(socket, "capture-pane", "-p", "-t", "t")):
        if time.perf_counter() > deadline:
            raise SystemExit(f"{argv} never showed {mark}:\n{shown}")
        time.sleep(0.008)
    took_ms = (time.perf_counter() - begun) * 1000
    time.sleep(2)
    pid = int(tmux(socket, "display-message", "-p", "-t", "t", "#{pane_pid}"))
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    resident = sum(member.memory_info().rss for member in family) / 2**20
    tmux(socket, "kill-server")
    return took_ms, resident


def first_paint(rounds: int) -> None:
    """The table of ready times."""
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    resident: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for _ in range(rounds):
        for name, (argv, mark) in PROGRAMS.items():
            took_ms, mib = ready(argv, mark)
            times[name].append(took_ms)
            resident[name].append(mib)
    yardstick = statistics.median(times["empty Textual program"])
    print(f"{'ready in tmux 120x36':28}{'median ms':>10}{'min ms':>8}{'ratio':>7}{'MiB':>7}")
    for name, values in times.items():
        middle = statistics.median(values)
        print(
            f"{name:28}{middle:10.0f}{min(values):8.0f}{middle / yardstick:7.2f}"
            f"{statistics.median(resident[name]):7.1f}"
        )


def wire(seconds: float) -> None:
    """The table of bytes and CPU at 80x24."""
    print(f"\n{'80x24':28}{'bytes/s':>10}{'CPU %':>8}")
    with Terminal([sys.executable, str(HERE / "empty_textual.py")]) as terminal:
        terminal.wait_for("READY-MARK")
        row("empty Textual program, idle", *rate(terminal, seconds))
    with Terminal([sys.executable, "-m", "tuirig", "demo-gemma4"]) as terminal:
        terminal.wait_for(PAINTED)
        terminal.pump(3)
        row("tuirig, idle, no server", *rate(terminal, seconds))
        mark = len(terminal.output)
        terminal.send("\r")
        terminal.wait_for("ready", since=mark, timeout_s=120)
        terminal.pump(2)
        row("tuirig, idle, server ready", *rate(terminal, seconds))
        for name in ("tuirig, streaming", "tuirig, streaming (again)"):
            terminal.send(" ")
            terminal.pump(0.5)
            row(name, *rate(terminal, 1.0))
            terminal.wait_for("ready", since=mark, timeout_s=120)
            terminal.pump(4)
        terminal.send("q")
        terminal.pump(0.5)
        terminal.send("s")
        terminal.wait()


def rate(terminal: Terminal, seconds: float) -> tuple[float, float]:
    """(bytes a second, CPU share of the program) over a time."""
    program = psutil.Process(terminal.process.pid)
    before = program.cpu_times()
    count = terminal.pump(seconds)
    after = program.cpu_times()
    used = (after.user - before.user) + (after.system - before.system)
    return count / seconds, 100 * used / seconds


def row(name: str, bytes_s: float, cpu: float) -> None:
    """A line of the table."""
    print(f"{name:28}{bytes_s:10.0f}{cpu:8.1f}")


def command_line(rounds: int) -> None:
    """`tuirig rigs --json` beside a bare python."""
    times: dict[str, list[float]] = {"python -c pass": [], "tuirig rigs --json": []}
    for _ in range(rounds):
        for name, argv in (
            ("python -c pass", [sys.executable, "-c", "pass"]),
            ("tuirig rigs --json", [str(Path(sys.executable).parent / "tuirig"), "rigs", "--json"]),
        ):
            begun = time.perf_counter()
            output = subprocess.run(argv, capture_output=True, check=True).stdout
            times[name].append((time.perf_counter() - begun) * 1000)
            if output:
                json.loads(output)
    print(f"\n{'command':28}{'median ms':>10}{'min ms':>8}")
    for name, values in times.items():
        print(f"{name:28}{statistics.median(values):10.0f}{min(values):8.0f}")


def main() -> None:
    """All tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores\n")
    if shutil.which("tmux"):
        first_paint(options.rounds)
    wire(options.seconds)
    command_line(max(15, options.rounds))


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TUIRIG_HOME", folder)
        main()
