"""The one stream of frozen events that the core answers with; fronts only show it."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TypeAlias

import msgspec

from tuirig.records import Arm, MemoryParts, Reading, Reply


class ServerState(StrEnum):
    """States of the server; the words on the screen are these."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    RUNNING = "running"
    STOPPING = "stopping"
    FAILED = "failed"


class ServerChanged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The server entered a state, or moved on within `starting`.

    setting: what it runs (or was to run). seconds: since it was started. line: the last log line
    while starting. url, build, memory_parts: known from `ready` on.
    """

    state: ServerState
    setting: str = ""
    seconds: float = 0.0
    line: str = ""
    url: str = ""
    build: str = ""
    pid: int | None = None
    memory_parts: MemoryParts | None = None


class ReplyStarted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A prompt was sent."""

    setting: str
    prompt_id: str
    kind: str
    token_limit: int


class TextArrived(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Generated text. predicted_n counts tokens so far; tok_s is the server's rate so far."""

    text: str
    predicted_n: int
    tok_s: float | None = None


class ReplyDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A reply was measured in the running arm."""

    setting: str
    reply: Reply


class ArmDone(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """An arm is complete."""

    arm: Arm


class ReadingTaken(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The card was looked at."""

    reading: Reading


class Progress(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Work that takes time moved on. total None: not known yet. unit: "B", "files", "replies".

    per_s: units a second of late. left_s: until it is done at that rate.
    """

    what: str
    done: float
    total: float | None = None
    unit: str = ""
    per_s: float | None = None
    left_s: float | None = None


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something failed; the setting (if one was concerned) keeps the reason."""

    message: str
    hint: str = ""
    evidence: tuple[str, ...] = ()
    setting: str = ""


class RunStarted(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A run began or was resumed. kind: "ab", "tune" or "speed"."""

    run: int
    kind: str
    rig: str
    resumed: bool = False


class PlanMade(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a run is going to do.

    steps: in words. fewest, likely, most: server starts. seconds: for `likely` of them; basis: what
    that is estimated from. cannot: what can't be measured here, and why.
    """

    steps: tuple[str, ...]
    fewest: int
    likely: int
    most: int
    seconds: float
    basis: str
    cannot: tuple[str, ...] = ()


class ArmsStale(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Stored arms of a resumed run that do not count any more, and what has changed."""

    arms: int
    changes: tuple[str, ...]


class StartBegan(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A server start of a run begins.

    number: counted from 1, of `expected` starts in all. reason: what it is for. seconds_left: to
    the end of the run, this start included.
    """

    number: int
    expected: int
    setting: str
    reason: str
    seconds_left: float


class CoolingDown(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The card is too warm for the next start. limit_s: how long it may take at most."""

    temperature_c: float
    target_c: float
    seconds: float
    limit_s: float


class StartEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A server start of a run ended.

    outcome: "measured", "not proven", "does not fit" or "failed". tok_s: geometric mean over the
    prompts. reason: why it has no figures that count.
    """

    number: int
    setting: str
    outcome: str
    seconds: float
    tok_s: float | None = None
    kept: float | None = None
    reason: str = ""


class StartFlagged(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A measured start is suspicious: a low clock, throttling, a warm beginning."""

    number: int
    setting: str
    reasons: tuple[str, ...]


class ComparisonMoved(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is known of B against A after another start.

    ratio, low, high: tok/s of B over that of A and its interval. blocks: A B B A blocks that are
    complete. settled: why no further block is needed, empty while one is; told at the end of a
    block only.
    """

    a: str
    b: str
    verdict: str
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    detectable: float | None
    starts_a: int
    starts_b: int
    blocks: int
    settled: str = ""


class PassesMeasured(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Seconds of one target pass by the number of positions in it."""

    passes_s: dict[int, float]


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """tok/s to expect of a setting, with the 95 % interval of what a start would measure."""

    setting: str
    tok_s: float
    low: float
    high: float


class PredictionsMade(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What is predicted now; replaces all earlier predictions of the run."""

    predictions: tuple[Predicted, ...]


class RunEnded(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A run is over. state: "done", "cancelled" or "failed". setting: what it chose, if it did."""

    run: int
    state: str
    verdict: str = ""
    setting: str = ""


Event: TypeAlias = (
    ServerChanged
    | ReplyStarted
    | TextArrived
    | ReplyDone
    | ArmDone
    | ReadingTaken
    | Progress
    | Failed
    | RunStarted
    | PlanMade
    | ArmsStale
    | StartBegan
    | CoolingDown
    | StartEnded
    | StartFlagged
    | ComparisonMoved
    | PassesMeasured
    | PredictionsMade
    | RunEnded
)

Emit: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An Emit for callers who do not watch."""
