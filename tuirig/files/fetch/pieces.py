"""The files of one model (several, if it is split): brought, checked, and named together."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tuirig import __version__
from tuirig.atomic import put_in_place
from tuirig.errors import TuirigError
from tuirig.events import Emit, Progress
from tuirig.files import hashes
from tuirig.files.fetch.hub import HubFile
from tuirig.files.fetch.parts import Part, disk_error, opened_part
from tuirig.files.fetch.refusals import refused
from tuirig.files.fetch.retrying import Wait
from tuirig.files.fetch.transfer import TIMEOUT_S, Download, Transfer
from tuirig.files.identities import identity_of
from tuirig.files.models import what_it_is
from tuirig.files.pace import Pace
from tuirig.files.sources import without_secrets
from tuirig.rigs.shards import shards_of

if TYPE_CHECKING:
    import httpx2

_MAGIC = b"GGUF"
_CHUNK = 4 * 1024 * 1024


@dataclass(frozen=True)
class Piece:
    """One file. target: the name that it gets. sha256: what its source says of it.

    lasting: its URL names the same for ever, so that what an earlier try left can be continued.
    """

    download: Download
    target: Path
    sha256: str | None
    lasting: bool

    @property
    def part(self) -> Path:
        """Where it grows."""
        return self.target.with_name(f"{self.target.name}.part")


def of_hub(file: HubFile) -> Piece:
    """A file of the Hub, into the blobs of its cache."""
    label = f"{file.asked.repo}/{file.asked.file}"
    download = Download(file.url, label, file.headers, file.size, file.asked.refused)
    return Piece(download, file.blob, file.sha256, lasting=True)


def of_url(url: str, path: Path, *, lasting: bool) -> list[Piece]:
    """The files behind a URL, for a path and the shards that its name tells of.

    Raises TuirigError where the URL's name does not tell of as many.
    """
    targets = shards_of(Path(os.path.realpath(path)))
    urls = [url] if len(targets) == 1 else _shard_urls(url)
    if len(urls) != len(targets):
        raise TuirigError(
            f"{path.name} is one of {len(targets)} files, and {without_secrets(url)} is not",
            hint="let path and url both name the first shard, …-00001-of-….gguf",
        )
    return [
        Piece(_plain_download(url), target, None, lasting)
        for url, target in zip(urls, targets, strict=True)
    ]


def _shard_urls(url: str) -> list[str]:
    parts = urlsplit(url)
    folder, _, name = parts.path.rpartition("/")
    return [
        urlunsplit(parts._replace(path=f"{folder}/{quote(shard.name)}"))
        for shard in shards_of(Path(unquote(name)))
    ]


def _plain_download(url: str) -> Download:
    label = without_secrets(url)
    return Download(url, label, {}, None, lambda status, code: refused(label, status))


async def bring(
    pieces: Sequence[Piece],
    name: str,
    *,
    sha256: str | None,
    anew: bool,
    emit: Emit,
    wait: Wait,
) -> bool:
    """Have every piece under its name; whether anything had to come.

    sha256: of all pieces together. anew: what is there is wrong. Nothing gets its name before all
    of it is right. Raises TuirigError.
    """
    alone = pieces[0].sha256 if len(pieces) == 1 else None
    if sha256 is not None and alone not in (None, sha256):
        raise wrong_hash(pieces[0].download.label, sha256, alone or "")
    wanted = [piece for piece in pieces if anew or not await _is_there(piece, emit)]
    if not wanted:
        return False
    import httpx2

    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx2.AsyncClient(
                timeout=TIMEOUT_S,
                follow_redirects=True,
                headers={"User-Agent": f"tuirig/{__version__}"},
            )
        )
        bringing = _Bringing(client, name, wanted, emit, wait)
        parts = {}
        for piece in wanted:
            part = await stack.enter_async_context(opened_part(piece.part, bringing.tell_waiting))
            if not anew and await _is_there(piece, emit):  # another tuirig brought it meanwhile
                continue
            expected = piece.sha256 or (sha256 if len(pieces) == 1 else None)
            await bringing.complete(piece, part, expected)
            parts[piece.target] = part
        if sha256 is not None and len(pieces) > 1:
            paths = [
                parts[piece.target].path if piece.target in parts else piece.target
                for piece in pieces
            ]
            digest = await asyncio.to_thread(_sha256_of, paths)
            if digest != sha256:
                for part in parts.values():
                    await asyncio.to_thread(part.begin_anew)
                raise wrong_hash(name, sha256, digest)
        for target, part in parts.items():
            await asyncio.to_thread(_give_name, part, target)
    return bool(parts)


async def _is_there(piece: Piece, emit: Emit) -> bool:
    """Whether a piece's target is right, as far as its source tells."""
    if not piece.target.is_file():
        return False
    if piece.sha256 is None:
        return True
    known = await identity_of(piece.target, emit, piece.download.label)
    return known.sha256 == piece.sha256


