"""runs, report and compare; speed, short."""

from __future__ import annotations

import csv
import json

import pytest

from tests.cli.support import Commands, save_rig
from tests.runs.test_report import a_run
from tuirig.errors import ExitCode
from tuirig.rigs.schema import Rig
from tuirig.runs.store import RunState, Store


@pytest.fixture
def stored() -> int:
    with Store() as store:
        run = a_run(store)
        store.end_run(run, RunState.CANCELLED)
        a_run(store, 1.1)
    return run


def test_no_runs_yet(run: Commands) -> None:
    assert run("runs").stdout == "no runs yet: tuirig tune RIG makes one\n"
    assert run("runs", "--json").json["runs"] == []


def test_runs_are_listed_newest_first(run: Commands, stored: int) -> None:
    newest, oldest = run("runs", "--json").json["runs"]
    assert (newest["run"], oldest["run"]) == (stored + 1, stored)
    assert (oldest["kind"], oldest["rig"], oldest["state"]) == ("speed", "example", "cancelled")
    assert (oldest["starts"], oldest["seconds"], oldest["verdict"]) == (4, 40.0, None)
    lines = run("runs", "example").stdout.splitlines()
    assert len(lines) == 3 and lines[0].split()[:3] == ["RUN", "KIND", "RIG"]
    assert run("runs", "another").stdout.startswith("no runs yet")


def test_a_report_in_markdown(run: Commands, stored: int) -> None:
    ran = run("report", str(stored))
    assert ran.code == ExitCode.OK
    assert ran.stdout.startswith("# speed of example: run 1\n")
    assert "- card: NVIDIA GeForce RTX 3050, driver 615.78.08" in ran.stdout
    assert "## Formats at 2 drafted tokens" in ran.stdout
    assert "| q8_0 | 94.3 | 1.72x | .477 | 4.43 GiB | 122 MiB |" in ran.stdout
    assert "2 of 3 greedy replies are the same in all; 2 also without a drafter." in ran.stdout
    assert "## Memory" in ran.stdout


def test_a_report_as_csv(run: Commands, stored: int) -> None:
    rows = list(csv.DictReader(run("report", str(stored), "--format", "csv").stdout.splitlines()))
    assert [row["setting"] for row in rows] == ["none", "q8_0:2", "q4_0:2", "q4_0:1"]
    assert rows[0]["gain"] == ""
    assert float(rows[1]["low"]) < float(rows[1]["gain"]) < float(rows[1]["high"])


def test_a_report_as_json_has_every_reply(run: Commands, stored: int) -> None:
    document = run("report", str(stored), "--format", "json").json
    assert document["run"] == stored
    assert document["result"] is None
    assert [len(arm["replies"]) for arm in document["arms"]] == [3] * 4
    assert document["arms"][1]["circumstances"]["drafter"]["sha256"] == "b" * 64
    assert document["formats"][0]["identical"] == 2


def test_two_runs_compared(run: Commands, stored: int) -> None:
    ran = run("compare", str(stored), str(stored + 1))
    assert ran.code == ExitCode.OK
    assert "A  run 1, speed of example on NVIDIA GeForce RTX 3050, best q4_0:2" in ran.stdout
    assert "1.100" in ran.stdout
    document = run("compare", str(stored), str(stored + 1), "--json").json
    assert document["settings"][0]["ratio"] == pytest.approx(1.1)


@pytest.mark.parametrize("words", [("report", "9"), ("compare", "9", "9")], ids=" ".join)
def test_a_run_that_is_not_there(run: Commands, words: tuple[str, ...]) -> None:
    ran = run(*words)
    assert ran.code == ExitCode.MISSING
    assert "there is no run 9" in ran.stderr
    assert run("report", "last").code == ExitCode.USAGE


def test_the_table_of_draft_lengths(run: Commands, tiny_gemma4_rig: Rig) -> None:
    save_rig(tiny_gemma4_rig)
    words = ("speed", "tiny-gemma4", "--formats", "q4_0", "--lengths", "0,1", "--tokens", "6")
    ran = run(*words, "--json")
    assert ran.code == ExitCode.OK
    result = json.loads(ran.stdout.splitlines()[-1])
    assert (result["type"], result["kind"], result["schema"]) == ("result", "speed", 1)
    assert [row["setting"] for row in result["rows"]] == ["none", "q4_0:1"]
    assert (result["starts"], result["prompts"], result["repeats"]) == (3, 6, 3)
    assert run("report", str(result["run"])).code == ExitCode.OK
