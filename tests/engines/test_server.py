from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from tests.engines.builds import capabilities
from tests.processes import OWNER, group, is_alive, until
from tuirig.engines.base import Command, RunningServer
from tuirig.engines.llamacpp.engine import LlamaCpp
from tuirig.engines.llamacpp.server import Limits
from tuirig.errors import (
    DoesNotFitError,
    ExitCode,
    InUseError,
    MissingError,
    ServerError,
    TuirigError,
)
from tuirig.events import Event, ServerChanged, ServerState
from tuirig.hosts.base import PortHolder
from tuirig.hosts.local import LocalHost, LocalProcess
from tuirig.hosts.remembered import remembered_servers
from tuirig.rigs.schema import Drafter, ModelFile, Rig
from tuirig.rigs.settings import parse_setting

PRETENDER = Path(__file__).with_name("pretender.py")


class WatchedHost(LocalHost):
    """This machine, keeping hold of what was started."""

    def __init__(self, *, blind: bool = False) -> None:
        self.processes: list[LocalProcess] = []
        self._blind = blind

    def port_holder(self, port: int) -> PortHolder | None:
        """blind: the first look comes before somebody takes the port."""
        if self._blind:
            self._blind = False
            return None
        return super().port_holder(port)

    @asynccontextmanager
    async def start(
        self, argv: Sequence[str], env: Mapping[str, str], *, label: str, log_path: Path
    ) -> AsyncIterator[LocalProcess]:
        async with super().start(argv, env, label=label, log_path=log_path) as process:
            self.processes.append(process)
            yield process


class Bench:
    """A rig with its engine, and everything that was told."""

    def __init__(self, rig: Rig, engine: LlamaCpp, host: WatchedHost | None = None) -> None:
        self.rig = rig
        self.engine = engine
        self.host = host or WatchedHost()
        self.events: list[ServerChanged] = []

    def emit(self, event: Event) -> None:
        assert isinstance(event, ServerChanged)
        self.events.append(event)

    def command(self, setting: str, **changes: Any) -> Command:
        paths = {"target": self.rig.target.path, **{d.row: d.path for d in self.rig.drafter}}
        made = self.engine.command(
            self.rig,
            parse_setting(setting),
            port=changes.pop("port", self.host.free_port()),
            paths={name: path for name, path in paths.items() if path},
        )
        return dataclasses.replace(made, **changes)

    def running(self, setting: str = "none", **changes: Any) -> Any:
        return self.engine.running(
            self.command(setting, **changes),
            self.rig,
            parse_setting(setting),
            self.host,
            self.emit,
        )

    async def fails(self, setting: str = "none", **changes: Any) -> TuirigError:
        """The error of a start that must fail and must leave nothing behind."""
        for _ in range(10):
            with pytest.raises(TuirigError) as raised:
                async with self.running(setting, **changes):
                    raise AssertionError("it must not become ready")
            if "the log does not say why" not in raised.value.message:
                break  # a busy llama-server loses its last words, see Cause.known
        assert self.states[-1] is ServerState.FAILED
        assert self.events[-1].line == raised.value.message
        for process in self.host.processes:
            assert group(process.pid) == []
        assert remembered_servers() == ()
        return raised.value

    @property
    def states(self) -> list[ServerState]:
        """The states in order, repetitions apart."""
        states = [event.state for event in self.events]
        return states[:1] + [state for before, state in pairwise(states) if state is not before]

    @property
    def returncode(self) -> int | None:
        return self.host.processes[-1].returncode


async def bench(rig: Rig, **options: Any) -> Bench:
    host = WatchedHost()
    return Bench(rig, await LlamaCpp.load(host, rig.server.program, rig.server.env, **options))


def with_target(rig: Rig, path: Path) -> Rig:
    return msgspec.structs.replace(rig, target=ModelFile(path=str(path)))


def with_drafter(rig: Rig, **drafter: Any) -> Rig:
    return msgspec.structs.replace(rig, drafter=(Drafter(format="odd", **drafter),))


def get(server: RunningServer, path: str, key: str | None = None) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {key or server.api_key}", "Connection": "close"}
    return httpx2.get(server.url + path, headers=headers, trust_env=False)


