"""First paint, memory, bytes and CPU of the screen beside other terminal programs, as Markdown.

    uv run python -m tests.benchmarks.peers [--rounds 5] [--seconds 10]

The peers are installed into a folder of their own by uv and need nothing but a package index. All
run in the same terminal by the same method: ready in a tmux of 120x36, programs taking turns; then
a pseudo terminal of 80x24, once while nobody types and once while the program has work to show.
That work differs, since the programs do, and stands in the last column. CPU is that of the program
and its children without llama-server, in percent of one core. Five minutes with the defaults.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.benchmarks.screen_budgets import HERE, ready
from tests.terminal import Terminal
from tuirig.demo.catalog import ensure
from tuirig.events import ignore

RIG = "demo-gemma4"
#: Of keys and of a growing log.
PER_SECOND = 5
COLUMNS = ("program", "ready ms", "MiB", "idle bytes/s", "idle CPU %", "live bytes/s", "live CPU %")


@dataclass(frozen=True)
class Program:
    """mark: a text that stands there once the program can be used.

    step: what makes it work, done PER_SECOND times a second; begin: what is done before that.
    """

    name: str
    argv: list[str]
    mark: str
    work: str = "nothing"
    step: Callable[[Terminal], object] | None = None
    begin: Callable[[Terminal], object] | None = None


def press(key: str) -> Callable[[Terminal], None]:
    """A key as a step."""
    return lambda terminal: terminal.send(key)


def installed(folder: Path) -> list[Program]:
    """The peers, in virtual environments of their own."""
    log, page = folder / "some.log", folder / "page.md"
    log.write_text("2026-01-01 00:00:00 READY-MARK\n" * 200)
    page.write_text("# READY-MARK\n\n" + "A page of text.\n\n" * 500)

    def grow(_: Terminal) -> None:
        with log.open("a") as file:
            file.write("2026-01-01 00:00:00 another line of the log\n")

    def program(package: str, command: str, word: str, mark: str) -> tuple[str, list[str], str]:
        place = folder / package
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        subprocess.run(["uv", "venv", "-q", "-p", python, str(place)], check=True)
        install = ["uv", "pip", "install", "-q", "--compile-bytecode", "-p", str(place), package]
        subprocess.run(install, check=True)
        version = subprocess.run(
            [str(place / "bin" / "python"), "-c",
             f"from importlib.metadata import version; print(version({package!r}))"],
            check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        return f"{package} {version}", [str(place / "bin" / command), word], mark

    return [
        Program(
            *program("toolong", "tl", str(log), "READY-MARK"),
            f"follows a log that grows by {PER_SECOND} lines a second",
            grow,
            lambda terminal: terminal.send("\x1b[F"),  # to the end, from where it follows
        ),
        Program(
            *program("frogmouth", "frogmouth", str(page), "READY-MARK"),
            f"a page scrolled by {PER_SECOND} lines a second",
            press("\x1b[B"),
        ),
        Program(
            *program("harlequin", "harlequin", ":memory:", "Data Catalog"),
            f"{PER_SECOND} letters a second typed into its editor",
            press("a"),
        ),
    ]


def measure_a_setting(terminal: Terminal) -> None:
    """Start the server and let it measure, which streams 12 replies."""
    terminal.send("\r")
    terminal.wait_for("ready", timeout_s=120)
    terminal.pump(2)
    terminal.send("m")
    terminal.pump(1)


def used_s(main: psutil.Process) -> float:
    """CPU seconds so far of a program without the model's server."""
    family = [main, *main.children(recursive=True)]
    times = [one.cpu_times() for one in family if one.name() != "llama-server"]
    return sum(one.user + one.system for one in times)


def rate(
    terminal: Terminal, seconds: float, step: Callable[[Terminal], object] | None = None
) -> tuple[float, float]:
    """(bytes a second, CPU share) over a time, doing something over and over if it is given."""
    main = psutil.Process(terminal.process.pid)
    before_s, began_s, count = used_s(main), time.monotonic(), 0
    while (passed_s := time.monotonic() - began_s) < seconds:
        if step is None:
            count += terminal.pump(seconds - passed_s)
        else:
            step(terminal)
            count += terminal.pump(1 / PER_SECOND)
        assert terminal.process.poll() is None, "the program ended"
    return count / passed_s, 100 * (used_s(main) - before_s) / passed_s


def idle_and_live(program: Program, seconds: float) -> tuple[float, float, float, float]:
    """Bytes a second and CPU while nothing happens, then while the program works."""
    with Terminal(program.argv) as terminal:
        terminal.wait_for(program.mark)
        terminal.pump(4)
        idle = rate(terminal, seconds)
        if program.begin is not None:
            program.begin(terminal)
        live = rate(terminal, seconds, program.step) if program.work != "nothing" else idle
        terminal.process.terminate()
        terminal.pump(2)
    return *idle, *live


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    asyncio.run(ensure(RIG, ignore))
    with tempfile.TemporaryDirectory() as folder:
        programs = [
            Program("an empty Textual program", [sys.executable, str(HERE / "empty_textual.py")],
                    "READY-MARK"),
            Program("tuirig", [sys.executable, "-m", "tuirig", RIG], "Space streams",
                    "measures a setting, 12 replies streaming", begin=measure_a_setting),
            *installed(Path(folder)),
        ]  # fmt: skip
        seen: dict[str, list[tuple[float, float]]] = {one.name: [] for one in programs}
        for _ in range(options.rounds):
            for one in programs:
                seen[one.name].append(ready(one.argv, one.mark))
        load = f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} before"
        print(f"{options.rounds} rounds, {options.seconds:g} s, {load}\n")
        print(f"| {' | '.join(COLUMNS)} | live: what it does |\n|{'---|' * (len(COLUMNS) + 1)}")
        for one in programs:
            medians = [statistics.median(values) for values in zip(*seen[one.name], strict=True)]
            ready_ms, mib = medians
            idle_b, idle_cpu, live_b, live_cpu = idle_and_live(one, options.seconds)
            row = f"| {one.name} | {ready_ms:.0f} | {mib:.0f} | {idle_b:.0f} | {idle_cpu:.1f} |"
            live = f"{live_b:.0f} | {live_cpu:.1f}" if one.work != "nothing" else "– | –"
            print(f"{row} {live} | {one.work} |", flush=True)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("TUIRIG_HOME", home)
        main()
