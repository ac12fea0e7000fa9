"""Where a rig's model files are, and what is wrong with those that can't be used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuirig.errors import TuirigError
from tuirig.files.hashes import identity
from tuirig.rigs.schema import TARGET, ModelFile, Rig
from tuirig.rigs.shards import shards_of

_MAGIC = b"GGUF"


@dataclass(frozen=True)
class Missing:
    """A model file that can't be used. row: "target" or the drafter's name."""

    row: str
    file: str
    reason: str
    next_step: str

    def __str__(self) -> str:
        return f"{self.row}: {self.file}: {self.reason}"


def resolve(file: ModelFile, base: Path) -> Path | None:
    """Where a model file is, None if it is not there.

    A path: `~` is expanded, variables are not, a relative one starts at `base` (the rig file's
    folder). A file of a repository: looked up in the Hub's cache, nothing is fetched.
    """
    path = _place(file, base)
    return path if path is not None and os.path.isfile(path) else None


def rig_files(rig: Rig, base: Path) -> dict[str, Path]:
    """The files that are there: "target", and one per drafter row that has a file."""
    found = ((row, resolve(file, base)) for row, file in model_files(rig))
    return {row: path for row, path in found if path is not None}


def missing(rig: Rig, base: Path) -> tuple[Missing, ...]:
    """The files that can't be used, with the reason and the next step; reads a few bytes of each.

    A sha256 of the rig is compared where the file's own is known (`hashes.identity`).
    """
    found = []
    for row, file in model_files(rig):
        problem = _problem(file, base, f"tuirig fetch {rig.name}")
        if problem is not None:
            found.append(Missing(row, _label(file, base), *problem))
    return tuple(found)


def model_files(rig: Rig) -> Iterator[tuple[str, ModelFile]]:
    """(row, file) of everything that a rig's server is given: "target", then the drafters."""
    yield TARGET, rig.target
    for drafter in rig.drafter:
        if drafter.has_file:
            yield drafter.row, drafter


def _place(file: ModelFile, base: Path) -> Path | None:
    """Where a file would be; None for one that the Hub's cache does not know."""
    if file.path is not None:
        return base / os.path.expanduser(file.path)
    if file.repo is None or file.file is None:
        return None
    folder = hub_folder(file.repo)
    revision = file.revision or "main"
    if not os.path.isdir(folder / "snapshots" / revision):
        try:
            revision = (folder / "refs" / revision).read_text().strip()
        except (OSError, ValueError):
            return None
    return folder / "snapshots" / revision / file.file


def hub_folder(repo: str) -> Path:
    """A repository's folder in the Hub's cache: blobs, refs, snapshots."""
    return hub_cache() / f"models--{repo.replace('/', '--')}"


def hub_cache() -> Path:
    """The Hub's cache, by the rules of huggingface_hub, which is slow to import."""
    cache = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if cache:
        return Path(os.path.expanduser(cache))
    home = os.environ.get("HF_HOME")
    if not home:
        home = os.path.join(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "huggingface")
    return Path(os.path.expanduser(home)) / "hub"


def _label(file: ModelFile, base: Path) -> str:
    if file.path is not None:
        return str(_place(file, base))
    return f"{file.repo}/{file.file}" + (f" at {file.revision}" if file.revision else "")


def _problem(file: ModelFile, base: Path, fetch: str) -> tuple[str, str] | None:
    """(reason, next step), None if the file can be used. fetch: the command that fetches it."""
    path = _place(file, base)
    if file.repo is not None and (path is None or not os.path.exists(path)):
        return "not in the Hub's cache", fetch
    if path is None or not os.path.exists(path):
        by_hand = "correct its path in the rig, or download it there"
        return "no such file", fetch if file.url else by_hand
    shards = shards_of(path)
    if path != shards[0]:
        return "not the first shard", f"name {shards[0].name} in the rig"
    for shard in shards:
        if os.path.exists(shard) and not os.path.isfile(shard):
            return "not a file", "correct its path in the rig"
        try:
            with open(shard, "rb") as stream:
                start = stream.read(64)
        except FileNotFoundError:
            by_hand = "download all shards into one folder"
            return f"its shard {shard.name} is missing", fetch if file.has_source else by_hand
        except OSError as error:
            return error.strerror or "can't be read", "make it readable"
        if not start.startswith(_MAGIC):
            return what_it_is(start), "download it again"
    return _other_hash(file, path, fetch)


def what_it_is(start: bytes) -> str:
    """What stands in a file that is not a GGUF."""
    text = start.lstrip().lower()
    if not start:
        return "an empty file"
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"<error")):
        return "not a GGUF but a web page (of a failed download?)"
    if text.startswith(b"{"):
        return "not a GGUF but a JSON answer (of a failed download?)"
    if text.startswith(b"version https://git-lfs"):
        return "not a GGUF but a Git LFS pointer to it"
    if text.startswith((b"invalid username", b"access to model", b"repository not found")):
        return "not a GGUF but the Hub's error message"
    return f"not a GGUF (it starts with {start[:4]!r})"


def _other_hash(file: ModelFile, path: Path, fetch: str) -> tuple[str, str] | None:
    if file.sha256 is None:
        return None
    try:
        known = identity(path, compute=False).sha256
    except TuirigError as error:
        return error.message, "try again"
    if known in (None, file.sha256):
        return None
    again = fetch if file.has_source else "download it again"
    return f"another file: its sha256 is {known}", f"{again}, or correct the rig's sha256"
