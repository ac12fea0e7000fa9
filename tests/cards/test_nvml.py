from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.cards.conftest import Install
from tests.cards.fake_nvml import (
    ANSWERS,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    MIB,
    NOT_SUPPORTED,
    UNINITIALIZED,
    FakeCard,
    FakeNvml,
    NVMLError,
)
from tuirig.cards.detect import list_cards, open_card
from tuirig.cards.nvml import NvidiaCard, load_library, throttle_words
from tuirig.errors import MissingError
from tuirig.records import CardInfo, CardProcess, Reading

NOT_AVAILABLE = 2**64 - 1
FIELDS = {
    "memory_used_mib": "nvmlDeviceGetMemoryInfo",
    "memory_total_mib": "nvmlDeviceGetMemoryInfo",
    "temperature_c": "nvmlDeviceGetTemperature",
    "power_w": "nvmlDeviceGetPowerUsage",
    "power_limit_w": "nvmlDeviceGetEnforcedPowerLimit",
    "sm_clock_mhz": "nvmlDeviceGetClockInfo",
    "utilization": "nvmlDeviceGetUtilizationRates",
    "energy_j": "nvmlDeviceGetTotalEnergyConsumption",
}


def first_card() -> NvidiaCard:
    card = NvidiaCard(list_cards()[0])
    assert isinstance(card, NvidiaCard)
    return card


def values(reading: Reading) -> dict[str, object]:
    """What a reading tells, without its time."""
    fields = {name: getattr(reading, name) for name in reading.__struct_fields__}
    return {name: value for name, value in fields.items() if name != "at_s" and value != ""}


def empty(reading: Reading) -> bool:
    return set(values(reading).values()) == {None}


def test_a_whole_reading(install: Install) -> None:
    install(FakeCard(compute=[(os.getpid(), 512 * MIB)], reasons=0x4))
    reading = first_card().read(os.getpid())
    assert values(reading) == {
        "memory_used_mib": 1024.0,
        "memory_total_mib": 8192.0,
        "process_memory_mib": 512.0,
        "process_memory_source": "nvml process",
        "temperature_c": 62.0,
        "power_w": 98.5,
        "power_limit_w": 120.0,
        "sm_clock_mhz": 1905.0,
        "utilization": 0.75,
        "energy_j": 5.0,
        "throttle": ("power cap",),
        "load": None,
    }


@pytest.mark.parametrize("text", [str, str.encode])
def test_names_are_bytes_or_text(install: Install, text: Callable[[str], Any]) -> None:
    install(FakeCard(text("NVIDIA Ünï"), text("GPU-1"), text("00000000:01:00.0")))
    assert list_cards()[0] == CardInfo(
        kind="nvidia",
        name="NVIDIA Ünï",
        index=0,
        uuid="GPU-1",
        pci_address="00000000:01:00.0",
        memory_mib=8192,
        driver="615.78.08",
        pcie_generation=4,
        pcie_lanes=8,
    )
    assert open_card("GPU-1").info.name == "NVIDIA Ünï"


@pytest.mark.parametrize("code", [NOT_SUPPORTED, FUNCTION_NOT_FOUND])
@pytest.mark.parametrize("function", sorted(set(FIELDS.values())))
def test_what_is_not_supported_is_asked_for_once(
    install: Install, function: str, code: int
) -> None:
    nvml = install(FakeCard())
    card = first_card()
    nvml.cards[0].answers[function] = NVMLError(code)
    nvml.asked.clear()
    for _ in range(3):
        told = values(card.read())
        unknown = {name for name in FIELDS if told[name] is None}
        assert unknown == {name for name, source in FIELDS.items() if source == function}
    assert nvml.asked.count(function) == 1


def test_what_fails_once_is_asked_for_again(install: Install) -> None:
    nvml = install(FakeCard())
    card = first_card()
    nvml.cards[0].answers["nvmlDeviceGetTemperature"] = NVMLError(999)
    assert card.read().temperature_c is None
    del nvml.cards[0].answers["nvmlDeviceGetTemperature"]
    assert card.read().temperature_c == 62


