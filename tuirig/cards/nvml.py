"""An NVIDIA card, read through NVML (package nvidia-ml-py, module `pynvml`).

Every field is optional: a card, a driver or a container may lack any of them. A field that is
not supported is asked for once per card. Error codes and reason bits: nvml.h.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tuirig.errors import MissingError
from tuirig.records import CardInfo, CardProcess, Reading

_UNINITIALIZED = 1
_NOT_SUPPORTED = 3
_FUNCTION_NOT_FOUND = 13
_GPU_IS_LOST = 15
_NEVER_COMES = {_NOT_SUPPORTED, _FUNCTION_NOT_FOUND}
_NEEDS_INIT = {_UNINITIALIZED, _GPU_IS_LOST}

_TEMPERATURE_GPU = 0
_CLOCK_SM = 1
#: nvmlDeviceGetClocksEventReasons; idle (bit 0) is not a reason for low speed under load.
_IDLE = 0x1
_HARDWARE_SLOWDOWN = 0x8
_HARDWARE_CAUSES = 0x40 | 0x80
_REASONS = {
    0x2: "clocks set by the user",
    0x4: "power cap",
    _HARDWARE_SLOWDOWN: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clocks",
}
_MIB = 1024 * 1024
_NOT_AVAILABLE = 2**64 - 1


def load_library() -> ModuleType:
    """`pynvml`. Raises MissingError when another package put an old module in its place.

    Import it only where a driver is (`detect.has_nvidia_driver`): it costs time. A deprecated
    package warns on import; the warning would be painted over the screen.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import pynvml
        except ImportError as error:
            raise MissingError(f"pynvml: {error}", hint="pip install nvidia-ml-py") from None
    if not hasattr(pynvml, "nvmlDeviceGetMemoryInfo"):
        raise MissingError(
            f"{pynvml.__file__} is not the module of nvidia-ml-py",
            hint="pip uninstall pynvml nvidia-ml-py3, then pip install --force nvidia-ml-py",
        )
    return pynvml  # type: ignore[no-any-return]


@contextmanager
def _initialized() -> Iterator[ModuleType]:
    nvml = load_library()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise MissingError(
            f"the NVIDIA driver does not answer: {error}",
            hint="after a driver update, restart the machine; else reinstall the driver",
        ) from None
    try:
        yield nvml
    finally:
        _shutdown(nvml)


def _shutdown(nvml: ModuleType) -> None:
    try:
        nvml.nvmlShutdown()
    except nvml.NVMLError:
        return  # there is nothing left to let go of


def nvidia_cards() -> tuple[CardInfo, ...]:
    """The NVIDIA cards of this machine in PCI order. Raises MissingError if NVML does not answer.

    A card that fell off the bus is left out; it can't serve.
    """
    with _initialized() as nvml:
        driver = _text(_or_none(nvml, "nvmlSystemGetDriverVersion"))
        cards = []
        for index in range(_or_none(nvml, "nvmlDeviceGetCount") or 0):
            handle = _or_none(nvml, "nvmlDeviceGetHandleByIndex", index)
            if handle is None:
                continue
            memory = _or_none(nvml, "nvmlDeviceGetMemoryInfo", handle)
            pci = _or_none(nvml, "nvmlDeviceGetPciInfo", handle)
            cards.append(
                CardInfo(
                    kind="nvidia",
                    name=_text(_or_none(nvml, "nvmlDeviceGetName", handle)) or "NVIDIA GPU",
                    index=index,
                    uuid=_text(_or_none(nvml, "nvmlDeviceGetUUID", handle)),
                    pci_address=_text(getattr(pci, "busId", None)),
                    memory_mib=_mib(getattr(memory, "total", None)),
                    driver=driver,
                    pcie_generation=_or_none(nvml, "nvmlDeviceGetMaxPcieLinkGeneration", handle),
                    pcie_lanes=_or_none(nvml, "nvmlDeviceGetCurrPcieLinkWidth", handle),
                )
            )
        return tuple(cards)


