"""The store of runs: runs, arms, replies and card samples, committed as they come.

A reply is in the store before anybody is told of it, so a tuirig that is killed loses none. An arm
that was broken off keeps its replies and does not count. All methods block on the disk for a
moment; they may be called from any thread. They raise StoreError as runs/database does.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from tuirig import __version__, locations
from tuirig.errors import InUseError, MissingError
from tuirig.hosts.remembered import start_mark
from tuirig.records import Arm, Cooling, Reading, Reply
from tuirig.runs.circumstances import Circumstances
from tuirig.runs.database import explained, open_database
from tuirig.stats.ratio import geometric_mean

if TYPE_CHECKING:
    import sqlite3


class RunState(StrEnum):
    """How a run stands. INTERRUPTED: the tuirig that ran it was killed."""

    RUNNING = "running"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class ArmState(StrEnum):
    """How an arm ended. BROKEN_OFF: with its run; it is measured anew when the run is resumed."""

    RUNNING = "running"
    MEASURED = "measured"
    NOT_PROVEN = "not proven"
    DOES_NOT_FIT = "does not fit"
    FAILED = "failed"
    BROKEN_OFF = "broken off"


class FailureNote(msgspec.Struct, frozen=True, kw_only=True):
    """Why an arm gave no figures that count."""

    message: str
    hint: str = ""
    evidence: tuple[str, ...] = ()


class StoredRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run. starts: server starts that ended, whatever came of them. seconds: spent in those.

    options, result: JSON of its kind.
    """

    id: int
    kind: str
    rig: str
    state: RunState
    started_at: str
    ended_at: str | None
    starts: int
    seconds: float
    tuirig: str
    options: msgspec.Raw
    result: msgspec.Raw | None


class StoredArm(msgspec.Struct, frozen=True, kw_only=True):
    """An arm, complete or not. step: JSON of what it was for. seconds: cooling and start included.

    arm: the complete record; None unless it was measured or is not proven. replies: as far as
    they came. passes_s: seconds of a target pass by positions, of an arm that measured those.
    """

    id: int
    run: int
    setting: str
    step: msgspec.Raw
    state: ArmState
    started_at: str
    seconds: float | None
    circumstances: Circumstances
    cooling: Cooling
    arm: Arm | None = None
    failure: FailureNote | None = None
    passes_s: dict[int, float] | None = None
    replies: tuple[Reply, ...] = ()
    samples: tuple[Reading, ...] = ()


class PastStart(msgspec.Struct, frozen=True, kw_only=True):
    """A measured start of an earlier run. speeds: greedy tok/s by prompt id. tokens: in all."""

    run: int
    setting: str
    seconds: float
    tokens: int
    circumstances: Circumstances
    speeds: dict[str, float]


