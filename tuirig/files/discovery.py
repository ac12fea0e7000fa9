"""Models that lie on this machine, and rigs that could be made of them.

Blocks on the disk: call it in a thread.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuirig.errors import TuirigError
from tuirig.files.drafters import Role, drafts_as, role_of
from tuirig.files.gguf_model import Model, read_model
from tuirig.files.inspection import main_type, problems_of
from tuirig.files.models import hub_cache
from tuirig.files.pairing import SIMPLE, fits
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import INSIDE
from tuirig.rigs.settings import is_name
from tuirig.rigs.shards import model_name, shards_of

_DEEPEST = 8
_MOST_FILES = 5_000
#: A plain model that is not clearly smaller than its target can't pay.
_MOST_OF_TARGET = 0.5
_CONTEXT = 8192


@dataclass(frozen=True)
class Unusable:
    """A file that can't be used, and why."""

    path: str
    reason: str


@dataclass(frozen=True)
class OfferedDrafter:
    """A drafter that fits: the row's name, `--spec-type`, and its file (None: inside, n-gram)."""

    name: str
    format: str
    type: str
    model: Model | None = None


@dataclass(frozen=True)
class Offer:
    """A rig that could be made: a name for it, a target and the drafters that fit it."""

    name: str
    target: Model
    drafters: tuple[OfferedDrafter, ...]


@dataclass(frozen=True)
class Found:
    """What lies in the folders. alone: targets for which no drafter was found."""

    folders: tuple[Path, ...]
    offers: tuple[Offer, ...]
    alone: tuple[Model, ...]
    unusable: tuple[Unusable, ...]


def usual_folders() -> tuple[Path, ...]:
    """Where models usually are: the caches of the Hub, llama.cpp and LM Studio, and ~/models."""
    home = Path.home()
    if sys.platform == "darwin":
        caches = home / "Library" / "Caches"
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return (
        hub_cache(),
        Path(os.environ.get("LLAMA_CACHE") or caches / "llama.cpp"),
        home / ".lmstudio" / "models",
        home / ".cache" / "lm-studio" / "models",
        home / "models",
    )


def discover(folders: Iterable[Path], on_file: Callable[[Path], None] = lambda path: None) -> Found:
    """Look through folders, pair targets with drafters. on_file: called before a file is read."""
    there = tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))
    models: list[Model] = []
    unusable: list[Unusable] = []
    for path in _files(there):
        on_file(path)
        try:
            model = read_model(path)
        except TuirigError as error:
            unusable.append(Unusable(str(path), error.message.removeprefix(f"{path}: ")))
            continue
        problems = tuple(problems_of(model))
        if problems:
            unusable.append(Unusable(str(path), "; ".join(problems)))
        elif role_of(model) is not Role.OTHER:
            models.append(model)
    offers, alone = _offers(models, unusable)
    return Found(there, offers, alone, tuple(unusable))


def rig_text(offer: Offer, name: str, card: str, program: str = "llama-server") -> str:
    """A rig file for an offer. card: what stands in it for the card, "cpu" for none.

    Raises FileError if it would not read back.
    """
    context = min(_CONTEXT, offer.target.number("context_length") or _CONTEXT)
    layers = "0" if card == "cpu" else "99"
    args = ["-ngl", layers, "-c", str(context), "-ctk", "f16", "-ctv", "f16", "-fa", "on"]
    lines = [
        f"# {model_name(offer.target.label)} and the drafters that fit it by their headers.",
        f"name = {json.dumps(name)}",
        f"card = {json.dumps(card, ensure_ascii=False)}",
        "",
        "[target]",
        f"path = {_path(offer.target)}",
        "",
    ]
    for drafter in offer.drafters:
        lines.append("[[drafter]]")
        if drafter.name != drafter.format:
            lines.append(f"name = {json.dumps(drafter.name)}")
        lines += [f"format = {json.dumps(drafter.format)}", f"type = {json.dumps(drafter.type)}"]
        if drafter.model is not None:
            lines.append(f"path = {_path(drafter.model)}")
        lines.append("")
    lines += ["[server]", f"program = {json.dumps(program, ensure_ascii=False)}"]
    lines += [f"args = {json.dumps(args)}", ""]
    text = "\n".join(lines)
    parse_rig(text, name)
    return text


