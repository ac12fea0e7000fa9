"""The CPU as a card: its memory is the machine's RAM."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tuirig.records import CardInfo, CardProcess, Reading

if TYPE_CHECKING:
    import psutil

_MIB = 1024 * 1024
_SERVER = "llama-server"
#: The threads of a process; each lists its children (Linux).
_TASKS = "/proc/{}/task"
#: Sensors of a CPU package, by the names of their Linux drivers.
_CPU_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")


def cpu_info() -> CardInfo:
    """The CPU of this machine."""
    return CardInfo(kind="cpu", name=_cpu_name(), memory_mib=_ram_mib())


class CpuCard:
    """The CPU. A server's memory is the resident memory of its process and their children.

    Resident memory counts the weights that are mapped from the file, once they were touched. The
    proportional figure (PSS) is not used: it shrinks when somebody else maps the same file, and
    asking for it walks the server's page tables.
    """

    def __init__(self) -> None:
        self._info = cpu_info()
        self._closed = False

    @property
    def info(self) -> CardInfo:
        """What it is."""
        return self._info

    def read(self, pid: int | None = None) -> Reading:
        """One reading; pid is the server's process."""
        if self._closed:
            return Reading(at_s=time.monotonic())
        import psutil

        memory = psutil.virtual_memory()
        resident_mib = None if pid is None else _resident_mib(pid)
        return Reading(
            at_s=time.monotonic(),
            memory_used_mib=(memory.total - memory.available) / _MIB,
            memory_total_mib=memory.total / _MIB,
            process_memory_mib=resident_mib,
            process_memory_source="" if resident_mib is None else "resident memory",
            temperature_c=_temperature_c(),
            load=_load(),
        )

    def remember_floor(self) -> None:
        """Nothing to remember: the system tells each process's memory."""

    def processes(self) -> tuple[CardProcess, ...]:
        """The llama-servers that run on this machine."""
        import psutil

        found = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and _is_server(process):
                    memory_mib = process.memory_info().rss / _MIB
                    found.append(CardProcess(pid=process.pid, name=_SERVER, memory_mib=memory_mib))
            except psutil.Error:
                continue  # it ended meanwhile, or is not ours to see
        return tuple(found)

    def close(self) -> None:
        """Further reads give empty readings."""
        self._closed = True


def _is_server(process: psutil.Process) -> bool:
    command = process.cmdline()[:1]
    return _SERVER in (process.name(), *(Path(part).name for part in command))


def _resident_mib(pid: int) -> float | None:
    """Resident MiB of a process and its children, None when it is gone."""
    sizes = list(_resident_bytes(pid))
    return sum(sizes) / _MIB if sizes else None


def _resident_bytes(pid: int) -> Iterator[int]:
    import psutil

    try:
        yield psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return
    for child in _descendants(pid):
        try:
            yield psutil.Process(child).memory_info().rss
        except psutil.Error:
            continue  # it ended meanwhile


def _descendants(pid: int) -> Iterator[int]:
    """By the kernel's own lists where it has them: psutil looks at every process there is."""
    folder = _TASKS.format(pid)
    try:
        own = [
            int(child)
            for task in os.listdir(folder)
            for child in Path(folder, task, "children").read_text().split()
        ]
    except (OSError, ValueError):
        own = list(_asked_of_psutil(pid))
    for child in own:
        yield child
        yield from _descendants(child)


def _asked_of_psutil(pid: int) -> Iterator[int]:
    import psutil

    try:
        yield from (child.pid for child in psutil.Process(pid).children())
    except psutil.Error:
        return


def _temperature_c() -> float | None:
    """The hottest sensor of the CPU, None where there is none (a virtual machine)."""
    import psutil

    read = getattr(psutil, "sensors_temperatures", None)
    sensors = read() if read else {}
    values = [entry.current for name in _CPU_SENSORS for entry in sensors.get(name, ())]
    return max(values, default=None)


def _load() -> float | None:
    """Runnable tasks, mean of the last minute."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine() or "CPU"


def _ram_mib() -> float | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _MIB
    except (OSError, ValueError):
        return None