class NvidiaCard:
    """One NVIDIA card. Holds NVML open until it is closed; safe to use from several threads."""

    def __init__(self, info: CardInfo) -> None:
        """Raises MissingError if NVML does not answer."""
        self._info = info
        self._lock = threading.Lock()
        self._unsupported: set[str] = set()
        self._floor_mib: float | None = None
        self._handle: Any = None
        self._renewed = False
        self._nvml = load_library()
        if not self._open():
            raise MissingError(
                f"{info.name} does not answer",
                hint="tuirig doctor lists the cards that do",
            )

    @property
    def info(self) -> CardInfo:
        """What it is."""
        return self._info

    def read(self, pid: int | None = None) -> Reading:
        """One reading; pid is the server's process, whose memory is asked for too.

        Memory is NVML's first version of the figure: it exists in every driver, and what it calls
        used includes what the driver reserves, so total - used is what a server can still get.
        """
        with self._lock:
            self._renewed = False
            memory = self._ask("nvmlDeviceGetMemoryInfo")
            used_mib = _mib(getattr(memory, "used", None))
            process_mib, source = self._process_memory(pid, used_mib)
            utilization = self._ask("nvmlDeviceGetUtilizationRates")
            return Reading(
                at_s=time.monotonic(),
                memory_used_mib=used_mib,
                memory_total_mib=_mib(getattr(memory, "total", None)),
                process_memory_mib=process_mib,
                process_memory_source=source,
                temperature_c=_number(self._ask("nvmlDeviceGetTemperature", _TEMPERATURE_GPU)),
                power_w=_number(self._ask("nvmlDeviceGetPowerUsage"), 1000),
                power_limit_w=_number(self._ask("nvmlDeviceGetEnforcedPowerLimit"), 1000),
                sm_clock_mhz=_number(self._ask("nvmlDeviceGetClockInfo", _CLOCK_SM)),
                utilization=_number(getattr(utilization, "gpu", None), 100),
                energy_j=_number(self._ask("nvmlDeviceGetTotalEnergyConsumption"), 1000),
                throttle=self._throttle(),
            )

    def remember_floor(self) -> None:
        """Remember the memory used now; `card delta` is counted from it."""
        with self._lock:
            self._renewed = False
            memory = self._ask("nvmlDeviceGetMemoryInfo")
            self._floor_mib = _mib(getattr(memory, "used", None))

    def processes(self) -> tuple[CardProcess, ...]:
        """Every process that holds memory of this card; a name is "" where it is not told."""
        with self._lock:
            self._renewed = False
            return tuple(
                CardProcess(pid=pid, name=self._process_name(pid), memory_mib=memory_mib)
                for pid, memory_mib in sorted(self._memory_by_process().items())
            )

    def close(self) -> None:
        """Let go of the driver. Further reads give empty readings."""
        with self._lock:
            if self._handle is not None:
                self._handle = None
                _shutdown(self._nvml)

    def _open(self) -> bool:
        nvml = self._nvml
        try:
            nvml.nvmlInit()
        except nvml.NVMLError:
            return False
        # The UUID stays the same when cards are counted anew; the index does not.
        if self._info.uuid:
            self._handle = _or_none(nvml, "nvmlDeviceGetHandleByUUID", self._info.uuid)
        elif self._info.index is not None:
            self._handle = _or_none(nvml, "nvmlDeviceGetHandleByIndex", self._info.index)
        if self._handle is None:
            _shutdown(nvml)
        return self._handle is not None

    def _ask(self, function: str, *args: Any) -> Any:
        """The answer of an NVML function of this card, None where there is none."""
        if self._handle is None or function in self._unsupported:
            return None
        nvml = self._nvml
        try:
            return getattr(nvml, function)(self._handle, *args)
        except AttributeError:
            self._unsupported.add(function)  # an older module than the driver
        except nvml.NVMLError as error:
            if error.value in _NEVER_COMES:
                self._unsupported.add(function)
            elif error.value in _NEEDS_INIT and self._renew():
                return self._ask(function, *args)
        except (OSError, ValueError, TypeError):
            return None  # an answer that the module can't decode
        return None

    def _renew(self) -> bool:
        """Open NVML anew, once per look (after a suspend); a card that stays lost is let go."""
        self._handle = None
        _shutdown(self._nvml)
        if self._renewed:
            return False
        self._renewed = True
        return self._open()

    def _throttle(self) -> tuple[str, ...] | None:
        bits = self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")  # its older name
        return None if bits is None else throttle_words(int(bits))

    def _process_memory(self, pid: int | None, used_mib: float | None) -> tuple[float | None, str]:
        """(MiB, where it comes from) of a process and its children."""
        if pid is None:
            return None, ""
        holders = self._memory_by_process()
        own = [memory for holder, memory in holders.items() if _belongs_to(holder, pid)]
        known = [memory for memory in own if memory is not None]
        if own and len(known) == len(own):
            return sum(known), "nvml process"
        # No figure per process under WDDM, and another numbering of processes in a container.
        if used_mib is None or self._floor_mib is None or used_mib < self._floor_mib:
            return None, ""
        return used_mib - self._floor_mib, "card delta"

    def _memory_by_process(self) -> dict[int, float | None]:
        """MiB by process. One that computes and draws (Vulkan) is listed twice, counted once."""
        holders: dict[int, float | None] = {}
        for kind in ("Compute", "Graphics", "MPSCompute"):
            for row in self._ask(f"nvmlDeviceGet{kind}RunningProcesses") or ():
                known = [
                    memory
                    for memory in (holders.get(row.pid), _mib(getattr(row, "usedGpuMemory", None)))
                    if memory is not None
                ]
                holders[row.pid] = max(known, default=None)
        return holders

    def _process_name(self, pid: int) -> str:
        import psutil

        try:
            return psutil.Process(pid).name()
        except psutil.Error:
            # Another user's process, or one of the container's host.
            told = _or_none(self._nvml, "nvmlSystemGetProcessName", pid)
            return (_text(told) or "").replace("\\", "/").rpartition("/")[2]


def throttle_words(bits: int) -> tuple[str, ...]:
    """NVML's clock event reasons in words, () for none."""
    bits &= ~_IDLE
    if bits & _HARDWARE_CAUSES:
        bits &= ~_HARDWARE_SLOWDOWN  # set together with its cause
    words = [word for bit, word in _REASONS.items() if bits & bit]
    unknown = bits & ~sum(_REASONS)
    return tuple(words + [f"reason {unknown:#x}"] * bool(unknown))


def _belongs_to(pid: int, ancestor: int) -> bool:
    """Whether a process is another one or descends from it (a program may be a wrapper)."""
    if pid == ancestor:
        return True
    import psutil

    try:
        return any(parent.pid == ancestor for parent in psutil.Process(pid).parents())
    except psutil.Error:
        return False


def _or_none(nvml: ModuleType, function: str, *args: Any) -> Any:
    try:
        return getattr(nvml, function)(*args)
    except (nvml.NVMLError, AttributeError, OSError, ValueError, TypeError):
        return None


def _text(value: Any) -> str | None:
    """NVML's strings are bytes or str, by the module's version."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return value if isinstance(value, str) and value else None


def _mib(value: Any) -> float | None:
    return None if value == _NOT_AVAILABLE else _number(value, _MIB)


def _number(value: Any, divisor: float = 1) -> float | None:
    return None if value is None else float(value) / divisor
