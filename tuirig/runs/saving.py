"""Measured replies -> the profile of this card and model, and what saving it would change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tuirig import __version__, locations
from tuirig.errors import NotProvenError, TuirigError
from tuirig.events import Emit
from tuirig.files import profiles
from tuirig.files.identities import identity_of
from tuirig.measure import summary
from tuirig.measure.proof import prove
from tuirig.records import FileIdentity, Reply
from tuirig.rigs.profile import (
    Evidence,
    Profile,
    ProfileCard,
    ProfileDrafter,
    ProfileModel,
    difference,
)
from tuirig.rigs.schema import TARGET, Rig
from tuirig.rigs.settings import Setting
from tuirig.rigs.shards import model_name
from tuirig.runs.session import Session
from tuirig.runs.staleness import of_another_model
from tuirig.stats.ratio import paired_gain


async def profile_of(
    session: Session,
    setting: Setting,
    replies: Sequence[Reply],
    none_replies: Sequence[Reply],
    *,
    server_build: str,
    argv: Sequence[str],
    env: Mapping[str, str],
    memory_mib: float | None,
    memory_source: str,
    emit: Emit,
) -> Profile:
    """The profile of a measured setting.

    none_replies: of the setting `none`, () if it was not measured; the gain then stays unknown.
    Hashes the model files in a thread, with Progress in bytes; remembered hashes cost nothing.
    Raises NotProvenError if the replies do not prove drafting (or its absence), TuirigError
    without a reply of known speed, or if a file can't be read.
    """
    for drafts, measured in ((setting.drafter is not None, replies), (False, none_replies)):
        proof = prove(drafts, measured)
        if measured and not proof.proven:
            raise NotProvenError(f"{setting} is not saved: {proof.reason}")
    tok_s = summary.tok_s(replies)
    if tok_s is None:
        raise TuirigError(f"{setting}: no reply with a known speed", hint="measure it first")
    target = await identity_of(session.files[TARGET], emit)
    drafter = None
    if setting.drafter is not None and setting.drafter in session.files:
        drafter = await identity_of(session.files[setting.drafter], emit)
    prompts = summary.tok_s_by_prompt(replies)
    none = summary.tok_s_by_prompt(none_replies)
    info = session.card.info
    return Profile(
        source="measured",
        setting=str(setting),
        argv=tuple(argv),
        env=dict(env),
        card=ProfileCard(
            name=info.name,
            uuid=info.uuid,
            memory_mib=_rounded(info.memory_mib, 1),
            driver=info.driver,
        ),
        model=ProfileModel(
            name=model_name(target.file), file=target.file, size=target.size, sha256=target.sha256
        ),
        drafter=_drafter(session.rig, setting, drafter),
        evidence=Evidence(
            tok_s=round(tok_s, 2),
            none_tok_s=_rounded(summary.tok_s(none_replies), 2),
            gain=_rounded(paired_gain(none, prompts), 4) if setting.drafter else None,
            kept=_rounded(summary.kept(replies), 4),
            accepted_per_position=_shares(summary.accepted_per_position(replies)),
            mean_accepted_length=_rounded(summary.mean_accepted_length(replies), 3),
            ttft_ms=_rounded(summary.ttft_ms(replies), 1),
            memory_mib=_rounded(memory_mib, 1),
            memory_source=memory_source or None,
            prompts=len(prompts),
            tokens=max(reply.token_limit for reply in replies),
            server_build=server_build,
            when=_now(),
            tuirig=__version__,
        ),
    )


def profile_path(profile: Profile) -> Path:
    """Where saving writes it."""
    return locations.profiles_folder() / profile.file_name


def saved_profile(profile: Profile) -> Profile | None:
    """What saving would replace, None if there is nothing."""
    return profiles.saved_profile(profile.card.name, profile.model.file, profile.objective)


def preview(profile: Profile, before: Profile | None) -> str:
    """What saving will write: the difference to the saved profile, or the whole of a new one.

    The command line, the longest, comes last.
    """
    changes = sorted(difference(before, profile), key=lambda change: change.key == "argv")
    if before is None:
        return "\n".join(f"{change.key}: {change.new}" for change in changes)
    lines = [f"{change.key}: {change.old or '–'} -> {change.new or '–'}" for change in changes]
    model = profile.model
    target = FileIdentity(file=model.file, size=model.size, sha256=model.sha256)
    other = of_another_model(before, target)
    if other:
        lines.insert(0, f"replaces the profile of another model: {other}")
    return "\n".join(lines)


def save(profile: Profile) -> Path:
    """Write the profile whole or not at all; its path. Raises TuirigError. Blocks on the disk."""
    return profiles.write_profile(profile)


def _drafter(rig: Rig, setting: Setting, file: FileIdentity | None) -> ProfileDrafter | None:
    drafter = rig.drafter_of(setting)
    if drafter is None:
        return None
    return ProfileDrafter(
        format=drafter.format,
        type=drafter.type,
        file=file.file if file else None,
        size=file.size if file else None,
        sha256=file.sha256 if file else None,
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _shares(values: tuple[float, ...] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(round(value, 4) for value in values)


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")
