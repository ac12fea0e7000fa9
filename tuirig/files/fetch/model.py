"""One model file of a rig: used where it is right already, else fetched, checked and named."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import msgspec

from tuirig.errors import MissingError
from tuirig.events import Emit
from tuirig.files.fetch import hub
from tuirig.files.fetch.pieces import bring, of_hub, of_url, teller, wrong_hash
from tuirig.files.fetch.retrying import Wait
from tuirig.files.identities import identity_of
from tuirig.files.models import resolve
from tuirig.files.sources import without_secrets
from tuirig.rigs.schema import ModelFile
from tuirig.rigs.shards import shards_of


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """A model file that is there now. size, sha256: of all its shards.

    source: where it comes from, empty for a file of one's own. revision: the commit, for a file of
    the Hub. fetched: whether anything had to come.
    """

    path: str
    source: str
    size: int
    sha256: str
    revision: str | None = None
    fetched: bool


async def fetch_model(
    file: ModelFile, base: Path, emit: Emit, *, wait: Wait = asyncio.sleep
) -> Fetched:
    """Have a model file on the disk, with the hash that the rig gives, if it gives one.

    base: the rig file's folder. Emits Progress with rate and time left. What is cancelled or cut is
    taken up the next time. Raises MissingError where it can't be had, TuirigError for a wrong hash
    (what was there stays), a full disk, a network or a server that fails.
    """
    there = await _there(file, base, emit)
    if there is not None and file.sha256 in (None, there.sha256):
        return there
    if file.repo is not None and not hub.is_offline():
        return await _from_hub(file, emit, wait)
    if file.url is not None:
        return await _from_url(file, base, there is not None, emit, wait)
    if there is not None:
        raise wrong_hash(there.path, file.sha256 or "", there.sha256)
    if file.repo is not None:
        raise MissingError(
            f"{_source(file)} is not in the Hub's cache, and HF_HUB_OFFLINE is set",
            hint="unset HF_HUB_OFFLINE to fetch it",
        )
    raise MissingError(
        f"{file.path} is not there, and the rig does not say where to get it",
        hint="give it a url, or repo and file instead of its path",
    )


def _source(file: ModelFile) -> str:
    return f"{file.repo}/{file.file}" if file.repo else without_secrets(file.url or "")


async def _there(file: ModelFile, base: Path, emit: Emit) -> Fetched | None:
    """A file that nobody has to be asked about: its path, commit or hash says which one it is.

    Offline, what a branch or tag was when it was fetched has to do.
    """
    path = _whole(file, base)
    if path is None:
        return None
    if file.repo and not (hub.is_commit(file.revision) or file.sha256 or hub.is_offline()):
        return None
    revision = hub.commit_of(path, file.repo) if file.repo else None
    return await _fetched(file, path, revision, emit, fetched=False)


def _whole(file: ModelFile, base: Path) -> Path | None:
    """A file that is there with all its shards."""
    path = resolve(file, base)
    is_whole = path is not None and all(os.path.isfile(shard) for shard in shards_of(path))
    return path if is_whole else None


async def _from_hub(file: ModelFile, emit: Emit, wait: Wait) -> Fetched:
    revision = file.revision or "main"
    found = await hub.look_up(file.repo or "", file.file or "", revision, teller(emit), wait)
    fetched = await bring(
        [of_hub(each) for each in found],
        file.label,
        sha256=file.sha256,
        anew=False,
        emit=emit,
        wait=wait,
    )
    for each in found:
        await asyncio.to_thread(hub.put_in_cache, each, revision)
    return await _fetched(file, found[0].place, found[0].commit, emit, fetched=fetched)


async def _from_url(file: ModelFile, base: Path, anew: bool, emit: Emit, wait: Wait) -> Fetched:
    place = _expanded(file.path or "", base)
    fetched = await bring(
        of_url(file.url or "", place, lasting=file.sha256 is not None),
        file.label,
        sha256=file.sha256,
        anew=anew,
        emit=emit,
        wait=wait,
    )
    return await _fetched(file, place, None, emit, fetched=fetched)


def _expanded(path: str, base: Path) -> Path:
    return base / os.path.expanduser(path)


async def _fetched(
    file: ModelFile, path: Path, revision: str | None, emit: Emit, *, fetched: bool
) -> Fetched:
    known = await identity_of(path, emit)
    return Fetched(
        path=str(path),
        source=_source(file),
        size=known.size or 0,
        sha256=known.sha256 or "",
        revision=revision,
        fetched=fetched,
    )
