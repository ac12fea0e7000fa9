"""One rig under control: its card, its server and its setting. The fronts' door to the core."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tuirig import locations
from tuirig.cards.base import Card
from tuirig.engines.base import Command, Engine, RunningServer
from tuirig.errors import DoesNotFitError, MissingError, NotProvenError, ServerError, TuirigError
from tuirig.events import Emit, Failed, ServerChanged, ServerState
from tuirig.files.models import Missing
from tuirig.hosts.base import Host
from tuirig.records import Arm, FileIdentity, Reading, Reply
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting
from tuirig.runs.holders import others_on

if TYPE_CHECKING:
    from tuirig.measure.prompts import Prompt

DEFAULT_TOKENS = 128
ALIVE_CHECK_S = 0.5


@dataclass(frozen=True)
class Kept:
    """A server that goes on after tuirig: where it answers and where its key lies."""

    url: str
    pid: int
    key_file: Path
    log_file: Path


class Session:
    """Async context manager around at most one running server.

    All methods belong to one event loop. restart, stream and measure can be cancelled; the server
    is then stopped (restart) or idle again (stream, measure).
    """

    def __init__(
        self,
        rig: Rig,
        *,
        files: Mapping[str, Path],
        missing: Mapping[str, Missing] | None = None,
        card: Card,
        host: Host,
        engine: Engine,
        emit: Emit,
        rate_hz: float = 2.0,
        port: int | None = None,
        api_key: str = "",
    ) -> None:
        """files, missing: model files by row; a row whose drafter is missing is refused.

        rate_hz: how often the card is looked at beside the work; 0 is never.

        port None: any free one. api_key empty: a random one for each start.
        """
        self.rig = rig
        self.files = dict(files)
        self.missing = dict(missing or {})
        self.card = card
        self.host = host
        self.engine = engine
        self.server: RunningServer | None = None
        self._emit = emit
        self._rate_hz = rate_hz
        self._replies = 0  # under way
        self._owner: asyncio.Task[None] | None = None
        self._end = asyncio.Event()
        self._failure: TuirigError | None = None
        self._order = 0
        self._started_at = ""
        # Kept over restarts, so that a shown command line stays true.
        self._port = port or host.free_port()
        self._any_port = port is None
        self._api_key = api_key

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Session]:
        """Watch the card while the session is open; stop the server and let the card go after."""
        try:
            async with self._watched():
                try:
                    yield self
                finally:
                    await self.stop()
        finally:
            await asyncio.to_thread(self.card.close)

    def _watched(self) -> AbstractAsyncContextManager[object]:
        if not self._rate_hz:
            return nullcontext()
        from tuirig.measure.telemetry import Sampler

        return Sampler(
            self.card, self._emit, hz=self._rate_hz, pid=self._server_pid, busy=self._is_busy
        )

    def command(self, setting: Setting, slots: int = 1) -> Command:
        """The command line of a setting, without starting it.

        Raises as Engine.command does, MissingError where the drafter's file is not there.
        """
        missing = self.missing.get(setting.drafter or "")
        if missing is not None:
            raise MissingError(
                f"{missing.row}: {missing.reason}: {os.path.basename(missing.file)}",
                evidence=(missing.file,),
                hint=missing.next_step,
            )
        return self.engine.command(
            self.rig, setting, port=self._port, paths=self._paths(), slots=slots
        )

    def refusal(self, setting: Setting) -> str:
        """Why this build or these files can't run a setting; empty when they can."""
        try:
            self.command(setting)
        except (TuirigError, ValueError) as error:
            return error.message if isinstance(error, TuirigError) else str(error)
        return ""

    async def restart(self, setting: Setting, slots: int = 1) -> None:
        """Stop what runs and start a setting; returns when it is ready.

        slots: requests that the server takes at once. What can't be started stops nothing.
        Raises ServerError, InUseError or MissingError after the events that tell of it, and
        NotProvenError when the server is up (and stays up) but does not draft although asked to.
        """
        self.command(setting, slots)
        await self.stop()
        if self._any_port:
            holder = await asyncio.to_thread(self.host.port_holder, self._port)
            self._port = self.host.free_port() if holder else self._port
        command = self.command(setting, slots)
        await asyncio.to_thread(self.card.remember_floor)
        self._started_at = _now()
        self._failure = None
        self._end = asyncio.Event()
        ready: asyncio.Future[RunningServer] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(
            self._own(command, setting, ready), name=f"server {setting}"
        )
        try:
            await asyncio.wait((ready, self._owner), return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                await self.wait_ended()
                raise ServerError(f"{setting}: the server ended while it started")
            self.server = ready.result()
            await self._require_drafter(self.server, setting)
        except asyncio.CancelledError:
            await self.stop()
            raise

    async def _own(
        self, command: Command, setting: Setting, ready: asyncio.Future[RunningServer]
    ) -> None:
        """The one task that owns the server process from start to reaped."""
        try:
            async with self.engine.running(
                command, self.rig, setting, self.host, self._emit, self._api_key
            ) as server:
                ready.set_result(server)
                await self._watch(server)
        except TuirigError as error:
            self._failure = await self._with_others(error)
            self._fail(self._failure, setting)
        finally:
            self.server = None

    async def _with_others(self, error: TuirigError) -> TuirigError:
        """Want of memory may be due to somebody else on the card: name them."""
        if not isinstance(error, DoesNotFitError):
            return error
        others = await asyncio.to_thread(others_on, self.card)
        return DoesNotFitError(
            error.message,
            evidence=(*error.evidence, *(f"also on the card: {other}" for other in others)),
            hint=error.hint,
        )

    async def wait_ended(self) -> None:
        """Wait until the server is gone. Raises the ServerError that it ended with, if any."""
        owner = self._owner
        if owner is not None:
            await asyncio.wait((owner,))
            if not owner.cancelled():
                owner.result()
        if self._failure is not None:
            raise self._failure

    async def _watch(self, server: RunningServer) -> None:
        while not self._end.is_set():
            try:
                async with asyncio.timeout(ALIVE_CHECK_S):
                    await self._end.wait()
            except TimeoutError:
                server.check_alive()

    async def _require_drafter(self, server: RunningServer, setting: Setting) -> None:
        if setting.drafter is None or await server.is_speculative() is not False:
            return
        error = NotProvenError(
            f"{setting}: the server is up but does not draft",
            evidence=server.silent_drafter_evidence(),
            hint="the drafter's vocabulary and type have to fit the target; choose another row",
        )
        self._fail(error, setting)
        raise error

    def _fail(self, error: TuirigError, setting: Setting) -> None:
        self._emit(
            Failed(
                message=error.message,
                hint=error.hint,
                evidence=error.evidence,
                setting=str(setting),
            )
        )

    async def stop(self) -> None:
        """Stop the server if one runs; returns when it is gone and reaped."""
        owner = self._owner
        if owner is None:
            return
        first = not self._end.is_set()
        # Also where it is cancelled: a library that loses the cancellation only delays the end.
        self._end.set()
        if self.server is not None:
            self.server = None  # it is on its way out: nobody may ask it any more
        elif first:
            owner.cancel()  # a second time would break off the stopping
        await asyncio.wait((owner,))
        if self._owner is owner:
            self._owner = None

    async def stream(
        self, prompt: Prompt, *, tokens: int = DEFAULT_TOKENS, temperature: float = 0.0
    ) -> Reply:
        """Stream one prompt through the running server and measure the reply."""
        from tuirig.measure.reply import measure_reply

        server = self._require_server()
        self._order += 1
        self._emit(self._state(server, ServerState.RUNNING))
        self._replies += 1
        try:
            return await measure_reply(
                server,
                prompt,
                order=self._order,
                tokens=tokens,
                temperature=temperature,
                emit=self._emit,
                read=self.read_card,
            )
        except TuirigError as error:
            self._fail(error, server.setting)
            raise
        finally:
            self._replies -= 1
            await self._settle(server)

    async def measure(
        self,
        prompts: Sequence[Prompt],
        *,
        tokens: int = DEFAULT_TOKENS,
        temperature: float = 0.0,
        repeats: int = 1,
        keep: Callable[[Reply], Awaitable[None]] | None = None,
        target: FileIdentity | None = None,
        drafter: FileIdentity | None = None,
    ) -> Arm:
        """Measure the running setting with several prompts, `repeats` times round: one arm.

        keep: stores each reply before anybody is told of it.
        """
        from tuirig.measure.arm import measure_arm

        server = self._require_server()
        self._emit(self._state(server, ServerState.RUNNING))
        self._replies += 1
        try:
            return await measure_arm(
                server,
                self.rig,
                self.card.info,
                prompts,
                tokens=tokens,
                temperature=temperature,
                repeats=repeats,
                started_at=self._started_at,
                emit=self._emit,
                read=self.read_card,
                keep=keep,
                target=target,
                drafter=drafter,
            )
        except TuirigError as error:
            self._fail(error, server.setting)
            raise
        finally:
            self._replies -= 1
            await self._settle(server)

    async def _settle(self, server: RunningServer) -> None:
        """After a reply, finished or cancelled: wait for a free slot, then say `ready` again."""
        if self.server is not server:
            return
        try:
            await server.wait_idle()
        except TuirigError:
            return  # the owner task reports a dead server with its evidence
        self._emit(self._state(server, ServerState.READY))

    async def read_card(self) -> Reading:
        """One reading of the card and the server's process, off the event loop."""
        return await asyncio.to_thread(self.card.read, self._server_pid())

    async def keep_serving(self) -> Kept:
        """Stop the server, then start the same command detached, with its key in a file."""
        server = self._require_server()
        command = server.command
        await self.stop()
        return await detach(self.host, self.rig.name, command, server.api_key)

    def _paths(self) -> dict[str, str]:
        return {name: str(path) for name, path in self.files.items()}

    def _is_busy(self) -> bool:
        return self._replies > 0

    def _server_pid(self) -> int | None:
        return self.server.pid if self.server else None

    def _require_server(self) -> RunningServer:
        if self.server is None:
            raise ServerError("no server is running", hint="start a setting first")
        return self.server

    def _state(self, server: RunningServer, state: ServerState) -> ServerChanged:
        return ServerChanged(
            state=state,
            setting=str(server.setting),
            seconds=server.ready_s,
            url=server.url,
            build=server.build,
            pid=server.pid,
            memory_parts=server.memory_parts,
        )


async def detach(host: Host, label: str, command: Command, api_key: str) -> Kept:
    """Start a command that outlives tuirig. The key goes into a file that only its owner reads."""
    key_file = key_path(label, command.port)
    log_file = locations.log_path(label)
    await asyncio.to_thread(_write_private, key_file, api_key)
    pid = await host.start_detached(
        command.argv, {**command.env, "LLAMA_API_KEY": api_key}, label=label, log_path=log_file
    )
    return Kept(f"http://127.0.0.1:{command.port}", pid, key_file, log_file)


def key_path(label: str, port: int) -> Path:
    """Where the key of a server that outlives tuirig lies."""
    return locations.state_folder() / "servers" / f"{label}.{port}.key"


def _write_private(path: Path, text: str) -> None:
    import os

    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text + "\n")


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")
