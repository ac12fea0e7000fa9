"""One rig under control, with a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import msgspec
import psutil
import pytest

from tests.processes import is_alive, until
from tuirig import locations
from tuirig.errors import InUseError, MissingError, NotProvenError, ServerError, TuirigError
from tuirig.events import (
    ArmDone,
    Event,
    Failed,
    ReadingTaken,
    ReplyDone,
    ServerChanged,
    ServerState,
    TextArrived,
)
from tuirig.hosts.remembered import remembered_servers
from tuirig.measure.prompts import choose, prompt
from tuirig.rigs.schema import Drafter, Rig
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs.catalog import FoundRig
from tuirig.runs.opening import open_session
from tuirig.runs.serving import end, leftovers
from tuirig.runs.session import Session

Q4_0 = parse_setting("q4_0:2")


class Watched:
    """A session and everything that it told."""

    def __init__(self, session: Session, events: list[Event]) -> None:
        self.session = session
        self.events = events

    def states(self) -> list[tuple[str, ServerState]]:
        """Changes of the server's state, each once."""
        found: list[tuple[str, ServerState]] = []
        for event in self.events:
            if isinstance(event, ServerChanged):
                change = (event.setting, event.state)
                if found[-1:] != [change]:
                    found.append(change)
        return found

    def failures(self) -> list[Failed]:
        return [event for event in self.events if isinstance(event, Failed)]

    def pid(self) -> int:
        assert self.session.server is not None
        return self.session.server.pid


@asynccontextmanager
async def opened(rig: Rig, tmp_path: Path, rate_hz: float = 0) -> AsyncIterator[Watched]:
    events: list[Event] = []
    found = FoundRig(rig, tmp_path / f"{rig.name}.toml")
    async with open_session(found, events.append, rate_hz=rate_hz) as session:
        yield Watched(session, events)
    assert remembered_servers() == ()


