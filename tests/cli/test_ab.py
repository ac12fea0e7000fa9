"""`tuirig ab` as a process of its own: lines of JSON, killed and resumed."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from typing import Any

import pytest

from tests.cli.support import TUIRIG, Commands, pid_file, running, save_rig
from tests.processes import is_alive, until
from tests.terminal import Terminal
from tuirig.errors import ExitCode
from tuirig.rigs.schema import Rig
from tuirig.runs.store import ArmState, RunState, Store

SHORT = ("none", "q4_0:1", "--prompts", "2", "--tokens", "8", "--blocks", "1")


@pytest.fixture
def rig(tiny_gemma4_rig: Rig) -> str:
    save_rig(tiny_gemma4_rig)
    return tiny_gemma4_rig.name


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def of(kind: str, told: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in told if event["type"] == kind]


def read_events(process: subprocess.Popen[str], kind: str, count: int) -> None:
    """Read stdout until so many events of a kind have come."""
    assert process.stdout is not None
    for line in process.stdout:
        count -= json.loads(line)["type"] == kind
        if not count:
            return
    raise AssertionError(f"too few {kind}")


def test_every_event_is_a_line_and_the_result_the_last(run: Commands, rig: str) -> None:
    ran = run("ab", rig, *SHORT, "--json")
    assert ran.code == ExitCode.OK
    told = events(ran.stdout)
    assert [event["setting"] for event in of("StartBegan", told)] == [
        "none", "q4_0:1", "q4_0:1", "none",
    ]  # fmt: skip
    assert len(of("ReplyDone", told)) == 8
    assert of("TextArrived", told)
    result = told[-1]
    assert (result["type"], result["schema"], result["kind"]) == ("result", 1, "ab")
    assert result["verdict"] in ("faster", "slower", "level")
    low, high = result["interval"]
    assert low < result["ratio"] < high
    assert result["setting"] == ("q4_0:1" if result["verdict"] == "faster" else "none")
    assert (result["starts"], result["prompts"], result["tokens"]) == (4, 2, 8)
    assert result["seconds"] > 0


def test_a_killed_comparison_goes_on_where_it_was(run: Commands, rig: str) -> None:
    with running("ab", rig, *SHORT, "--json") as process:
        read_events(process, "ReplyDone", 3)
        server = pid_file()
        assert server is not None
        process.kill()
    asyncio.run(until(lambda: not is_alive(server.pid), "the server dies with it"))
    with Store() as store:
        (stored,) = store.runs()
        first, second = store.arms(stored.id)
    assert stored.state is RunState.INTERRUPTED
    assert (first.state, len(first.replies)) == (ArmState.MEASURED, 2)
    assert (second.state, len(second.replies)) == (ArmState.RUNNING, 1)

    ran = run("ab", rig, *SHORT, "--resume", "--json")
    assert ran.code == ExitCode.OK
    told = events(ran.stdout)
    assert [event["setting"] for event in of("StartBegan", told)] == ["q4_0:1", "q4_0:1", "none"]
    assert (told[-1]["run"], told[-1]["starts"]) == (stored.id, 4)
    with Store() as store:
        (again,) = store.runs()
        arms = store.arms(stored.id)
    assert again.state is RunState.DONE
    assert [arm.state for arm in arms] == [
        ArmState.MEASURED, ArmState.BROKEN_OFF, *[ArmState.MEASURED] * 3,
    ]  # fmt: skip
    assert [[reply.order for reply in arm.replies] for arm in arms] == [
        [0, 1], [0], [0, 1], [0, 1], [0, 1],
    ]  # fmt: skip


def test_for_people_the_answer_stands_on_stdout(run: Commands, rig: str) -> None:
    ran = run("ab", rig, *SHORT)
    assert ran.code == ExitCode.OK
    assert "q4_0:1 is " in ran.stdout
    assert "interval [" in ran.stdout
    assert "would narrow it to ±" in ran.stdout
    assert "server starts: 4 to " in ran.stderr  # some are repeated where replies stand still
    assert ran.stderr.count(" tok/s") == 4


def test_nothing_to_resume(run: Commands, rig: str) -> None:
    ran = run("ab", rig, *SHORT, "--resume", "--json")
    assert ran.code == ExitCode.MISSING
    assert "no unfinished run of this kind on tiny-gemma4" in ran.stderr


def test_a_setting_that_the_rig_does_not_have(run: Commands, rig: str) -> None:
    ran = run("ab", rig, "none", "q5_0:2")
    assert ran.code == ExitCode.USAGE
    assert "has no drafter 'q5_0'" in ran.stderr


def test_a_signal_ends_it_in_order_and_keeps_what_was_measured(rig: str) -> None:
    with running("ab", rig, *SHORT, "--json") as process:
        read_events(process, "ReplyDone", 3)
        server = pid_file()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "ended by SIGINT, in order" in stderr
    assert json.loads(stdout.splitlines()[-1])["state"] == "cancelled"
    assert server is not None and not is_alive(server.pid)
    with Store() as store:
        (stored,) = store.runs()
        states = [arm.state for arm in store.arms(stored.id)]
    assert stored.state is RunState.CANCELLED
    assert states == [ArmState.MEASURED, ArmState.BROKEN_OFF]


@pytest.mark.parametrize(("answer", "code"), [("n\r", ExitCode.INTERRUPTED), ("\r", ExitCode.OK)])
def test_on_a_terminal_it_asks_first(rig: str, answer: str, code: ExitCode) -> None:
    with Terminal([*TUIRIG, "ab", rig, *SHORT]) as terminal:
        terminal.wait_for(r"start\? \[Y/n\]")
        with Store() as store:
            assert store.runs() == ()
        terminal.send(answer)
        terminal.wait_for("not started" if code else "interval")
        assert terminal.wait() == code
