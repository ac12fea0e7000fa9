"""The database file of the runs: opened safely, brought to the newest schema, its faults explained.

SQLite in WAL mode: readers and one writer at a time work side by side, also from two programs;
a writer waits for the other one. Every commit reaches the disk (synchronous=FULL).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tuirig.errors import StoreError

if TYPE_CHECKING:
    import sqlite3

#: The statements that lead from one schema version to the next.
Migration: TypeAlias = Sequence[str]

#: "tuir": tells this database from another program's.
APPLICATION_ID = 0x74756972
#: How long a writer waits for another one.
BUSY_S = 10.0

MIGRATIONS: tuple[Migration, ...] = (
    (
        """
        CREATE TABLE runs (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            rig TEXT NOT NULL,
            state TEXT NOT NULL,
            started_at TEXT NOT NULL,
            ended_at TEXT,
            tuirig TEXT NOT NULL,
            owner_pid INTEGER NOT NULL,
            owner_mark TEXT NOT NULL,
            options BLOB NOT NULL,
            result BLOB
        )
        """,
        "CREATE INDEX runs_by_rig ON runs (rig, kind)",
        """
        CREATE TABLE arms (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            setting TEXT NOT NULL,
            step BLOB NOT NULL,
            state TEXT NOT NULL,
            started_at TEXT NOT NULL,
            seconds REAL,
            argv BLOB NOT NULL,
            env BLOB NOT NULL,
            server_build TEXT NOT NULL,
            program TEXT NOT NULL,
            card BLOB NOT NULL,
            driver TEXT,
            target BLOB NOT NULL,
            drafter BLOB,
            cooling BLOB NOT NULL,
            record BLOB,
            failure BLOB,
            passes BLOB
        )
        """,
        "CREATE INDEX arms_by_run ON arms (run)",
        """
        CREATE TABLE replies (
            arm INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
            number INTEGER NOT NULL,
            prompt_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            temperature REAL NOT NULL,
            predicted_n INTEGER NOT NULL,
            tok_s REAL,
            reply BLOB NOT NULL,
            PRIMARY KEY (arm, number)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE card_samples (
            id INTEGER PRIMARY KEY,
            arm INTEGER NOT NULL REFERENCES arms (id) ON DELETE CASCADE,
            at_s REAL NOT NULL,
            temperature_c REAL,
            reading BLOB NOT NULL
        )
        """,
        "CREATE INDEX card_samples_by_arm ON card_samples (arm)",
    ),
)


def open_database(path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> sqlite3.Connection:
    """Open or create the database and bring it to the newest schema. Blocks on the disk.

    The connection commits each statement by itself unless a transaction was begun; it may be used
    from several threads, one at a time. Raises StoreError with the next step if it can't be
    opened, is damaged or was written by a newer tuirig; the file is left as it is.
    """
    import sqlite3

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    with explained(path):
        connection = sqlite3.connect(
            path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
    try:
        with explained(path):
            _prepare(connection, path, migrations)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into StoreError with cause and next step."""
    import sqlite3

    try:
        yield
    except sqlite3.Error as error:
        raise _explanation(path, error) from error


def _prepare(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    connection.execute("PRAGMA foreign_keys = ON")
    version = _version(connection)
    if version and _number(connection, "application_id") != APPLICATION_ID:
        raise _unusable(path, "another program's database")
    if version > len(migrations):
        raise StoreError(
            f"{path} has schema {version}, this tuirig knows up to {len(migrations)}",
            hint="a newer tuirig wrote it: use that one, or move the file away",
        )
    _write_ahead(connection)
    connection.execute("PRAGMA synchronous = FULL")
    if version < len(migrations):
        _migrate(connection, migrations)


def _migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """All of it or nothing, once, however many programs come at the same time."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(connection), len(migrations)):
            for statement in migrations[number]:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite does not wait here when another program switches too: try again."""
    import sqlite3

    deadline = time.monotonic() + BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(0.02)


def _version(connection: sqlite3.Connection) -> int:
    return _number(connection, "user_version")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    (value,) = connection.execute(f"PRAGMA {pragma}").fetchone()
    return int(value)


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _explanation(path: Path, error: sqlite3.Error) -> StoreError:
    import sqlite3

    code = _code(error)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreError(
            f"the store of runs {path} is damaged: {error}",
            hint=f"it was left as it is; move it away (mv {path} {path}.damaged) and tuirig starts"
            f" a new one; what it holds: sqlite3 {path}.damaged .recover",
        )
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(
            f"the store of runs {path} is locked by another program",
            hint="close what holds it (a database browser?) and use --resume",
        )
    if code == sqlite3.SQLITE_FULL:
        return _unusable(path, "the disk is full")
    return _unusable(path, str(error))


def _unusable(path: Path, reason: str) -> StoreError:
    return StoreError(
        f"the store of runs {path} can't be used: {reason}",
        hint="make room and make it writable, or let TUIRIG_HOME name another folder; what was"
        " stored is still there",
    )
