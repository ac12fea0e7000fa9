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
    """Work that takes time moved on. total None: not known yet. unit: "B", "files", "replies"."""

    what: str
    done: float
    total: float | None = None
    unit: str = ""


class Failed(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Something failed; the setting (if one was concerned) keeps the reason."""

    message: str
    hint: str = ""
    evidence: tuple[str, ...] = ()
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
)

Emit: TypeAlias = Callable[[Event], None]


def ignore(event: Event) -> None:
    """An Emit for callers who do not watch."""
