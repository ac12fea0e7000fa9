"""Reading parts of a file that lies on the disk or behind a URL.

Blocks: call it in a thread. Nothing is read that was not asked for.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from tuirig.errors import MissingError, TuirigError

if TYPE_CHECKING:
    import httpx2

_TIMEOUT_S = 20.0
_TOTAL = re.compile(r"bytes \d+-\d+/(\d+)")


class Source(Protocol):
    """Bytes that can be read from any place.

    label: how a message names it, without secrets. size: in bytes. first_read: how much to ask for
    when nothing is known yet; a remote source asks for more at a time.
    """

    label: str
    size: int
    first_read: int

    def read(self, offset: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end. Raises TuirigError."""


class FileSource:
    """A file on the disk."""

    first_read = 64 * 1024

    def __init__(self, label: str, descriptor: int) -> None:
        self.label = label
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def read(self, offset: int, length: int) -> bytes:
        """See Source."""
        try:
            return os.pread(self._descriptor, length, offset)
        except OSError as error:
            raise TuirigError(f"{self.label} can't be read: {error.strerror}") from None


class UrlSource:
    """A file behind a URL, read with range requests."""

    first_read = 512 * 1024

    def __init__(self, url: str, client: httpx2.Client) -> None:
        self.label = without_secrets(url)
        self._url = url
        self._client = client
        self._head, self.size = self._first()

    def read(self, offset: int, length: int) -> bytes:
        """See Source."""
        if offset + length <= len(self._head):
            return self._head[offset : offset + length]
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        data, _ = self._get(offset, length)
        return data

    def _first(self) -> tuple[bytes, int]:
        data, total = self._get(0, self.first_read)
        if total is None:
            raise TuirigError(
                f"{self.label}: the server does not tell how long the file is",
                hint="download the file first",
            )
        return data, total

    def _get(self, offset: int, length: int) -> tuple[bytes, int | None]:
        """The bytes and the whole file's size."""
        import httpx2

        wanted = {"Range": f"bytes={offset}-{offset + length - 1}", "Accept-Encoding": "identity"}
        try:
            with self._client.stream("GET", self._url, headers=wanted) as answer:
                if answer.status_code != 206:
                    raise _refusal(self.label, answer.status_code)
                data = bytearray()
                for part in answer.iter_raw():
                    data += part
                    if len(data) >= length:
                        break  # a server that sends more than it was asked for
                total = _TOTAL.fullmatch(answer.headers.get("Content-Range", ""))
        except httpx2.TimeoutException:
            raise TuirigError(f"{self.label}: no answer within {_TIMEOUT_S:g} s") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            cause = str(error).replace(self._url, self.label) or type(error).__name__
            raise TuirigError(f"{self.label} can't be reached: {cause}") from None
        return bytes(data[:length]), int(total[1]) if total else None


def is_url(reference: str) -> bool:
    """Whether a reference is a URL and not a path."""
    return reference.startswith(("http://", "https://"))


def without_secrets(url: str) -> str:
    """A URL without its query, fragment, user and password; a path as it is."""
    if not is_url(url):
        return url
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return url.partition("?")[0]
    return f"{parts.scheme}://{host}{port}{parts.path}"


@contextmanager
def opened(reference: str | Path) -> Iterator[Source]:
    """A path or an http(s) URL, opened. Raises MissingError or TuirigError."""
    if isinstance(reference, str) and is_url(reference):
        import httpx2

        with httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=True) as client:
            yield UrlSource(reference, client)
        return
    path = os.path.expanduser(reference)
    try:
        # Without O_NONBLOCK, opening a pipe that nobody writes to would hang.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        raise MissingError(f"no file {path}") from None
    except (OSError, ValueError) as error:
        raise TuirigError(f"{path} can't be opened: {error}") from None
    try:
        if not os.path.isfile(path):
            raise TuirigError(f"{path} is not a file")
        yield FileSource(str(path), descriptor)
    finally:
        os.close(descriptor)


def _refusal(label: str, status: int) -> TuirigError:
    if status == 200:
        return TuirigError(
            f"{label}: the server can't send a part of a file", hint="download the file first"
        )
    if status in (401, 403):
        return TuirigError(
            f"{label}: the server refuses ({status}): the file is private or gated",
            hint="download the file with your account first",
        )
    if status == 404:
        return MissingError(f"{label}: no such file (404)")
    if status == 416:
        return TuirigError(f"{label}: an empty file")
    return TuirigError(f"{label}: the server answers {status}", hint="try again later")
