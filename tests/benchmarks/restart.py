"""From keypress to ready, beside a script that does the same by hand.

    uv run python tests/benchmarks/restart.py [--rounds 10]

By hand: SIGTERM, wait, start the same command, poll /health every 5 ms, the same warm-up reply.
tuirig: Enter on the grid of demo-gemma4 in a pseudo terminal, until the screen says ready. Both
take turns in one run.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.terminal import PAINTED, Terminal

WARM_UP_TOKENS = 16


def server_of(terminal: Terminal) -> psutil.Process:
    """The llama-server under the program in the terminal."""
    for child in psutil.Process(terminal.process.pid).children(recursive=True):
        if Path(child.exe()).name == "llama-server":
            return child
    raise SystemExit("no llama-server under tuirig")


class ByHand:
    """The same command line, started by a script."""

    def __init__(self, argv: list[str], env: dict[str, str]) -> None:
        self.argv = argv
        self.env = env
        self.port = int(argv[argv.index("--port") + 1])
        self.process: subprocess.Popen[bytes] | None = None

    def restart_ms(self) -> float:
        """Stop, start, poll, warm up."""
        begun = time.perf_counter()
        self.stop()
        self.process = subprocess.Popen(
            self.argv, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not self.healthy():
            time.sleep(0.005)
        body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": WARM_UP_TOKENS}
        body |= {"temperature": 0, "cache_prompt": False}
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        key = self.env.get("LLAMA_API_KEY", "")
        connection.request(
            "POST",
            "/v1/chat/completions",
            json.dumps(body),
            {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            raise SystemExit(f"warm-up by hand: {answer.status}")
        return (time.perf_counter() - begun) * 1000

    def healthy(self) -> bool:
        """Whether /health says 200."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def stop(self) -> None:
        """SIGTERM and wait."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None


def main() -> None:
    """Take turns and print both medians and their difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    rounds = parser.parse_args().rounds
    with Terminal(
        [sys.executable, "-m", "tuirig", "demo-gemma4"], columns=120, rows=36
    ) as terminal:
        terminal.wait_for(PAINTED)
        terminal.pump(1)
        mark = len(terminal.output)
        terminal.send("\r")
        terminal.wait_for("ready", since=mark, timeout_s=180)
        server = server_of(terminal)
        argv, env = server.cmdline(), server.environ()
        free = subprocess.run(
            [sys.executable, "-c", "import socket; s=socket.socket(); s.bind(('127.0.0.1', 0));"
             " print(s.getsockname()[1])"],
            capture_output=True, text=True, check=True,
        ).stdout.strip()  # fmt: skip
        argv[argv.index("--port") + 1] = free
        script = ByHand(argv, env)
        script.restart_ms()
        by_hand, by_key = [], []
        for _ in range(rounds):
            by_hand.append(script.restart_ms())
            terminal.pump(0.2)
            mark = len(terminal.output)
            begun = time.perf_counter()
            terminal.send("\r")
            terminal.wait_for("(?s)starting.*ready", since=mark, timeout_s=60)
            by_key.append((time.perf_counter() - begun) * 1000)
        script.stop()
        terminal.send("q")
        terminal.pump(0.5)
        terminal.send("s")
        terminal.wait()
    print(f"load average {os.getloadavg()[0]:.1f}; {rounds} restarts of demo-gemma4, no drafter")
    for name, values in (("by hand", by_hand), ("tuirig", by_key)):
        print(f"{name:10} median {statistics.median(values):6.0f} ms   min {min(values):6.0f} ms")
    difference = statistics.median(by_key) - statistics.median(by_hand)
    print(f"difference of the medians {difference:+.0f} ms (goal: at most +150 ms)")


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    main()