@pytest.mark.parametrize(
    ("rig_name", "setting", "drafts"),
    [
        ("tiny_gemma4_rig", "none", False),
        ("tiny_gemma4_rig", "q4_0:2", True),
        ("tiny_gemma4_rig", "ngram:4", True),
        ("tiny_qwen35_rig", "inside:2", True),
        ("smollm2_rig", "q4_0:3,p_min=0.1", True),
    ],
)
async def test_start_and_stop(
    request: pytest.FixtureRequest, home: Path, rig_name: str, setting: str, drafts: bool
) -> None:
    used = await bench(request.getfixturevalue(rig_name))
    async with used.running(setting) as server:
        assert used.events[0].state is ServerState.STARTING
        ready = used.events[-1]
        assert ready.state is ServerState.READY
        assert (ready.url, ready.pid, ready.build) == (server.url, server.pid, server.build)
        assert is_alive(server.pid)
        server.check_alive()
        assert str(server.setting) == setting
        assert server.warm_up.predicted_n >= 16 and server.warm_up.tok_s
        assert await server.is_speculative() is drafts
        assert server.silent_drafter_evidence() == ()
        counters = await server.counters()
        assert counters is not None and counters.predicted == server.warm_up.predicted_n
        parts = server.memory_parts
        assert parts == ready.memory_parts
        assert parts.target_mib and parts.cache_mib and parts.buffers_mib
        assert (parts.drafter_mib is not None) is (drafts and "ngram" not in setting)
        assert server.api_key not in " ".join(server.command.argv)
        assert get(server, "/props", key="wrong").status_code == 401
        (remembered,) = remembered_servers()
        assert (remembered.pid, remembered.port) == (server.pid, server.command.port)
        assert server.api_key not in str(remembered)
        assert server.log_tail(3)
    assert used.states[-3:] == [ServerState.READY, ServerState.STOPPING, ServerState.STOPPED]
    assert used.returncode == 0  # SIGTERM was enough
    assert not is_alive(server.pid)
    assert remembered_servers() == ()
    assert (home / "state" / "logs" / f"{used.rig.name}.log").exists()


