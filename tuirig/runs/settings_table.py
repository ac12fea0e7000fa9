"""A run's settings as a table: tok/s, gain against `none` with its interval, kept, memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from tuirig.measure import summary
from tuirig.records import MemoryParts, Reply
from tuirig.rigs.settings import NONE
from tuirig.runs.flags import flags, greedy, stood_still
from tuirig.runs.store import ArmState, StoredArm
from tuirig.stats.comparison import Comparison, Start, compare, start_variance


class SettingResult(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of the run. gain, interval: against `none`. starts: those that count; where none
    does because replies stood still, tok_s and kept are of those starts, and there is no gain.

    outcome: "measured", or how its last start failed; reason: why. memory_mib: of the server's
    process; memory_parts: by purpose, from its log. flags: what is suspicious.
    """

    setting: str
    outcome: str
    tok_s: float | None = None
    gain: float | None = None
    interval: tuple[float, float] | None = None
    verdict: str = ""
    kept: float | None = None
    memory_mib: float | None = None
    memory_parts: MemoryParts | None = None
    starts: int = 0
    reason: str = ""
    flags: tuple[str, ...] = ()


def settings_table(
    arms: Sequence[StoredArm], against_none: Callable[[str], Comparison | None]
) -> tuple[SettingResult, ...]:
    """Every setting that was started, in the order of its first start.

    against_none: how a setting compares with `none`; None where that is not known.
    """
    return tuple(_rows(arms, against_none))


def _rows(
    arms: Sequence[StoredArm], against_none: Callable[[str], Comparison | None]
) -> Iterator[SettingResult]:
    served = [arm for arm in arms if not measures_passes(arm)]
    measured, counting = measured_arms(arms), counting_arms(arms)
    for setting in dict.fromkeys(arm.setting for arm in served):
        own = [arm for arm in served if arm.setting == setting]
        started = [arm for arm in measured if arm.setting == setting]
        good = [arm for arm in counting if arm.setting == setting]
        last = (good or own)[-1]
        replies = greedy_replies(good or started)
        gain = against_none(setting) if good and setting != str(NONE) else None
        yield SettingResult(
            setting=setting,
            outcome=last.state,
            tok_s=summary.tok_s(replies),
            gain=gain.ratio if gain else None,
            interval=interval_of(gain),
            verdict=gain.verdict if gain else "",
            kept=summary.kept(replies),
            memory_mib=last.arm.memory_mib if last.arm else None,
            memory_parts=last.arm.memory_parts if last.arm else None,
            starts=len(good),
            reason=last.failure.message if last.failure else "",
            flags=tuple(dict.fromkeys(flag for arm in started for flag in flags(arm, measured))),
        )


def comparison_with_none(arms: Sequence[StoredArm], setting: str) -> Comparison | None:
    """A setting against `none`, from these arms alone; None if one was not measured."""
    starts: dict[str, list[Start]] = {}
    for arm in counting_arms(arms):
        starts.setdefault(arm.setting, []).append(summary.tok_s_by_prompt(greedy(arm)))
    if str(NONE) not in starts or setting not in starts:
        return None
    others = (start_variance(starts[name]) for name in starts if name not in (setting, str(NONE)))
    return compare(
        starts[str(NONE)],
        starts[setting],
        history=[variance for variance in others if variance is not None],
    )


def counting_arms(arms: Sequence[StoredArm]) -> list[StoredArm]:
    """The arms whose figures count: measured, and no reply stood still in them."""
    return [arm for arm in measured_arms(arms) if not stood_still(arm)]


def measured_arms(arms: Sequence[StoredArm]) -> list[StoredArm]:
    """The arms with a complete record of replies."""
    return [arm for arm in arms if arm.state is ArmState.MEASURED and not measures_passes(arm)]


def measures_passes(arm: StoredArm) -> bool:
    """Whether an arm is for V(k), so that it has no replies of a setting."""
    return bool(msgspec.json.decode(arm.step).get("type") == "PassesStep")


def greedy_replies(arms: Sequence[StoredArm]) -> list[Reply]:
    """The replies of arms that count in a comparison, oldest first."""
    return [reply for arm in arms for reply in greedy(arm)]


def interval_of(comparison: Comparison | None) -> tuple[float, float] | None:
    """(low, high), None where unknown."""
    if comparison is None or comparison.low is None or comparison.high is None:
        return None
    return comparison.low, comparison.high