def _give_name(part: Part, target: Path) -> None:
    part.sync()
    try:
        put_in_place(part.path, target)
        if shards_of(target) == (target,):
            hashes.remember(target, part.digest.hexdigest())
    except OSError as error:
        raise disk_error(target, error) from None


def _sha256_of(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


class _Bringing:
    """The work on the pieces that are missing."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        name: str,
        wanted: Sequence[Piece],
        emit: Emit,
        wait: Wait,
    ) -> None:
        self._client = client
        self._name = name
        self._emit = emit
        self._wait = wait
        self._pace = Pace(f"fetching {name}", emit)
        sizes = [piece.download.size for piece in wanted]
        self._several = len(wanted) > 1
        self._total = sum(size or 0 for size in sizes) if None not in sizes else None
        self._before = 0

    async def complete(self, piece: Piece, part: Part, expected: str | None) -> None:
        """All of one piece in its part, a GGUF, with the expected hash."""
        if piece.lasting:
            await self._take_up(part, piece.download.size)
        else:
            await asyncio.to_thread(part.begin_anew)
        label = piece.download.label
        while True:
            taken_up = part.done > 0
            await self._transfer(piece.download, part)
            digest = part.digest.hexdigest()
            if expected in (None, digest) or not taken_up:
                break
            # What an earlier try left was something else.
            await asyncio.to_thread(part.begin_anew)
        start = await asyncio.to_thread(part.start, 64)
        if not start.startswith(_MAGIC):
            await asyncio.to_thread(part.begin_anew)
            raise TuirigError(f"{label}: {what_it_is(start)}", hint="look at its source in the rig")
        if expected not in (None, digest):
            await asyncio.to_thread(part.begin_anew)
            raise wrong_hash(label, expected or "", digest)
        self._before += part.done

    async def _take_up(self, part: Part, size: int | None) -> None:
        loop = asyncio.get_running_loop()
        pace = Pace(f"reading what is there of {self._name}", self._emit)

        def on_progress(done: int) -> None:
            loop.call_soon_threadsafe(pace, done, size)

        await asyncio.to_thread(part.take_up, size, on_progress)

    async def _transfer(self, download: Download, part: Part) -> None:
        transfer = Transfer(self._client, download, part)

        def on_progress() -> None:
            total = self._total if self._several else transfer.size
            self._pace(self._before + part.done, total)

        await transfer.run(on_progress=on_progress, tell=teller(self._emit), wait=self._wait)

    def tell_waiting(self) -> None:
        """Say that somebody else is at it."""
        self._emit(Progress(what=f"{self._name}: another tuirig is fetching it", done=0))


def teller(emit: Emit) -> Callable[[str, float], None]:
    """Says why nothing comes for a while."""
    return lambda cause, pause_s: emit(
        Progress(what=f"{cause}; next try in {pause_s:.0f} s", done=0)
    )


def wrong_hash(label: str, expected: str, found: str) -> TuirigError:
    """The error for a file that is not the one that the rig means."""
    return TuirigError(
        f"{label} is not the file that the rig means",
        evidence=(f"sha256 expected {expected}", f"sha256 found    {found}"),
        hint="correct the rig's sha256, or where the file comes from; nothing was replaced",
    )
