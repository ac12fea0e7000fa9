from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tuirig.cards.cpu import CpuCard
from tuirig.records import CardProcess

MIB = 1024 * 1024
HOLD_32_MIB = "data = b'x' * (32 << 20); print('held', flush=True); input()"


@contextmanager
def running(argv: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that has printed its first line and waits for its input to end."""
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.communicate("\n", timeout=30)


def test_what_it_is() -> None:
    info = CpuCard().info
    assert info.kind == "cpu"
    assert info.name
    assert info.memory_mib == pytest.approx(psutil.virtual_memory().total / MIB, rel=0.001)


def test_a_reading_of_the_machine() -> None:
    reading = CpuCard().read()
    assert reading.memory_total_mib is not None and reading.memory_used_mib is not None
    assert 0 < reading.memory_used_mib < reading.memory_total_mib
    assert reading.load is not None and reading.load >= 0
    assert reading.process_memory_mib is None
    assert reading.process_memory_source == ""
    assert (reading.power_w, reading.sm_clock_mhz, reading.throttle) == (None, None, None)


@pytest.mark.parametrize("kernel_lists", [True, False])
def test_the_memory_of_a_process_and_its_children(
    kernel_lists: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel_lists:
        monkeypatch.setattr("tuirig.cards.cpu._TASKS", "/nowhere/{}/task")
    wrapper = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {HOLD_32_MIB!r}])\n"
    card = CpuCard()
    with running([sys.executable, "-c", wrapper]) as process:
        (child,) = psutil.Process(process.pid).children()
        both = card.read(process.pid)
        alone = card.read(child.pid).process_memory_mib
        assert both.process_memory_source == "resident memory"
        assert both.process_memory_mib is not None and alone is not None
        assert alone > 32
        own = psutil.Process(process.pid).memory_info().rss / MIB
        assert both.process_memory_mib == pytest.approx(own + alone, abs=1)
    assert card.read(process.pid).process_memory_mib is None


def test_weights_that_are_mapped_count_once_they_were_read(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(bytes(24 * MIB))
    script = (
        "import mmap, sys\n"
        "file = open(sys.argv[1], 'rb')\n"
        "view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)\n"
        "print('mapped', flush=True); input()\n"
        "print(sum(view[::4096]), flush=True); input()\n"
    )
    card = CpuCard()
    with running([sys.executable, "-c", script, str(weights)]) as process:
        assert process.stdin is not None and process.stdout is not None
        before = card.read(process.pid).process_memory_mib
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        after = card.read(process.pid).process_memory_mib
        assert before is not None and after is not None
        assert after - before > 20


def test_a_process_that_is_gone() -> None:
    reading = CpuCard().read(2**22 + 1)
    assert reading.process_memory_mib is None
    assert reading.process_memory_source == ""


def servers() -> dict[int, CardProcess]:
    return {process.pid: process for process in CpuCard().processes()}


def test_running_servers_by_name_and_by_command(tmp_path: Path) -> None:
    named = tmp_path / "llama-server"
    named.write_text("#!/bin/sh\nread line\n")
    named.chmod(0o755)
    wait = ["-c", "read line"]
    processes = [
        subprocess.Popen([named], stdin=subprocess.PIPE),
        subprocess.Popen(
            ["/opt/llama/llama-server", *wait], executable="/bin/sh", stdin=subprocess.PIPE
        ),
        subprocess.Popen(["/bin/sh", *wait], stdin=subprocess.PIPE),
    ]
    first, second, other = (process.pid for process in processes)
    try:
        deadline = time.monotonic() + 20
        while not {first, second} <= servers().keys():
            assert time.monotonic() < deadline
        found = servers()
        assert found[first].name == found[second].name == "llama-server"
        assert (found[first].memory_mib or 0) > 0
        assert other not in found
        assert os.getpid() not in found
        processes[0].kill()
        while psutil.Process(first).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline
        assert first not in servers()
    finally:
        for process in processes:
            process.kill()
            process.communicate(timeout=20)


def test_the_hottest_sensor_of_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        def __init__(self, current: float) -> None:
            self.current = current

    sensors = {"coretemp": [Entry(50.0), Entry(61.5)], "nvme": [Entry(80.0)]}
    monkeypatch.setattr(psutil, "sensors_temperatures", lambda: sensors, raising=False)
    assert CpuCard().read().temperature_c == 61.5
    monkeypatch.setattr(psutil, "sensors_temperatures", dict, raising=False)
    assert CpuCard().read().temperature_c is None
    monkeypatch.delattr(psutil, "sensors_temperatures")
    assert CpuCard().read().temperature_c is None


def test_closed() -> None:
    card = CpuCard()
    card.remember_floor()
    card.close()
    reading = card.read(os.getpid())
    assert (reading.memory_used_mib, reading.process_memory_mib, reading.load) == (None,) * 3
