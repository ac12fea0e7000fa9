"""`tuirig rig discover [DIR...]`."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from tuirig.cards.detect import CPU, list_cards
from tuirig.cli.narration import Narrator
from tuirig.cli.output import answer, answer_json, columns, say
from tuirig.cli.program import starting_program, tell_of
from tuirig.errors import ExitCode, MissingError
from tuirig.events import Progress
from tuirig.files.discovery import Found, Offer, discover, rig_text, usual_folders
from tuirig.files.rigs import write_new
from tuirig.tui.figures import memory

_MIB = 1024 * 1024


def run(options: argparse.Namespace) -> int:
    """List rigs that could be made of the models on this machine, or write one."""
    given = [Path(os.path.expanduser(folder)) for folder in options.folders]
    for folder in given:
        if not folder.is_dir():
            raise MissingError(f"no folder {folder}")
    found = _look((*given, *usual_folders()))
    first = list_cards()[0]
    card = CPU if first.kind == CPU else first.name
    program = starting_program()
    if options.write:
        offer = _chosen(found, options.write, options.folders)
        path = write_new(options.write, rig_text(offer, options.write, card, program))
        if options.json:
            answer_json({"written": str(path)})
        else:
            answer(str(path))
            tell_of(program)
            say(f"next: tuirig rig check {options.write}")
        return ExitCode.OK
    if options.json:
        answer_json(_document(found, card, program))
    else:
        answer("\n".join(_report(found, card, program, options.folders)))
    return ExitCode.OK


def _look(folders: tuple[Path, ...]) -> Found:
    narrator = Narrator()
    count = 0

    def on_file(path: Path) -> None:
        nonlocal count
        count += 1
        narrator(Progress(what="reading the headers of models", done=count, unit="files"))

    try:
        return discover(folders, on_file)
    finally:
        narrator.close()


def _chosen(found: Found, name: str, folders: Sequence[str]) -> Offer:
    """The offer of that name, or the only one under whatever name."""
    for offer in found.offers:
        if offer.name == name:
            return offer
    if len(found.offers) == 1:
        return found.offers[0]
    raise MissingError(
        f"no rig {name!r} is offered",
        evidence=[offer.name for offer in found.offers],
        hint=f"{_command(folders)} --write with one of these names"
        if found.offers
        else "name the folder of your models: tuirig rig discover DIR",
    )


def _command(folders: Sequence[str]) -> str:
    """The same look again, as it is typed."""
    return shlex.join(
        ("tuirig", "rig", "discover", *map(os.path.abspath, map(os.path.expanduser, folders)))
    )


def _document(found: Found, card: str, program: str) -> dict[str, object]:
    return {
        "folders": [str(folder) for folder in found.folders],
        "offers": [
            {
                "name": offer.name,
                "target": offer.target.reference,
                "drafters": [
                    {
                        "name": drafter.name,
                        "format": drafter.format,
                        "type": drafter.type,
                        "file": drafter.model.reference if drafter.model else None,
                    }
                    for drafter in offer.drafters
                ],
                "toml": rig_text(offer, offer.name, card, program),
            }
            for offer in found.offers
        ],
        "without_drafter": [model.reference for model in found.alone],
        "unusable": [{"file": file.path, "reason": file.reason} for file in found.unusable],
    }


def _report(found: Found, card: str, program: str, folders: Sequence[str]) -> Iterator[str]:
    looked = ", ".join(map(str, found.folders)) or "no folder: none of the usual ones is there"
    yield f"looked through {looked}"
    yield ""
    if found.offers:
        rows = [("RIG", "TARGET", "SIZE", "DRAFTERS")]
        rows += [
            (
                offer.name,
                offer.target.label,
                memory(offer.target.size / _MIB),
                ", ".join(f"{drafter.name} ({drafter.type})" for drafter in offer.drafters),
            )
            for offer in found.offers
        ]
        yield from columns(rows, right=(2,))
    else:
        yield "no target with a drafter that fits it"
    if found.alone:
        yield f"without a drafter: {', '.join(model.label for model in found.alone)}"
    for file in found.unusable:
        yield f"not usable: {file.path}: {file.reason}"
    if found.offers:
        first = found.offers[0]
        yield ""
        yield rig_text(first, first.name, card, program).rstrip()
        yield ""
        yield f"write it: {_command(folders)} --write {first.name}"