class Store:
    """The database, open. A context manager."""

    def __init__(self, path: Path | None = None) -> None:
        """path: the user's own store unless given. Raises StoreError if it can't be used."""
        self.path = path or locations.data_folder() / "runs.sqlite"
        self._database = open_database(self.path)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let the file go. Nothing is pending: every change is committed as it is made."""
        with self._lock:
            self._database.close()

    # -- runs

    def begin_run(self, kind: str, rig: str, options: object) -> int:
        """A new run of this process; its number."""
        values = {
            "kind": kind,
            "rig": rig,
            "state": RunState.RUNNING.value,
            "started_at": now(),
            "tuirig": __version__,
            "options": msgspec.json.encode(options),
            **_owner(),
        }
        with self._writing() as database:
            return _insert(database, "runs", values)

    def resume_run(self, run: int) -> StoredRun:
        """Make an unfinished run this process's; arms that were under way are broken off.

        Raises InUseError if another tuirig is at it.
        """
        with self._writing() as database:
            row = _one_run(database, run)
            if _is_live(row):
                raise InUseError(
                    f"run {run} is still going (process {row['owner_pid']})",
                    hint="wait for it, or end it there first",
                )
            _break_off(database, run)
            _update(database, "runs", run, {"state": RunState.RUNNING.value, **_owner()})
            return _run(_one_run(database, run))

    def end_run(self, run: int, state: RunState, result: object = None) -> None:
        """A run ended, for now or for good."""
        values = {"state": state.value, "ended_at": now(), "result": _json_or_none(result)}
        with self._writing() as database:
            _break_off(database, run)
            _update(database, "runs", run, values)

    def run(self, run: int) -> StoredRun:
        """A run by its number. Raises MissingError."""
        with self._reading() as database:
            return _run(_one_run(database, run))

    def runs(self, *, rig: str | None = None, kind: str | None = None) -> tuple[StoredRun, ...]:
        """Runs, newest first."""
        with self._reading() as database:
            rows = database.execute(
                f"{_RUNS} WHERE rig = coalesce(?, rig) AND kind = coalesce(?, kind)"
                " ORDER BY id DESC",
                (rig, kind),
            ).fetchall()
        return tuple(map(_run, rows))

    # -- arms

    def begin_arm(
        self,
        run: int,
        setting: str,
        step: object,
        circumstances: Circumstances,
        cooling: Cooling,
    ) -> int:
        """An arm is about to start; its number. step: what it is for (JSON)."""
        values = {
            "run": run,
            "setting": setting,
            "step": msgspec.json.encode(step),
            "state": ArmState.RUNNING.value,
            "started_at": now(),
            "argv": msgspec.json.encode(circumstances.argv),
            "env": msgspec.json.encode(circumstances.env),
            "server_build": circumstances.server_build,
            "program": circumstances.program,
            "card": msgspec.json.encode(circumstances.card),
            "driver": circumstances.card.driver,
            "target": msgspec.json.encode(circumstances.target),
            "drafter": _json_or_none(circumstances.drafter),
            "cooling": msgspec.json.encode(cooling),
        }
        with self._writing() as database:
            return _insert(database, "arms", values)

    def add_reply(
        self, arm: int, number: int, reply: Reply, samples: Sequence[Reading] = ()
    ) -> None:
        """A reply of an arm, and the readings that were taken meanwhile."""
        values = {
            "arm": arm,
            "number": number,
            "prompt_id": reply.prompt_id,
            "kind": reply.kind,
            "temperature": reply.temperature,
            "predicted_n": reply.predicted_n,
            "tok_s": reply.tok_s,
            "reply": msgspec.json.encode(reply),
        }
        with self._writing() as database:
            _insert(database, "replies", values)
            for reading in samples:
                sample = {
                    "arm": arm,
                    "at_s": reading.at_s,
                    "temperature_c": reading.temperature_c,
                    "reading": msgspec.json.encode(reading),
                }
                _insert(database, "card_samples", sample)

    def end_arm(
        self,
        arm: int,
        state: ArmState,
        seconds: float,
        *,
        record: Arm | None = None,
        failure: FailureNote | None = None,
        passes_s: Mapping[int, float] | None = None,
    ) -> None:
        """An arm ended. seconds: with cooling and start. record: its replies are stored already."""
        stripped = None if record is None else msgspec.structs.replace(record, replies=())
        values = {
            "state": state.value,
            "seconds": seconds,
            "record": _json_or_none(stripped),
            "failure": _json_or_none(failure),
            "passes": _json_or_none(passes_s),
        }
        with self._writing() as database:
            _update(database, "arms", arm, values)

    def arms(self, run: int) -> tuple[StoredArm, ...]:
        """The arms of a run in the order of their starts, with replies and samples."""
        with self._reading() as database:
            rows = database.execute(
                "SELECT * FROM arms WHERE run = ? ORDER BY id", (run,)
            ).fetchall()
            replies = _by_arm(database, "replies", "reply", "number", run, Reply)
            samples = _by_arm(database, "card_samples", "reading", "id", run, Reading)
        return tuple(_arm(row, replies, samples) for row in rows)

    def past_starts(self, rig: str, *, besides: int | None = None) -> tuple[PastStart, ...]:
        """The measured starts of a rig in every run besides one, oldest first."""
        with self._reading() as database:
            arms = database.execute(
                "SELECT arms.*, runs.rig FROM arms JOIN runs ON runs.id = arms.run WHERE rig = ?"
                " AND run IS NOT ? AND arms.state = ? AND passes IS NULL ORDER BY arms.id",
                (rig, besides, ArmState.MEASURED.value),
            ).fetchall()
            replies = database.execute(
                "SELECT arm, prompt_id, tok_s, predicted_n, temperature FROM replies"
                " JOIN arms ON arms.id = arm JOIN runs ON runs.id = arms.run WHERE rig = ?",
                (rig,),
            ).fetchall()
        tokens: dict[int, int] = {}
        speeds: dict[int, dict[str, list[float]]] = {}
        for reply in replies:
            tokens[reply["arm"]] = tokens.get(reply["arm"], 0) + reply["predicted_n"]
            if reply["tok_s"] is not None and reply["temperature"] == 0:
                of_arm = speeds.setdefault(reply["arm"], {})
                of_arm.setdefault(reply["prompt_id"], []).append(reply["tok_s"])
        return tuple(
            PastStart(
                run=row["run"],
                setting=row["setting"],
                seconds=row["seconds"],
                tokens=tokens.get(row["id"], 0),
                circumstances=_circumstances(row),
                speeds={
                    prompt: mean
                    for prompt, values in speeds.get(row["id"], {}).items()
                    if (mean := geometric_mean(values)) is not None
                },
            )
            for row in arms
        )

    def latest_on(self, card: str) -> Arm | None:
        """The latest measured arm on a card of that name, without its replies."""
        with self._reading() as database:
            row = database.execute(
                "SELECT record FROM arms WHERE state = ? AND record IS NOT NULL"
                " AND json_extract(CAST(card AS TEXT), '$.name') = ? ORDER BY id DESC LIMIT 1",
                (ArmState.MEASURED.value, card),
            ).fetchone()
        return None if row is None else _decoded(row["record"], Arm)

    # -- inside

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it is on the disk afterwards, or nothing."""
        with self._reading() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
                database.execute("COMMIT")
            except BaseException:
                if database.in_transaction:
                    database.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        with self._lock, explained(self.path):
            self._database.row_factory = sqlite3.Row
            yield self._database


