"""The gate before a start: fake temperatures, since a card can't be heated on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import pytest

from tuirig.events import CoolingDown, Event
from tuirig.records import Reading
from tuirig.runs.cooling import Gate


def card(temperatures: Iterable[float | None]) -> Callable[[], Awaitable[Reading]]:
    left = iter(temperatures)

    async def read() -> Reading:
        return Reading(at_s=0.0, temperature_c=next(left))

    return read


def gate(temperatures: Iterable[float | None], **options: float) -> tuple[Gate, list[Event]]:
    events: list[Event] = []
    return Gate(card(temperatures), events.append, look_s=0.0, **options), events


@pytest.mark.parametrize(
    ("idle_c", "target_c"), [(30.0, 45.0), (38.0, 45.0), (41.0, 48.0), (60.0, 67.0)]
)
async def test_the_target_is_idle_and_seven_or_45(idle_c: float, target_c: float) -> None:
    waiting, events = gate([idle_c, 80.0, target_c + 1, target_c])
    first = await waiting.wait()
    assert (first.start_c, first.end_c, first.reached) == (idle_c, idle_c, True)
    second = await waiting.wait()
    assert (second.start_c, second.end_c) == (80.0, target_c)
    assert (second.target_c, second.reached) == (target_c, True)
    told = [e for e in events if isinstance(e, CoolingDown)]
    assert [e.temperature_c for e in told] == [80.0, target_c + 1]


async def test_the_limit_ends_the_wait_and_is_recorded() -> None:
    waiting, _ = gate([30.0, 80.0], limit_s=0.0)
    assert (await waiting.wait()).reached
    late = await waiting.wait()
    assert (late.end_c, late.target_c, late.reached) == (80.0, 45.0, False)


async def test_an_idle_temperature_from_before_counts() -> None:
    waiting, _ = gate([80.0], idle_c=30.0, limit_s=0.0)
    assert (await waiting.wait()).target_c == 45.0


async def test_no_gate_without_a_temperature() -> None:
    waiting, events = gate([None])
    assert (await waiting.wait()).target_c is None
    assert (await Gate(None, events.append).wait()).reached
    assert events == []