async def test_from_setting_to_setting(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        session = watched.session
        await session.restart(NONE)
        first = watched.pid()
        shown = session.command(Q4_0)
        await session.restart(Q4_0)
        assert not is_alive(first)
        assert session.server is not None
        assert session.server.command == shown
        second = watched.pid()
    assert not is_alive(second)
    assert watched.states() == [
        (setting, state)
        for setting in ("none", "q4_0:2")
        for state in (
            ServerState.STARTING,
            ServerState.READY,
            ServerState.STOPPING,
            ServerState.STOPPED,
        )
    ]


async def test_a_reply_runs_and_is_ready_again(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        await watched.session.restart(Q4_0)
        before = len(watched.events)
        reply = await watched.session.stream(prompt("code-1"), tokens=24)
        told = watched.events[before:]
    assert reply.predicted_n == 24
    assert isinstance(told[0], ServerChanged) and told[0].state is ServerState.RUNNING
    text = "".join(event.text for event in told if isinstance(event, TextArrived))
    assert text == reply.text
    (done,) = [event for event in told if isinstance(event, ReplyDone)]
    assert (done.setting, done.reply) == ("q4_0:2", reply)
    ready = next(event for event in told[1:] if isinstance(event, ServerChanged))
    assert (ready.state, ready.pid is not None) == (ServerState.READY, True)


async def test_an_arm(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        await watched.session.restart(Q4_0)
        arm = await watched.session.measure(choose(2), tokens=24, temperature=0.5)
    assert (arm.rig, arm.setting, len(arm.replies)) == ("tiny-gemma4", "q4_0:2", 2)
    assert {reply.temperature for reply in arm.replies} == {0.5}
    assert arm.proof.proven
    assert arm.started_at.endswith("+00:00")
    assert arm.memory_source == "resident memory"
    assert [event.arm for event in watched.events if isinstance(event, ArmDone)] == [arm]


async def test_a_cancelled_reply_leaves_an_idle_server(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        await watched.session.restart(NONE)
        reply = asyncio.create_task(watched.session.stream(prompt("story-1"), tokens=1500))
        await until(
            lambda: any(isinstance(event, TextArrived) for event in watched.events), "first text"
        )
        reply.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reply
        assert watched.states()[-1] == ("none", ServerState.READY)
        again = await watched.session.stream(prompt("code-1"), tokens=16)
        assert again.predicted_n == 16


async def test_a_cancelled_start_leaves_no_server(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        start = asyncio.create_task(watched.session.restart(NONE))
        await until(remembered_servers, "the server's process")
        (server,) = remembered_servers()
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        assert not is_alive(server.pid)
        assert watched.session.server is None
        await watched.session.restart(NONE)
        assert watched.session.server is not None


async def test_a_missing_drafter_is_refused_and_stops_nothing(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    first, *others = tiny_gemma4_rig.drafter
    lost = msgspec.structs.replace(first, path=str(tmp_path / "lost.gguf"))
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(lost, *others))
    async with opened(rig, tmp_path) as watched:
        await watched.session.restart(NONE)
        runs = watched.pid()
        with pytest.raises(MissingError, match=r"no such file: lost\.gguf") as caught:
            await watched.session.restart(Setting(first.row, 2))
        assert caught.value.hint
        assert watched.pid() == runs
        assert "lost.gguf" in watched.session.refusal(Setting(first.row, 2))
        assert watched.session.refusal(Setting(others[0].row, 2)) == ""


async def test_a_stop_that_is_cancelled_is_waited_for_by_the_next_start(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        await watched.session.restart(NONE)
        first = watched.pid()
        stop = asyncio.create_task(watched.session.stop())
        await asyncio.sleep(0)
        stop.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stop
        await watched.session.restart(Q4_0)
        assert not is_alive(first)
        assert watched.pid() != first


async def test_a_server_that_dies_is_told_with_its_setting(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        await watched.session.restart(Q4_0)
        psutil.Process(watched.pid()).kill()
        with pytest.raises(ServerError, match="the server died"):
            await watched.session.wait_ended()
        assert watched.session.server is None
        (failure,) = watched.failures()
        assert failure.setting == "q4_0:2"
        assert watched.states()[-1] == ("q4_0:2", ServerState.FAILED)
        with pytest.raises(ServerError, match="no server is running"):
            await watched.session.stream(prompt("code-1"))
        await watched.session.restart(Q4_0)
        assert watched.session.server is not None


async def test_a_drafter_that_the_server_ignores_is_told_with_the_reason(
    tiny_gemma4_rig: Rig, smollm2_files: Path, tmp_path: Path
) -> None:
    other = Drafter(
        format="other", type="draft-simple", path=str(smollm2_files / "smollm2-q4_0.gguf")
    )
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(other,))
    async with opened(rig, tmp_path) as watched:
        with pytest.raises(NotProvenError) as caught:
            await watched.session.restart(Setting("other", 2))
        assert any("vocab" in line for line in caught.value.evidence)
        (failure,) = watched.failures()
        assert failure.setting == "other:2"
        assert watched.session.server is not None  # it stays up and can be looked at


async def test_what_a_build_can_not_run_is_known_without_a_start(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    odd = Drafter(format="odd", type="draft-telepathy")
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(*tiny_gemma4_rig.drafter, odd))
    async with opened(rig, tmp_path) as watched:
        assert "draft-telepathy" in watched.session.refusal(Setting("odd", 1))
        assert watched.session.refusal(Q4_0) == ""
        assert "no drafter 'q5_0'" in watched.session.refusal(Setting("q5_0", 1))
        with pytest.raises(TuirigError, match="draft-telepathy"):
            await watched.session.restart(Setting("odd", 1))
        assert watched.session.server is None


async def test_a_fixed_port_is_not_exchanged(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    found = FoundRig(tiny_gemma4_rig, tmp_path / "rig.toml")
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, open_session(found, lambda event: None, rate_hz=0, port=port) as session:
        with pytest.raises(InUseError, match=str(port)):
            await session.restart(NONE)


async def test_a_port_that_somebody_took_is_left_to_them(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    async with opened(tiny_gemma4_rig, tmp_path) as watched:
        taken = watched.session.command(NONE).port
        async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", taken):
            await watched.session.restart(NONE)
            assert watched.session.server is not None
            assert watched.session.server.command.port != taken


async def test_the_card_is_watched_beside_the_work(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    async with opened(tiny_gemma4_rig, tmp_path, rate_hz=20) as watched:
        await watched.session.restart(NONE)

        def readings() -> list[float]:
            return [
                event.reading.process_memory_mib
                for event in watched.events
                if isinstance(event, ReadingTaken) and event.reading.process_memory_mib
            ]

        await until(readings, "a reading with the server's memory")


async def test_keep_serving(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    found = FoundRig(tiny_gemma4_rig, tmp_path / "rig.toml")
    async with open_session(found, lambda event: None, rate_hz=0) as session:
        await session.restart(Q4_0)
        assert session.server is not None
        first, command = session.server.pid, session.server.command
        kept = await session.keep_serving()
    try:
        assert not is_alive(first)
        assert kept.pid != first
        assert psutil.Process(kept.pid).cmdline() == list(command.argv)
        assert kept.key_file.stat().st_mode & 0o777 == 0o600
        key = kept.key_file.read_text().strip()

        def status(key: str) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            try:
                return httpx2.get(f"{kept.url}/props", headers=headers, trust_env=False).status_code
            except httpx2.TransportError:
                return 0  # not listening yet

        await until(lambda: status(key) == 200, "an answer for the key in the file")
        assert status("another") == 401
        assert [server.pid for server in leftovers()] == [kept.pid]
        assert leftovers("another-rig") == ()
    finally:
        for server in leftovers():
            await end(server)
    assert not is_alive(kept.pid)
    assert not kept.key_file.exists()
    assert kept.log_file.is_relative_to(locations.state_folder())
