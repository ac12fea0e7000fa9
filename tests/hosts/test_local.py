from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import OWNER, group, is_alive, read_pid, until
from tuirig.errors import MissingError, ServerError, TuirigError
from tuirig.hosts.local import LocalHost, clean_environment
from tuirig.hosts.remembered import remembered_servers

HOST = LocalHost()
SLEEP = ("/bin/sleep", "600")


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "server.log"


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_ARG_DRAFT_MAX", "4")
    monkeypatch.setenv("LLAMA_API_KEY", "the user's")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    clean = clean_environment({"LLAMA_API_KEY": "ours", "GGML_NO_BACKTRACE": "0"})
    assert [name for name in clean if name.startswith("LLAMA_")] == ["LLAMA_API_KEY"]
    assert clean["LLAMA_API_KEY"] == "ours"
    assert clean["CUDA_VISIBLE_DEVICES"] == "1"
    assert clean["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert clean["LC_ALL"] == "C"
    assert clean["GGML_NO_BACKTRACE"] == "0"
    assert clean["PATH"] == os.environ["PATH"]


def test_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert HOST.find_program("server") is None
    path = Path(script(tmp_path / "server", "exit 0"))
    assert HOST.find_program("server") == path
    assert HOST.find_program(str(path)) == path
    assert HOST.find_program("~/server") == path
    monkeypatch.chdir(tmp_path)
    assert HOST.find_program("./server") == path
    path.chmod(0o644)
    assert HOST.find_program(str(path)) is None
    assert HOST.find_program(str(tmp_path)) is None


async def test_a_short_command(tmp_path: Path) -> None:
    said = script(tmp_path / "said", 'read line; echo "$A$line"; echo careful >&2; exit 3')
    assert await HOST.run([said], {"A": "b"}) == (3, "b\n", "careful\n")
    killed = script(tmp_path / "killed", "kill -TERM $$")
    assert (await HOST.run([killed], {})).returncode == -signal.SIGTERM


async def test_a_short_command_that_talks_too_much(tmp_path: Path) -> None:
    talks = script(tmp_path / "talks", "head -c 3000000 /dev/zero; echo end >&2")
    output = await HOST.run([talks], {})
    assert (output.returncode, len(output.stdout), output.stderr) == (0, 1 << 20, "end\n")


async def test_a_short_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    hangs = script(tmp_path / "hangs", f"/bin/sleep 600 & echo $! > {child}; wait")
    with pytest.raises(ServerError, match=r"hangs .* did not end within 0\.5 s"):
        await HOST.run([hangs, "--help"], {}, timeout_s=0.5)
    pid = read_pid(child)
    assert pid is not None
    await until(lambda: not is_alive(pid), "the child is gone")


async def test_a_short_command_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="No such file"):
        await HOST.run([str(tmp_path / "nothing")], {})


async def test_a_server_of_its_own_session_without_input(tmp_path: Path, log_path: Path) -> None:
    server = script(
        tmp_path / "server",
        'read line && echo input; echo "out $A"; echo err >&2; exec /bin/sleep 600',
    )
    async with HOST.start([server], {"A": "b"}, label="mine", log_path=log_path) as process:
        await until(lambda: log_path.read_text() == "out b\nerr\n", "the log")
        assert os.getpgid(process.pid) == os.getsid(process.pid) == process.pid
        assert process.log_path == log_path
        assert process.returncode is None
        process.terminate()
        assert await process.wait() == process.returncode == -signal.SIGTERM
    assert not is_alive(process.pid)


async def test_the_log_is_continued(log_path: Path) -> None:
    for word in ("one", "two"):
        async with HOST.start(["/bin/echo", word], {}, label="mine", log_path=log_path) as process:
            assert await process.wait() == 0
    assert log_path.read_text() == "one\ntwo\n"


async def test_a_server_inherits_no_ignored_signal(log_path: Path) -> None:
    argv = ["/bin/grep", "SigIgn", "/proc/self/status"]
    async with HOST.start(argv, {}, label="mine", log_path=log_path) as process:
        assert await process.wait() == 0
    assert int(log_path.read_text().split()[1], 16) == 0


