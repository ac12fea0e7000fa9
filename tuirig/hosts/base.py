"""What an engine asks of a host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import NamedTuple, Protocol


class Output(NamedTuple):
    """What a short command printed. returncode is negative for a signal."""

    returncode: int
    stdout: str
    stderr: str


class PortHolder(NamedTuple):
    """Who listens on a port; pid and name are None where the system does not tell."""

    port: int
    pid: int | None
    name: str | None
    command: str


class Process(Protocol):
    """A server process that tuirig owns. It dies with tuirig, whatever happens."""

    @property
    def pid(self) -> int:
        """The server's own process id."""

    @property
    def log_path(self) -> Path:
        """Where its stdout and stderr go."""

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative for a signal."""

    def terminate(self) -> None:
        """SIGTERM to the process group."""

    def kill(self) -> None:
        """SIGKILL to the process group."""

    async def wait(self) -> int:
        """Wait until it is gone and reaped; its exit code."""


class Host(Protocol):
    """A machine that can run a server. Environments are additions to a clean one."""

    @property
    def name(self) -> str:
        """For messages."""

    def find_program(self, program: str) -> Path | None:
        """The executable behind a name or a path (`~` is expanded), None if there is none."""

    async def run(
        self, argv: Sequence[str], env: Mapping[str, str], timeout_s: float = 20
    ) -> Output:
        """Run a short command. Raises ServerError on a timeout, MissingError if not found."""

    def free_port(self) -> int:
        """A TCP port on 127.0.0.1 that nobody uses now."""

    def port_holder(self, port: int) -> PortHolder | None:
        """Who listens on a port of this machine, None if nobody does."""

    def start(
        self, argv: Sequence[str], env: Mapping[str, str], *, label: str, log_path: Path
    ) -> AbstractAsyncContextManager[Process]:
        """Start a server that dies with tuirig. Leaving the context kills what is left of it."""

    async def start_detached(
        self, argv: Sequence[str], env: Mapping[str, str], *, label: str, log_path: Path
    ) -> int:
        """Start a server that outlives tuirig; its pid. It is remembered like an owned one."""
