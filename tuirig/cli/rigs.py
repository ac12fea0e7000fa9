"""`tuirig rigs`. Loads nothing that takes time: no event loop, no card, no network."""

from __future__ import annotations

import argparse

from tuirig.cli.output import answer, answer_json, columns
from tuirig.errors import ExitCode
from tuirig.rigs.schema import Drafter
from tuirig.runs.catalog import FoundRig, Listing, lacks, list_rigs


def run(options: argparse.Namespace) -> int:
    """List every rig; a broken file is listed with its error."""
    listings = list_rigs()
    if options.names:
        answer("\n".join(listing.name for listing in listings))
    elif options.json:
        answer_json({"rigs": [_entry(listing) for listing in listings]})
    else:
        answer("\n".join(_table(listings)))
    return ExitCode.OK


def _entry(listing: Listing) -> dict[str, object]:
    found = listing.found
    if found is None:
        error = listing.error
        return {
            "name": listing.name,
            "source": "file",
            "path": error.path if error else None,
            "error": error.message if error else None,
            "line": error.line if error else None,
            "key": error.key if error else None,
        }
    rig = found.rig
    return {
        "name": listing.name,
        "source": "built-in" if found.built_in else "file",
        "path": str(found.path) if found.path else None,
        "card": rig.card,
        "target": rig.target.label,
        "drafters": [_drafter(drafter) for drafter in rig.drafter],
        "missing": [
            {
                "what": lack.what,
                "reason": lack.reason,
                "next": lack.next_step,
                "blocks": lack.blocks,
            }
            for lack in lacks(found)
        ],
        "error": None,
    }


def _drafter(drafter: Drafter) -> dict[str, object]:
    return {
        "name": drafter.row,
        "format": drafter.format,
        "type": drafter.type,
        "file": drafter.label or None,
    }


def _table(listings: tuple[Listing, ...]) -> list[str]:
    rows: list[tuple[str, ...]] = [("RIG", "CARD", "TARGET", "DRAFTERS", "FROM")]
    notes = []
    for listing in listings:
        if listing.found is None:
            rows.append((listing.name, "–", "–", "–", "file with an error"))
            notes.append(f"{listing.name}: {listing.error.text() if listing.error else ''}")
            continue
        rows.append(_row(listing.name, listing.found))
        for lack in lacks(listing.found):
            notes += [f"{listing.name}: {lack}", f"  next: {lack.next_step}"]
    return [*columns(rows), *(["", *notes] if notes else [])]


def _row(name: str, found: FoundRig) -> tuple[str, ...]:
    rig = found.rig
    drafters = ", ".join(drafter.row for drafter in rig.drafter)
    return (name, rig.card, rig.target.label, drafters or "–", str(found.path or "built in"))
