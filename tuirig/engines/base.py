"""What measuring and the runs know of an engine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from tuirig.events import Emit
from tuirig.hosts.base import Host
from tuirig.records import MemoryParts, Reply
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting


@dataclass(frozen=True)
class Command:
    """A command line. env holds only what is added to the clean environment, secrets apart."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    port: int = 0

    def shell(self) -> str:
        """One line to paste into a shell, additions to the environment in front."""
        import shlex

        additions = [f"{name}={shlex.quote(value)}" for name, value in sorted(self.env.items())]
        return " ".join([*additions, shlex.join(self.argv)])


@dataclass(frozen=True)
class Counters:
    """Totals since the server's start. per_position[i]: steps whose drafted token i was accepted.

    drafts is the number of steps that drafted; None where the build does not count it.
    """

    predicted: int = 0
    drafts: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    per_position: tuple[int, ...] = ()


class RunningServer(Protocol):
    """A server that is ready: it answered a warm-up reply and its process is alive."""

    url: str
    api_key: str
    pid: int
    build: str
    setting: Setting
    command: Command
    ready_s: float
    warm_up: Reply
    memory_parts: MemoryParts

    def check_alive(self) -> None:
        """Raise ServerError with exit code and log evidence if the process is gone."""

    async def is_speculative(self) -> bool | None:
        """Whether a drafter is active (/slots), None where the build does not say."""

    async def counters(self) -> Counters | None:
        """The counters now, None where there are none."""

    async def wait_idle(self, timeout_s: float = 5.0) -> None:
        """Wait until no slot is processing (after a cancelled reply)."""

    def log_tail(self, lines: int = 40) -> tuple[str, ...]:
        """The last lines of the log."""

    def silent_drafter_evidence(self) -> tuple[str, ...]:
        """Log lines that tell why a drafter that was asked for is not used; () if none do."""


class Engine(Protocol):
    """One server program, its capabilities read from the program itself."""

    @property
    def build(self) -> str:
        """The program's own label (`--version`), for records and messages only."""

    @property
    def mark(self) -> str:
        """Changes with the program's files, also where its label stays the same. Blocks."""

    def command(
        self, rig: Rig, setting: Setting, *, port: int, paths: Mapping[str, str], slots: int = 1
    ) -> Command:
        """The command line of a setting.

        paths: resolved files, key "target" and one per drafter row that has a file. slots:
        requests at once; more than one share one cache.
        Raises TuirigError where this build can't run the setting, with what it offers instead.
        """

    def running(
        self,
        command: Command,
        rig: Rig,
        setting: Setting,
        host: Host,
        emit: Emit,
        api_key: str = "",
    ) -> AbstractAsyncContextManager[RunningServer]:
        """Start a command; the context begins when the server is ready and stops it at its end.

        api_key: what the server asks for, a random one if empty; it never stands in argv.
        Emits ServerChanged from `starting` to `stopped` or `failed`. Raises ServerError when it
        exits early, hangs, or another server answers; InUseError when the port is taken.
        """
