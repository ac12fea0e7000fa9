from __future__ import annotations

import io
import sys

import pytest

from tuirig.cli.narration import Narrator
from tuirig.events import (
    Event,
    Failed,
    Progress,
    ReadingTaken,
    ReplyDone,
    ServerChanged,
    ServerState,
    TextArrived,
)
from tuirig.records import Reading, Reply

START = (
    ServerChanged(state=ServerState.STARTING, setting="q4_0:2"),
    ServerChanged(state=ServerState.STARTING, setting="q4_0:2", seconds=1, line="loading tensors"),
    ServerChanged(
        state=ServerState.READY, setting="q4_0:2", seconds=2, url="http://127.0.0.1:1", build="b1"
    ),
)
MAKING = tuple(Progress(what="writing", done=done, total=2e6, unit="B") for done in (0, 1e6, 2e6))


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def told(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *events: Event) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    narrator = Narrator()
    for event in events:
        narrator(event)
    narrator.close()
    return stream.getvalue()


def test_a_file_gets_whole_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, io.StringIO(), *START, *MAKING) == (
        "q4_0:2: starting\n"
        "q4_0:2: ready after 2.0 s at http://127.0.0.1:1 (b1)\n"
        "writing\n"
        "writing: done\n"
    )


def test_a_terminal_gets_a_status_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    text = told(monkeypatch, Screen(), *START[:2], *MAKING[:2])
    assert text == (
        "q4_0:2: starting\n"
        "\r\x1b[Kq4_0:2: starting, 1 s  loading tensors"
        "\r\x1b[Kwriting: 0 of 2 MB"
        "\r\x1b[Kwriting: 1 of 2 MB"
        "\r\x1b[K"
    )


def test_bytes_have_their_rate_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    event = Progress(what="x", done=1e8, total=7e8, unit="B", per_s=2.5e7, left_s=61)
    text = told(monkeypatch, Screen(), event)
    assert text == "\r\x1b[Kx: 100 of 700 MB  25.0 MB/s  1:01 left\r\x1b[K"


def test_a_status_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    long = ServerChanged(state=ServerState.STARTING, setting="q4_0:2", line="x" * 200)
    text = told(monkeypatch, Screen(), START[0], long)
    assert max(map(len, text.replace("\x1b[K", "").split("\r"))) == 39


def test_a_server_is_ready_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between replies it is ready again and again."""
    running = ServerChanged(state=ServerState.RUNNING, setting="q4_0:2")
    text = told(monkeypatch, io.StringIO(), *START, running, START[-1], running, START[-1])
    assert text.count("ready") == 1


@pytest.mark.parametrize(
    ("reply", "line"),
    [
        (Reply(prompt_id="code-1", kind="code", tok_s=58.32), "  code-1            58.3 tok/s"),
        (
            Reply(prompt_id="own", kind="own", tok_s=8.4, kept=0.481, ended_by_itself=True),
            "  own               8.40 tok/s  kept .481  ended by itself",
        ),
        (Reply(prompt_id="list-1", kind="list"), "  list-1               – tok/s"),
    ],
)
def test_a_reply_is_a_line(monkeypatch: pytest.MonkeyPatch, reply: Reply, line: str) -> None:
    assert told(monkeypatch, io.StringIO(), ReplyDone(setting="none", reply=reply)) == f"{line}\n"


def test_what_ends_the_command_is_told_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    events = (
        Failed(message="the server died"),
        TextArrived(text="a", predicted_n=1),
        ReadingTaken(reading=Reading(at_s=0)),
        ServerChanged(state=ServerState.FAILED, setting="none"),
    )
    assert told(monkeypatch, io.StringIO(), *events) == ""
