"""One llama-server from start to reaped.

Ready means: 200 from /health, our model in /props, a reply of 16 tokens, the process alive. Some
failures show with the first reply only (a drafter of another type answers 500 to every request,
an assertion aborts the process), and /health may be answered by somebody else's server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from tuirig.engines.base import Command, Counters
from tuirig.engines.llamacpp import log
from tuirig.engines.llamacpp.draft_log import DraftLog
from tuirig.engines.llamacpp.log_file import LogFile, new_log_path
from tuirig.engines.llamacpp.metrics import parse_metrics
from tuirig.errors import DoesNotFitError, InUseError, ServerError, TuirigError
from tuirig.events import Emit, ServerChanged, ServerState
from tuirig.hosts.base import Host, Process
from tuirig.hosts.ports import LOOPBACK
from tuirig.records import Reply
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting

if TYPE_CHECKING:
    import httpx2

_TELL_EVERY_S = 0.2
_DYING_S = 1.0  #: from a closed socket to a reaped process
_LOG_S = 1.0  #: from a reply that was counted to its lines in the log
_CRASH_LINES = 200
_WARM_UP_TOKENS = 16
_WARM_UP = {
    "prompt": "Once upon a time there was a small",
    "n_predict": _WARM_UP_TOKENS,
    "temperature": 0.0,
    "seed": 1,
    "ignore_eos": True,
    "cache_prompt": False,
}


@dataclass(frozen=True)
class Limits:
    """How patient tuirig is, in seconds.

    silent_start: without a new log line and without being ready (a large model on a slow disk is
    silent for minutes), and for the warm-up reply (shaders are compiled in it). control: for a
    look at the running server. terminate: after the first and the second SIGTERM (a SIGTERM with
    somebody else's open stream waits for it, the second one does not).
    """

    silent_start: float = 600.0
    control: float = 5.0
    terminate: tuple[float, float] = (5.0, 2.0)


class LlamaServer:
    """A ready llama-server (engines/base.RunningServer)."""

    def __init__(
        self,
        *,
        control: _Control,
        process: Process,
        log_file: LogFile,
        command: Command,
        setting: Setting,
        build: str,
        warm_up: Reply,
        ready_s: float,
    ) -> None:
        self.url = control.url
        self.api_key = control.api_key
        self.pid = process.pid
        self.build = build
        self.setting = setting
        self.command = command
        self.ready_s = ready_s
        self.warm_up = warm_up
        log_file.read_on()
        self.memory_parts = log.memory_parts(log_file.lines)
        self._silent_drafter = log.silent_drafter(log_file.lines)
        self._draft_log: DraftLog | None = DraftLog()
        self._draft_log.take(log_file.lines)
        log_file.forget()
        self._control = control
        self._process = process
        self._log_file = log_file

    def check_alive(self) -> None:
        """Raise ServerError with exit code and log evidence if the process is gone."""
        if self._process.returncode is not None:
            # Not what was logged while it loaded: that did no harm.
            lines = self._log_file.tail(_CRASH_LINES, since_forgotten=True) or self.log_tail(2)
            returncode = self._process.returncode
            raise _death("the server died", log.failure_cause(lines, returncode), returncode)

    async def is_speculative(self) -> bool | None:
        """Whether a drafter is active (/slots), None where the build does not say."""
        slots = await self._slots()
        said = [slot["speculative"] for slot in slots or () if "speculative" in slot]
        return any(said) if said else None

    async def counters(self) -> Counters | None:
        """The counters now (/metrics, those of drafts from the log in a build that has them there).

        None where there are none.
        """
        answer = await self._get("/metrics")
        if answer.status_code != 200:
            return None
        counted = parse_metrics(answer.text)
        return counted if counted.drafts is not None else await self._logged(counted)

    async def _logged(self, counted: Counters) -> Counters:
        """The counters with those of the log, which the server writes a little later."""
        deadline = time.monotonic() + _LOG_S
        while self._draft_log is not None:
            self._draft_log.take(self._log_file.new_lines())
            if self._draft_log.counters.predicted == counted.predicted:
                return self._draft_log.counters
            if time.monotonic() > deadline:
                self._draft_log = None  # a build with other words, or a log that lost lines
                break
            await asyncio.sleep(0.01)
        return counted

    async def wait_idle(self, timeout_s: float = 5.0) -> None:
        """Wait until no slot is processing. Raises ServerError after timeout_s."""
        deadline = time.monotonic() + timeout_s
        while any(slot.get("is_processing") for slot in await self._slots() or ()):
            if time.monotonic() > deadline:
                raise ServerError(
                    f"the server is still busy after {timeout_s:g} s",
                    evidence=self.log_tail(5),
                    hint="restart it",
                )
            await asyncio.sleep(0.01)

    def log_tail(self, lines: int = 40) -> tuple[str, ...]:
        """The last lines of the log."""
        return self._log_file.tail(lines)

    def silent_drafter_evidence(self) -> tuple[str, ...]:
        """Log lines that tell why a drafter that was asked for is not used; () if none do."""
        return self._silent_drafter

    async def _slots(self) -> list[dict[str, Any]] | None:
        answer = await self._get("/slots")
        if answer.status_code != 200:
            return None
        return msgspec.json.decode(answer.content, type=list[dict[str, Any]])

    async def _get(self, path: str) -> httpx2.Response:
        import httpx2

        try:
            return await self._control.get(path)
        except httpx2.TransportError as error:
            await _dying(self._process)
            self.check_alive()
            raise ServerError(
                f"the server does not answer {path}: {error or type(error).__name__}",
                evidence=self.log_tail(5),
            ) from error


@contextlib.asynccontextmanager
async def run_server(
    command: Command,
    rig: Rig,
    setting: Setting,
    host: Host,
    emit: Emit,
    limits: Limits,
    api_key: str = "",
) -> AsyncIterator[LlamaServer]:
    """Start a command, yield the ready server, stop it (see engines/base.Engine.running)."""
    began = time.monotonic()

    def tell(state: ServerState, **details: Any) -> None:
        seconds = time.monotonic() - began
        emit(ServerChanged(state=state, setting=str(setting), seconds=seconds, **details))

    tell(ServerState.STARTING)
    api_key = api_key or secrets.token_urlsafe(24)
    server: LlamaServer | None = None
    end, reason = ServerState.STOPPED, ""
    try:
        await _require_free_port(host, command.port)
        log_path = new_log_path(rig.name)
        async with host.start(
            command.argv,
            {**command.env, "LLAMA_API_KEY": api_key},
            label=rig.name,
            log_path=log_path,
        ) as process:
            with LogFile(log_path) as log_file:
                try:
                    # Our sockets close before the signal: with one open, SIGTERM takes 30 s.
                    async with _Control.opened(command.port, api_key, limits) as control:
                        start = _Start(command, host, process, log_file, control, limits, tell)
                        build = await start.until_loaded()
                        warm_up = await start.warm_up()
                        server = LlamaServer(
                            control=control,
                            process=process,
                            log_file=log_file,
                            command=command,
                            setting=setting,
                            build=build,
                            warm_up=warm_up,
                            ready_s=time.monotonic() - began,
                        )
                        tell(
                            ServerState.READY,
                            url=server.url,
                            build=server.build,
                            pid=server.pid,
                            memory_parts=server.memory_parts,
                        )
                        yield server
                finally:
                    if process.returncode is None:
                        tell(ServerState.STOPPING, pid=process.pid)
                        await stop(process, limits)
                    elif server is not None:
                        end, reason = ServerState.FAILED, _reason(server)
    except TuirigError as error:
        if server is None:
            end, reason = ServerState.FAILED, error.message
        raise
    except OSError as error:
        if server is not None:
            raise  # the caller's own
        end, reason = ServerState.FAILED, str(error)
        raise ServerError(f"the server can't be started: {error}") from error
    finally:
        tell(end, line=reason)


async def stop(process: Process, limits: Limits) -> None:
    """SIGTERM, SIGTERM again, SIGKILL; returns when the process is gone and reaped."""
    for seconds in limits.terminate:
        process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await process.wait()
                return
    process.kill()
    await process.wait()


class _Control:
    """Short requests to one server, one connection each (it closes kept ones at will)."""

    def __init__(self, client: httpx2.AsyncClient, url: str, api_key: str) -> None:
        self.url = url
        self.api_key = api_key
        self._client = client

    @classmethod
    @contextlib.asynccontextmanager
    async def opened(cls, port: int, api_key: str, limits: Limits) -> AsyncIterator[_Control]:
        url = f"http://{LOOPBACK}:{port}"

        def client() -> httpx2.AsyncClient:
            import httpx2

            return httpx2.AsyncClient(
                base_url=url,
                headers={"Authorization": f"Bearer {api_key}", "Connection": "close"},
                timeout=limits.control,
                trust_env=False,  # no proxy between us and this machine
                verify=False,  # plain http: reading certificates would cost 25 ms
            )

        # In a thread: the first time, it imports for 200 ms, which the server uses to load.
        async with await asyncio.to_thread(client) as opened:
            yield cls(opened, url, api_key)

    async def get(self, path: str) -> httpx2.Response:
        return await self._client.get(path)

    async def post(self, path: str, body: Any, timeout_s: float) -> httpx2.Response:
        return await self._client.post(path, json=body, timeout=timeout_s)


class _Start:
    """From a started process to one that answered."""

    def __init__(
        self,
        command: Command,
        host: Host,
        process: Process,
        log_file: LogFile,
        control: _Control,
        limits: Limits,
        tell: Callable[..., None],
    ) -> None:
        self._command = command
        self._host = host
        self._process = process
        self._log_file = log_file
        self._control = control
        self._limits = limits
        self._tell = tell

    async def until_loaded(self) -> str:
        """Wait for /health, then make sure that it is ours; the build's label from /props."""
        began = told = progress = time.monotonic()
        gone = asyncio.ensure_future(self._process.wait())
        try:
            while not await self._is_healthy():
                now = time.monotonic()
                if now - told >= _TELL_EVERY_S:
                    told = now
                    if self._log_file.read_on():
                        progress = now
                    self._tell(
                        ServerState.STARTING,
                        line=log.loading_line(self._log_file.lines),
                        pid=self._process.pid,
                    )
                if now - progress > self._limits.silent_start:
                    raise ServerError(
                        "the server hangs: not ready, and nothing new in its log for"
                        f" {self._limits.silent_start:g} s",
                        evidence=self._log_file.tail(3),
                        hint="look at the card's driver and the disk; the log has the last line",
                    )
                await asyncio.wait((gone,), timeout=_step(now - began))
                if gone.done():
                    raise await self._failed_start()
        finally:
            gone.cancel()
        return await self._require_ours()

    async def warm_up(self) -> Reply:
        """One discarded reply; the first of a server is slow, and some servers die of it."""
        import httpx2

        try:
            answer = await self._control.post("/completion", _WARM_UP, self._limits.silent_start)
        except httpx2.TimeoutException as error:
            raise ServerError(
                f"the server hangs: no reply within {self._limits.silent_start:g} s",
                evidence=self._log_file.tail(3),
            ) from error
        except httpx2.TransportError as error:
            await _dying(self._process)
            if self._process.returncode is not None:
                raise await self._failed_start() from error
            raise ServerError(
                f"the server broke off the first reply: {error}", evidence=self._log_file.tail(3)
            ) from error
        if answer.status_code != 200:
            self._log_file.read_on()
            cause = log.failure_cause(self._log_file.lines, None)
            raise ServerError(
                f"the server answers every request with {answer.status_code}: {cause.message}",
                evidence=(answer.text[:300], *cause.evidence),
                hint=cause.hint,
            )
        try:
            return _reply(msgspec.json.decode(answer.content, type=_Completion))
        except msgspec.DecodeError as error:
            raise ServerError(f"the first reply is not understood: {error}") from error

    async def _is_healthy(self) -> bool:
        import httpx2

        try:
            answer = await self._control.get("/health")
        except httpx2.TransportError:
            return False  # not listening yet
        if answer.status_code not in (200, 503):
            raise await self._stranger(f"/health answers with {answer.status_code}")
        return answer.status_code == 200

    async def _require_ours(self) -> str:
        import httpx2

        try:
            answer = await self._control.get("/props")
        except httpx2.TransportError as error:
            raise await self._stranger(f"/props: {error}") from error
        if answer.status_code != 200:
            raise await self._stranger(f"/props answers with {answer.status_code}")
        try:
            props = msgspec.json.decode(answer.content, type=_Props)
        except msgspec.DecodeError as error:
            raise await self._stranger("its /props is not llama-server's") from error
        if props.role is not None:
            raise await self._stranger(f"it is a {props.role}")
        ours = self._command.argv[self._command.argv.index("-m") + 1]
        if not _same_file(props.model_path or ours, ours):
            raise await self._stranger(f"it serves {props.model_path}")
        return props.build_info or "unknown"

    async def _stranger(self, why: str) -> TuirigError:
        """Something else answers on our port; ours may just be finding out."""
        await _dying(self._process)
        if self._process.returncode is not None:
            return await self._failed_start()
        holder = await asyncio.to_thread(self._host.port_holder, self._command.port)
        return ServerError(
            f"another server answers on port {self._command.port}: {why}",
            evidence=(f"pid {holder.pid}: {holder.command}",) if holder else (),
            hint="end it, or start again: tuirig takes another port",
        )

    async def _failed_start(self) -> TuirigError:
        self._log_file.read_on()
        returncode = self._process.returncode
        cause = log.failure_cause(self._log_file.lines, returncode)
        if not cause.known:
            # The lost line may be the one about the port.
            await _require_free_port(self._host, self._command.port)
        return _death("the server did not start", cause, returncode)


def _death(what: str, cause: log.Cause, returncode: int | None) -> TuirigError:
    kind: type[InUseError] | type[ServerError] = ServerError
    if cause.port_in_use:
        kind = InUseError
    elif cause.out_of_memory:
        kind = DoesNotFitError
    return kind(
        f"{what}: {cause.message} ({_exit_text(returncode)})",
        evidence=cause.evidence,
        hint=cause.hint,
    )


def _reason(server: LlamaServer) -> str:
    try:
        server.check_alive()
    except ServerError as error:
        return error.message
    return ""


def _exit_text(returncode: int | None) -> str:
    if returncode is None or returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


async def _require_free_port(host: Host, port: int) -> None:
    """Raises InUseError naming who listens on a port."""
    holder = await asyncio.to_thread(host.port_holder, port)
    if holder is not None:
        who = f"{holder.name or 'a process'} (pid {holder.pid})" if holder.pid else "a process"
        raise InUseError(
            f"port {port} is in use by {who}",
            evidence=(holder.command,) if holder.command else (),
            hint="it is left alone; end it yourself or use another port",
        )


async def _dying(process: Process) -> None:
    """The sockets of a dying process close before it can be seen to be gone: look for a while."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DYING_S):
            await process.wait()


def _step(waited_s: float) -> float:
    """Between two looks at /health: fine while a small model loads, cheap for a large one."""
    return 0.005 if waited_s < 1 else 0.02 if waited_s < 10 else 0.05


def _same_file(theirs: str, ours: str) -> bool:
    return os.path.basename(theirs) == os.path.basename(ours) or (
        os.path.realpath(theirs) == os.path.realpath(ours)
    )


class _Props(msgspec.Struct, frozen=True):
    """What counts of /props. role is set by a router, which serves whatever model it likes."""

    model_path: str | None = None
    build_info: str | None = None
    role: str | None = None


class _Timings(msgspec.Struct, frozen=True):
    """llama-server's own account. draft_n is absent while nothing was drafted."""

    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    draft_n: int | None = None
    draft_n_accepted: int | None = None


class _Completion(msgspec.Struct, frozen=True):
    """An answer of /completion."""

    content: str
    timings: _Timings
    stop_type: str = ""


def _reply(answer: _Completion) -> Reply:
    timings = answer.timings
    more, drafted, accepted = timings.predicted_n - 1, timings.draft_n, timings.draft_n_accepted
    return Reply(
        prompt_id="warm-up",
        kind="",
        text=answer.content,
        finish_reason=answer.stop_type,
        token_limit=_WARM_UP_TOKENS,
        prompt_n=timings.prompt_n,
        prompt_ms=timings.prompt_ms,
        predicted_n=timings.predicted_n,
        predicted_ms=timings.predicted_ms,
        tok_s=more * 1000 / timings.predicted_ms if more > 0 and timings.predicted_ms else None,
        drafted=drafted,
        accepted=accepted,
        kept=accepted / drafted if drafted and accepted is not None else None,
    )
