"""Pid files: which servers tuirig started on this machine, so that none is ever lost."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tuirig.atomic import write_atomically
from tuirig.locations import state_folder

#: The ladder of signals for a server that tuirig does not drive: (signal, seconds to wait).
LADDER = ((signal.SIGTERM, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0))
_POLL_S = 0.02
_HAS_PROC = Path("/proc/self/stat").exists()


class RememberedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server's pid file.

    start_mark tells this process from a later one with the same pid. detached: it was started to
    outlive tuirig. owner_pid: the tuirig that started it. argv holds no secrets.
    """

    label: str
    pid: int
    start_mark: str
    argv: tuple[str, ...]
    log_path: str
    detached: bool
    owner_pid: int
    port: int | None = None

    @property
    def address(self) -> str:
        """Where it listens, as far as its command line says: 127.0.0.1:41873, or its process."""
        if self.port is None:
            return f"process {self.pid}"
        flags = dict(zip(self.argv, self.argv[1:], strict=False))
        return f"{flags.get('--host', '127.0.0.1')}:{self.port}"

    def is_running(self) -> bool:
        """Whether this very process still runs."""
        return start_mark(self.pid) == self.start_mark

    def is_orphan(self) -> bool:
        """Whether it should have died with a tuirig that is gone."""
        return not self.detached and start_mark(self.owner_pid) is None


def _folder() -> Path:
    return state_folder() / "servers"


def remember(
    pid: int, argv: Sequence[str], *, label: str, log_path: Path, detached: bool
) -> Path | None:
    """Write the pid file of a running process; None if it is gone already. Blocks on the disk."""
    mark = start_mark(pid)
    if mark is None:
        return None
    server = RememberedServer(
        label=label,
        pid=pid,
        start_mark=mark,
        argv=tuple(argv),
        log_path=str(log_path),
        detached=detached,
        owner_pid=os.getpid(),
        port=_port(argv),
    )
    # The pid keeps a server that goes on serving apart from a new one of the same rig.
    path = _folder() / f"{label}.{pid}.json"
    write_atomically(path, msgspec.json.encode(server))
    return path


def remembered_servers() -> tuple[RememberedServer, ...]:
    """The servers that still run, by file name; pid files of others are removed. Blocks."""
    servers = []
    for path in sorted(_folder().glob("*.json")):
        try:
            server = msgspec.json.decode(path.read_bytes(), type=RememberedServer)
        except FileNotFoundError:
            continue  # its owner removed it just now
        except msgspec.DecodeError:
            path.unlink(missing_ok=True)
            continue
        if server.is_running():
            servers.append(server)
        else:
            path.unlink(missing_ok=True)
    return tuple(servers)


async def end_remembered(server: RememberedServer) -> None:
    """End a remembered server and its group, gently at first. Returns when it is gone.

    Raises TimeoutError if it survives SIGKILL (stuck in a driver), PermissionError if it belongs
    to another user.
    """
    for number, seconds in LADDER:
        if not server.is_running():
            break
        _signal(server.pid, number)
        for _ in range(round(seconds / _POLL_S)):
            if not server.is_running():
                break
            await asyncio.sleep(_POLL_S)
    if server.is_running():
        raise TimeoutError(f"{server.label}: process {server.pid} survives SIGKILL")
    (_folder() / f"{server.label}.{server.pid}.json").unlink(missing_ok=True)


def start_mark(pid: int) -> str | None:
    """When a process started, as the system tells it; None if there is no such live process."""
    if _HAS_PROC:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
        except (FileNotFoundError, ProcessLookupError):
            return None
        # proc(5): state and starttime (clock ticks since boot), counted behind the name.
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    import psutil

    try:
        process = psutil.Process(pid)
        gone = process.status() == psutil.STATUS_ZOMBIE
        return None if gone else str(process.create_time())
    except psutil.Error:
        return None


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except ProcessLookupError:
        pass  # it went by itself


def _port(argv: Sequence[str]) -> int | None:
    for flag, value in itertools.pairwise(argv):
        if flag == "--port" and value.isdigit():
            return int(value)
    return None