async def test_leaving_kills_what_is_left(tmp_path: Path, log_path: Path) -> None:
    stubborn = script(tmp_path / "stubborn", "trap '' TERM; echo up; while :; do sleep 1; done")
    async with HOST.start([stubborn], {}, label="mine", log_path=log_path) as process:
        await until(lambda: log_path.read_text() == "up\n", "the trap is set")
        process.terminate()
    assert process.returncode == -signal.SIGKILL
    assert group(process.pid) == []


@pytest.mark.parametrize("end", ["exit 0", "wait"])
async def test_what_a_wrapper_forked_goes_with_it(tmp_path: Path, log_path: Path, end: str) -> None:
    child = tmp_path / "child"
    wrapper = script(tmp_path / "wrapper", f"/bin/sleep 600 & echo $! > {child}; {end}")
    async with HOST.start([wrapper], {}, label="mine", log_path=log_path) as process:
        await until(lambda: read_pid(child), "the child's pid")
        if end == "exit 0":
            assert await process.wait() == 0
    await until(lambda: group(process.pid) == [], "the group is gone")
    pid = read_pid(child)
    assert pid is not None and not is_alive(pid)


@pytest.mark.parametrize(
    ("mode", "reason"), [(0o644, "Permission denied"), (0o755, "Exec format error")]
)
async def test_a_program_that_does_not_start(
    tmp_path: Path, log_path: Path, mode: int, reason: str
) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"\0not a program")
    path.chmod(mode)
    with pytest.raises(MissingError, match=reason):
        async with HOST.start([str(path)], {}, label="mine", log_path=log_path):
            raise AssertionError("it must not start")
    assert remembered_servers() == ()


async def test_a_log_that_can_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TuirigError, match="can't be written"):
        async with HOST.start(SLEEP, {}, label="mine", log_path=tmp_path / "file" / "log"):
            raise AssertionError("it must not start")


async def test_a_cancelled_owner_leaves_nothing(log_path: Path) -> None:
    pids: list[int] = []

    async def own() -> None:
        async with HOST.start(SLEEP, {}, label="mine", log_path=log_path) as process:
            pids.append(process.pid)
            await process.wait()

    owner = asyncio.create_task(own())
    await until(lambda: pids, "started")
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    assert not is_alive(pids[0])
    assert remembered_servers() == ()


async def test_a_start_cancelled_before_it_is_known_leaves_nothing(
    tmp_path: Path, log_path: Path
) -> None:
    pid_path = tmp_path / "pid"
    server = script(tmp_path / "server", f"echo $$ > {pid_path}; exec /bin/sleep 600")

    async def own() -> None:
        async with HOST.start([server], {}, label="mine", log_path=log_path):
            raise AssertionError("cancelled before")

    owner = asyncio.create_task(own())
    await asyncio.sleep(0)  # the supervisor is started, its answer is awaited
    owner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await owner
    pid = read_pid(pid_path)
    assert pid is None or not is_alive(pid)


async def test_the_supervisor_killed_takes_the_server_with_it(log_path: Path) -> None:
    async with HOST.start(SLEEP, {}, label="mine", log_path=log_path) as process:
        supervisor = int(
            Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[1]
        )
        os.kill(supervisor, signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
        await until(lambda: not is_alive(process.pid), "the server is gone")
        process.terminate()  # to nobody; no error


@pytest.mark.parametrize(
    ("number", "stubborn"),
    [
        (signal.SIGKILL, False),
        (signal.SIGHUP, False),
        (signal.SIGTERM, False),
        (signal.SIGKILL, True),
    ],
)
async def test_a_server_does_not_outlive_tuirig(
    tmp_path: Path, log_path: Path, number: signal.Signals, stubborn: bool
) -> None:
    argv = [*SLEEP]
    if stubborn:
        argv = [script(tmp_path / "s", "trap '' TERM; echo up; while :; do /bin/sleep 1; done")]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(log_path), *argv], stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        pid = int(await asyncio.to_thread(owner.stdout.readline))
        await until(lambda: not stubborn or "up" in log_path.read_text(), "the trap is set")
        assert is_alive(pid)
        owner.send_signal(number)
    await until(lambda: group(pid) == [], "the server's group is gone")
    assert remembered_servers() == ()
