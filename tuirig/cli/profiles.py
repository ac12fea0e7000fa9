"""`tuirig profiles`."""

from __future__ import annotations

import argparse
import asyncio

from tuirig.cards.detect import list_cards
from tuirig.cli.output import answer, answer_json, columns
from tuirig.errors import ExitCode
from tuirig.files.profiles import ProfileFile, all_profiles, fits
from tuirig.records import CardInfo
from tuirig.rigs.profile import Profile
from tuirig.runs.catalog import list_rigs
from tuirig.runs.staleness import Staleness, rig_of, staleness_of
from tuirig.tui.figures import gain, rate, share

#: Best first: a profile is judged by the card that it fits best.
FITS = ("this card", "same card, other memory", "other card")


def run(options: argparse.Namespace) -> int:
    """List the profiles; a broken file is listed with its error."""
    cards = list_cards()
    files = [file for file in all_profiles() if _is_of(file, options.card)]
    stale = asyncio.run(_staleness(files, cards))
    if options.json:
        answer_json({"profiles": [_entry(file, cards, stale) for file in files]})
    elif files:
        answer("\n".join(_table(files, cards, stale)))
    else:
        answer("no profiles")
    return ExitCode.OK


def _is_of(file: ProfileFile, card: str | None) -> bool:
    if card is None:
        return True
    name = file.content.card.name if isinstance(file.content, Profile) else file.name
    return card.casefold() in name.casefold()


def _fits(profile: Profile, cards: tuple[CardInfo, ...]) -> str:
    return min((fits(profile, card) for card in cards), key=FITS.index)


async def _staleness(files: list[ProfileFile], cards: tuple[CardInfo, ...]) -> dict[str, Staleness]:
    """By name, of the profiles for a card of this machine whose model a rig runs."""
    found = {}
    listings = list_rigs()
    for file in files:
        profile = file.content
        if not isinstance(profile, Profile):
            continue
        card = next((card for card in cards if fits(profile, card) == "this card"), None)
        rig = rig_of(profile, listings)
        if card is not None and rig is not None:
            found[file.name] = await staleness_of(profile, rig, card)
    return found


def _entry(
    file: ProfileFile, cards: tuple[CardInfo, ...], stale: dict[str, Staleness]
) -> dict[str, object]:
    """stale: null where it can't be told (another card, or no rig runs the model)."""
    known = {"name": file.name, "path": str(file.path), "shipped": file.shipped}
    if not isinstance(file.content, Profile):
        return {**known, "error": file.content.message}
    profile = file.content
    return {
        **known,
        "error": None,
        "source": profile.source,
        "objective": profile.objective,
        "fits": _fits(profile, cards),
        "card": profile.card,
        "model": profile.model,
        "drafter": profile.drafter,
        "setting": profile.setting,
        "evidence": profile.evidence,
        "stale": stale[file.name].changes if file.name in stale else None,
        "next": (stale[file.name].next_step or None) if file.name in stale else None,
    }


def _table(
    files: list[ProfileFile], cards: tuple[CardInfo, ...], stale: dict[str, Staleness]
) -> list[str]:
    rows = [("PROFILE", "SETTING", "TOK/S", "GAIN", "KEPT", "SOURCE", "FITS")]
    notes = []
    for file in files:
        profile = file.content
        if not isinstance(profile, Profile):
            rows.append((file.name, "–", "–", "–", "–", "file with an error", "–"))
            notes.append(f"{file.name}: {profile.text()}")
            continue
        evidence = profile.evidence
        changes = stale[file.name].changes if file.name in stale else ()
        if changes:
            notes.append(f"{file.name} is stale: {'; '.join(changes)}")
            notes.append(f"  next: {stale[file.name].next_step}")
        rows.append(
            (
                file.name,
                profile.setting,
                rate(evidence.tok_s),
                gain(evidence.gain),
                share(evidence.kept),
                profile.source + (", shipped" if file.shipped else ""),
                _fits(profile, cards) + (", stale" if changes else ""),
            )
        )
    return [*columns(rows, right=(2, 3, 4)), *(["", *notes] if notes else [])]
