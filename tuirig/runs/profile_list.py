"""Saved and shipped profiles: which fit a card of this machine, and which are stale."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from tuirig.cards.detect import list_cards
from tuirig.errors import FileError
from tuirig.files.profiles import ProfileFile, all_profiles, fits
from tuirig.records import CardInfo
from tuirig.rigs.profile import Profile
from tuirig.runs.catalog import Listing, list_rigs
from tuirig.runs.staleness import Staleness, rig_of, staleness_of

#: Best first: a profile is judged by the card that it fits best.
FITS = ("this card", "same card, other memory", "other card")


@dataclass(frozen=True)
class ListedProfile:
    """A profile beside this machine.

    fits: one of FITS, empty for a file with an error. staleness: None where it can't be told
    (another card, or no rig runs the model).
    """

    file: ProfileFile
    fits: str = ""
    staleness: Staleness | None = None

    @property
    def content(self) -> Profile | FileError:
        """The profile, or what is wrong with its file."""
        return self.file.content

    @property
    def changes(self) -> tuple[str, ...]:
        """Why it is stale; () if it is not, or if that can't be told."""
        return self.staleness.changes if self.staleness else ()


async def listed_profiles(card: str | None = None) -> tuple[ListedProfile, ...]:
    """Every profile by name. card: only those for cards with this in their name."""
    cards, files, rigs = await asyncio.to_thread(
        lambda: (list_cards(), all_profiles(), list_rigs())
    )
    return tuple([await _listed(file, cards, rigs) for file in files if _is_of(file, card)])


async def _listed(
    file: ProfileFile, cards: tuple[CardInfo, ...], rigs: tuple[Listing, ...]
) -> ListedProfile:
    profile = file.content
    if not isinstance(profile, Profile):
        return ListedProfile(file)
    fitting = min((fits(profile, card) for card in cards), key=FITS.index)
    return ListedProfile(file, fitting, await _staleness(profile, cards, rigs))


async def _staleness(
    profile: Profile, cards: tuple[CardInfo, ...], rigs: tuple[Listing, ...]
) -> Staleness | None:
    card = next((card for card in cards if fits(profile, card) == FITS[0]), None)
    rig = rig_of(profile, rigs) if card is not None else None
    return await staleness_of(profile, rig, card) if card is not None and rig is not None else None


def _is_of(file: ProfileFile, card: str | None) -> bool:
    if card is None:
        return True
    name = file.content.card.name if isinstance(file.content, Profile) else file.name
    return card.casefold() in name.casefold()