async def test_drafts_are_counted_per_position(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    async with used.running("f16:3") as server:
        counters = await server.counters()
    assert counters is not None and counters.drafts and counters.drafted
    assert counters.accepted == sum(counters.per_position)
    assert server.warm_up.drafted == counters.drafted
    assert server.warm_up.kept == counters.accepted / counters.drafted


async def test_the_log_before_is_kept(tiny_gemma4_rig: Rig, home: Path) -> None:
    used = await bench(tiny_gemma4_rig)
    path = home / "state" / "logs" / "tiny-gemma4.log"
    for _ in range(3):
        async with used.running() as server:
            pass
    assert f":{server.command.port}" in path.read_text()
    assert f":{server.command.port}" not in path.with_name("tiny-gemma4.log.1").read_text()
    assert len(list(path.parent.iterdir())) == 2


async def test_the_users_environment_has_no_influence(
    tiny_gemma4_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLAMA_ARG_DRAFT_MAX", "4")  # removed: alone, it ends the server
    monkeypatch.setenv("LLAMA_ARG_BATCH", "32")
    monkeypatch.setenv("LLAMA_ARG_ALIAS", "from-the-environment")
    monkeypatch.setenv("LLAMA_API_KEY", "the-users")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    used = await bench(tiny_gemma4_rig)
    async with used.running() as server:
        assert get(server, "/props", key="the-users").status_code == 401
        assert get(server, "/props").json()["model_alias"] != "from-the-environment"


async def test_a_port_in_use_is_named_and_left_alone(tiny_gemma4_rig: Rig) -> None:
    first, second = await bench(tiny_gemma4_rig), await bench(tiny_gemma4_rig)
    async with first.running() as server:
        with pytest.raises(InUseError) as raised:
            async with second.running(port=server.command.port):
                raise AssertionError("it must not become ready")
        error = raised.value
        assert f"port {server.command.port}" in error.message
        assert f"llama-server (pid {server.pid})" in error.message
        assert error.evidence[0].startswith(server.command.argv[0])
        assert error.exit_code is ExitCode.IN_USE
        assert second.host.processes == []
        assert second.states == [ServerState.STARTING, ServerState.FAILED]
        server.check_alive()
        assert get(server, "/health").status_code == 200


async def test_a_port_in_use_by_ourselves(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        error = await used.fails(port=listener.getsockname()[1])
    assert f"(pid {os.getpid()})" in error.message


async def test_a_port_taken_in_the_last_moment(tiny_gemma4_rig: Rig) -> None:
    first, second = await bench(tiny_gemma4_rig), await bench(tiny_gemma4_rig)
    second.host = WatchedHost(blind=True)
    async with first.running() as server:
        with pytest.raises(InUseError, match=f"port {server.command.port} is in use") as raised:
            async with second.running(port=server.command.port):
                raise AssertionError("it must not become ready")
        # The server's own line, or (if that got lost, see Cause.known) who holds the port.
        assert "couldn't bind" in raised.value.evidence[0] or str(server.pid) in str(raised.value)
        server.check_alive()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't be opened: No such file"),
        (b"hello, this is no model", "is no GGUF file"),
        ("cut", "is cut short"),
    ],
)
async def test_a_target_that_does_not_load(
    tiny_gemma4_rig: Rig, tmp_path: Path, content: bytes | str | None, message: str
) -> None:
    path = tmp_path / "target.gguf"
    if content == "cut":
        content = Path(tiny_gemma4_rig.target.path or "").read_bytes()[:5_000_000]
    if isinstance(content, bytes):
        path.write_bytes(content)
    error = await (await bench(with_target(tiny_gemma4_rig, path))).fails()
    assert f"did not start: the target {path} {message}" in error.message
    assert "(exit code 1)" in error.message
    assert error.evidence and error.hint
    assert error.exit_code is ExitCode.SERVER


async def test_a_drafter_that_is_missing(tiny_gemma4_rig: Rig) -> None:
    rig = with_drafter(tiny_gemma4_rig, type="draft-mtp", path="/no/drafter.gguf")
    error = await (await bench(rig)).fails("odd:1")
    assert "the drafter /no/drafter.gguf can't be opened" in error.message


async def test_no_mtp_head_inside(tiny_gemma4_rig: Rig) -> None:
    rig = with_drafter(tiny_gemma4_rig, type="draft-mtp")
    error = await (await bench(rig)).fails("odd:1")
    assert "no MTP layers inside" in error.message


async def test_a_drafter_of_another_type_answers_no_request(tiny_gemma4_rig: Rig) -> None:
    path = tiny_gemma4_rig.drafter[0].path
    rig = with_drafter(tiny_gemma4_rig, type="draft-simple", path=path)
    error = await (await bench(rig)).fails("odd:1")
    assert "answers every request with 500" in error.message
    assert "not a drafter of this type" in error.message


async def test_another_vocabulary_leaves_the_server_up_without_a_drafter(
    tiny_gemma4_rig: Rig, smollm2_rig: Rig
) -> None:
    path = smollm2_rig.drafter[0].path
    used = await bench(with_drafter(tiny_gemma4_rig, type="draft-simple", path=path))
    async with used.running("odd:2") as server:
        assert await server.is_speculative() is False
        assert "vocab" in server.silent_drafter_evidence()[-1]


@pytest.mark.parametrize(
    ("args", "message"),
    [(("--draft-max", "3"), "--draft-max was removed"), (("--no-such-flag",), "--no-such-flag")],
)
async def test_flags_are_refused_before_the_start(
    tiny_gemma4_rig: Rig, args: tuple[str, ...], message: str
) -> None:
    server = msgspec.structs.replace(
        tiny_gemma4_rig.server, args=(*tiny_gemma4_rig.server.args, *args)
    )
    used = await bench(msgspec.structs.replace(tiny_gemma4_rig, server=server))
    with pytest.raises(TuirigError, match=message):
        used.running()
    assert used.events == []


async def test_a_flag_that_slips_through_is_named(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    command = used.command("none")
    error = await used.fails(argv=(*command.argv, "--draft-max", "3"))
    assert "--draft-max was removed from this build" in error.message


async def test_a_server_that_dies_later(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    with pytest.raises(ServerError) as raised:
        async with used.running() as server:
            os.kill(server.pid, signal.SIGKILL)
            await until(lambda: used.returncode is not None, "its death is seen")
            server.check_alive()
    assert isinstance(raised.value, DoesNotFitError)  # the kernel kills like this, too
    assert "the server died" in raised.value.message and "SIGKILL" in raised.value.message
    assert raised.value.evidence
    assert used.states[-2:] == [ServerState.READY, ServerState.FAILED]
    assert used.events[-1].line == raised.value.message


async def test_a_server_that_was_let_go_of_is_told_as_dead(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    async with used.running() as server:
        assert server.log_tail()
    assert server.log_tail() == ()
    with pytest.raises(ServerError, match="the server died"):
        server.check_alive()


async def test_a_request_to_a_server_that_died(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    async with used.running() as server:
        os.kill(server.pid, signal.SIGKILL)
        with pytest.raises(ServerError, match=r"the server died.*SIGKILL"):
            await server.is_speculative()


STREAM = {"prompt": "Once", "n_predict": 1900, "stream": True, "ignore_eos": True}


@asynccontextmanager
async def open_stream(server: RunningServer) -> AsyncIterator[None]:
    """A reply that is being generated, for many seconds by the slowest of the small models."""
    headers = {"Authorization": f"Bearer {server.api_key}", "Connection": "close"}
    async with (
        httpx2.AsyncClient(trust_env=False, headers=headers) as client,
        client.stream("POST", f"{server.url}/completion", json=STREAM) as answer,
    ):
        await anext(answer.aiter_bytes())
        yield


async def test_a_cancelled_reply_is_waited_for(smollm2_rig: Rig) -> None:
    used = await bench(smollm2_rig)
    async with used.running() as server:
        async with open_stream(server):
            assert get(server, "/slots").json()[0]["is_processing"]
            with pytest.raises(ServerError, match="still busy"):
                await server.wait_idle(timeout_s=0)
        await server.wait_idle()
        assert not get(server, "/slots").json()[0]["is_processing"]
    assert used.returncode == 0


async def test_a_stop_in_the_middle_of_our_reply_needs_one_signal(smollm2_rig: Rig) -> None:
    used = await bench(smollm2_rig)
    streaming = asyncio.Event()

    async def serve() -> None:
        async with used.running() as server, open_stream(server):
            streaming.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(serve())
    await streaming.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert used.returncode == 0
    assert used.states[-2:] == [ServerState.STOPPING, ServerState.STOPPED]


async def test_somebody_elses_open_stream_does_not_keep_the_server(smollm2_rig: Rig) -> None:
    used = await bench(smollm2_rig, limits=Limits(terminate=(0.3, 20.0)))
    running = used.running()
    server = await running.__aenter__()
    async with open_stream(server):
        await running.__aexit__(None, None, None)
    assert used.returncode in (0, 1)  # 1: the second SIGTERM ended it; SIGKILL was not needed
    assert not is_alive(server.pid)


async def test_the_bodys_own_error_passes_unchanged(tiny_gemma4_rig: Rig) -> None:
    used = await bench(tiny_gemma4_rig)
    with pytest.raises(TimeoutError, match="mine"):
        async with used.running():
            raise TimeoutError("mine")
    assert used.states[-2:] == [ServerState.STOPPING, ServerState.STOPPED]


async def test_a_wrapper_script_that_forks_leaves_nothing(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\n{tiny_gemma4_rig.server.program} "$@" &\nwait\n')
    wrapper.chmod(0o755)
    server = msgspec.structs.replace(tiny_gemma4_rig.server, program=str(wrapper))
    used = await bench(msgspec.structs.replace(tiny_gemma4_rig, server=server))
    async with used.running("q8_0:1") as running:
        assert len(group(running.pid)) == 2
    await until(lambda: group(running.pid) == [], "wrapper and server are gone")


async def test_a_killed_tuirig_leaves_no_server(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    used = await bench(tiny_gemma4_rig)
    argv, log_path = used.command("q4_0:2").argv, tmp_path / "log"
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(log_path), *argv], stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        pid = int(await asyncio.to_thread(owner.stdout.readline))
        await until(lambda: "listening on" in log_path.read_text(), "the server is up")
        owner.kill()
    await until(lambda: not is_alive(pid), "the server is gone")


async def test_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no program llama-nothing"):
        await LlamaCpp.load(LocalHost(), "llama-nothing", {})
    path = tmp_path / "program"
    path.write_text("")
    with pytest.raises(MissingError, match="not executable") as raised:
        await LlamaCpp.load(LocalHost(), str(path), {})
    assert raised.value.hint == f"chmod +x {path}"


def pretending(mode: str, rig: Rig, **limits: Any) -> tuple[Bench, tuple[str, ...]]:
    """A bench whose engine knows a build, and the argv of a pretender in front of the port."""
    engine = LlamaCpp(Path(sys.executable), capabilities("b10434"), Limits(**limits))
    return Bench(rig, engine), (sys.executable, str(PRETENDER), mode, "-m", "/models/ours.gguf")


@pytest.fixture
def plain_rig() -> Rig:
    from tuirig.rigs.schema import Server

    return Rig(
        name="plain",
        card="cpu",
        target=ModelFile(path="/models/ours.gguf"),
        server=Server(args=("-ngl", "0", "-c", "64")),
    )


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("other", "another server answers on port {port}: it serves /models/other.gguf"),
        ("router", "another server answers on port {port}: it is a router"),
        ("strange", "another server answers on port {port}: its /props is not llama-server's"),
        ("missing", "another server answers on port {port}: /health answers with 404"),
    ],
)
async def test_another_server_answers(plain_rig: Rig, mode: str, message: str) -> None:
    used, argv = pretending(mode, plain_rig)
    port = used.host.free_port()
    error = await used.fails(argv=(*argv, "--port", str(port)), port=port)
    assert error.message == message.format(port=port)
    assert "pretender.py" in error.evidence[0]


async def test_a_server_that_never_gets_ready(plain_rig: Rig) -> None:
    used, argv = pretending("loading", plain_rig, silent_start=3.0)
    port = used.host.free_port()
    error = await used.fails(argv=(*argv, "--port", str(port)), port=port)
    assert error.message.startswith("the server hangs")
    assert error.evidence == ("0.00.000.001 I srv  llama_server: pretending",)
    progress = [event for event in used.events if event.line == "pretending"]
    assert progress and progress[0].pid == used.host.processes[0].pid
    assert used.states == [ServerState.STARTING, ServerState.STOPPING, ServerState.FAILED]


async def test_a_server_that_never_replies(plain_rig: Rig) -> None:
    used, argv = pretending("silent", plain_rig, silent_start=3.0)
    port = used.host.free_port()
    error = await used.fails(argv=(*argv, "--port", str(port)), port=port)
    assert "no reply within 3 s" in error.message


async def test_a_server_that_dies_of_the_first_request(plain_rig: Rig) -> None:
    used, argv = pretending("dies", plain_rig)
    port = used.host.free_port()
    error = await used.fails(argv=(*argv, "--port", str(port)), port=port)
    assert "an assertion failed: n_outputs > 0 (SIGABRT)" in error.message
    assert "GGML_ASSERT" in error.evidence[0]


async def test_a_cancelled_start_leaves_nothing(plain_rig: Rig) -> None:
    used, argv = pretending("loading", plain_rig)
    port = used.host.free_port()

    async def start() -> None:
        async with used.running(argv=(*argv, "--port", str(port)), port=port):
            raise AssertionError("it must not become ready")

    task = asyncio.create_task(start())
    await until(lambda: any(event.line for event in used.events), "it is loading")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert used.states == [ServerState.STARTING, ServerState.STOPPING, ServerState.STOPPED]
    assert used.returncode == -signal.SIGTERM
    assert remembered_servers() == ()
