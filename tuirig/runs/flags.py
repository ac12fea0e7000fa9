"""What makes a measured start suspicious: heat, clock, drift. It is told, and still counts.

All but one: a start in which replies stood still is measured again, and its figures do not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

import msgspec

from tuirig.measure import summary
from tuirig.records import Reading, Reply
from tuirig.runs.store import ArmState, StoredArm
from tuirig.stats.ratio import paired_gain

#: A start's median clock may be this far below the best start's.
CLOCK_TOLERANCE = 0.03
#: The first setting's last start may be this far from its first one.
DRIFT_TOLERANCE = 0.03
#: A reply this much slower than the median of its start stood still: a server that compiles
#: shaders in the middle of it, say. Prompts alone differ by far less.
STALLED = 0.25
#: And this much longer than at that median: short replies are slow by chance.
STALLED_S = 1.0

#: What a rig without a GPU can't be asked.
NO_CLOCK = "heat and clock: only a GPU tells them, so a start that they slowed down is not flagged"

_HEAT = ("thermal", "hardware thermal", "power brake", "hardware slowdown")


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """The last start of the first setting against its first start, on the same prompts."""

    setting: str
    ratio: float
    flagged: bool


def clock_mhz(arm: StoredArm) -> float | None:
    """The median SM clock while the arm was measured, None where the card does not tell.

    From the samples beside the work; without them from the readings right after each reply (those
    before a reply may show an idle clock).
    """
    clocks = [
        reading.sm_clock_mhz
        for reading in arm.samples or _after_replies(arm)
        if reading.sm_clock_mhz is not None
    ]
    return statistics.median(clocks) if clocks else None


def flags(arm: StoredArm, others: Sequence[StoredArm]) -> tuple[str, ...]:
    """Why this arm is suspicious beside the other arms of its run; () if it is not."""
    return tuple(_flags(arm, others))


def _flags(arm: StoredArm, others: Sequence[StoredArm]) -> Iterator[str]:
    clocks = [clock for one in (arm, *others) if (clock := clock_mhz(one)) is not None]
    own = clock_mhz(arm)
    if own is not None and own < (1.0 - CLOCK_TOLERANCE) * max(clocks):
        below = 1.0 - own / max(clocks)
        yield f"clock {own:.0f} MHz, {below:.0%} under the best start's {max(clocks):.0f} MHz"
    seen = {
        reason
        for reading in (*arm.samples, *_after_replies(arm))
        for reason in reading.throttle or ()
    }
    for reason in _HEAT:
        if reason in seen:
            yield f"throttled: {reason}"
    cooling = arm.cooling
    if not cooling.reached:
        yield f"began at {cooling.end_c:.0f} °C, {cooling.target_c:.0f} °C were wanted"
    yield from _stalls(arm)
    differing = sum(reply.clock_differs for reply in arm.replies)
    if differing:
        yield f"clocks of server and client differ in {differing} of {len(arm.replies)} replies"


def stood_still(arm: StoredArm) -> bool:
    """Whether replies stood still in this start, so that its figures do not count."""
    return bool(stalled(_speeds(arm)))


def stalled(speeds: Sequence[tuple[float, float]]) -> list[float]:
    """tok/s of the replies that stood still. speeds: (tok/s, tokens) of each reply of a start."""
    middle = statistics.median(tok_s for tok_s, _ in speeds) if speeds else 0.0
    return [
        tok_s
        for tok_s, tokens in speeds
        if tok_s < STALLED * middle and tokens / tok_s - tokens / middle >= STALLED_S
    ]


def _speeds(arm: StoredArm) -> list[tuple[float, float]]:
    return [(reply.tok_s, reply.predicted_n) for reply in greedy(arm) if reply.tok_s]


def _stalls(arm: StoredArm) -> Iterator[str]:
    speeds = _speeds(arm)
    found = stalled(speeds)
    if found:
        middle = statistics.median(tok_s for tok_s, _ in speeds)
        yield (
            f"{len(found)} of {len(speeds)} replies stood still: {min(found):.0f} tok/s and up,"
            f" their median is {middle:.0f}"
        )


def drift(arms: Sequence[StoredArm]) -> Drift | None:
    """How far the first setting moved over the run, None if it was started only once."""
    measured = [
        arm
        for arm in arms
        if arm.state is ArmState.MEASURED and arm.passes_s is None and not stood_still(arm)
    ]
    first = next(iter(measured), None)
    again = [arm for arm in measured if first is not None and arm.setting == first.setting][1:]
    if first is None or not again:
        return None
    ratio = paired_gain(
        summary.tok_s_by_prompt(greedy(first)), summary.tok_s_by_prompt(greedy(again[-1]))
    )
    if ratio is None:
        return None
    return Drift(setting=first.setting, ratio=ratio, flagged=abs(ratio - 1.0) > DRIFT_TOLERANCE)


def greedy(arm: StoredArm) -> tuple[Reply, ...]:
    """The replies without sampling: the only ones whose speeds compare."""
    return tuple(reply for reply in arm.replies if reply.temperature == 0)


def _after_replies(arm: StoredArm) -> list[Reading]:
    return [reply.reading_after for reply in arm.replies if reply.reading_after is not None]
