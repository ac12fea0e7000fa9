"""Two stored runs side by side: the same rig at another time, or two cards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tuirig.measure import summary
from tuirig.rigs.settings import NONE
from tuirig.runs.circumstances import changes
from tuirig.runs.flags import greedy
from tuirig.runs.report import Report, report
from tuirig.runs.settings_table import SettingResult, counting_arms, interval_of, measured_arms
from tuirig.runs.store import Store, StoredArm
from tuirig.stats.comparison import Start, compare


class BothRuns(msgspec.Struct, frozen=True, kw_only=True):
    """A setting in two runs. gain: in each run against its own `none`.

    ratio, interval: tok/s in B over tok/s in A on the prompts of both; the noise between starts is
    in the interval, what changed between the days is not.
    """

    setting: str
    a_tok_s: float | None
    b_tok_s: float | None
    a_gain: float | None
    b_gain: float | None
    a_kept: float | None
    b_kept: float | None
    ratio: float | None
    interval: tuple[float, float] | None
    verdict: str


class RunComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Run B against run A. changed: what is different about program, card and files.

    a_best, b_best: the setting with the highest gain in each.
    """

    a: Report
    b: Report
    changed: tuple[str, ...]
    settings: tuple[BothRuns, ...]
    a_best: str | None
    b_best: str | None
    schema: int = 1


def compare_runs(store: Store, a: int, b: int) -> RunComparison:
    """Compare two runs of any kind. Blocks on the disk. Raises MissingError."""
    arms_a, arms_b = store.arms(a), store.arms(b)
    one, other = report(store.run(a), arms_a), report(store.run(b), arms_b)
    rows_a = {row.setting: row for row in one.settings}
    rows_b = {row.setting: row for row in other.settings}
    starts_a, starts_b = _starts(arms_a), _starts(arms_b)
    same_limit = one.tokens == other.tokens
    names = dict.fromkeys([*rows_a, *rows_b])
    return RunComparison(
        a=one,
        b=other,
        changed=_changed(measured_arms(arms_a), measured_arms(arms_b)),
        settings=tuple(
            _both(
                name,
                rows_a.get(name),
                rows_b.get(name),
                starts_a.get(name, ()) if same_limit else (),
                starts_b.get(name, ()) if same_limit else (),
            )
            for name in names
        ),
        a_best=_best(one.settings),
        b_best=_best(other.settings),
    )


def _both(
    setting: str,
    a: SettingResult | None,
    b: SettingResult | None,
    starts_a: Sequence[Start],
    starts_b: Sequence[Start],
) -> BothRuns:
    comparison = compare(starts_a, starts_b)
    return BothRuns(
        setting=setting,
        a_tok_s=a.tok_s if a else None,
        b_tok_s=b.tok_s if b else None,
        a_gain=a.gain if a else None,
        b_gain=b.gain if b else None,
        a_kept=a.kept if a else None,
        b_kept=b.kept if b else None,
        ratio=comparison.ratio,
        interval=interval_of(comparison),
        verdict=comparison.verdict,
    )


def _changed(a: Sequence[StoredArm], b: Sequence[StoredArm]) -> tuple[str, ...]:
    """By a setting of both; without one, command lines say nothing."""
    of_a = {arm.setting: arm.circumstances for arm in a}
    of_b = {arm.setting: arm.circumstances for arm in b}
    for setting in of_a.keys() & of_b.keys():
        return changes(of_a[setting], of_b[setting])
    old, new = (msgspec.structs.replace(arms[-1].circumstances, argv=()) for arms in (a, b))
    return changes(old, new)


def _starts(arms: Sequence[StoredArm]) -> Mapping[str, list[Start]]:
    found: dict[str, list[Start]] = {}
    for arm in counting_arms(arms):
        found.setdefault(arm.setting, []).append(summary.tok_s_by_prompt(greedy(arm)))
    return found


def _best(settings: Sequence[SettingResult]) -> str | None:
    worth = {
        one.setting: 1.0 if one.setting == str(NONE) else one.gain
        for one in settings
        if one.tok_s is not None
    }
    known = {setting: gain for setting, gain in worth.items() if gain is not None}
    return max(known, key=lambda setting: known[setting]) if known else None
