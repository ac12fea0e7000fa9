"""`tuirig fetch RIG`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence

import msgspec

from tuirig.cli import signals
from tuirig.cli.narration import Narrator
from tuirig.cli.output import answer, answer_json, columns
from tuirig.errors import ExitCode
from tuirig.files.fetch.model import Fetched
from tuirig.rigs.schema import TARGET, ModelFile
from tuirig.runs.catalog import find_rig
from tuirig.runs.fetching import fetch_rig
from tuirig.tui.figures import memory


def run(options: argparse.Namespace) -> int:
    """Have every model file of a rig, and print the pins that it lacks."""
    return signals.run(_fetch(options.rig, options.json))


async def _fetch(reference: str, as_json: bool) -> int:
    found = find_rig(reference)
    narrator = Narrator()
    try:
        files = await fetch_rig(found, narrator)
    finally:
        narrator.close()
    if as_json:
        answer_json({"rig": found.rig.name, "files": [_entry(*entry) for entry in files]})
    else:
        answer("\n".join(_text(files)))
    return ExitCode.OK


def _entry(row: str, file: ModelFile, fetched: Fetched) -> dict[str, object]:
    return {"row": row, **msgspec.to_builtins(fetched), "pin": _pin(file, fetched)}


def _text(files: Sequence[tuple[str, ModelFile, Fetched]]) -> Iterator[str]:
    yield from columns(
        [
            (
                row,
                memory(fetched.size / 2**20),
                "fetched" if fetched.fetched else "was there",
                fetched.path,
            )
            for row, _, fetched in files
        ],
        right=(1,),
    )
    pins = [(row, _pin(file, fetched)) for row, file, fetched in files]
    if any(pin for _, pin in pins):
        yield ""
        yield "to pin these files, put into the rig:"
    for row, pin in pins:
        if pin:
            yield ""
            yield "[target]" if row == TARGET else f"[[drafter]]  # {row}"
            yield from (f"{key} = {json.dumps(value)}" for key, value in pin.items())


def _pin(file: ModelFile, fetched: Fetched) -> dict[str, str]:
    """The keys that a rig lacks for these very files; none for files of one's own."""
    if not file.has_source:
        return {}
    pin = {}
    if fetched.revision is not None and fetched.revision != file.revision:
        pin["revision"] = fetched.revision
    if fetched.sha256 != file.sha256:
        pin["sha256"] = fetched.sha256
    return pin
