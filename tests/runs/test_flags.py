from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.runs.stored import arm, circumstances, reply
from tuirig.records import Cooling, Reading, Reply
from tuirig.runs.flags import Drift, clock_mhz, drift, flags
from tuirig.runs.store import ArmState, StoredArm


def start(setting: str, *replies: Reply, **changes: Any) -> StoredArm:
    values: dict[str, Any] = {
        "id": 1,
        "run": 1,
        "setting": setting,
        "step": msgspec.Raw(b"{}"),
        "state": ArmState.MEASURED,
        "started_at": "",
        "seconds": 10.0,
        "circumstances": circumstances(setting),
        "cooling": Cooling(),
        "arm": arm(setting, replies),
        "replies": replies,
        **changes,
    }
    return StoredArm(**values)


def test_a_clock_three_percent_under_the_best_is_flagged() -> None:
    best = start("none", reply(50.0, clock_mhz=1500.0))
    near = start("q4_0:1", reply(60.0, clock_mhz=1460.0))
    low = start("q4_0:2", reply(60.0, clock_mhz=1440.0))
    assert flags(near, [best, low]) == ()
    assert flags(low, [best, near]) == ("clock 1440 MHz, 4% under the best start's 1500 MHz",)


def test_samples_beside_the_work_count_before_readings_after_it() -> None:
    samples = tuple(Reading(at_s=0.0, sm_clock_mhz=clock) for clock in (1300.0, 1510.0, 1500.0))
    assert clock_mhz(start("none", reply(50.0, clock_mhz=900.0), samples=samples)) == 1500.0
    assert clock_mhz(start("none", reply(50.0, clock_mhz=900.0))) == 900.0
    assert clock_mhz(start("none", reply(50.0))) is None


@pytest.mark.parametrize("reason", ["thermal", "hardware thermal", "power brake"])
def test_heat_is_flagged_and_a_power_cap_is_not(reason: str) -> None:
    hot = start("none", reply(50.0, throttle=(reason, "power cap")))
    assert flags(hot, []) == (f"throttled: {reason}",)
    assert flags(start("none", reply(50.0, throttle=("power cap",))), []) == ()


def test_replies_that_stood_still_are_flagged() -> None:
    # An H200, Vulkan, bf16:7 for the first time: tok/s of twelve replies.
    seen = (11.7, 18.5, 234.4, 327.9, 350.0, 19.7, 295.0, 321.2, 293.8, 271.0, 281.0, 322.6)
    assert flags(start("bf16:7", *(reply(one) for one in seen)), []) == (
        "3 of 12 replies stood still: 12 tok/s and up, their median is 287",
    )
    assert flags(start("bf16:7", *(reply(one) for one in (234.4, 327.9, 120.0))), []) == ()
    assert flags(start("bf16:7"), []) == ()
    # Short replies: a twentieth of a second is a matter of chance.
    short = [msgspec.structs.replace(reply(one), predicted_n=4) for one in (300.0, 300.0, 60.0)]
    assert flags(start("bf16:7", *short), []) == ()


def test_drift_is_not_told_from_a_start_in_which_replies_stood_still() -> None:
    first, last = start("none", *[reply(50.0)] * 3), start("none", *[reply(51.0)] * 3)
    still = start("none", reply(1.0), *[reply(50.0)] * 2)
    found = drift([first, still, last])
    assert found is not None and found.ratio == pytest.approx(51 / 50)
    assert drift([still, last]) is None


def test_a_warm_beginning_and_differing_clocks() -> None:
    cooling = Cooling(end_c=61.0, target_c=45.0, reached=False)
    differing = msgspec.structs.replace(reply(50.0), clock_differs=True)
    assert flags(start("none", differing, cooling=cooling), []) == (
        "began at 61 °C, 45 °C were wanted",
        "clocks of server and client differ in 1 of 1 replies",
    )


@pytest.mark.parametrize(("last", "flagged"), [(98.0, False), (96.0, True), (104.0, True)])
def test_drift_is_the_first_setting_again(last: float, flagged: bool) -> None:
    arms = [
        start("none", reply(100.0)),
        start("q4_0:2", reply(150.0)),
        start("none", reply(50.0), state=ArmState.FAILED),
        start("none", reply(last), reply(70.0, temperature=0.8)),
    ]
    found = drift(arms)
    assert found == Drift(setting="none", ratio=pytest.approx(last / 100), flagged=flagged)
    assert drift(arms[:2]) is None
    assert drift([]) is None
