"""`tuirig runs`."""

from __future__ import annotations

import argparse

import msgspec

from tuirig.cli.output import answer, answer_json, columns
from tuirig.cli.running import time
from tuirig.errors import ExitCode
from tuirig.runs.store import Store, StoredRun
from tuirig.tui.figures import gain


def run(options: argparse.Namespace) -> int:
    """List the stored runs, newest first."""
    with Store() as store:
        found = store.runs(rig=options.rig)
    if options.json:
        answer_json({"runs": [_entry(one) for one in found]})
    elif found:
        rows: list[tuple[str, ...]] = [
            ("RUN", "KIND", "RIG", "STATE", "STARTED", "STARTS", "TIME", "FOUND")
        ]
        rows += [_row(one) for one in found]
        answer("\n".join(columns(rows, right=(0, 5, 6))))
    else:
        answer("no runs yet: tuirig tune RIG makes one")
    return ExitCode.OK


class _Side(msgspec.Struct, frozen=True):
    setting: str


class _Found(msgspec.Struct, frozen=True):
    """What the results of every kind may say."""

    setting: str | None = None
    verdict: str | None = None
    ratio: float | None = None
    interval: tuple[float, float] | None = None
    a: _Side | None = None
    b: _Side | None = None


def _found(run: StoredRun) -> _Found:
    return _Found() if run.result is None else msgspec.json.decode(run.result, type=_Found)


def _entry(run: StoredRun) -> dict[str, object]:
    found = _found(run)
    return {
        "run": run.id,
        "kind": run.kind,
        "rig": run.rig,
        "state": run.state,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "starts": run.starts,
        "seconds": run.seconds,
        "tuirig": run.tuirig,
        "setting": found.setting,
        "verdict": found.verdict,
        "ratio": found.ratio,
        "interval": found.interval,
    }


def _row(run: StoredRun) -> tuple[str, ...]:
    started = run.started_at.replace("T", " ")[:16]
    return (
        str(run.id), run.kind, run.rig, run.state, started, str(run.starts), time(run.seconds),
        _words(run),
    )  # fmt: skip


def _words(run: StoredRun) -> str:
    found = _found(run)
    ratio = f", {gain(found.ratio)}" if found.ratio is not None else ""
    if found.a is not None and found.b is not None:
        return f"{found.b.setting} against {found.a.setting}: {found.verdict}{ratio}"
    return f"{found.setting}: {found.verdict}{ratio}" if found.setting else ""
