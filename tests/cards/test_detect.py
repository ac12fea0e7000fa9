from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cards.conftest import Install
from tests.cards.fake_nvml import LIB_RM_VERSION_MISMATCH, MIB, FakeCard, NVMLError
from tuirig.cards.cpu import CpuCard
from tuirig.cards.detect import (
    describe,
    driver_problem,
    has_nvidia_driver,
    list_cards,
    open_card,
)
from tuirig.errors import ExitCode, MissingError
from tuirig.records import CardInfo

SMALL = (6144 * MIB, 0)


def pair() -> tuple[FakeCard, FakeCard]:
    return (
        FakeCard("NVIDIA GeForce RTX 3050", "GPU-1", "00000000:01:00.0", SMALL),
        FakeCard("NVIDIA GeForce RTX 3050", "GPU-2", "00000000:02:00.0"),
    )


def test_the_cpu_is_always_there_and_last(install: Install) -> None:
    nvml = install(*pair())
    assert [card.kind for card in list_cards()] == ["nvidia", "nvidia", "cpu"]
    assert driver_problem() == ""
    assert nvml.opened == 0


@pytest.mark.parametrize("wanted", ["cpu", "CPU", " cpu "])
def test_the_cpu(wanted: str, install: Install) -> None:
    nvml = install(*pair())
    assert isinstance(open_card(wanted), CpuCard)
    assert nvml.opened == 0


@pytest.mark.parametrize(
    ("wanted", "memory_mib", "uuid"),
    [
        ("GPU-2", None, "GPU-2"),
        ("01:00.0", None, "GPU-1"),
        ("rtx 3050", 8192, "GPU-2"),
        ("NVIDIA GeForce RTX 3050", 6144, "GPU-1"),
    ],
)
def test_namesakes_are_told_apart(
    wanted: str, memory_mib: float | None, uuid: str, install: Install
) -> None:
    install(*pair())
    assert open_card(wanted, memory_mib).info.uuid == uuid


def test_namesakes_that_are_not_told_apart_are_listed(install: Install) -> None:
    install(*pair())
    with pytest.raises(MissingError) as caught:
        open_card("RTX 3050")
    assert caught.value.text() == (
        "2 cards fit 'RTX 3050'\n"
        "  NVIDIA GeForce RTX 3050, 6,144 MiB, GPU-1, 00000000:01:00.0\n"
        "  NVIDIA GeForce RTX 3050, 8,192 MiB, GPU-2, 00000000:02:00.0\n"
        "next: name one by its UUID or PCI address"
    )


def test_a_card_that_is_not_there(install: Install) -> None:
    install(pair()[0])
    with pytest.raises(MissingError) as caught:
        open_card("RTX 5090")
    assert caught.value.message == "no card 'RTX 5090' on this machine"
    assert caught.value.evidence[0] == "NVIDIA GeForce RTX 3050, 6,144 MiB, GPU-1, 00000000:01:00.0"
    assert caught.value.evidence[1].startswith('"cpu": ')
    assert caught.value.hint == 'name one of these, or card = "cpu"'
    assert caught.value.exit_code == ExitCode.MISSING
    with pytest.raises(MissingError, match="with 4,096 MiB"):
        open_card("RTX 3050", 4096)


def test_a_driver_that_does_not_answer_is_the_reason(install: Install) -> None:
    install(*pair()).init_error = NVMLError(LIB_RM_VERSION_MISMATCH)
    assert [card.kind for card in list_cards()] == ["cpu"]
    reason = "the NVIDIA driver does not answer: NVML error 18"
    assert driver_problem().startswith(reason)
    with pytest.raises(MissingError) as caught:
        open_card("RTX 3050")
    assert caught.value.evidence[0] == reason
    assert "restart the machine" in caught.value.hint
    assert isinstance(open_card("cpu"), CpuCard)


def test_a_card_in_one_line() -> None:
    assert describe(CardInfo(kind="nvidia", name="Bare")) == "Bare"


def test_without_a_driver_the_library_is_not_imported() -> None:
    """In a fresh interpreter, without the driver's library if this machine has one."""
    script = (
        "import ctypes, sys\n"
        "usual = ctypes.CDLL\n"
        "def CDLL(name, *args, **options):\n"
        "    if name and 'nvidia-ml' in str(name):\n"
        "        raise OSError(name)\n"
        "    return usual(name, *args, **options)\n"
        "ctypes.CDLL = CDLL\n"
        "from tuirig.cards.detect import driver_problem, list_cards, open_card\n"
        "assert 'pynvml' not in sys.modules and 'psutil' not in sys.modules\n"
        "print([card.kind for card in list_cards()], repr(driver_problem()))\n"
        "try:\n"
        "    open_card('RTX 3050')\n"
        "except Exception as error:\n"
        "    print(type(error).__name__)\n"
        "open_card('cpu').read()\n"
        "print('pynvml' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["['cpu'] ''", "MissingError", "False"]


def test_the_driver_of_this_machine() -> None:
    """With a driver there are cards or a reason; without one there is neither."""
    found = [card for card in list_cards() if card.kind == "nvidia"]
    assert has_nvidia_driver() == bool(found or driver_problem())
