"""The store of runs: nothing lost, nothing doubled, whatever happens."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.runs.stored import arm, circumstances, reply
from tuirig import locations
from tuirig.errors import InUseError, MissingError, TuirigError
from tuirig.records import Cooling, Reading
from tuirig.runs import database
from tuirig.runs.database import MIGRATIONS, open_database
from tuirig.runs.store import ArmState, FailureNote, RunState, Store

#: Begins a run with one arm, stores what it is told to, and waits. argument: replies.
WRITER = """
import sys
from tests.runs.stored import circumstances, reply
from tuirig.records import Cooling
from tuirig.runs.store import Store

print("ready", flush=True)
sys.stdin.readline()
store = Store()
run = store.begin_run("ab", "example", {"who": sys.argv[1]})
arm = store.begin_arm(run, "none", {}, circumstances(), Cooling())
for number in range(int(sys.argv[2])):
    store.add_reply(arm, number, reply(100.0 + number, f"code-{number}"))
print(run, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as opened:
        yield opened


def writer(who: str, replies: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, who, str(replies)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_what_is_stored_comes_back(store: Store) -> None:
    run = store.begin_run("tune", "example", {"lengths": [0, 1, 2]})
    cooling = Cooling(seconds=12.0, start_c=60.0, end_c=45.0, target_c=45.0)
    replies = (reply(58.0), reply(61.0, "story-1", kept=0.5))
    warm = Reading(at_s=3.0, temperature_c=61.0, sm_clock_mhz=1500.0)
    number = store.begin_arm(run, "q4_0:2", {"reason": "why"}, circumstances("q4_0:2"), cooling)
    store.add_reply(number, 0, replies[0])
    store.add_reply(number, 1, replies[1], [warm])
    store.end_arm(number, ArmState.MEASURED, 31.5, record=arm("q4_0:2", replies, 4387.0))
    store.end_run(run, RunState.DONE, {"verdict": "faster"})
    store.close()

    with Store() as again:
        (found,) = again.arms(run)
        stored = again.run(run)
    assert found.arm == arm("q4_0:2", replies, 4387.0)
    assert (found.replies, found.samples) == (replies, (warm,))
    assert (found.state, found.seconds, found.cooling) == (ArmState.MEASURED, 31.5, cooling)
    assert found.circumstances == circumstances("q4_0:2")
    assert msgspec.json.decode(found.step) == {"reason": "why"}
    assert (stored.state, stored.starts, stored.seconds) == (RunState.DONE, 1, 31.5)
    assert msgspec.json.decode(stored.options) == {"lengths": [0, 1, 2]}
    assert stored.result is not None
    assert msgspec.json.decode(stored.result) == {"verdict": "faster"}


def test_a_failure_and_passes_are_results(store: Store) -> None:
    run = store.begin_run("tune", "example", {})
    first = store.begin_arm(run, "none", {}, circumstances(), Cooling())
    store.end_arm(first, ArmState.MEASURED, 4.0, passes_s={1: 0.010, 2: 0.011})
    second = store.begin_arm(run, "q4_0:7", {}, circumstances("q4_0:7"), Cooling())
    note = FailureNote(message="no memory", evidence=("cudaMalloc failed",))
    store.end_arm(second, ArmState.DOES_NOT_FIT, 2.0, failure=note)
    passes, unfit = store.arms(run)
    assert passes.passes_s == {1: 0.010, 2: 0.011}
    assert (unfit.state, unfit.failure, unfit.arm) == (ArmState.DOES_NOT_FIT, note, None)


def test_runs_are_listed_newest_first(store: Store) -> None:
    for kind, rig in (("ab", "one"), ("tune", "one"), ("ab", "two")):
        store.begin_run(kind, rig, {})
    assert [(run.kind, run.rig) for run in store.runs()] == [
        ("ab", "two"), ("tune", "one"), ("ab", "one"),
    ]  # fmt: skip
    assert [run.id for run in store.runs(rig="one", kind="ab")] == [1]
    with pytest.raises(MissingError, match="no run 7"):
        store.run(7)


def test_a_reply_is_never_stored_twice(store: Store) -> None:
    run = store.begin_run("ab", "example", {})
    number = store.begin_arm(run, "none", {}, circumstances(), Cooling())
    store.add_reply(number, 0, reply(50.0))
    with pytest.raises(TuirigError, match="UNIQUE"):
        store.add_reply(number, 0, reply(51.0), [Reading(at_s=1.0)])
    (found,) = store.arms(run)
    assert (found.replies, found.samples) == ((reply(50.0),), ())


def test_past_starts_tell_greedy_speeds_of_measured_arms(store: Store) -> None:
    run = store.begin_run("speed", "example", {})
    for state in (ArmState.MEASURED, ArmState.FAILED):
        number = store.begin_arm(run, "q4_0:1", {}, circumstances("q4_0:1"), Cooling())
        for order, tok_s in enumerate((40.0, 90.0)):
            store.add_reply(number, order, reply(tok_s, kept=0.5))
        store.add_reply(number, 2, reply(10.0, temperature=0.8))
        store.end_arm(number, state, 20.0)
    (start,) = store.past_starts("example")
    assert start.speeds == {"code-1": pytest.approx(60.0)}
    assert (start.run, start.setting, start.seconds, start.tokens) == (run, "q4_0:1", 20.0, 384)
    assert start.circumstances == circumstances("q4_0:1")
    assert store.past_starts("example", besides=run) == ()
    assert store.past_starts("other") == ()


def test_a_killed_run_keeps_its_replies_and_is_taken_over(store: Store) -> None:
    with writer("killed", 3) as process:
        go(process)
        run = int(said(process))
        assert store.run(run).state is RunState.RUNNING
        with pytest.raises(InUseError, match=f"run {run} is still going"):
            store.resume_run(run)
        process.kill()
    assert store.run(run).state is RunState.INTERRUPTED
    assert store.resume_run(run).state is RunState.RUNNING
    (broken,) = store.arms(run)
    assert broken.state is ArmState.BROKEN_OFF
    assert [one.prompt_id for one in broken.replies] == ["code-0", "code-1", "code-2"]


def test_two_programs_create_the_store_and_write_at_once() -> None:
    with writer("first", 150) as first, writer("second", 150) as second:
        for process in (first, second):
            go(process)
        runs = sorted(int(said(process)) for process in (first, second))
        for process in (first, second):
            go(process)
    assert runs == [1, 2]
    with Store() as store:
        for run in runs:
            (found,) = store.arms(run)
            assert [one.tok_s for one in found.replies] == [100.0 + n for n in range(150)]


def test_an_older_store_is_migrated_and_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        run = store.begin_run("ab", "example", {})
    newer = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT", "UPDATE runs SET note = 'old'"))
    for _ in range(2):
        opened = open_database(path, newer)
        assert opened.execute("SELECT id, note FROM runs").fetchall() == [(run, "old")]
        opened.close()
    with pytest.raises(TuirigError, match="has schema 2, this tuirig knows up to 1"):
        Store(path)


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    with Store(path) as store:
        run = store.begin_run("ab", "example", {})
    broken = (*MIGRATIONS, ("ALTER TABLE runs ADD COLUMN note TEXT", "UPDATE absent SET x = 1"))
    with pytest.raises(TuirigError, match="no such table: absent"):
        open_database(path, broken)
    with Store(path) as store:
        assert store.run(run).rig == "example"


@pytest.mark.parametrize("spoil", ["not a database at all " * 100, "damaged inside"])
def test_a_damaged_store_is_named_and_left_alone(spoil: str) -> None:
    path = locations.data_folder() / "runs.sqlite"
    with Store() as store:
        run = store.begin_run("ab", "example", {})
        number = store.begin_arm(run, "none", {}, circumstances(), Cooling())
        for order in range(100):
            store.add_reply(number, order, reply(50.0, f"code-{order}"))
    data = bytearray(path.read_bytes())
    if spoil == "damaged inside":
        data[4096:] = b"\xff" * len(data[4096:])
    else:
        data[: len(spoil)] = spoil.encode()
    path.write_bytes(data)
    with pytest.raises(TuirigError, match="is damaged") as caught, Store() as store:
        store.arms(run)
    assert f"mv {path} {path}.damaged" in caught.value.hint
    assert path.read_bytes() == bytes(data)


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 1")
    other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(TuirigError, match="another program's database"):
        Store(path)


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TuirigError, match="can't be used: File exists") as caught:
        Store(tmp_path / "file" / "runs.sqlite")
    assert "TUIRIG_HOME" in caught.value.hint


def test_a_full_disk_stops_writing_and_loses_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "runs.sqlite") as store:
        run = store.begin_run("ab", "example", {})
        number = store.begin_arm(run, "none", {}, circumstances(), Cooling())
        store._database.execute("PRAGMA max_page_count = 40")
        written = 0
        with pytest.raises(TuirigError, match="the disk is full"):
            for written in range(1000):
                store.add_reply(number, written, reply(50.0, f"code-{written}"))
        (found,) = store.arms(run)
        assert 0 < written == len(found.replies)
        store._database.execute("PRAGMA max_page_count = 10000")
        store.add_reply(number, written, reply(50.0))


def test_a_store_locked_by_another_program(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.begin_run("ab", "example", {})
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    browser = sqlite3.connect(store.path, isolation_level=None)
    browser.execute("BEGIN IMMEDIATE")
    with Store() as waiting, pytest.raises(TuirigError, match="locked by another program"):
        waiting.begin_run("ab", "example", {})
    browser.execute("ROLLBACK")
    browser.close()
    assert store.begin_run("ab", "example", {}) == 2


def test_the_database_is_loaded_when_it_is_opened() -> None:
    code = "import sys, tuirig.runs.store; print('sqlite3' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert ran.stdout == "False\n"
