"""This machine as a host: programs, ports, and servers that die with tuirig."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from tuirig.errors import MissingError, ServerError, TuirigError
from tuirig.hosts import ports, programs
from tuirig.hosts.base import Output, PortHolder
from tuirig.hosts.remembered import remember

_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))
_OUTPUT_LIMIT = 1 << 20  #: bytes kept of each stream of a short command


def clean_environment(additions: Mapping[str, str]) -> dict[str, str]:
    """tuirig's environment without what would change a server behind the command line's back.

    Every LLAMA_* goes: LLAMA_ARG_* are flags (a removed one ends the server), LLAMA_API_KEY is
    the user's, the others switch logging and kernels. Devices are counted in PCI order, like
    NVML. GGML_NO_BACKTRACE: an assertion would start gdb. additions win over everything.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LLAMA_")}
    fixed = {"LC_ALL": "C", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "GGML_NO_BACKTRACE": "1"}
    return {**kept, **fixed, **additions}


class LocalHost:
    """This machine. Environments passed to its methods are additions to a clean one."""

    name = "this machine"

    def find_program(self, program: str) -> Path | None:
        """The executable behind a name or a path (`~` is expanded), None if there is none."""
        return programs.find_program(program)

    async def run(
        self, argv: Sequence[str], env: Mapping[str, str], timeout_s: float = 20
    ) -> Output:
        """Run a short command; up to 1 MiB of each stream is kept.

        Raises ServerError on a timeout (its whole process group is ended), MissingError if the
        program can't be started.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                env=clean_environment(env),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise MissingError(f"{argv[0]} can't be started: {error.strerror}") from error
        assert process.stdout is not None and process.stderr is not None
        try:
            async with asyncio.timeout(timeout_s):
                stdout, stderr = await asyncio.gather(
                    _bounded(process.stdout), _bounded(process.stderr)
                )
                returncode = await process.wait()
        except TimeoutError:
            raise ServerError(
                f"{Path(argv[0]).name} {' '.join(argv[1:])} did not end within {timeout_s:g} s",
                hint="run it by hand; a graphics driver that hangs does this",
            ) from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return Output(returncode, stdout, stderr)

    def free_port(self) -> int:
        """A TCP port on 127.0.0.1 that nobody uses now."""
        return ports.free_port()

    def port_holder(self, port: int) -> PortHolder | None:
        """Who listens on a port of this machine, None if nobody does."""
        return ports.port_holder(port)

    @contextlib.asynccontextmanager
    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], *, label: str, log_path: Path
    ) -> AsyncIterator[LocalProcess]:
        """Start a server that dies with tuirig. Leaving the context kills what is left of it.

        Raises MissingError if the program can't be started.
        """
        async with _supervised("own", argv, env, log_path) as process:
            pid_file = await asyncio.to_thread(
                remember, process.pid, argv, label=label, log_path=log_path, detached=False
            )
            try:
                yield process
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
                if pid_file is not None:
                    pid_file.unlink(missing_ok=True)

    async def start_detached(
        self, argv: Sequence[str], env: Mapping[str, str], *, label: str, log_path: Path
    ) -> int:
        """Start a server that outlives tuirig; its pid. It is remembered like an owned one.

        Raises MissingError if the program can't be started.
        """
        async with _supervised("detached", argv, env, log_path) as process:
            await asyncio.to_thread(
                remember, process.pid, argv, label=label, log_path=log_path, detached=True
            )
            return process.pid


class LocalProcess:
    """A server behind its supervisor."""

    def __init__(self, pid: int, log_path: Path, commands: IO[bytes]) -> None:
        self.pid = pid
        self.log_path = log_path
        self.returncode: int | None = None
        self._commands = commands
        self._gone = asyncio.Event()

    def terminate(self) -> None:
        """SIGTERM to the process group."""
        self._send(b"term\n")

    def kill(self) -> None:
        """SIGKILL to the process group."""
        self._send(b"kill\n")

    async def wait(self) -> int:
        """Wait until it is gone and reaped; its exit code."""
        await self._gone.wait()
        assert self.returncode is not None
        return self.returncode

    def ended(self, returncode: int) -> None:
        """The supervisor reaped it."""
        if self.returncode is None:
            self.returncode = returncode
            self._gone.set()

    def _send(self, command: bytes) -> None:
        # BrokenPipeError: the supervisor is gone, and the server with it.
        with contextlib.suppress(BrokenPipeError):
            self._commands.write(command)


@contextlib.asynccontextmanager
async def _supervised(
    mode: str, argv: Sequence[str], env: Mapping[str, str], log_path: Path
) -> AsyncIterator[LocalProcess]:
    """A supervisor and its server. At the end its input is closed, which ends an owned server."""
    with _open_log(log_path) as log:
        supervisor = _spawn_supervisor(mode, log)
    assert supervisor.stdin is not None and supervisor.stdout is not None
    commands = supervisor.stdin
    reports = _Reports(supervisor.stdout, owned=mode == "own")
    try:
        _order(commands, argv, clean_environment(env))
        word, _, value = (await reports.first).partition(" ")
        if word != "pid":
            reason = os.strerror(int(value)) if word == "error" else "the supervisor ended"
            raise MissingError(
                f"{argv[0]} can't be started: {reason}", hint="check that it is a program"
            )
        process = reports.process = LocalProcess(int(value), log_path, commands)
        reports.deliver()
        yield process
    finally:
        commands.close()
        try:
            await reports.closed.wait()
        finally:
            reports.close()
        supervisor.wait()  # it closed its output by ending: this takes no time


def _open_log(path: Path) -> IO[bytes]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("ab")
    except OSError as error:
        raise TuirigError(f"the log {path} can't be written: {error.strerror}") from error


def _spawn_supervisor(mode: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
    # Not asyncio's subprocess: closing that kills the supervisor before it could end the server.
    return subprocess.Popen(
        [sys.executable, "-I", "-S", _SUPERVISOR, mode],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )


def _order(commands: IO[bytes], argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Tell the supervisor what to start (the form is its own)."""
    fields = [*argv, *(f"{name}={value}" for name, value in env.items())]
    body = b"\0".join(os.fsencode(field) for field in fields)
    order = memoryview(b"%d %d\n" % (len(argv), len(body)) + body)
    with contextlib.suppress(BrokenPipeError):  # it ended: its closed output says so
        while order:
            order = order[commands.write(order) :]


