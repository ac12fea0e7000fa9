"""`tuirig tune` as a process of its own: lines of JSON, killed again and again."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.support import Commands, pid_file, running, save_rig
from tests.processes import is_alive, until
from tuirig.errors import ExitCode
from tuirig.measure.prompts import choose
from tuirig.rigs.schema import Rig
from tuirig.runs.store import ArmState, RunState, Store

SHORT = (
    *("--formats", "q4_0", "--lengths", "0-2", "--prompts", "4", "--tokens", "8"),
    *("--min-gain", "50", "--budget", "30", "--json"),
)
KILLS = 10


@pytest.fixture
def rig(tiny_gemma4_rig: Rig) -> str:
    save_rig(tiny_gemma4_rig)
    return tiny_gemma4_rig.name


async def dead(pid: int) -> None:
    await until(lambda: not is_alive(pid), "the server dies with its tuirig")


def kill_after(words: tuple[str, ...], replies: int, more_events: int) -> bool:
    """Kill a command so many events after a reply was told; False if it ended before."""
    with running(*words) as process:
        assert process.stdout is not None
        for line in process.stdout:
            replies -= json.loads(line)["type"] == "ReplyDone"
            more_events -= replies <= 0
            if more_events < 0:
                server = pid_file()
                process.kill()
                process.wait()
                if server is not None:
                    asyncio.run(dead(server.pid))
                return True
        return False


def test_killed_at_random_points_it_finishes_and_loses_nothing(run: Commands, rig: str) -> None:
    words = ("tune", rig, *SHORT)
    rng = random.Random(4)
    killed = kill_after(words, 1, rng.randrange(12))
    assert killed
    for _ in range(KILLS - 1):
        if not kill_after((*words, "--resume"), rng.randrange(1, 6), rng.randrange(12)):
            break
        with Store() as store:
            for arm in store.arms(1):
                assert [reply.order for reply in arm.replies] == list(range(len(arm.replies)))
    ran = run(*words, "--resume")
    assert ran.code in (ExitCode.OK, ExitCode.MISSING)  # MISSING: the last one finished it
    with Store() as store:
        (stored,) = store.runs()
        arms = store.arms(stored.id)
    assert stored.state is RunState.DONE
    measured = [arm for arm in arms if arm.state is ArmState.MEASURED]
    assert [arm.setting for arm in measured][:3] == ["none", "q4_0:1", "q4_0:2"]
    prompts = [prompt.id for prompt in choose(4)]
    assert all([reply.prompt_id for reply in arm.replies] == prompts for arm in measured)
    assert {arm.state for arm in arms} == {ArmState.MEASURED, ArmState.BROKEN_OFF}
    assert stored.starts == len(measured)
    names = [process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"])]
    target = next(part for part in measured[0].circumstances.argv if part.endswith(".gguf"))
    port = measured[-1].circumstances.argv[measured[-1].circumstances.argv.index("--port") + 1]
    assert not [name for name in names if target in name and port in name]


def result_of(stdout: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(stdout.splitlines()[-1])
    return result


def test_the_last_line_is_the_result(run: Commands, rig: str) -> None:
    ran = run("tune", rig, *SHORT)
    assert ran.code == ExitCode.OK
    events = [json.loads(line) for line in ran.stdout.splitlines()]
    kinds = {event["type"] for event in events}
    assert {"PlanMade", "RunStarted", "StartBegan", "PredictionsMade", "RunEnded"} <= kinds
    result = result_of(ran.stdout)
    assert (result["type"], result["schema"], result["kind"]) == ("result", 1, "tune")
    assert result["verdict"] in ("faster", "slower", "level")
    assert len(result["interval"]) == 2
    assert result["setting"] in ("none", "q4_0:1", "q4_0:2")
    assert result["starts"] >= 4 and result["seconds"] > 0


def test_for_people_and_the_profile_that_it_saves(run: Commands, rig: str) -> None:
    ran = run("tune", rig, *SHORT[:-1])
    assert ran.code == ExitCode.OK
    assert "none: the baseline without a drafter" in ran.stderr
    assert "server starts: " in ran.stderr and "not measured here: heat and clock" in ran.stderr
    assert "best for all: " in ran.stdout
    assert "saved: " in ran.stdout
    assert "drift: none moved by " in ran.stdout

    (profile,) = (one for one in run("profiles", "--json").json["profiles"] if not one["shipped"])
    assert (profile["stale"], profile["next"]) == ([], None)
    path = Path(profile["path"])
    build = profile["evidence"]["server_build"]
    path.write_text(path.read_text().replace(build, "0.0.1 (build 7, commit abcdef0)"))
    (profile,) = (one for one in run("profiles", "--json").json["profiles"] if not one["shipped"])
    (change,) = profile["stale"]
    assert change == f"server build 0.0.1 (build 7, commit abcdef0) -> {build}"
    assert profile["next"] == f"tuirig tune {rig}"
    text = run("profiles").stdout
    assert f"is stale: {change}\n  next: tuirig tune {rig}" in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--lengths", "4-0"), "expected lengths from 0 to 64"),
        (("--lengths", "x"), "expected lengths from 0 to 64"),
        (("--formats", "q4_0,,"), "expected names of drafters"),
        (("--formats", "q5_0"), "has no drafter 'q5_0'"),
        (("--objective", "poems"), "--objective: objective 'poems'"),
        (("--p-min", "2"), "expected numbers above 0"),
        (("--budget", "0"), "is not a number of minutes"),
        (("--min-gain", "0"), "is not a percentage"),
        (("--objective", "code", "--prompts", "7"), "choose from 1 to 6"),
    ],
)
def test_a_wrong_option_is_explained(
    run: Commands, rig: str, words: tuple[str, ...], told: str
) -> None:
    ran = run("tune", rig, *words)
    assert ran.code == ExitCode.USAGE
    assert told in ran.stderr
