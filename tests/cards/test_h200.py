"""What NVML answered on a real H200 around one server, read by the same code without the card."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cards.conftest import Install
from tests.cards.fake_nvml import FakeCard
from tuirig.cards.detect import open_card
from tuirig.records import Reading

RECORDED = json.loads((Path(__file__).parent / "data" / "h200.json").read_text())
MIB = 1024 * 1024


def answer(recorded: Any) -> Any:
    """A recorded answer in the shape that NVML gives it."""
    if isinstance(recorded, dict):
        return SimpleNamespace(**recorded)
    if isinstance(recorded, list):
        return [SimpleNamespace(**row) for row in recorded]
    return recorded


def reading(install: Install, phase: str, pid: int | None = None) -> Reading:
    answers = {name: answer(value) for name, value in RECORDED[phase].items()}
    install(FakeCard(uuid=answers["nvmlDeviceGetUUID"], answers=answers))
    return open_card("NVIDIA H200").read(pid)


def test_the_process_of_a_vulkan_server_is_counted_once(install: Install) -> None:
    taken = reading(install, "streaming", RECORDED["pid"])
    (row,) = RECORDED["streaming"]["nvmlDeviceGetComputeRunningProcesses"]
    assert taken.process_memory_source == "nvml process"
    assert taken.process_memory_mib == pytest.approx(row["usedGpuMemory"] / MIB)


def test_the_servers_own_allocation_lines_are_most_of_it(install: Install) -> None:
    parts = sum(RECORDED["parts"].values())
    taken = reading(install, "ready", RECORDED["pid"])
    assert taken.process_memory_mib is not None
    assert 0 < taken.process_memory_mib - parts < 300  # the context of the driver comes on top


@pytest.mark.parametrize("phase", ["idle", "ready", "streaming", "stopped"])
def test_every_reading_is_there_and_plausible(phase: str, install: Install) -> None:
    taken = reading(install, phase)
    assert taken.memory_total_mib == pytest.approx(143_771)
    assert taken.temperature_c is not None and 20 <= taken.temperature_c <= 95
    assert taken.power_w is not None and 50 < taken.power_w < 700
    assert taken.power_limit_w == 700
    assert taken.sm_clock_mhz is not None and 300 < taken.sm_clock_mhz <= 1980
    assert taken.energy_j is not None and taken.energy_j > 1000
    assert taken.throttle == ()


def test_idle_is_no_reason_for_throttling_and_memory_returns(install: Install) -> None:
    assert RECORDED["idle"]["nvmlDeviceGetCurrentClocksEventReasons"] == 1
    before, after = reading(install, "idle"), reading(install, "stopped")
    assert before.memory_used_mib == after.memory_used_mib


def test_the_slot(install: Install) -> None:
    answers = {name: answer(value) for name, value in RECORDED["idle"].items()}
    install(FakeCard(uuid=answers["nvmlDeviceGetUUID"], answers=answers))
    info = open_card("NVIDIA H200").info
    assert (info.pcie_generation, info.pcie_lanes) == (5, 16)


@pytest.mark.parametrize("phase", ["idle", "loading", "streaming"])
def test_traffic_of_the_slot_is_what_its_lanes_can_carry(phase: str) -> None:
    read = RECORDED["pcie"][phase]
    assert (read["pcie_gen"], read["width"], read["replays"]) == (5, 16, 0)
    lanes_kb_s = 63_000_000  # PCIe 5.0 x16
    assert 0 < read["tx_kb_s"] < lanes_kb_s and 0 < read["rx_kb_s"] < lanes_kb_s
    if phase == "loading":  # the weights come in
        assert read["rx_kb_s"] > 20 * read["tx_kb_s"]


def test_nvml_and_nvidia_smi_agree() -> None:
    query = RECORDED["nvidia-smi"]["query"].splitlines()[1].split(", ")
    read = RECORDED["pcie"]["streaming"]
    assert query[5:9] == [str(read["temp"]), f"{read['sm_mhz']} MHz", "5", "16"]
    assert float(query[4].removesuffix(" W")) == pytest.approx(read["power_mw"] / 1000, rel=0.01)
    app = RECORDED["nvidia-smi"]["apps"].splitlines()[1].split(", ")
    assert int(app[2].removesuffix(" MiB")) < int(query[2].removesuffix(" MiB"))
