"""Every rig that can be named: a person's own files and the built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuirig.demo import catalog as demo
from tuirig.errors import FileError, MissingError
from tuirig.events import Emit
from tuirig.files import models
from tuirig.files import rigs as rig_files
from tuirig.files.hashes import identity
from tuirig.hosts.programs import find_program
from tuirig.rigs.schema import TARGET, Rig


@dataclass(frozen=True)
class FoundRig:
    """A rig and where it comes from. path is None for a built-in rig."""

    rig: Rig
    path: Path | None

    @property
    def built_in(self) -> bool:
        """Whether tuirig carries it."""
        return self.path is None

    @property
    def base(self) -> Path:
        """What relative model paths are relative to."""
        return self.path.parent if self.path else Path()


@dataclass(frozen=True)
class Listing:
    """A line of `tuirig rigs`: a rig, or the error in its file."""

    name: str
    found: FoundRig | None = None
    error: FileError | None = None


def list_rigs() -> tuple[Listing, ...]:
    """A person's rigs by name, then the built-in ones that none of them hides."""
    own = [
        Listing(name, error=content)
        if isinstance(content, FileError)
        else Listing(name, FoundRig(content, path))
        for name, path, content in rig_files.load_all()
    ]
    taken = {listing.name for listing in own}
    built_in = [
        Listing(name, FoundRig(demo.built_in_rig(name), None))
        for name in demo.BUILT_IN
        if name not in taken
    ]
    return (*own, *built_in)


def find_rig(reference: str) -> FoundRig:
    """A rig by name or path. Raises MissingError with the known names, FileError if it is bad."""
    path = rig_files.rig_path(reference)
    if path is not None:
        return FoundRig(rig_files.load_rig(reference), path)
    if reference in demo.BUILT_IN:
        return FoundRig(demo.built_in_rig(reference), None)
    raise rig_files.unknown_rig(reference, also=demo.BUILT_IN)


@dataclass(frozen=True)
class Lack:
    """Something that a rig lacks. what: "files", "target", a drafter's row, or "program".

    blocks: nothing can run before it is mended by hand.
    """

    what: str
    reason: str
    next_step: str
    blocks: bool

    def __str__(self) -> str:
        return f"{self.what}: {self.reason}"


def lacks(found: FoundRig) -> tuple[Lack, ...]:
    """What a rig lacks: files, hashes, its program. Makes nothing; blocks on the disk."""
    files = _unmade(found.rig) if found.built_in else (*_absent(found), *_unhashed(found))
    return (*files, *_programless(found.rig))


def _unmade(rig: Rig) -> Iterator[Lack]:
    unmade = demo.missing_files(rig.name)
    if unmade:
        step = f"none, they are made when needed; at once: tuirig demo {rig.name} --make"
        yield Lack("files", f"{len(unmade)} not made yet", step, blocks=False)


def _absent(found: FoundRig) -> Iterator[Lack]:
    for item in models.missing(found.rig, found.base):
        yield Lack(item.row, f"{item.file}: {item.reason}", item.next_step, blocks=True)


def _unhashed(found: FoundRig) -> Iterator[Lack]:
    given = {drafter.row: drafter.sha256 for drafter in found.rig.drafter}
    given[TARGET] = found.rig.target.sha256
    for row, path in models.rig_files(found.rig, found.base).items():
        if given[row] is None and identity(path, compute=False).sha256 is None:
            step = "saving a profile finds it; or give sha256 in the rig"
            yield Lack(row, "hash unknown", step, blocks=False)


def _programless(rig: Rig) -> Iterator[Lack]:
    if find_program(rig.server.program) is None:
        step = "install llama.cpp, or name its llama-server in the rig: [server] program"
        yield Lack("program", f"{rig.server.program} not found", step, blocks=True)


@dataclass(frozen=True)
class RigFiles:
    """The model files of a rig that can be used, and the drafters' that can't, by row."""

    usable: dict[str, Path]
    missing: dict[str, models.Missing]


async def prepare(found: FoundRig, emit: Emit) -> RigFiles:
    """Find the model files of a rig; those of a built-in one are made when they are missing.

    A drafter's file that is not there refuses its row alone. Raises MissingError naming every
    missing file when the target is among them.
    """
    if found.built_in:
        await demo.ensure(found.rig.name, emit)
    missing = {file.row: file for file in models.missing(found.rig, found.base)}
    if TARGET in missing:
        raise MissingError(
            f"rig {found.rig.name}: {len(missing)} model file(s) missing",
            evidence=[str(file) for file in missing.values()],
            hint=missing[TARGET].next_step,
        )
    paths = models.rig_files(found.rig, found.base)
    return RigFiles({row: path for row, path in paths.items() if row not in missing}, missing)
