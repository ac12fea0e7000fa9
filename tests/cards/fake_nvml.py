"""A stand-in for `pynvml` that shows faults which no card shows on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION = 1, 3, 4
FUNCTION_NOT_FOUND, GPU_IS_LOST, LIB_RM_VERSION_MISMATCH = 13, 15, 18
MIB = 1024 * 1024


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return f"NVML error {self.value}"


@dataclass
class FakeCard:
    """What NVML answers for one card; an exception is raised instead."""

    name: Any = "NVIDIA Test Card"
    uuid: Any = "GPU-0001"
    bus_id: Any = "00000000:01:00.0"
    memory: Any = (8192 * MIB, 1024 * MIB)
    compute: list[tuple[int, Any]] = field(default_factory=list)
    graphics: list[tuple[int, Any]] = field(default_factory=list)
    mps: list[tuple[int, Any]] = field(default_factory=list)
    reasons: Any = 0
    answers: dict[str, Any] = field(default_factory=dict)


class FakeNvml(ModuleType):
    """`pynvml` with the cards of a test. asked: every call of a card's function, in order."""

    NVMLError = NVMLError

    def __init__(self, *cards: FakeCard) -> None:
        super().__init__("pynvml")
        self.cards = list(cards)
        self.asked: list[str] = []
        self.opened = 0
        self.init_error: Exception | None = None
        self.names: dict[int, Any] = {}

    def nvmlInit(self) -> None:
        if self.init_error:
            raise self.init_error
        self.opened += 1

    def nvmlShutdown(self) -> None:
        if not self.opened:
            raise NVMLError(UNINITIALIZED)
        self.opened -= 1

    def nvmlSystemGetDriverVersion(self) -> Any:
        return b"615.78.08"

    def nvmlSystemGetProcessName(self, pid: int) -> Any:
        if pid not in self.names:
            raise NVMLError(NO_PERMISSION)
        return self.names[pid]

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeCard:
        card = self.cards[index]
        self._answer(card, "nvmlDeviceGetHandleByIndex", None)
        return card

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> FakeCard:
        for card in self.cards:
            if uuid in (card.uuid, getattr(card.uuid, "decode", str)()):
                self._answer(card, "nvmlDeviceGetHandleByUUID", None)
                return card
        raise NVMLError(6)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in ANSWERS:
            raise AttributeError(name)

        def function(card: FakeCard, *args: Any) -> Any:
            self.asked.append(name)
            return self._answer(card, name, ANSWERS[name](card))

        return function

    def _answer(self, card: FakeCard, name: str, usual: Any) -> Any:
        answer = card.answers.get(name, usual)
        if callable(answer):
            answer = answer()
        if isinstance(answer, Exception):
            raise answer
        return answer


def _rows(rows: list[tuple[int, Any]]) -> list[SimpleNamespace]:
    return [SimpleNamespace(pid=pid, usedGpuMemory=memory) for pid, memory in rows]


ANSWERS: dict[str, Callable[[FakeCard], Any]] = {
    "nvmlDeviceGetName": lambda card: card.name,
    "nvmlDeviceGetUUID": lambda card: card.uuid,
    "nvmlDeviceGetPciInfo": lambda card: SimpleNamespace(busId=card.bus_id),
    "nvmlDeviceGetMaxPcieLinkGeneration": lambda card: 4,
    "nvmlDeviceGetCurrPcieLinkWidth": lambda card: 8,
    "nvmlDeviceGetMemoryInfo": lambda card: SimpleNamespace(
        total=card.memory[0], used=card.memory[1]
    ),
    "nvmlDeviceGetUtilizationRates": lambda card: SimpleNamespace(gpu=75, memory=10),
    "nvmlDeviceGetTemperature": lambda card: 62,
    "nvmlDeviceGetPowerUsage": lambda card: 98500,
    "nvmlDeviceGetEnforcedPowerLimit": lambda card: 120000,
    "nvmlDeviceGetClockInfo": lambda card: 1905,
    "nvmlDeviceGetTotalEnergyConsumption": lambda card: 5000,
    "nvmlDeviceGetCurrentClocksEventReasons": lambda card: card.reasons,
    "nvmlDeviceGetCurrentClocksThrottleReasons": lambda card: card.reasons,
    "nvmlDeviceGetComputeRunningProcesses": lambda card: _rows(card.compute),
    "nvmlDeviceGetGraphicsRunningProcesses": lambda card: _rows(card.graphics),
    "nvmlDeviceGetMPSComputeRunningProcesses": lambda card: _rows(card.mps),
}
