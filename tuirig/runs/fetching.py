"""Everything that a rig's server is given, brought onto this machine."""

from __future__ import annotations

from collections.abc import Collection

from tuirig.demo import catalog as demo
from tuirig.events import Emit
from tuirig.files.fetch.model import Fetched, fetch_model
from tuirig.files.models import model_files
from tuirig.rigs.schema import ModelFile
from tuirig.runs.catalog import FoundRig


async def fetch_rig(
    found: FoundRig, emit: Emit, *, rows: Collection[str] = ()
) -> tuple[tuple[str, ModelFile, Fetched], ...]:
    """(row, the file as the rig gives it, what is there now): the target, then the drafters.

    rows: only those; all if empty. A built-in rig's files are made. Raises MissingError or
    TuirigError at the first file that can't be had; those before it stay.
    """
    if found.built_in:
        await demo.ensure(found.rig.name, emit)
    return tuple(
        [
            (row, file, await fetch_model(file, found.base, emit))
            for row, file in model_files(found.rig)
            if not rows or row in rows
        ]
    )
