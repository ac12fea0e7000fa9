"""What the live screen costs: tok/s of a reply with the UI against the same request by curl alone.

    uv run python tests/benchmarks/screen_overhead.py [--pairs 10] [--threads 1 | --rig RIG]

One server, started by tuirig in a pseudo terminal of 120x36. In a pair some replies are streamed
by Space; for the others tuirig is stopped (SIGSTOP) and curl sends the same requests. tok/s comes
from the server's own counters both times; the order alternates.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.benchmarks.restart import server_of
from tests.terminal import PAINTED, Terminal
from tuirig.demo.catalog import built_in_text, ensure
from tuirig.events import ignore
from tuirig.measure.prompts import PROMPTS


def curl(server: psutil.Process, path: str, body: dict[str, object] | None = None) -> str:
    """Ask the server without any of our code on the way."""
    argv = server.cmdline()
    port, key = argv[argv.index("--port") + 1], server.environ().get("LLAMA_API_KEY", "")
    words = ["curl", "-sN", "-H", f"Authorization: Bearer {key}"]
    if body is not None:
        words += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    return subprocess.run(
        [*words, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True
    ).stdout


def counters(server: psutil.Process) -> tuple[float, float]:
    """(tokens predicted, seconds spent on them) since the start."""
    text = curl(server, "/metrics")
    names = ("tokens_predicted_total", "tokens_predicted_seconds_total")
    tokens, seconds = (
        float(re.search(rf"^llamacpp:{name} (\S+)", text, re.M)[1])  # type: ignore[index]
        for name in names
    )
    return tokens, seconds


def request() -> dict[str, object]:
    """What tuirig sends for its first prompt."""
    return {
        "messages": [{"role": "user", "content": PROMPTS[0].text}],
        "stream": True,
        "timings_per_token": True,
        "cache_prompt": False,
        "temperature": 0,
        "seed": 42,
        "max_tokens": 128,
    }


def main() -> None:
    """Print the paired ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--replies", type=int, default=4, help="on each side of a pair")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rig", help="another rig than demo-gemma4, for example one on a GPU")
    options = parser.parse_args()
    if options.rig:
        live(options.rig, options)
        return
    asyncio.run(ensure("demo-gemma4", ignore))
    with tempfile.TemporaryDirectory() as folder:
        rig = Path(folder) / "overhead.toml"
        text = built_in_text("demo-gemma4").replace("demo-gemma4", "overhead", 1)
        rig.write_text(text.replace('"-t", "2"', f'"-t", "{options.threads}"', 1))
        print(f"demo-gemma4 with -t {options.threads}")
        live(str(rig), options)


def live(rig: str, options: argparse.Namespace) -> None:
    """The screen on a rig, and its server."""
    with Terminal([sys.executable, "-m", "tuirig", rig], columns=120, rows=36) as terminal:
        run(terminal, options.pairs, options.replies)


def run(terminal: Terminal, pairs: int, replies: int) -> None:
    """Take turns on one server."""
    terminal.wait_for(PAINTED)
    terminal.pump(1)
    mark = len(terminal.output)
    terminal.send("\r")
    terminal.wait_for("(?s)starting.*ready", since=mark, timeout_s=180)
    server = server_of(terminal)

    def with_screen() -> None:
        mark = len(terminal.output)
        terminal.send(" ")
        terminal.wait_for("(?s)running.*ready", since=mark, timeout_s=120)

    def without_screen() -> None:
        os.kill(terminal.process.pid, signal.SIGSTOP)
        try:
            curl(server, "/v1/chat/completions", request())
        finally:
            mark = len(terminal.output)
            os.kill(terminal.process.pid, signal.SIGCONT)
        # What is typed before it has repainted is thrown away with what was typed meanwhile.
        terminal.wait_for(PAINTED, since=mark)
        terminal.pump(0.2)

    def tok_s(reply: Callable[[], None]) -> float:
        tokens, seconds = counters(server)
        for _ in range(replies):
            reply()
        more_tokens, more_seconds = counters(server)
        return (more_tokens - tokens - replies) / (more_seconds - seconds)

    tok_s(with_screen)
    ratios: list[float] = []
    for pair in range(pairs):
        order = (with_screen, without_screen) if pair % 2 else (without_screen, with_screen)
        speeds = {reply.__name__: tok_s(reply) for reply in order}
        ratios.append(speeds["with_screen"] / speeds["without_screen"])
        print(f"{speeds['with_screen']:7.1f} {speeds['without_screen']:7.1f} {ratios[-1]:.4f}")
    terminal.send("q")
    terminal.wait_for("keep serving and quit", since=len(terminal.output))
    terminal.send("s")
    terminal.wait()
    print(f"load average {os.getloadavg()[0]:.1f}")
    middle, spread = statistics.median(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
    print(
        f"with screen / curl alone, {pairs} pairs of {replies} replies: median {middle:.4f}, "
        f"mean {statistics.mean(ratios):.4f} +- {spread:.4f}"
    )


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