def _path(model: Model) -> str:
    path, home = os.path.abspath(model.reference), str(Path.home())
    if path.startswith(home + os.sep):
        path = "~" + path[len(home) :]
    return json.dumps(path, ensure_ascii=False)


def _files(folders: Sequence[Path]) -> Iterator[Path]:
    """GGUF files, each once however many links lead to it, of shards the first one."""
    seen: set[tuple[int, int]] = set()
    for folder in folders:
        for path in _walk(folder):
            try:
                state = os.stat(path)
            except OSError:
                continue  # a link to nothing
            if (state.st_dev, state.st_ino) in seen or shards_of(path)[0] != path:
                continue
            seen.add((state.st_dev, state.st_ino))
            if len(seen) > _MOST_FILES:
                return
            yield path


def _walk(folder: Path) -> Iterator[Path]:
    start = len(folder.parts)
    for place, folders, names in os.walk(folder):
        if len(Path(place).parts) - start >= _DEEPEST:
            folders.clear()
        folders.sort()
        # The Hub's blobs are what its snapshots link to.
        folders[:] = [name for name in folders if name not in ("blobs", ".git")]
        for name in sorted(names):
            if name.lower().endswith(".gguf"):
                yield Path(place, name)


def _offers(
    models: Sequence[Model], unusable: list[Unusable]
) -> tuple[tuple[Offer, ...], tuple[Model, ...]]:
    offers, alone = [], []
    taken: set[str] = set()
    for target in models:
        if role_of(target) is Role.DRAFTER:
            continue
        drafters = tuple(_named(_drafters(target, models, unusable)))
        if drafters:
            ngram = OfferedDrafter("ngram", "ngram", "ngram-simple")
            offers.append(Offer(_name(target, taken), target, (*drafters, ngram)))
        elif not _is_used(target, models, unusable):
            alone.append(target)
    offers.sort(key=lambda offer: all(drafter.type == SIMPLE for drafter in offer.drafters[:-1]))
    return tuple(offers), tuple(alone)


def _drafters(
    target: Model, models: Sequence[Model], unusable: list[Unusable]
) -> Iterator[OfferedDrafter]:
    if target.mtp_layers:
        yield OfferedDrafter(INSIDE, INSIDE, "draft-mtp")
    plain: list[OfferedDrafter] = []
    for model in models:
        if model is target:
            continue
        type = _type_for(target, model, unusable)
        if type is not None:
            format = main_type(model) or "unknown"
            found = OfferedDrafter(format, format, type, model)
            if type == SIMPLE:
                plain.append(found)
            else:
                yield found
    yield from plain


def _type_for(target: Model, model: Model, unusable: list[Unusable]) -> str | None:
    """The type with which a model drafts for a target, None if it can't or can't pay."""
    drafts = drafts_as(model)
    if drafts is None or drafts.target == "itself":
        return None
    if drafts.type == SIMPLE and model.elements > _MOST_OF_TARGET * target.elements:
        return None
    try:
        fitting = fits(target, model)
    except TuirigError as error:
        unusable.append(Unusable(model.reference, error.message))
        return None
    return fitting.type if fitting is not None else None


def _is_used(model: Model, models: Sequence[Model], unusable: list[Unusable]) -> bool:
    """Whether a model without a drafter of its own drafts for another."""
    return any(
        _type_for(target, model, unusable) is not None
        for target in models
        if target is not model and role_of(target) is not Role.DRAFTER
    )


def _named(drafters: Iterable[OfferedDrafter]) -> Iterator[OfferedDrafter]:
    """Names that differ: the format, or the file's name where two are of one format."""
    found = list(drafters)
    count: dict[str, int] = defaultdict(int)
    for drafter in found:
        count[drafter.name] += 1
    taken: set[str] = set()
    for drafter in found:
        name = drafter.name
        if count[name] > 1 and drafter.model is not None:
            name = _slug(model_name(drafter.model.label))
        base, number = name, 2
        while name in taken:
            name, number = f"{base}-{number}", number + 1
        taken.add(name)
        yield OfferedDrafter(name, drafter.format, drafter.type, drafter.model)


def _name(target: Model, taken: set[str]) -> str:
    """A name for a rig, from its target's file."""
    base = name = _slug(model_name(target.label))
    number = 2
    while name in taken:
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _slug(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "model"
    return name if is_name(name) else f"model-{name}"