class _Reports:
    """What a supervisor says, line by line, without a task: the loop calls back."""

    def __init__(self, pipe: IO[bytes], *, owned: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe = pipe
        self._owned = owned
        self._unread = b""
        self._returncode: int | None = None
        self.first: asyncio.Future[str] = self._loop.create_future()
        self.closed = asyncio.Event()
        self.process: LocalProcess | None = None
        self._loop.add_reader(pipe, self._read)

    def close(self) -> None:
        """Stop listening."""
        self._loop.remove_reader(self._pipe)
        self._pipe.close()
        self.first.cancel()

    def deliver(self) -> None:
        """Tell the process what was reported before it was known here."""
        if self.process is not None and self._returncode is not None:
            self.process.ended(self._returncode)

    def _read(self) -> None:
        data = os.read(self._pipe.fileno(), 4096)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            text = line.decode()
            if text.startswith("exit "):
                self._returncode = int(text.removeprefix("exit "))
            elif not self.first.done():
                self.first.set_result(text)
        if not data:
            self._loop.remove_reader(self._pipe)
            self.closed.set()
            if not self.first.done():
                self.first.set_result("")
            if self._owned and self.process is not None and self._returncode is None:
                self._end_without_supervisor(self.process.pid)
        self.deliver()

    def _end_without_supervisor(self, pid: int) -> None:
        """Somebody killed the supervisor of an owned server: end the group ourselves."""
        self._returncode = -signal.SIGKILL
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


async def _bounded(stream: asyncio.StreamReader) -> str:
    """All of a stream is read (a full pipe would stop the program), its beginning is kept."""
    kept = bytearray()
    while chunk := await stream.read(1 << 16):
        kept += chunk[: _OUTPUT_LIMIT - len(kept)]
    return kept.decode("utf-8", "replace")
