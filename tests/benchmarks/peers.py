"""First paint, idle CPU, idle bytes and memory of the screen beside other terminal programs.

    python -m tests.benchmarks.peers [--rounds 5] [--seconds 10]

The peers are installed into a folder of their own by uv and need nothing but a package index. All
run in the same terminal by the same method: ready in a tmux of 120x36, then bytes and CPU in a
pseudo terminal of 80x24 while nobody types.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.benchmarks.screen_budgets import HERE, ready
from tests.terminal import Terminal


@dataclass(frozen=True)
class Program:
    """mark: a text that stands there once the program can be used."""

    name: str
    argv: list[str]
    mark: str


def installed(folder: Path) -> list[Program]:
    """The peers, in virtual environments of their own."""
    log = folder / "some.log"
    log.write_text("2026-01-01 00:00:00 READY-MARK\n" * 200)
    page = folder / "page.md"
    page.write_text("# READY-MARK\n\nA page of text.\n")
    programs = []
    for package, command, words, mark in (
        ("toolong", "tl", [str(log)], "READY-MARK"),
        ("frogmouth", "frogmouth", [str(page)], "READY-MARK"),
        ("harlequin", "harlequin", [":memory:"], "Data Catalog"),
    ):
        place = folder / package
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        subprocess.run(["uv", "venv", "-q", "-p", python, str(place)], check=True)
        subprocess.run(
            ["uv", "pip", "install", "-q", "--compile-bytecode", "-p", str(place), package],
            check=True,
        )
        programs.append(Program(package, [str(place / "bin" / command), *words], mark))
    return programs


def idle(program: Program, seconds: float) -> tuple[float, float]:
    """(bytes a second, CPU share) of the program and its children while nothing happens."""
    with Terminal(program.argv) as terminal:
        terminal.wait_for(program.mark)
        terminal.pump(4)
        main = psutil.Process(terminal.process.pid)
        family = [main, *main.children(recursive=True)]

        def used_s() -> float:
            return sum(one.cpu_times().user + one.cpu_times().system for one in family)

        before_s, began_s = used_s(), time.monotonic()
        count = terminal.pump(seconds)
        passed_s = time.monotonic() - began_s
        share = (used_s() - before_s) / passed_s
        terminal.process.kill()
    return count / passed_s, 100 * share


def main() -> None:
    """The table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = [
            Program("empty Textual program", [sys.executable, str(HERE / "empty_textual.py")],
                    "READY-MARK"),
            Program("tuirig", [sys.executable, "-m", "tuirig"], "Space streams"),
            *installed(Path(folder)),
        ]  # fmt: skip
        seen: dict[str, list[tuple[float, float]]] = {one.name: [] for one in programs}
        for _ in range(options.rounds):
            for one in programs:
                seen[one.name].append(ready(one.argv, one.mark))
        print(f"{'':24}{'ready ms':>9}{'MiB':>7}{'idle bytes/s':>14}{'idle CPU %':>12}")
        for one in programs:
            times, sizes = zip(*seen[one.name], strict=True)
            bytes_s, cpu = idle(one, options.seconds)
            print(
                f"{one.name:24}{statistics.median(times):9.0f}{statistics.median(sizes):7.0f}"
                f"{bytes_s:14.0f}{cpu:12.1f}",
                flush=True,
            )


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as home:
        os.environ.setdefault("TUIRIG_HOME", home)
        main()
