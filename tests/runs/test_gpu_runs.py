"""Runs on a GPU: real servers on the CPU, and a card whose heat, clock and energy are made up."""

from __future__ import annotations

import itertools
import time

import pytest

from tests.runs.running import Running, running
from tuirig.events import CoolingDown, PlanMade, StartFlagged
from tuirig.measure.prompts import choose
from tuirig.records import CardInfo, CardProcess, Reading
from tuirig.rigs.schema import Rig
from tuirig.runs import arms, cooling
from tuirig.runs.ab import AbOptions, ab
from tuirig.runs.pace import pace_of
from tuirig.runs.tune import tune
from tuirig.runs.tune_plan import TuneOptions

INFO = CardInfo(kind="nvidia", name="NVIDIA GeForce RTX 3050", uuid="GPU-1", driver="615.78.08")


class FakeCard:
    """Cools by 10 degrees at every look without a server, warms up to 70 with one.

    Every second server gets a clock that is 5 % lower. Energy rises by 3 J at every look.
    """

    info = INFO

    def __init__(self) -> None:
        self.temperature_c = 35.0
        self.pids: list[int] = []
        self.energy_j = itertools.count(0, 3)

    def read(self, pid: int | None = None) -> Reading:
        if pid is None:
            self.temperature_c = max(35.0, self.temperature_c - 10.0)
        else:
            self.temperature_c = 70.0
            if pid not in self.pids:
                self.pids.append(pid)
        low = pid is not None and self.pids.index(pid) % 2 == 1
        return Reading(
            at_s=time.monotonic(),
            temperature_c=self.temperature_c,
            sm_clock_mhz=1425.0 if low else 1500.0,
            energy_j=float(next(self.energy_j)),
            throttle=("thermal",) if low else (),
        )

    def remember_floor(self) -> None:
        return None

    def processes(self) -> tuple[CardProcess, ...]:
        return ()

    def close(self) -> None:
        return None


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arms, "SAMPLES_HZ", 50.0)
    monkeypatch.setattr(cooling, "LOOK_S", 0.0)


def with_gpu(ran: Running) -> None:
    ran.session.card = FakeCard()


async def test_the_card_cools_before_each_start_and_slow_clocks_are_flagged(
    tiny_gemma4_rig: Rig,
) -> None:
    options = AbOptions(a="none", b="none", prompts=choose(2), tokens=16, blocks=1)
    async with running(tiny_gemma4_rig) as ran:
        with_gpu(ran)
        result = await ab(ran.session, options, ran.store, ran.events.append)
        stored = ran.store.arms(result.run)
    # Idle is 35 °C, so the gate is 45 °C: a card at 70 °C is looked at twice on its way there.
    assert [(arm.cooling.start_c, arm.cooling.end_c) for arm in stored] == [
        (35.0, 35.0), (60.0, 40.0), (60.0, 40.0), (60.0, 40.0),
    ]  # fmt: skip
    assert all(arm.cooling.target_c == 45.0 and arm.cooling.reached for arm in stored)
    told = [event.temperature_c for event in ran.told(CoolingDown)]
    assert told == [60.0, 50.0] * 3
    assert all(arm.samples for arm in stored)
    assert {sample.sm_clock_mhz for sample in stored[1].samples} == {1425.0}
    flagged = {event.number: event.reasons for event in ran.told(StartFlagged)}
    for number in (2, 4):
        clock, heat, *_ = flagged[number]
        assert clock == "clock 1425 MHz, 5% under the best start's 1500 MHz"
        assert heat == "throttled: thermal"
    assert "MHz" not in " ".join(flagged.get(1, ()))
    assert stored[0].circumstances.card == INFO
    assert ran.told(PlanMade)[0].cannot == ()


async def test_energy_per_token_can_be_the_objective(tiny_gemma4_rig: Rig) -> None:
    options = TuneOptions(
        prompts=choose(3),
        tokens=8,
        formats=("q4_0",),
        lengths=(1,),
        objective="energy",
        min_gain=100.0,
    )
    async with running(tiny_gemma4_rig) as ran:
        with_gpu(ran)
        result = await tune(ran.session, options, ran.store, ran.events.append)
        first = ran.store.arms(result.run)[0]
    assert result.objective == "energy"
    assert result.profile is not None and result.profile.endswith("--energy.toml")
    before, after = first.replies[0].reading_before, first.replies[0].reading_after
    assert before is not None and after is not None
    assert before.energy_j is not None and after.energy_j is not None
    assert after.energy_j > before.energy_j
    assert result.ratio is not None


def test_a_first_guess_of_the_pace_knows_the_card() -> None:
    target = 4_000_000_000
    cpu = pace_of((), 1000, target_bytes=target, on_gpu=False)
    gpu = pace_of((), 1000, target_bytes=target, on_gpu=True)
    assert cpu.start_s == pytest.approx(2 + 4 + 1000 * 0.5)
    assert gpu.start_s == pytest.approx(2 + 4 + 1000 * 0.02)
    assert "rough guess" in gpu.basis
    gpu.took(30.0)
    gpu.took(40.0)
    assert gpu.start_s == pytest.approx(35.0)
