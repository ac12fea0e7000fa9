"""Headers of remote files, from a real HTTP server on this machine."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.files import shapes
from tuirig.errors import MissingError, TuirigError
from tuirig.files.gguf import read_header
from tuirig.files.gguf_model import read_model
from tuirig.files.inspection import inspect
from tuirig.files.pairing import pair
from tuirig.files.sources import opened, without_secrets


class FileServer(ThreadingHTTPServer):
    """Serves a folder with ranges. sent: bytes of every answer. fault: answer this instead."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.sent: list[int] = []
        self.fault: int | None = None
        self.ranges = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: FileServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server = self.server
        name = self.path.partition("?")[0].strip("/")
        if name.startswith("moved/"):
            self._answer(302, b"", {"Location": f"/{name.removeprefix('moved/')}"})
            return
        if server.fault is not None:
            self._answer(server.fault, b"no", {})
            return
        path = server.folder / name
        if not path.is_file():
            self._answer(404, b"", {})
            return
        size = path.stat().st_size
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not server.ranges or wanted is None:
            self._answer(200, b"whole", {})
            return
        start, end = int(wanted[1]), min(int(wanted[2]), size - 1)
        if start >= size:
            self._answer(416, b"", {})
            return
        with path.open("rb") as file:
            file.seek(start)
            data = file.read(end + 1 - start)
        server.sent.append(len(data))
        self._answer(206, data, {"Content-Range": f"bytes {start}-{end}/{size}"})

    def _answer(self, status: int, data: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FileServer]:
    with FileServer(tmp_path) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield running
        finally:
            running.shutdown()
            thread.join()


def test_a_remote_header_is_that_of_the_file(server: FileServer, tmp_path: Path) -> None:
    path = shapes.gemma4(tmp_path / "model.gguf")
    assert read_header(f"{server.url}/model.gguf?download=true") == read_header(path)
    assert sum(server.sent) < 16 * 2**20 < path.stat().st_size
    assert len(server.sent) < 30
    assert read_header(f"{server.url}/moved/model.gguf") == read_header(path)


def test_a_remote_pair(server: FileServer, tmp_path: Path) -> None:
    target = read_model(shapes.gemma4(tmp_path / "target.gguf"))
    shapes.gemma4_assistant(tmp_path / "drafter.gguf")
    drafter = read_model(f"{server.url}/drafter.gguf?token=secret")
    assert drafter.label == "drafter.gguf"
    assert pair(target, drafter, "draft-mtp") == ()
    assert "secret" not in inspect(drafter.reference).file


def test_remote_shards(server: FileServer, tmp_path: Path) -> None:
    name = "model-0000{}-of-00002.gguf"
    shapes.write(tmp_path / name.format(1), "llama", {}, [("a.weight", (32,), "f32")])
    assert inspect(f"{server.url}/{name.format(1)}").problems == (
        "its shard model-00002-of-00002.gguf is missing",
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, "private or gated"), (403, "private or gated"), (404, "no such file"),
        (416, "an empty file"), (500, "the server answers 500"), (503, "the server answers 503"),
    ],
)  # fmt: skip
def test_answers_that_are_no_file(server: FileServer, status: int, words: str) -> None:
    server.fault = status
    with pytest.raises(TuirigError, match=words) as caught:
        read_header(f"{server.url}/x.gguf?token=secret")
    assert "secret" not in caught.value.text()
    assert isinstance(caught.value, MissingError) == (status == 404)


def test_a_server_without_ranges(server: FileServer, tmp_path: Path) -> None:
    shapes.llama(tmp_path / "x.gguf", layers=1, vocabulary=300)
    server.ranges = False
    with pytest.raises(TuirigError, match="can't send a part of a file"):
        read_header(f"{server.url}/x.gguf")


def test_nobody_answers() -> None:
    with pytest.raises(TuirigError, match="can't be reached") as caught:
        read_header("http://user:pass@127.0.0.1:9/x.gguf?token=secret")
    assert "secret" not in caught.value.text()
    assert "pass" not in caught.value.text()


@pytest.mark.parametrize("url", ["http://", "http://[", "https://a:b", "http://a b/x"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(TuirigError), opened(url):
        pass


def test_secrets_are_taken_out() -> None:
    assert without_secrets("https://u:p@h.org:8443/a/b.gguf?x=1#y") == "https://h.org:8443/a/b.gguf"
    assert without_secrets("a/b?c.gguf") == "a/b?c.gguf"
