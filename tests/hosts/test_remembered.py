from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.processes import is_alive, until
from tuirig.hosts import remembered
from tuirig.hosts.local import LocalHost
from tuirig.hosts.remembered import end_remembered, remember, remembered_servers, start_mark

ARGV = ("/bin/sh", "-c", "exec /bin/sleep 600", "--port", "4321")


@pytest.fixture
def folder(home: Path) -> Path:
    return home / "state" / "servers"


async def test_an_owned_server_is_remembered_while_it_runs(folder: Path, tmp_path: Path) -> None:
    log_path = tmp_path / "log"
    async with LocalHost().start(ARGV, {"SECRET": "x"}, label="mine", log_path=log_path) as process:
        (server,) = remembered_servers()
        assert (server.label, server.pid, server.port) == ("mine", process.pid, 4321)
        assert (server.argv, server.log_path) == (ARGV, str(log_path))
        assert (server.detached, server.owner_pid) == (False, os.getpid())
        assert server.is_running() and not server.is_orphan()
        (path,) = folder.iterdir()
        assert b"SECRET" not in path.read_bytes()
    assert list(folder.iterdir()) == []


async def test_a_detached_server_goes_on_and_can_be_ended(folder: Path, tmp_path: Path) -> None:
    host = LocalHost()
    pid = await host.start_detached(ARGV, {}, label="mine", log_path=tmp_path / "log")
    try:
        assert os.getpgid(pid) == os.getsid(pid) == pid
        assert Path(f"/proc/{pid}/fd/0").readlink() == Path("/dev/null")
        # A new server of the same rig does not make tuirig forget it.
        async with host.start(ARGV, {}, label="mine", log_path=tmp_path / "log"):
            assert len(remembered_servers()) == 2
        (server,) = remembered_servers()
        assert (server.pid, server.detached, server.is_orphan()) == (pid, True, False)
        await end_remembered(server)
        assert not is_alive(pid)
        assert list(folder.iterdir()) == []
        await end_remembered(server)  # gone already: nothing to do
    finally:
        if is_alive(pid):
            os.killpg(pid, signal.SIGKILL)


async def test_the_ladder_ends_with_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "LADDER", ((signal.SIGTERM, 0.1), (signal.SIGKILL, 20.0)))
    argv = ("/bin/sh", "-c", "trap '' TERM; echo up; while :; do /bin/sleep 1; done")
    log_path = tmp_path / "log"
    pid = await LocalHost().start_detached(argv, {}, label="mine", log_path=log_path)
    await until(lambda: log_path.read_text() == "up\n", "the trap is set")
    (server,) = remembered_servers()
    await end_remembered(server)
    await until(lambda: not is_alive(pid), "killed")


def test_another_process_with_the_same_pid_is_not_taken_for_it(
    folder: Path, tmp_path: Path
) -> None:
    path = remember(os.getpid(), ARGV, label="mine", log_path=tmp_path, detached=True)
    assert path is not None
    (server,) = remembered_servers()
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(server, start_mark="1")))
    assert remembered_servers() == ()
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"pid": 1}'])
def test_a_broken_pid_file_is_removed(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True)
    (folder / "mine.1.json").write_bytes(content)
    assert remembered_servers() == ()
    assert list(folder.iterdir()) == []


def test_a_server_whose_tuirig_is_gone_is_an_orphan(tmp_path: Path) -> None:
    path = remember(os.getpid(), ARGV, label="mine", log_path=tmp_path, detached=False)
    assert path is not None
    (server,) = remembered_servers()
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    assert msgspec.structs.replace(server, owner_pid=gone.pid).is_orphan()


def test_a_process_that_is_gone_has_no_start_and_is_not_remembered(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read()
        zombie_or_gone = process.pid
    assert start_mark(zombie_or_gone) is None
    assert remember(zombie_or_gone, ARGV, label="x", log_path=tmp_path, detached=False) is None
    assert remembered_servers() == ()
