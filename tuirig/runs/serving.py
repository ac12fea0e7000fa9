"""Servers that go on: what to serve by a profile, and servers that outlived their tuirig."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.files.profiles import all_profiles, fits
from tuirig.hosts.remembered import RememberedServer, end_remembered, remembered_servers
from tuirig.records import CardInfo, FileIdentity
from tuirig.rigs.profile import ALL_KINDS, Profile
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting
from tuirig.runs.session import Session, key_path
from tuirig.runs.staleness import of_another_model, profile_changes


def setting_of(profile: Profile, rig: Rig) -> Setting:
    """A profile's setting, to be run by a rig.

    Raises TuirigError if the profile is for another model, or the rig has no such drafter.
    """
    if profile.model.file != rig.target.label:
        raise TuirigError(
            f"the profile is for {profile.model.file}, rig {rig.name} has {rig.target.label}",
            hint="choose a profile of this model: tuirig profiles",
            exit_code=ExitCode.USAGE,
        )
    setting = profile.parsed_setting
    try:
        rig.drafter_of(setting)
    except ValueError as error:
        raise TuirigError(
            f"the profile's setting can't be run: {error}",
            hint="add a [[drafter]] of that name to the rig, or use --setting",
            exit_code=ExitCode.USAGE,
        ) from None
    return setting


def profile_for(rig: Rig, card: CardInfo, target: FileIdentity | None = None) -> Profile:
    """The profile of this card and model: one's own before a shipped one. Blocks on the disk.

    target: the rig's file as it is; a profile of another file of that name does not count then.
    Raises MissingError if there is none.
    """
    others = []
    for file in all_profiles():
        profile = file.content
        if (
            isinstance(profile, Profile)
            and profile.model.file == rig.target.label
            and profile.objective == ALL_KINDS
            and fits(profile, card) == "this card"
        ):
            other = "" if target is None else of_another_model(profile, target)
            if not other:
                return profile
            others.append(f"{profile.file_name} is of another file: {other}")
    raise MissingError(
        f"no profile is saved for {rig.target.label} on {card.name}",
        evidence=others,
        hint=f"give --setting, or save one: tuirig measure {rig.name} --setting S --save",
    )


@dataclass(frozen=True)
class Saved:
    """A profile that a rig can run, and what has changed since it was measured."""

    profile: Profile
    changes: tuple[str, ...] = ()

    @property
    def setting(self) -> Setting:
        """Its setting."""
        return self.profile.parsed_setting


def saved_for(session: Session) -> Saved | None:
    """The profile of an open session's card and model, None if none can be run. Blocks."""
    card = session.card.info
    try:
        profile = profile_for(session.rig, card)
        setting_of(profile, session.rig)
    except TuirigError:
        return None
    build = session.engine.build
    return Saved(profile, profile_changes(profile, session.rig, session.files, build, card))


def leftovers(label: str | None = None) -> tuple[RememberedServer, ...]:
    """Running servers that no tuirig looks after: kept serving, or left by one that was killed.

    label: only those of this rig. Blocks on the disk.
    """
    return tuple(
        server
        for server in remembered_servers()
        if (server.detached or server.is_orphan()) and label in (None, server.label)
    )


async def end(server: RememberedServer) -> None:
    """End a leftover; returns when it is gone. Raises TuirigError if it can't be ended."""
    try:
        await end_remembered(server)
    except (TimeoutError, PermissionError) as error:
        raise TuirigError(
            f"process {server.pid} ({server.label}) can't be ended: {error}",
            hint="a driver that hangs holds it: look at it with ps and dmesg",
        ) from None
    if server.port is not None:
        await asyncio.to_thread(key_path(server.label, server.port).unlink, missing_ok=True)
