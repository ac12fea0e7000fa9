"""What the driver takes on a card, learnt from starts that were measured there."""

from __future__ import annotations

import msgspec
import pytest

from tests.engines.builds import log_lines
from tests.runs.stored import CARD, arm, circumstances
from tuirig.engines.llamacpp.log import memory_parts
from tuirig.records import CardInfo, Cooling, MemoryParts
from tuirig.runs.rest import rest_on
from tuirig.runs.store import ArmState, Store

#: NVML's figure for the process, beside the parts of its log (tests/data/h200, CUDA).
CUDA_MIB = 2391.0


def remember(memory_mib: float | None, parts: MemoryParts | None, card: CardInfo = CARD) -> None:
    record = msgspec.structs.replace(arm("none", (), memory_mib), memory_parts=parts)
    with Store() as store:
        run = store.begin_run("tune", "example", {})
        number = store.begin_arm(run, "none", {}, circumstances(card=card), Cooling())
        store.end_arm(number, ArmState.MEASURED, 1.0, record=record)


def test_a_card_on_which_nothing_was_measured_tells_nothing() -> None:
    assert rest_on(CARD) is None


def test_the_latest_start_on_such_a_card_counts() -> None:
    parts = memory_parts(log_lines("h200-cuda"))
    remember(2391.0 - 500, parts)
    remember(CUDA_MIB, parts)
    remember(9000.0, parts, msgspec.structs.replace(CARD, name="another"))
    rest_mib = rest_on(msgspec.structs.replace(CARD, uuid="GPU-2"))
    assert rest_mib == pytest.approx(660, abs=40)


@pytest.mark.parametrize(
    ("memory_mib", "parts"),
    [
        (None, MemoryParts(target_mib=1600.0)),
        (2000.0, None),
        (115.0, MemoryParts(target_mib=1600.0)),  # the model is in the machine's memory
    ],
)
def test_figures_that_do_not_fit_tell_nothing(
    memory_mib: float | None, parts: MemoryParts | None
) -> None:
    remember(memory_mib, parts)
    assert rest_on(CARD) is None


def test_a_cpu_has_no_driver() -> None:
    cpu = CardInfo(kind="cpu", name="Some CPU")
    remember(2000.0, MemoryParts(target_mib=100.0), cpu)
    assert rest_on(cpu) is None
