"""A Hub of one's own: what huggingface_hub asks for, and faults on demand.

Two servers, as in real life: the Hub answers for a file of a repository with its commit, hash and
size and redirects to a store (another origin), which sends the bytes, whole or in part.
"""

from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

COMMIT = "c0ffee" * 6 + "c0ff"
OTHER_COMMIT = "beef" * 10
TOKEN = "hf_" + "SECRET" * 6
SIGNATURE = "X-Signature=SIGNED"


@dataclass(frozen=True)
class Fault:
    """What is wrong with one answer.

    cut: the body ends after so many bytes. status: it is this instead. claims: bytes that the
    answer says there are. content: other bytes of the file. no_ranges: the whole file is sent.
    location: a redirect to elsewhere. raw: these bytes instead of an answer.
    """

    cut: int | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    claims: int | None = None
    content: bytes | None = None
    no_ranges: bool = False
    location: str | None = None
    raw: bytes | None = None


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: dict[str, str]

    @property
    def range(self) -> str | None:
        return self.headers.get("range")


@dataclass
class Repository:
    """files: by commit and name. access: all, gated (accepted: tokens), or private."""

    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    revisions: dict[str, str] = field(default_factory=lambda: {"main": COMMIT})
    gated: bool = False
    private: bool = False
    accepted: set[str] = field(default_factory=set)


class HubServer:
    """Both servers. hub_faults, store_faults: taken one by one by the answers to come."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.plain: dict[str, bytes] = {}
        self.hub_faults: deque[Fault] = deque()
        self.store_faults: deque[Fault] = deque()
        self.asked_hub: list[Asked] = []
        self.asked_store: list[Asked] = []
        self._servers = [_server(self, _Hub), _server(self, _Store)]

    @property
    def url(self) -> str:
        """The Hub's address."""
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def store(self) -> str:
        """The store's address."""
        return f"http://127.0.0.1:{self._servers[1].server_port}"

    def add(self, repo: str, file: str, content: bytes, commit: str = COMMIT) -> str:
        """A file of a repository; its sha256."""
        files = self.repositories.setdefault(repo, Repository()).files
        files.setdefault(commit, {})[file] = content
        return hashlib.sha256(content).hexdigest()

    def add_plain(self, name: str, content: bytes) -> str:
        """A file that has nothing to do with the Hub; its URL."""
        self.plain[name] = content
        return f"{self.store}/plain/{name}"

    @contextmanager
    def running(self) -> Iterator[HubServer]:
        """Answer until the block ends."""
        threads = [
            threading.Thread(target=server.serve_forever, args=(0.01,)) for server in self._servers
        ]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            for server in self._servers:
                server.shutdown()
                server.server_close()
            for thread in threads:
                thread.join()


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    hub: HubServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is part of the tests."""


def _server(hub: HubServer, handler: type[BaseHTTPRequestHandler]) -> _Quiet:
    server = _Quiet(("127.0.0.1", 0), handler)
    server.hub = hub
    return server


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Quiet

    @property
    def hub(self) -> HubServer:
        return self.server.hub

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""

    def asked(self) -> Asked:
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Asked(self.command, self.path, headers)

    def reply(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def faulty(self, fault: Fault) -> bool:
        """Send an answer that is only a fault."""
        if fault.raw is not None:
            self.wfile.write(fault.raw)
            self.close_connection = True
            return True
        if fault.location is not None:
            self.reply(302, {"Location": fault.location})
            return True
        if fault.status is not None:
            self.reply(fault.status, fault.headers, b"busy")
            return True
        return False


class _Hub(_Handler):
    def do_HEAD(self) -> None:
        hub = self.hub
        hub.asked_hub.append(self.asked())
        if hub.hub_faults and self.faulty(hub.hub_faults.popleft()):
            return
        repo, _, rest = self.path.lstrip("/").partition("/resolve/")
        revision, _, name = (unquote(part) for part in rest.partition("/"))
        refusal = self._refusal(repo)
        if refusal:
            self.reply(refusal[0], {"X-Error-Code": refusal[1]} if refusal[1] else {})
            return
        repository = hub.repositories[repo]
        commit = repository.revisions.get(revision, revision)
        if commit not in repository.files:
            self.reply(404, {"X-Error-Code": "RevisionNotFound"})
            return
        content = repository.files[commit].get(name)
        if content is None:
            headers = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}
            self.reply(404, headers)
            return
        digest = hashlib.sha256(content).hexdigest()
        self.reply(
            302,
            {
                "X-Repo-Commit": commit,
                "X-Linked-Etag": f'"{digest}"',
                "X-Linked-Size": str(len(content)),
                "ETag": '"a-pointer"',
                "Location": f"{hub.store}/{repo}/{commit}/{name}?{SIGNATURE}",
            },
        )

    do_GET = do_HEAD

    def _refusal(self, repo: str) -> tuple[int, str] | None:
        """(status, X-Error-Code) as the Hub answers."""
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        repository = self.hub.repositories.get(repo)
        if token and token != TOKEN:
            return 401, ""
        if repository is None or (repository.private and token not in repository.accepted):
            return (404 if token else 401), "RepoNotFound"
        if repository.gated and token not in repository.accepted:
            return (403 if token else 401), "GatedRepo"
        return None


class _Store(_Handler):
    def do_GET(self) -> None:
        hub = self.hub
        hub.asked_store.append(self.asked())
        fault = hub.store_faults.popleft() if hub.store_faults else Fault()
        if self.faulty(fault):
            return
        path, _, query = self.path.partition("?")
        content = self._content(unquote(path), query)
        if content is None:
            self.reply(404)
            return
        self._send(content if fault.content is None else fault.content, fault)

    def _content(self, path: str, query: str) -> bytes | None:
        if path.startswith("/plain/"):
            return self.hub.plain.get(path.removeprefix("/plain/"))
        owner, name, commit, file = path.lstrip("/").split("/", 3)
        if query != SIGNATURE:
            return None
        return self.hub.repositories[f"{owner}/{name}"].files[commit].get(file)

    def _send(self, content: bytes, fault: Fault) -> None:
        etag = f'"{hashlib.md5(content).hexdigest()}"'
        start = self._start(etag) if not fault.no_ranges else 0
        if start >= len(content) > 0:
            self.reply(416, {"Content-Range": f"bytes */{len(content)}"})
            return
        body = content[start:]
        total = len(content) if fault.claims is None else fault.claims
        headers = {"ETag": etag, "Accept-Ranges": "bytes", "Content-Length": str(total - start)}
        if start:
            headers["Content-Range"] = f"bytes {start}-{total - 1}/{total}"
        if fault.cut is not None:
            body = body[: fault.cut]
            self.close_connection = True
        if fault.claims is not None:
            self.close_connection = True
        self.reply(206 if start else 200, headers, body)

    def _start(self, etag: str) -> int:
        """Where the asked part begins; 0 for the whole file."""
        if self.headers.get("If-Range", etag) != etag:
            return 0
        wish = self.headers.get("Range", "bytes=0-")
        return int(wish.removeprefix("bytes=").partition("-")[0])
