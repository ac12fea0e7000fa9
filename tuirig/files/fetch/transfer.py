"""Bytes of one URL into its part: resumed, with the server's faults turned into messages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tuirig.errors import TuirigError
from tuirig.files.fetch.parts import Part, require_room
from tuirig.files.fetch.retrying import PASSING, PassingError, Wait, persistently, wished_pause_s

if TYPE_CHECKING:
    import httpx2

TIMEOUT_S = 30.0
_CHUNK = 1024 * 1024
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_SIZE = re.compile(r"\d{1,18}")


@dataclass(frozen=True)
class Download:
    """What to get. url may carry secrets, so messages say `label`.

    size: in bytes, if known before. refuse: the error for a status and its X-Error-Code header.
    """

    url: str = field(repr=False)
    label: str
    headers: Mapping[str, str] = field(repr=False)
    size: int | None
    refuse: Callable[[int, str], TuirigError]


class Transfer:
    """One download at work. size: its bytes, once known."""

    def __init__(self, client: httpx2.AsyncClient, download: Download, part: Part) -> None:
        self.size = download.size
        self._client = client
        self._download = download
        self._part = part
        self._answered = False
        self._validator = ""

    async def run(
        self,
        *,
        on_progress: Callable[[], None],
        tell: Callable[[str, float], None],
        wait: Wait,
    ) -> None:
        """Get what is missing. Raises TuirigError; the part then keeps what came."""
        await persistently(
            lambda: self._attempt(on_progress),
            progress=lambda: self._part.done,
            tell=tell,
            wait=wait,
        )

    async def _attempt(self, on_progress: Callable[[], None]) -> None:
        import httpx2

        if self._part.done and self._part.done == self.size:
            return
        headers = {**self._download.headers, "Accept-Encoding": "identity"}
        if self._part.done:
            headers["Range"] = f"bytes={self._part.done}-"
            if self._validator:
                headers["If-Range"] = self._validator
        try:
            async with self._client.stream("GET", self._download.url, headers=headers) as answer:
                await self._begin(answer)
                await self._receive(answer, on_progress)
        except httpx2.TransportError as error:
            raise self._unreachable(error) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:  # too many redirects, a bad one
            raise self._error(str(error)) from None
        if self.size is not None and self._part.done < self.size:
            raise PassingError(self._error("the connection was cut"))

    async def _receive(self, answer: httpx2.Response, on_progress: Callable[[], None]) -> None:
        """Add an answer's body to the part, in pieces that are worth a thread's while."""
        came = bytearray()

        async def add() -> None:
            await asyncio.to_thread(self._part.append, bytes(came))
            came.clear()
            on_progress()

        try:
            async for data in answer.aiter_bytes():
                came += data
                if self.size is not None and self._part.done + len(came) > self.size:
                    came.clear()
                    raise await self._wrong_size(f"more than the announced {self.size:,} bytes")
                if len(came) >= _CHUNK:
                    await add()
        finally:
            if came:  # what came before a cut counts
                await add()

    async def _begin(self, answer: httpx2.Response) -> None:
        """Look at an answer's head. Raises for one that brings nothing to add to the part."""
        self._answered = True
        status = answer.status_code
        if status == 416:  # nothing behind what is there: too long, or another file
            await asyncio.to_thread(self._part.begin_anew)
            raise PassingError(self._error("the server has less than was there"))
        if status in PASSING:
            error = self._download.refuse(status, "")
            raise PassingError(error, wished_pause_s(answer.headers.get("Retry-After")))
        if status not in (200, 206):
            raise self._download.refuse(status, answer.headers.get("X-Error-Code", ""))
        if status == 200 and self._part.done:
            await asyncio.to_thread(self._part.begin_anew)
        size = self._announced(answer)
        if size is not None:
            if self.size is not None and size != self.size:
                raise await self._wrong_size(f"{size:,} bytes where {self.size:,} were announced")
            self.size = size
            require_room(self._part.path.parent, size - self._part.done)
        self._validator = answer.headers.get("ETag", "")
        if self._validator.startswith("W/"):
            self._validator = ""

    def _announced(self, answer: httpx2.Response) -> int | None:
        """The whole file's size as the answer tells it."""
        if answer.status_code == 206:
            found = _RANGE.fullmatch(answer.headers.get("Content-Range", ""))
            if found is None or int(found[1]) != self._part.done:
                raise self._error("the server sends another part than was asked for")
            return None if found[3] == "*" else int(found[3])
        length = answer.headers.get("Content-Length", "")
        encoded = answer.headers.get("Content-Encoding", "identity") != "identity"
        return int(length) if _SIZE.fullmatch(length) and not encoded else None

    def _unreachable(self, error: httpx2.TransportError) -> TuirigError | PassingError:
        import httpx2

        cause = str(error) or type(error).__name__
        never = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError)
        if isinstance(error, never) and not self._answered:
            return unreachable(self._download.label, cause)
        return PassingError(self._error(f"the connection was cut ({cause})"))

    async def _wrong_size(self, what: str) -> TuirigError:
        await asyncio.to_thread(self._part.begin_anew)
        return TuirigError(f"{self._download.label}: {what}", hint="try again later")

    def _error(self, what: str) -> TuirigError:
        return TuirigError(
            f"{self._download.label}: {what}", hint="fetch again: what is there already is kept"
        )


def unreachable(label: str, cause: str) -> TuirigError:
    """The error for a server that does not answer."""
    return TuirigError(
        f"{label} can't be reached: {cause}", hint="look at the network and at proxy settings"
    )
