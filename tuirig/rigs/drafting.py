"""What each speculative type of llama.cpp needs, and the flag behind its draft length.

Facts: llama.cpp's `--help` (b10434, b11434) and common/speculative.cpp. A type that is not listed
here (a newer build's) is treated like a draft model; the build's own `--spec-type` list decides
whether it exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class NeedsFile(StrEnum):
    """Whether a type is given a drafter file with `-md`."""

    YES = "yes"
    NO = "no"
    OPTIONAL = "optional"


@dataclass(frozen=True)
class SpeculativeType:
    """One `--spec-type` value. length_flag is None where the length can't be set."""

    name: str
    needs_file: NeedsFile
    length_flag: str | None
    needs_same_vocabulary: bool = False

    @property
    def is_ngram(self) -> bool:
        """True for a method that looks tokens up in the text instead of asking a model."""
        return self.name.startswith("ngram-")


DRAFT_LENGTH_FLAG = "--spec-draft-n-max"

_TYPES = {
    kind.name: kind
    for kind in (
        SpeculativeType(
            "draft-simple", NeedsFile.YES, DRAFT_LENGTH_FLAG, needs_same_vocabulary=True
        ),
        SpeculativeType("draft-mtp", NeedsFile.OPTIONAL, DRAFT_LENGTH_FLAG),
        SpeculativeType("draft-eagle3", NeedsFile.YES, DRAFT_LENGTH_FLAG),
        SpeculativeType("draft-dflash", NeedsFile.YES, DRAFT_LENGTH_FLAG),
        SpeculativeType("draft-dspark", NeedsFile.YES, DRAFT_LENGTH_FLAG),
        SpeculativeType("ngram-simple", NeedsFile.NO, "--spec-ngram-simple-size-m"),
        SpeculativeType("ngram-map-k", NeedsFile.NO, "--spec-ngram-map-k-size-m"),
        SpeculativeType("ngram-map-k4v", NeedsFile.NO, "--spec-ngram-map-k4v-size-m"),
        SpeculativeType("ngram-mod", NeedsFile.NO, "--spec-ngram-mod-n-max"),
        SpeculativeType("ngram-cache", NeedsFile.NO, None),
    )
}


def speculative_types(spec: str) -> tuple[SpeculativeType, ...]:
    """The types in a comma list such as `ngram-mod,draft-mtp`.

    Raises ValueError for an empty name, a repeated one, or `none` (that is the setting `none`).
    """
    names = [name.strip() for name in spec.split(",")]
    if not all(names):
        raise ValueError("an empty name in the list of types")
    if "none" in names:
        raise ValueError(
            "a drafter of type none is not a drafter; the setting `none` always exists"
        )
    if len(set(names)) != len(names):
        raise ValueError("a type stands twice in the list")
    return tuple(
        _TYPES.get(name) or SpeculativeType(name, NeedsFile.OPTIONAL, DRAFT_LENGTH_FLAG)
        for name in names
    )


def length_flag(types: tuple[SpeculativeType, ...]) -> str | None:
    """The flag that a setting's draft length goes to: a draft model's before an n-gram method's."""
    models = [kind for kind in types if not kind.is_ngram]
    for kind in (*models, *types):
        if kind.length_flag is not None:
            return kind.length_flag
    return None


def needs_file(types: tuple[SpeculativeType, ...]) -> NeedsFile:
    """Whether a drafter of these types is given a file."""
    needs = {kind.needs_file for kind in types}
    for answer in (NeedsFile.YES, NeedsFile.OPTIONAL):
        if answer in needs:
            return answer
    return NeedsFile.NO