def test_an_old_module_lacks_functions(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install(FakeCard(reasons=0x20))
    missing = {
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetMPSComputeRunningProcesses",
        "nvmlDeviceGetPciInfo",
        "nvmlDeviceGetTotalEnergyConsumption",
    }
    usual = FakeNvml.__getattr__

    def without(module: FakeNvml, name: str) -> Callable[..., Any]:
        if name in missing:
            raise AttributeError(name)
        return usual(module, name)

    monkeypatch.setattr(FakeNvml, "__getattr__", without)
    card = first_card()
    assert card.info.pci_address is None
    reading = card.read(1)
    assert reading.energy_j is None
    assert reading.throttle == ("thermal",)


def test_answers_that_can_not_be_decoded(install: Install) -> None:
    nvml = install(FakeCard())
    card = first_card()
    for function in FIELDS.values():
        nvml.cards[0].answers[function] = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")
    told = values(card.read(1))
    assert {told[name] for name in FIELDS} == {None}
    assert told["throttle"] == ()


def test_a_vulkan_process_is_counted_once(install: Install) -> None:
    pid = os.getpid()
    install(
        FakeCard(
            compute=[(pid, 500 * MIB), (1, 100 * MIB)],
            graphics=[(pid, 500 * MIB)],
            mps=[(pid, 400 * MIB)],
        )
    )
    card = first_card()
    assert card.read(pid).process_memory_mib == 500
    assert [(row.pid, row.memory_mib) for row in card.processes()] == [(1, 100), (pid, 500)]


def test_a_process_that_only_draws_counts(install: Install) -> None:
    install(FakeCard(graphics=[(os.getpid(), 30 * MIB)]))
    assert first_card().read(os.getpid()).process_memory_mib == 30


def test_children_of_a_wrapper_are_counted_with_it(install: Install) -> None:
    script = "sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as wrapper:
        assert wrapper.stdout is not None
        child = int(wrapper.stdout.readline())
        try:
            install(FakeCard(compute=[(child, 200 * MIB), (os.getpid(), 70 * MIB)]))
            card = first_card()
            assert card.read(wrapper.pid).process_memory_mib == 200
            assert card.read(child).process_memory_mib == 200
            assert card.read(os.getpid()).process_memory_mib == 270
        finally:
            os.kill(child, 15)
            wrapper.wait(timeout=20)


@pytest.mark.parametrize("memory", [None, NOT_AVAILABLE])
@pytest.mark.parametrize("listed", [True, False])
def test_without_a_figure_per_process_the_cards_growth_is_told(
    install: Install, memory: int | None, listed: bool
) -> None:
    pid = os.getpid() if listed else 2**22 + 1  # a container lists processes of its host
    nvml = install(FakeCard(compute=[(pid, memory)]))
    card = first_card()

    def told() -> tuple[float | None, str]:
        reading = card.read(os.getpid())
        return reading.process_memory_mib, reading.process_memory_source

    assert told() == (None, "")  # no floor is known
    card.remember_floor()
    nvml.cards[0].memory = (8192 * MIB, 3024 * MIB)
    assert told() == (2000, "card delta")
    assert card.read(None).process_memory_mib is None
    nvml.cards[0].memory = (8192 * MIB, 500 * MIB)
    assert told() == (None, "")  # others let go of more than the server took


def test_half_a_figure_is_none(install: Install) -> None:
    script = "sleep 60 & echo $!; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as wrapper:
        assert wrapper.stdout is not None
        child = int(wrapper.stdout.readline())
        try:
            install(FakeCard(compute=[(wrapper.pid, 10 * MIB), (child, None)]))
            assert first_card().read(wrapper.pid).process_memory_mib is None
        finally:
            os.kill(child, 15)
            wrapper.wait(timeout=20)


def test_unified_memory_has_no_size(install: Install) -> None:
    nvml = install(FakeCard(answers={"nvmlDeviceGetMemoryInfo": NVMLError(NOT_SUPPORTED)}))
    card = first_card()
    assert card.info.memory_mib is None
    card.remember_floor()
    reading = card.read(os.getpid())
    assert (reading.memory_used_mib, reading.memory_total_mib) == (None, None)
    assert reading.process_memory_mib is None
    assert reading.temperature_c == 62
    assert nvml.asked.count("nvmlDeviceGetMemoryInfo") == 2  # once to list, once to read


def test_after_a_suspend_nvml_is_opened_anew(install: Install) -> None:
    nvml = install(FakeCard())
    card = first_card()
    answers = iter([NVMLError(UNINITIALIZED), 63, 64, NVMLError(UNINITIALIZED), 65])
    nvml.cards[0].answers["nvmlDeviceGetTemperature"] = lambda: next(answers)
    assert [card.read().temperature_c for _ in range(3)] == [63, 64, 65]
    assert nvml.opened == 1


@pytest.mark.parametrize("code", [GPU_IS_LOST, UNINITIALIZED])
def test_a_card_that_stays_lost_gives_empty_readings(install: Install, code: int) -> None:
    nvml = install(FakeCard())
    card = first_card()
    for function in set(FIELDS.values()):
        nvml.cards[0].answers[function] = NVMLError(code)
    nvml.asked.clear()
    assert empty(card.read(os.getpid()))
    assert nvml.asked == ["nvmlDeviceGetMemoryInfo"] * 2
    assert empty(card.read())
    assert card.processes() == ()
    card.remember_floor()
    card.close()
    assert nvml.opened == 0


def test_a_card_that_does_not_come_back(install: Install) -> None:
    nvml = install(FakeCard())
    card = first_card()
    nvml.cards[0].answers = {
        "nvmlDeviceGetMemoryInfo": NVMLError(GPU_IS_LOST),
        "nvmlDeviceGetHandleByUUID": NVMLError(GPU_IS_LOST),
    }
    assert empty(card.read())
    nvml.cards[0].answers.clear()
    nvml.init_error = NVMLError(UNINITIALIZED)
    assert empty(card.read())
    assert nvml.opened == 0


def test_closed(install: Install) -> None:
    nvml = install(FakeCard())
    card = first_card()
    assert nvml.opened == 1
    card.close()
    card.close()
    assert nvml.opened == 0
    assert empty(card.read(os.getpid()))


def test_several_threads_may_read_while_one_closes(install: Install) -> None:
    nvml = install(FakeCard(compute=[(os.getpid(), MIB)]))
    card = first_card()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(50):
                card.read(os.getpid())
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    card.close()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []
    assert nvml.opened == 0


def test_a_card_without_uuid_is_opened_by_its_index(install: Install) -> None:
    unknown = NVMLError(NOT_SUPPORTED)
    install(FakeCard("One"), FakeCard("Two", answers={"nvmlDeviceGetUUID": unknown}))
    assert [card.uuid for card in list_cards()[:2]] == ["GPU-0001", None]
    card = open_card("Two")
    assert card.info.index == 1
    assert card.read().temperature_c == 62


def test_a_card_that_fell_off_the_bus_hides_no_other(install: Install) -> None:
    lost = FakeCard("Lost", answers={"nvmlDeviceGetHandleByIndex": NVMLError(GPU_IS_LOST)})
    install(lost, FakeCard("Fine"))
    assert [(card.name, card.index) for card in list_cards()[:1]] == [("Fine", 1)]


def test_a_card_that_is_gone_when_it_is_opened(install: Install) -> None:
    nvml = install(FakeCard())
    info = list_cards()[0]
    nvml.cards.clear()
    with pytest.raises(MissingError, match="does not answer"):
        NvidiaCard(info)
    assert nvml.opened == 0


def test_processes_have_names_where_they_are_told(install: Install) -> None:
    gone = 2**22 + 1
    nvml = install(FakeCard(compute=[(os.getpid(), MIB), (gone, None), (gone + 1, NOT_AVAILABLE)]))
    nvml.names[gone] = b"C:\\Program Files\\llama\\llama-server.exe"
    own, other, unknown = first_card().processes()
    assert own.name == Path(f"/proc/{os.getpid()}/comm").read_text().strip()
    assert other == CardProcess(pid=gone, name="llama-server.exe")
    assert unknown == CardProcess(pid=gone + 1, name="")


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x0, ()),
        (0x1, ()),
        (0x2, ("clocks set by the user",)),
        (0x5, ("power cap",)),
        (0x8, ("hardware slowdown",)),
        (0x48, ("hardware thermal",)),
        (0x88, ("power brake",)),
        (0x24, ("power cap", "thermal")),
        (0x110, ("sync boost", "display clocks")),
        (0x1404, ("power cap", "reason 0x1400")),
    ],
)
def test_reasons_in_words(bits: int, words: tuple[str, ...]) -> None:
    assert throttle_words(bits) == words


