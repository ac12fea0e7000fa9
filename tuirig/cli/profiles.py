"""`tuirig profiles`."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence

from tuirig.cli.output import answer, answer_json, columns
from tuirig.errors import ExitCode
from tuirig.rigs.profile import Profile
from tuirig.runs.profile_list import ListedProfile, listed_profiles
from tuirig.tui.figures import gain, rate, share


def run(options: argparse.Namespace) -> int:
    """List the profiles; a broken file is listed with its error."""
    listed = asyncio.run(listed_profiles(options.card))
    if options.json:
        answer_json({"profiles": [_entry(one) for one in listed]})
    elif listed:
        answer("\n".join(_table(listed)))
    else:
        answer("no profiles")
    return ExitCode.OK


def _entry(one: ListedProfile) -> dict[str, object]:
    """stale: null where it can't be told (another card, or no rig runs the model)."""
    file, profile, staleness = one.file, one.content, one.staleness
    known = {"name": file.name, "path": str(file.path), "shipped": file.shipped}
    if not isinstance(profile, Profile):
        return {**known, "error": profile.message}
    return {
        **known,
        "error": None,
        "source": profile.source,
        "objective": profile.objective,
        "fits": one.fits,
        "card": profile.card,
        "model": profile.model,
        "drafter": profile.drafter,
        "setting": profile.setting,
        "evidence": profile.evidence,
        "stale": staleness.changes if staleness else None,
        "next": (staleness.next_step or None) if staleness else None,
    }


def _table(listed: Sequence[ListedProfile]) -> list[str]:
    """Profiles under their cards, so that a line fits into 80 columns."""
    rows = [("PROFILE", "SETTING", "TOK/S", "GAIN", "KEPT", "SOURCE")]
    headings: dict[int, str] = {}
    heading = ""
    notes = []
    for one in listed:
        file, profile = one.file, one.content
        card, _, model = file.name.rpartition("/")
        if (above := f"{card}/" + (f"  ({one.fits})" if one.fits else "")) != heading:
            headings[len(rows)] = heading = above
        if not isinstance(profile, Profile):
            rows.append((f"  {model}", "–", "–", "–", "–", "file with an error"))
            notes.append(f"{file.name}: {profile.text()}")
            continue
        evidence = profile.evidence
        if one.staleness and one.changes:
            notes.append(f"{file.name} is stale: {'; '.join(one.changes)}")
            notes.append(f"  next: {one.staleness.next_step}")
        rows.append(
            (
                f"  {model}",
                profile.setting,
                rate(evidence.tok_s),
                gain(evidence.gain),
                share(evidence.kept),
                profile.source + ", shipped" * file.shipped + ", stale" * bool(one.changes),
            )
        )
    lines = columns(rows, right=(2, 3, 4))
    for at, heading in sorted(headings.items(), reverse=True):
        lines.insert(at, heading)
    return [*lines, *(["", *notes] if notes else [])]
