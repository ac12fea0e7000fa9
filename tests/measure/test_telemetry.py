from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from tuirig.events import Event, ReadingTaken
from tuirig.measure.telemetry import Sampler
from tuirig.records import CardInfo, CardProcess, Reading


@dataclass
class FakeCard:
    """A card whose readings wait until the test lets them go."""

    let_go: threading.Semaphore | None = None
    error: Exception | None = None
    info: CardInfo = field(default_factory=lambda: CardInfo(kind="cpu", name="fake"))
    pids: list[int | None] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    asked: threading.Event = field(default_factory=threading.Event)
    at_once: int = 0
    most_at_once: int = 0

    def read(self, pid: int | None = None) -> Reading:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.pids.append(pid)
        self.threads.add(threading.get_ident())
        self.asked.set()
        if self.let_go:
            assert self.let_go.acquire(timeout=30)
        self.at_once -= 1
        if self.error:
            raise self.error
        return Reading(at_s=float(len(self.pids)))

    def processes(self) -> tuple[CardProcess, ...]:
        return ()

    def close(self) -> None:
        return None


@dataclass
class Watcher:
    """Collects events and lets a test wait for the nth."""

    events: list[Event] = field(default_factory=list)
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def __call__(self, event: Event) -> None:
        self.events.append(event)
        self.arrived.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(10):
            while len(self.events) < count:
                self.arrived.clear()
                await self.arrived.wait()


async def test_readings_come_in_order_off_the_loop_and_the_last_is_kept() -> None:
    card, watcher = FakeCard(), Watcher()
    async with Sampler(card, watcher, hz=200, pid=lambda: 4711) as sampler:
        await watcher.until(3)
        assert sampler.last is not None
    readings = [event.reading.at_s for event in watcher.events if isinstance(event, ReadingTaken)]
    assert readings[:3] == [1.0, 2.0, 3.0]
    assert sampler.last.at_s == readings[-1]
    assert set(card.pids) == {4711}
    assert threading.get_ident() not in card.threads


async def test_an_idle_server_is_read_seldom_and_often_as_soon_as_it_works() -> None:
    card, watcher, busy = FakeCard(), Watcher(), []
    async with Sampler(
        card, watcher, hz=500, idle_hz=0.001, pid=lambda: 4711, busy=lambda: bool(busy)
    ):
        await watcher.until(1)
        for _ in range(50):  # many beats
            await asyncio.sleep(0.002)
        assert len(watcher.events) == 1
        busy.append(True)
        await watcher.until(4)


async def test_nothing_is_read_after_the_end() -> None:
    card, watcher = FakeCard(), Watcher()
    async with Sampler(card, watcher, hz=200):
        await watcher.until(1)
    seen = len(card.pids)
    assert len(watcher.events) == seen
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "card sampler"]


async def test_a_card_that_blocks_is_asked_once_and_blocks_nobody() -> None:
    card, watcher = FakeCard(threading.Semaphore(0)), Watcher()
    assert card.let_go
    async with Sampler(card, watcher, hz=1000):
        async with asyncio.timeout(10):
            for _ in range(300):  # the loop goes on: many beats pass meanwhile
                await asyncio.sleep(0.0005)
        assert len(card.pids) == 1
        assert watcher.events == []
        card.let_go.release()
        await watcher.until(1)
        card.let_go.release(10_000)
    assert card.most_at_once == 1


async def test_the_end_waits_for_a_reading_under_way() -> None:
    card, watcher = FakeCard(threading.Semaphore(0)), Watcher()
    assert card.let_go
    async with Sampler(card, watcher, hz=1000):
        assert await asyncio.to_thread(card.asked.wait, 10)
        asyncio.get_running_loop().call_later(0.05, card.let_go.release)
    assert len(watcher.events) == 1
    assert card.at_once == 0


async def test_an_error_of_the_card_is_not_swallowed() -> None:
    card, watcher = FakeCard(error=RuntimeError("driver gone")), Watcher()
    with pytest.raises(RuntimeError, match="driver gone"):
        async with Sampler(card, watcher, hz=1000):
            assert await asyncio.to_thread(card.asked.wait, 10)


async def test_the_error_inside_the_context_wins_and_the_sampler_still_ends() -> None:
    watcher = Watcher()
    with pytest.raises(KeyError):
        async with Sampler(FakeCard(), watcher, hz=1000):
            raise KeyError("x")
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "card sampler"]
