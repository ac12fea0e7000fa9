"""A stored run as a report: its settings, formats side by side, memory. Made from its arms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tuirig.errors import MissingError
from tuirig.records import CardInfo, FileIdentity
from tuirig.rigs.settings import NONE, parse_setting
from tuirig.runs.flags import greedy
from tuirig.runs.settings_table import (
    SettingResult,
    comparison_with_none,
    measured_arms,
    settings_table,
)
from tuirig.runs.store import Store, StoredArm, StoredRun


class FormatRow(msgspec.Struct, frozen=True, kw_only=True):
    """A drafter at a draft length. more_mib: memory on top of the server without a drafter."""

    format: str
    setting: str
    tok_s: float | None
    gain: float | None
    kept: float | None
    memory_mib: float | None
    more_mib: float | None


class FormatComparison(msgspec.Struct, frozen=True, kw_only=True):
    """Drafters that were measured at the same draft length.

    prompts: that all of them replied to; identical: of these, with the same greedy text from all.
    identical_to_none: of these, with the text of the server without a drafter, too.
    """

    length: int
    rows: tuple[FormatRow, ...]
    prompts: int
    identical: int
    identical_to_none: int | None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a run but its replies. result: as the run stored it, None if unfinished."""

    run: int
    kind: str
    rig: str
    state: str
    started_at: str
    tuirig: str
    starts: int
    seconds: float
    card: CardInfo
    server_build: str
    target: FileIdentity
    prompts: int
    tokens: int
    settings: tuple[SettingResult, ...]
    formats: tuple[FormatComparison, ...]
    result: msgspec.Raw | None
    schema: int = 1


def report_of(store: Store, run: int) -> tuple[Report, tuple[StoredArm, ...]]:
    """The report of a run and its arms. Blocks on the disk.

    Raises MissingError if there is no such run, or nothing was measured in it.
    """
    stored, arms = store.run(run), store.arms(run)
    return report(stored, arms), arms


def report(run: StoredRun, arms: Sequence[StoredArm]) -> Report:
    """The report of a run, finished or not. Raises MissingError if nothing was measured in it."""
    measured = measured_arms(arms)
    if not measured:
        raise MissingError(
            f"in run {run.id} nothing was measured",
            hint=f"tuirig {run.kind} {run.rig} --resume goes on with it",
        )
    settings = _settings(run, arms)
    last = measured[-1].circumstances
    replies = greedy(measured[-1])
    return Report(
        run=run.id,
        kind=run.kind,
        rig=run.rig,
        state=run.state,
        started_at=run.started_at,
        tuirig=run.tuirig,
        starts=run.starts,
        seconds=run.seconds,
        card=last.card,
        server_build=last.server_build,
        target=last.target,
        prompts=len({reply.prompt_id for reply in replies}),
        tokens=max((reply.token_limit for reply in replies), default=0),
        settings=settings,
        formats=tuple(_formats(settings, measured)),
        result=run.result,
    )


class _WithSettings(msgspec.Struct, frozen=True):
    settings: tuple[SettingResult, ...] = ()


def _settings(run: StoredRun, arms: Sequence[StoredArm]) -> tuple[SettingResult, ...]:
    """As a finished tune decided them (it knew the noise of earlier runs), else from the arms."""
    if run.kind == "tune" and run.result is not None:
        return msgspec.json.decode(run.result, type=_WithSettings).settings
    return settings_table(arms, lambda setting: comparison_with_none(arms, setting))


def _formats(
    settings: Sequence[SettingResult], arms: Sequence[StoredArm]
) -> Iterator[FormatComparison]:
    by_length: dict[int, list[SettingResult]] = {}
    none = next((one for one in settings if one.setting == str(NONE)), None)
    for one in settings:
        setting = parse_setting(one.setting)
        if setting.length is not None and not setting.knobs and one.tok_s is not None:
            by_length.setdefault(setting.length, []).append(one)
    for length, found in sorted(by_length.items()):
        if len(found) < 2:
            continue
        texts = [_texts(arms, one.setting) for one in found]
        shared = set.intersection(*(set(text) for text in texts))
        plain = _texts(arms, str(NONE))
        yield FormatComparison(
            length=length,
            rows=tuple(_format_row(one, none) for one in found),
            prompts=len(shared),
            identical=_identical(texts, shared),
            identical_to_none=_identical([*texts, plain], shared & set(plain)) if plain else None,
        )


def _format_row(one: SettingResult, none: SettingResult | None) -> FormatRow:
    known = none is not None and None not in (one.memory_mib, none.memory_mib)
    more_mib = (one.memory_mib or 0.0) - (none.memory_mib or 0.0) if known and none else None
    return FormatRow(
        format=parse_setting(one.setting).drafter or "",
        setting=one.setting,
        tok_s=one.tok_s,
        gain=one.gain,
        kept=one.kept,
        memory_mib=one.memory_mib,
        more_mib=more_mib,
    )


def _texts(arms: Sequence[StoredArm], setting: str) -> dict[str, set[str]]:
    """Hashes of the greedy replies of a setting by prompt; several where it does not repeat."""
    found: dict[str, set[str]] = {}
    for arm in arms:
        for reply in greedy(arm) if arm.setting == setting else ():
            found.setdefault(reply.prompt_id, set()).add(reply.text_sha256)
    return found


def _identical(texts: Sequence[dict[str, set[str]]], prompts: set[str]) -> int:
    return sum(len(set.union(*(text[prompt] for text in texts))) == 1 for prompt in prompts)
