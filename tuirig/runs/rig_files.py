"""The model files of a rig: where they are, what they are by their headers, what they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuirig.cards.detect import open_card
from tuirig.errors import TuirigError
from tuirig.files import models
from tuirig.files.hashes import identity
from tuirig.files.inspection import Inspection, inspection_of
from tuirig.records import CardInfo, Reading
from tuirig.rigs.schema import TARGET, Rig
from tuirig.rigs.settings import NONE
from tuirig.runs.catalog import FoundRig
from tuirig.runs.fitting import (
    SettingMemory,
    Unfit,
    free_mib,
    rig_models,
    row_memories,
    unfit_rows,
)
from tuirig.runs.rest import rest_on

_MIB = 1024 * 1024


@dataclass(frozen=True)
class RigFile:
    """What a row of the grid is made of.

    row: "target" or the drafter's name. place: a path, or where the rig says that it comes from;
    empty for a drafter without a file. size_mib: None where the file is not there. problems: why
    it can't be used, or does not fit the target. memory: at the row's longest draft length.
    """

    row: str
    type: str
    place: str
    size_mib: float | None = None
    inspection: Inspection | None = None
    problems: tuple[Unfit, ...] = ()
    memory: SettingMemory | None = None

    @property
    def present(self) -> bool:
        """Whether there is a file, or none is needed."""
        return self.size_mib is not None or not self.place


@dataclass(frozen=True)
class RigFiles:
    """All rows. free_mib: None where that is not known, as while a server runs."""

    files: tuple[RigFile, ...]
    free_mib: float | None


def look_at_files(found: FoundRig, *, server_runs: bool) -> RigFiles:
    """Look at every file of a rig; makes and fetches nothing. Blocks on the disk and the card.

    server_runs: it takes a part of the memory itself, so what is free says nothing of its needs.
    """
    info, reading = _look_at_card(found.rig)
    if server_runs:
        reading = None
    rest_mib = rest_on(info) if info is not None else None
    return RigFiles(tuple(_files(found, reading, rest_mib)), free_mib(reading))


def _look_at_card(rig: Rig) -> tuple[CardInfo | None, Reading | None]:
    try:
        card = open_card(rig.card, rig.card_memory_mib)
    except TuirigError:  # a card that is not here: its memory is not known
        return None, None
    try:
        return card.info, card.read()
    finally:
        card.close()


def _files(found: FoundRig, reading: Reading | None, rest_mib: float | None) -> Iterator[RigFile]:
    rig = found.rig
    missing = {item.row: item for item in models.missing(rig, found.base)}
    paths = models.rig_files(rig, found.base)
    usable = {row: path for row, path in paths.items() if row not in missing}
    headers, unread = rig_models(usable)
    memories = {memory.row: memory for memory in row_memories(rig, headers, reading, rest_mib)}
    problems = (
        *(Unfit(item.row, item.reason, item.next_step) for item in missing.values()),
        *unread,
        *unfit_rows(rig, headers),
    )
    types = {drafter.row: drafter.type for drafter in rig.drafter}
    for row in (TARGET, *types):
        path = paths.get(row)
        header = headers.get(row)
        yield RigFile(
            row,
            types.get(row, ""),
            str(path) if path else missing[row].file if row in missing else "",
            _size_mib(path),
            inspection_of(header) if header is not None else None,
            tuple(problem for problem in problems if problem.row == row),
            memories.get(str(NONE) if row == TARGET else row),
        )


def _size_mib(path: Path | None) -> float | None:
    if path is None:
        return None
    try:
        size = identity(path, compute=False).size
    except TuirigError:  # told as a problem already
        return None
    return None if size is None else size / _MIB
