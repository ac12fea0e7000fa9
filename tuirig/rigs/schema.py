"""The rig: one card, one target model, its drafters and how its server is started."""

from __future__ import annotations

from typing import Annotated

import msgspec

from tuirig.rigs.drafting import SpeculativeType, length_flag, speculative_types
from tuirig.rigs.settings import LONGEST, NONE, Setting

#: The format of an MTP head that the target carries; such a drafter has no file.
INSIDE = "inside"
#: The target's name in the table of a rig's files; no drafter may take it.
TARGET = "target"
DEFAULT_LENGTHS = (0, 1, 2, 3, 4, 5, 6, 7)

NonEmpty = Annotated[str, msgspec.Meta(min_length=1)]
Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A GGUF: a path, or a file of a Hub repository (revision: a commit).

    url: where the file at `path` is fetched from.
    """

    path: NonEmpty | None = None
    url: NonEmpty | None = None
    repo: NonEmpty | None = None
    file: NonEmpty | None = None
    revision: NonEmpty | None = None
    sha256: Sha256 | None = None

    @property
    def has_source(self) -> bool:
        """Whether it says where it can be fetched from."""
        return bool(self.repo or self.url)

    @property
    def label(self) -> str:
        """The file's own name."""
        return (self.path or self.file or "").replace("\\", "/").rsplit("/", 1)[-1]


class Drafter(ModelFile, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A row of the grid. Its name is its format unless given; type is a `--spec-type` list."""

    format: NonEmpty
    type: NonEmpty
    name: NonEmpty | None = None
    args: tuple[NonEmpty, ...] = ()

    @property
    def row(self) -> str:
        """The name that settings use."""
        return self.name or self.format

    @property
    def types(self) -> tuple[SpeculativeType, ...]:
        """The speculative types. ValueError can't happen in a validated rig."""
        return speculative_types(self.type)

    @property
    def has_file(self) -> bool:
        """Whether the server is given a drafter file."""
        return bool(self.path or self.repo)


class Server(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the server is started: a program, its arguments, and additions to a clean environment."""

    program: NonEmpty = "llama-server"
    args: tuple[str, ...]
    env: dict[str, str] = {}


class Tune(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of the grid. 0 is no drafter."""

    lengths: tuple[Annotated[int, msgspec.Meta(ge=0, le=LONGEST)], ...] = DEFAULT_LENGTHS


class Rig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rig file's content.

    card: the card's name or part of it, its UUID or PCI address, or "cpu". card_memory_mib tells
    cards of the same name apart.
    """

    name: NonEmpty
    card: NonEmpty
    card_memory_mib: Annotated[float, msgspec.Meta(gt=0)] | None = None
    target: ModelFile
    drafter: tuple[Drafter, ...] = ()
    server: Server
    tune: Tune = Tune()
    note: str = ""

    def drafter_of(self, setting: Setting) -> Drafter | None:
        """The drafter of a setting, None for the setting `none`.

        Raises ValueError when the rig has no such drafter, or its type has no settable length and
        one was given, or the length is missing, or knobs are given to an n-gram method.
        """
        if setting.drafter is None:
            return None
        for drafter in self.drafter:
            if drafter.row == setting.drafter:
                break
        else:
            known = ", ".join(["none", *(drafter.row for drafter in self.drafter)])
            raise ValueError(f"rig {self.name} has no drafter {setting.drafter!r}; it has: {known}")
        if setting.knobs and all(kind.is_ngram for kind in drafter.types):
            raise ValueError(f"{setting}: {drafter.type} asks no model, so it has no such knob")
        settable = length_flag(drafter.types) is not None
        if settable and setting.length is None:
            raise ValueError(f"{setting}: a draft length is missing, e.g. {drafter.row}:2")
        if not settable and setting.length is not None:
            raise ValueError(f"{setting}: {drafter.type} has no draft length; write {drafter.row}")
        return drafter

    def settings(self) -> tuple[Setting, ...]:
        """Every cell of the grid: `none` first, then row by row."""
        lengths = [length for length in self.tune.lengths if length > 0]
        cells = [NONE]
        for drafter in self.drafter:
            if length_flag(drafter.types) is None:
                cells.append(Setting(drafter.row))
            else:
                cells.extend(Setting(drafter.row, length) for length in lengths)
        return tuple(cells)
