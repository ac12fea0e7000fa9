"""Profiles whose figures are of another server, driver or file than the rig would run with now."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuirig.engines.builds import same_build
from tuirig.errors import TuirigError
from tuirig.files import models
from tuirig.files.hashes import identity
from tuirig.records import CardInfo, FileIdentity
from tuirig.rigs.profile import Profile
from tuirig.rigs.schema import TARGET, Rig
from tuirig.runs.catalog import FoundRig, Listing
from tuirig.runs.circumstances import file_change
from tuirig.runs.opening import engine_of, host_of


@dataclass(frozen=True)
class Staleness:
    """What has changed since a profile was measured, seen from a rig of its model."""

    rig: str
    changes: tuple[str, ...]

    @property
    def next_step(self) -> str:
        """The command that measures it anew; empty if nothing has changed."""
        return f"tuirig tune {self.rig}" if self.changes else ""


def profile_changes(
    profile: Profile,
    rig: Rig,
    files: Mapping[str, Path],
    server_build: str | None,
    card: CardInfo,
) -> tuple[str, ...]:
    """What makes a profile stale for this rig on this card, in words; () if nothing does.

    files: the rig's model files that are there. server_build: None where it is not known. What
    the profile or this machine does not know is no change; hashes are looked up, not computed.
    Blocks on the disk.
    """
    return tuple(_changes(profile, rig, files, server_build, card))


def of_another_model(profile: Profile, target: FileIdentity) -> str:
    """How a target of a profile's file name is another file, in words; "" if nothing says so."""
    model = profile.model
    before = FileIdentity(file=model.file, size=model.size, sha256=model.sha256)
    return "; ".join(file_change("target", before, target))


async def staleness_of(profile: Profile, rig: FoundRig, card: CardInfo) -> Staleness:
    """Ask the rig's server program for its build and look at the rig's files."""
    server_build = None
    with contextlib.suppress(TuirigError):  # without a program the rest is compared
        server_build = (await engine_of(rig.rig, host_of(rig.rig))).build
    files = await asyncio.to_thread(models.rig_files, rig.rig, rig.base)
    changes = await asyncio.to_thread(profile_changes, profile, rig.rig, files, server_build, card)
    return Staleness(rig.rig.name, changes)


def rig_of(profile: Profile, listings: Sequence[Listing]) -> FoundRig | None:
    """The rig that runs a profile's model: by its file's name, then by the drafter's."""
    found = [
        listing.found
        for listing in listings
        if listing.found is not None and listing.found.rig.target.label == profile.model.file
    ]
    wanted = profile.drafter.file if profile.drafter else None
    with_drafter = [
        one for one in found if wanted in {drafter.label for drafter in one.rig.drafter}
    ]
    return next(iter([*with_drafter, *found]), None)


def _changes(
    profile: Profile,
    rig: Rig,
    files: Mapping[str, Path],
    server_build: str | None,
    card: CardInfo,
) -> Iterator[str]:
    before = profile.evidence.server_build
    if before is not None and server_build is not None and not same_build(before, server_build):
        yield f"server build {before} -> {server_build}"
    driver = profile.card.driver
    if driver is not None and card.driver is not None and driver != card.driver:
        yield f"driver {driver} -> {card.driver}"
    if TARGET in files:
        other = of_another_model(profile, identity(files[TARGET], compute=False))
        if other:
            yield other
    drafter = profile.drafter
    row = profile.parsed_setting.drafter
    if drafter is None or row is None:
        return
    if row not in {one.row for one in rig.drafter}:
        yield f"rig {rig.name} has no drafter {row} any more"
    elif drafter.file is not None and row in files:
        old = FileIdentity(file=drafter.file, size=drafter.size, sha256=drafter.sha256)
        yield from file_change("drafter", old, identity(files[row], compute=False))
