"""llama-server as an engine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tuirig.engines.base import Command
from tuirig.engines.llamacpp.capabilities import Capabilities, program_mark, read_capabilities
from tuirig.engines.llamacpp.command import build_command
from tuirig.engines.llamacpp.server import Limits, LlamaServer, run_server
from tuirig.errors import MissingError
from tuirig.events import Emit
from tuirig.hosts.base import Host
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting


class LlamaCpp:
    """A llama-server program and what it can do (engines/base.Engine)."""

    def __init__(
        self, program: Path, capabilities: Capabilities, limits: Limits | None = None
    ) -> None:
        self.program = program
        self.capabilities = capabilities
        self._limits = limits or Limits()

    @classmethod
    async def load(
        cls, host: Host, program: str, env: Mapping[str, str], limits: Limits | None = None
    ) -> LlamaCpp:
        """Find a program and read its capabilities (cached by the program's file).

        Raises MissingError when there is none, ServerError when it is no llama-server.
        """
        found = host.find_program(program)
        if found is None:
            raise _not_found(host, program)
        return cls(found, await read_capabilities(host, found, env), limits)

    @property
    def build(self) -> str:
        """The program's own label (`--version`), for records and messages only."""
        return self.capabilities.build

    @property
    def mark(self) -> str:
        """Changes with the program's files. Blocks on the disk."""
        return program_mark(self.program)

    def command(
        self, rig: Rig, setting: Setting, *, port: int, paths: Mapping[str, str], slots: int = 1
    ) -> Command:
        """The command line of a setting (see build_command)."""
        return build_command(
            self.capabilities, str(self.program), rig, setting, port=port, paths=paths, slots=slots
        )

    def running(
        self,
        command: Command,
        rig: Rig,
        setting: Setting,
        host: Host,
        emit: Emit,
        api_key: str = "",
    ) -> AbstractAsyncContextManager[LlamaServer]:
        """Start a command; the context begins when the server is ready and stops it at its end.

        api_key: a random one if empty. Emits ServerChanged from `starting` to `stopped` or
        `failed`. Raises ServerError when it exits early, hangs, or another server answers;
        InUseError when the port is taken.
        """
        return run_server(command, rig, setting, host, emit, self._limits, api_key)


def _not_found(host: Host, program: str) -> MissingError:
    path = os.path.expanduser(program)
    if os.path.isfile(path):
        return MissingError(f"{path} can't be run: it is not executable", hint=f"chmod +x {path}")
    return MissingError(
        f"no program {program} on {host.name}",
        hint="install llama.cpp (https://github.com/ggml-org/llama.cpp), or name its llama-server"
        " in the rig: [server] program",
    )
