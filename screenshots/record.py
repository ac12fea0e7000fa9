"""Records tune.cast beside it: `tuirig demo demo-gemma4` from its start to the saved profile.

    uv run python screenshots/record.py [--check]

The real program in a pseudo terminal of 100x30, in asciinema's format (version 2; `asciinema play
screenshots/tune.cast`). Real waiting, some minutes; the header tells players to shorten what is
longer than 1.5 s. The models are made before. --check looks at the file that is there.
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import json
import re
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from screenshots.home import at_home, tidied  # noqa: E402
from tests.terminal import Terminal, plain  # noqa: E402
from tuirig.demo.catalog import ensure  # noqa: E402
from tuirig.events import ignore  # noqa: E402

RIG = "demo-gemma4"
CAST = HERE / "tune.cast"
SIZE = (100, 30)
MOST_BYTES = 1_500_000
#: A tune on two busy cores.
LONG_S = 1800
#: Writes that follow each other so closely are one event.
TOGETHER_S = 0.02
#: What has to be read in the recording, in this order.
STORY = ("Space streams", "server starts", "Save .* as the profile", "saved: ")


class Recorder(Terminal):
    """A terminal that keeps when each part of the output came."""

    def __init__(self, argv: list[str]) -> None:
        self.parts: list[tuple[float, bytes]] = []
        super().__init__(argv, columns=SIZE[0], rows=SIZE[1])

    def _read(self, timeout_s: float) -> bool:
        before = len(self.output)
        read = super()._read(timeout_s)
        if len(self.output) > before:
            passed_s = time.monotonic() - self.started_s
            self.parts.append((passed_s, self.output[before:]))
        return read

    def look_on(self, pattern: str, *, timeout_s: float = 60, then_s: float = 2.0) -> None:
        """Wait for a text that is not there yet, and as long as a reader needs."""
        self.wait_for(pattern, timeout_s=timeout_s, since=len(self.output))
        self.pump(then_s)


def perform() -> Recorder:
    """Tune, save, quit."""
    argv = [sys.executable, "-m", "tuirig", "demo", RIG, "--hz", "2"]
    with Recorder(argv) as terminal:
        terminal.look_on(STORY[0], then_s=3)
        terminal.send("t")
        terminal.look_on(STORY[1], then_s=4)
        terminal.send("\r")
        terminal.look_on(STORY[2], timeout_s=LONG_S, then_s=5)
        terminal.send("\r")
        terminal.look_on(STORY[3], then_s=4)
        terminal.send("q")
        terminal.pump(2)
        if terminal.process.poll() is None:  # a server is running, and it asks
            terminal.send("s")
        code = terminal.wait()
    assert code == 0, code
    return terminal


def events(parts: list[tuple[float, bytes]]) -> list[tuple[float, str, str]]:
    """The output as events, whole characters each."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found: list[tuple[float, str, str]] = []
    for at_s, data in parts:
        text = decoder.decode(data)
        if found and at_s - found[-1][0] < TOGETHER_S:
            text = found[-1][2] + text
            at_s = found.pop()[0]
        found.append((round(at_s, 3), "o", text))
    return found


def record() -> None:
    """Make the models, perform, write the file, look at it."""
    asyncio.run(ensure(RIG, ignore))
    terminal = perform()
    header = {
        "version": 2,
        "width": SIZE[0],
        "height": SIZE[1],
        "timestamp": int(time.time()),
        "idle_time_limit": 1.5,
        "title": f"tuirig demo {RIG}",
        "env": {"TERM": "xterm-256color", "SHELL": "/bin/bash"},
    }
    lines = (json.dumps(line, ensure_ascii=False) for line in (header, *events(terminal.parts)))
    CAST.write_text(tidied("\n".join(lines)) + "\n", encoding="utf-8")


def check(path: Path) -> str:
    """What the recording is, in a line. AssertionError if it is none, or tells another story."""
    size = path.stat().st_size
    assert size < MOST_BYTES, f"{size} bytes"
    first, *rest = path.read_text("utf-8").splitlines()
    header = json.loads(first)
    assert header["version"] == 2
    assert (header["width"], header["height"]) == SIZE
    assert header["idle_time_limit"] == 1.5
    told = [json.loads(line) for line in rest]
    times = [at_s for at_s, _, _ in told]
    assert times == sorted(times), "times run back"
    assert {kind for _, kind, _ in told} == {"o"}
    shown = plain("".join(text for _, _, text in told))
    begin = 0
    for pattern in STORY:
        found = re.compile(pattern).search(shown, begin)
        assert found, f"{pattern!r} does not follow"
        begin = found.end()
    assert "\x1b[?1049l" in told[-1][2] or "\x1b[?1049l" in told[-2][2], "the screen did not end"
    return f"{path.name}: {len(told)} events, {times[-1]:.0f} s, {size / 1000:.0f} kB"


def main() -> None:
    """Record and look at it, or just look."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        at_home(record)
    print(check(CAST))


if __name__ == "__main__":
    main()