def now() -> str:
    """This moment, UTC, ISO 8601."""
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")


_RUNS = (
    "SELECT *, (SELECT count(seconds) FROM arms WHERE run = runs.id) AS starts,"
    " (SELECT total(seconds) FROM arms WHERE run = runs.id) AS seconds FROM runs"
)


def _owner() -> dict[str, object]:
    pid = os.getpid()
    return {"owner_pid": pid, "owner_mark": start_mark(pid) or ""}


def _is_live(row: sqlite3.Row) -> bool:
    """Whether the process that runs it is alive and not this one."""
    if row["state"] != RunState.RUNNING or row["owner_pid"] == os.getpid():
        return False
    return start_mark(row["owner_pid"]) == str(row["owner_mark"])


def _break_off(database: sqlite3.Connection, run: int) -> None:
    database.execute(
        "UPDATE arms SET state = ? WHERE run = ? AND state = ?",
        (ArmState.BROKEN_OFF.value, run, ArmState.RUNNING.value),
    )


def _insert(database: sqlite3.Connection, table: str, values: Mapping[str, object]) -> int:
    marks = ", ".join("?" * len(values))
    cursor = database.execute(
        f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", tuple(values.values())
    )
    return cursor.lastrowid or 0


def _update(
    database: sqlite3.Connection, table: str, id: int, values: Mapping[str, object]
) -> None:
    columns = ", ".join(f"{column} = ?" for column in values)
    database.execute(f"UPDATE {table} SET {columns} WHERE id = ?", (*values.values(), id))


def _one_run(database: sqlite3.Connection, run: int) -> sqlite3.Row:
    row: sqlite3.Row | None = database.execute(f"{_RUNS} WHERE id = ?", (run,)).fetchone()
    if row is None:
        raise MissingError(f"there is no run {run}", hint="tuirig runs lists them")
    return row


def _by_arm(
    database: sqlite3.Connection, table: str, column: str, order: str, run: int, type: type[Any]
) -> dict[int, tuple[Any, ...]]:
    decode = msgspec.json.Decoder(type).decode
    found: dict[int, list[Any]] = {}
    rows = database.execute(
        f"SELECT {table}.arm, {column} FROM {table} JOIN arms ON arms.id = {table}.arm"
        f" WHERE run = ? ORDER BY {table}.arm, {table}.{order}",
        (run,),
    )
    for arm, data in rows:
        found.setdefault(arm, []).append(decode(data))
    return {arm: tuple(values) for arm, values in found.items()}


def _run(row: sqlite3.Row) -> StoredRun:
    state = RunState(row["state"])
    if state is RunState.RUNNING and start_mark(row["owner_pid"]) != row["owner_mark"]:
        state = RunState.INTERRUPTED
    return StoredRun(
        id=row["id"],
        kind=row["kind"],
        rig=row["rig"],
        state=state,
        started_at=row["started_at"],
        ended_at=row["ended_at"],
        starts=row["starts"],
        seconds=row["seconds"],
        tuirig=row["tuirig"],
        options=msgspec.Raw(row["options"]),
        result=None if row["result"] is None else msgspec.Raw(row["result"]),
    )


def _arm(
    row: sqlite3.Row,
    replies: Mapping[int, tuple[Reply, ...]],
    samples: Mapping[int, tuple[Reading, ...]],
) -> StoredArm:
    own = replies.get(row["id"], ())
    record = _decoded(row["record"], Arm)
    return StoredArm(
        id=row["id"],
        run=row["run"],
        setting=row["setting"],
        step=msgspec.Raw(row["step"]),
        state=ArmState(row["state"]),
        started_at=row["started_at"],
        seconds=row["seconds"],
        circumstances=_circumstances(row),
        cooling=msgspec.json.decode(row["cooling"], type=Cooling),
        arm=None if record is None else msgspec.structs.replace(record, replies=own),
        failure=_decoded(row["failure"], FailureNote),
        passes_s=_decoded(row["passes"], dict[int, float]),
        replies=own,
        samples=samples.get(row["id"], ()),
    )


def _circumstances(row: sqlite3.Row) -> Circumstances:
    fields = ("argv", "env", "card", "target", "drafter")
    values: dict[str, Any] = {
        field: msgspec.json.decode(row[field]) for field in fields if row[field] is not None
    }
    return msgspec.convert(
        {"server_build": row["server_build"], "program": row["program"], **values}, Circumstances
    )


def _decoded(data: bytes | None, type: Any) -> Any:
    return None if data is None else msgspec.json.decode(data, type=type)


def _json_or_none(value: object) -> bytes | None:
    return None if value is None else msgspec.json.encode(value)