def test_a_driver_that_does_not_answer(install: Install) -> None:
    nvml = install(FakeCard())
    info = list_cards()[0]
    nvml.init_error = NVMLError(LIB_RM_VERSION_MISMATCH)
    with pytest.raises(MissingError, match="does not answer"):
        NvidiaCard(info)


def test_another_module_of_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("pynvml")
    other.__file__ = "/somewhere/pynvml.py"
    monkeypatch.setitem(sys.modules, "pynvml", other)
    with pytest.raises(MissingError, match=r"/somewhere/pynvml\.py is not the module") as caught:
        load_library()
    assert "nvidia-ml-py" in caught.value.hint


def test_a_module_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(MissingError) as caught:
        load_library()
    assert caught.value.hint == "pip install nvidia-ml-py"


def test_the_warning_of_a_deprecated_package_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    (tmp_path / "pynvml.py").write_text(
        "import warnings\n"
        "warnings.warn('The pynvml package is deprecated', FutureWarning)\n"
        "def nvmlDeviceGetMemoryInfo(): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    try:
        assert load_library().__file__ == str(tmp_path / "pynvml.py")
    finally:
        sys.modules.pop("pynvml", None)
    assert list(recwarn) == []


def test_the_stand_in_is_like_the_real_module() -> None:
    real = load_library()
    assert all(hasattr(real, name) for name in (*vars(FakeNvml), *ANSWERS) if "nvml" in name)
    assert {code: code for code in (1, 3, 13, 15, 18)} == {
        real.NVML_ERROR_UNINITIALIZED: UNINITIALIZED,
        real.NVML_ERROR_NOT_SUPPORTED: NOT_SUPPORTED,
        real.NVML_ERROR_FUNCTION_NOT_FOUND: FUNCTION_NOT_FOUND,
        real.NVML_ERROR_GPU_IS_LOST: GPU_IS_LOST,
        real.NVML_ERROR_LIB_RM_VERSION_MISMATCH: LIB_RM_VERSION_MISMATCH,
    }
    assert real.NVMLError(NOT_SUPPORTED).value == NOT_SUPPORTED


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("ApplicationsClocksSetting", "clocks set by the user"),
        ("SwPowerCap", "power cap"),
        ("HwSlowdown", "hardware slowdown"),
        ("SyncBoost", "sync boost"),
        ("SwThermalSlowdown", "thermal"),
        ("HwThermalSlowdown", "hardware thermal"),
        ("HwPowerBrakeSlowdown", "power brake"),
        ("DisplayClockSetting", "display clocks"),
    ],
)
def test_the_real_bits(reason: str, word: str) -> None:
    assert throttle_words(getattr(load_library(), f"nvmlClocksEventReason{reason}")) == (word,)
