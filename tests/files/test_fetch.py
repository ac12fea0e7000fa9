"""Fetching from a Hub of one's own and from plain URLs, with every fault that a network has."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import logging
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest

from tests.files.hub_server import COMMIT, OTHER_COMMIT, SIGNATURE, TOKEN, Fault, HubServer
from tuirig.errors import ExitCode, MissingError, TuirigError
from tuirig.events import Event, Progress
from tuirig.files.fetch.model import Fetched, fetch_model
from tuirig.files.fetch.retrying import wished_pause_s
from tuirig.files.models import hub_folder, resolve
from tuirig.rigs.schema import ModelFile

REPO, FILE = "org/name-GGUF", "sub/x.gguf"
PINNED = ModelFile(repo=REPO, file=FILE, revision=COMMIT)
UNPINNED = ModelFile(repo=REPO, file=FILE)


def gguf(size: int = 300_000, seed: int = 1) -> bytes:
    """Something that starts like a GGUF."""
    return b"GGUF" + random.Random(seed).randbytes(size)


CONTENT = gguf()
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def hub(hub_server: HubServer) -> HubServer:
    """A Hub with one file."""
    hub_server.add(REPO, FILE, CONTENT)
    return hub_server


@dataclass
class Work:
    """Fetches, and remembers what was told and waited."""

    base: Path
    events: list[Event] = field(default_factory=list)
    pauses_s: list[float] = field(default_factory=list)

    async def __call__(self, file: ModelFile) -> Fetched:
        async def wait(seconds: float) -> None:
            self.pauses_s.append(seconds)

        return await fetch_model(file, self.base, self.events.append, wait=wait)

    async def refused(self, file: ModelFile) -> TuirigError:
        """The error; no secret may be in it."""
        with pytest.raises(TuirigError) as caught:
            await self(file)
        for secret in (TOKEN, SIGNATURE):
            assert secret not in caught.value.text()
        assert caught.value.hint
        return caught.value

    def told(self) -> list[Progress]:
        return [event for event in self.events if isinstance(event, Progress)]


@pytest.fixture
def fetch(tmp_path: Path) -> Work:
    base = tmp_path / "rigs"
    base.mkdir()
    return Work(base)


def leftovers(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.name.endswith((".part", ".tmp")))


# -- the Hub


async def test_a_pinned_file_comes_into_the_cache(hub: HubServer, fetch: Work) -> None:
    fetched = await fetch(PINNED)
    path = hub_folder(REPO) / "snapshots" / COMMIT / FILE
    assert fetched == Fetched(
        path=str(path),
        source=f"{REPO}/{FILE}",
        size=len(CONTENT),
        sha256=SHA256,
        revision=COMMIT,
        fetched=True,
    )
    assert path.read_bytes() == CONTENT
    assert path.resolve() == hub_folder(REPO) / "blobs" / SHA256
    assert os.readlink(path) == f"../../../blobs/{SHA256}"
    assert resolve(PINNED, fetch.base) == path
    assert leftovers(hub_folder(REPO)) == []


async def test_the_librarys_own_functions_find_it(hub: HubServer, fetch: Work) -> None:
    fetched = await fetch(UNPINNED)
    for revision in (None, COMMIT):
        found = huggingface_hub.try_to_load_from_cache(
            REPO, FILE, cache_dir=hub_folder(REPO).parent, revision=revision
        )
        assert found == fetched.path
    scanned = huggingface_hub.scan_cache_dir(hub_folder(REPO).parent)
    assert scanned.warnings == []
    assert scanned.size_on_disk == len(CONTENT)


async def test_a_rig_without_a_pin_is_resolved(hub: HubServer, fetch: Work) -> None:
    fetched = await fetch(UNPINNED)
    assert (fetched.revision, fetched.sha256) == (COMMIT, SHA256)
    assert resolve(UNPINNED, fetch.base) == Path(fetched.path)
    # When the branch moves on, so does the file.
    newer = hub.add(REPO, FILE, gguf(seed=2), OTHER_COMMIT)
    hub.repositories[REPO].revisions["main"] = OTHER_COMMIT
    again = await fetch(UNPINNED)
    assert (again.revision, again.sha256, again.fetched) == (OTHER_COMMIT, newer, True)
    assert resolve(UNPINNED, fetch.base) == Path(again.path)
    assert Path(fetched.path).read_bytes() == CONTENT


async def test_a_tag_is_noted_like_a_branch(hub: HubServer, fetch: Work) -> None:
    hub.repositories[REPO].revisions["refs/pr/1"] = COMMIT
    file = ModelFile(repo=REPO, file=FILE, revision="refs/pr/1")
    assert (await fetch(file)).revision == COMMIT
    assert "/resolve/refs%2Fpr%2F1/" in hub.asked_hub[0].path


async def test_what_is_there_is_not_fetched_again(hub: HubServer, fetch: Work) -> None:
    await fetch(PINNED)
    asked = len(hub.asked_hub), len(hub.asked_store)
    pinned_twice = ModelFile(repo=REPO, file=FILE, revision=COMMIT, sha256=SHA256)
    for file in (PINNED, pinned_twice):
        again = await fetch(file)
        assert (again.fetched, again.revision, again.sha256) == (False, COMMIT, SHA256)
    assert (len(hub.asked_hub), len(hub.asked_store)) == asked
    # A branch has to be asked for, but its content is there.
    assert (await fetch(UNPINNED)).fetched is False
    assert len(hub.asked_store) == asked[1]
    # With the hash in the rig nothing has to be asked for: it is the right file.
    asked = len(hub.asked_hub), len(hub.asked_store)
    assert not (await fetch(ModelFile(repo=REPO, file=FILE, sha256=SHA256))).fetched
    assert (len(hub.asked_hub), len(hub.asked_store)) == asked


async def test_what_the_library_fetched_is_used(hub: HubServer, fetch: Work) -> None:
    blob = hub_folder(REPO) / "blobs" / SHA256
    blob.parent.mkdir(parents=True)
    blob.write_bytes(CONTENT)
    fetched = await fetch(PINNED)
    assert (fetched.fetched, fetched.sha256) == (False, SHA256)
    assert hub.asked_store == []


async def test_a_damaged_file_in_the_cache_is_replaced(hub: HubServer, fetch: Work) -> None:
    path = Path((await fetch(PINNED)).path)
    path.resolve().write_bytes(gguf(seed=9))
    file = ModelFile(repo=REPO, file=FILE, revision=COMMIT, sha256=SHA256)
    assert (await fetch(file)).fetched
    assert path.read_bytes() == CONTENT


async def test_a_split_model(hub: HubServer, fetch: Work) -> None:
    names = [f"m-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    contents = [gguf(1000, seed) for seed in (1, 2, 3)]
    for name, content in zip(names, contents, strict=True):
        hub.add(REPO, name, content)
    whole = hashlib.sha256(b"".join(contents)).hexdigest()
    wrong = await fetch.refused(ModelFile(repo=REPO, file=names[0], sha256="0" * 64))
    assert wrong.evidence[1].endswith(whole)
    assert not any((hub_folder(REPO) / "blobs").glob("*"))
    fetched = await fetch(ModelFile(repo=REPO, file=names[0], sha256=whole))
    assert (fetched.size, fetched.sha256, fetched.fetched) == (3012, whole, True)
    folder = Path(fetched.path).parent
    assert [(folder / name).read_bytes() for name in names] == contents
    assert not (await fetch(ModelFile(repo=REPO, file=names[0]))).fetched


async def test_the_token_goes_to_the_hub_alone(
    hub: HubServer, fetch: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.repositories[REPO].gated = True
    hub.repositories[REPO].accepted.add(TOKEN)
    hub.store_faults.extend([Fault(cut=10), Fault(status=503)])
    with caplog.at_level(logging.DEBUG):
        await fetch(PINNED)
    assert all(asked.headers["authorization"] == f"Bearer {TOKEN}" for asked in hub.asked_hub)
    assert not any("authorization" in asked.headers for asked in hub.asked_store)
    assert TOKEN not in caplog.text
    assert not any(TOKEN in str(event) for event in fetch.events)


@pytest.mark.parametrize(
    ("token", "message", "hint"),
    [
        ("", "is gated, and no token is set", "set HF_TOKEN"),
        (TOKEN, "is gated, and the account of your token has no access", "accept its conditions"),
    ],
)
async def test_gated(
    hub: HubServer,
    fetch: Work,
    monkeypatch: pytest.MonkeyPatch,
    token: str,
    message: str,
    hint: str,
) -> None:
    hub.repositories[REPO].gated = True
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    error = await fetch.refused(PINNED)
    assert isinstance(error, MissingError)
    assert message in error.message
    assert hint in error.hint
    assert f"{hub.url}/{REPO}" in error.hint


@pytest.mark.parametrize(
    ("file", "token", "message"),
    [
        (ModelFile(repo="org/none", file=FILE), "", "no repository org/none"),
        (ModelFile(repo="org/none", file=FILE), TOKEN, "or your token may not see it"),
        (ModelFile(repo=REPO, file="y.gguf"), "", f"{REPO} has no file y.gguf at main"),
        (ModelFile(repo=REPO, file=FILE, revision="v9"), "", f"{REPO} has no revision v9"),
        (PINNED, "hf_WRONG", "does not accept your token (401)"),
        (ModelFile(repo="a--b", file=FILE), "", "can't be asked for"),
    ],
)
async def test_what_the_hub_does_not_have(
    hub: HubServer,
    fetch: Work,
    monkeypatch: pytest.MonkeyPatch,
    file: ModelFile,
    token: str,
    message: str,
) -> None:
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    error = await fetch.refused(file)
    assert message in error.message
    assert token not in error.text() or not token
    assert not hub_folder(REPO).exists()


async def test_a_private_repository_without_a_token(hub: HubServer, fetch: Work) -> None:
    hub.repositories[REPO].private = True
    error = await fetch.refused(PINNED)
    assert "it is private or gated and no token is set" in error.message
    assert "hf auth login" in error.hint


@pytest.mark.parametrize("status", [403, 404, 418])
async def test_answers_without_a_reason(hub: HubServer, fetch: Work, status: int) -> None:
    hub.hub_faults.append(Fault(status=status))
    error = await fetch.refused(PINNED)
    assert str(status) in error.message or "no repository" in error.message


async def test_offline(hub: HubServer, fetch: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    error = await fetch.refused(UNPINNED)
    assert "HF_HUB_OFFLINE is set" in error.message
    assert isinstance(error, MissingError)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    await fetch(UNPINNED)
    asked = len(hub.asked_hub)
    monkeypatch.setenv("HF_HUB_OFFLINE", "yes")
    for file in (UNPINNED, PINNED):
        there = await fetch(file)
        assert (there.fetched, there.revision, there.sha256) == (False, COMMIT, SHA256)
    wrong = await fetch.refused(ModelFile(repo=REPO, file=FILE, sha256="0" * 64))
    assert wrong.evidence == (f"sha256 expected {'0' * 64}", f"sha256 found    {SHA256}")
    assert len(hub.asked_hub) == asked


async def test_an_endpoint_that_is_no_hub(
    hub: HubServer, fetch: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.hub_faults.append(Fault(status=200))
    error = await fetch.refused(PINNED)
    assert f"{hub.url} does not answer like the Hub" in error.message
    assert "HF_ENDPOINT" in error.hint
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    error = await fetch.refused(PINNED)
    assert error.message.startswith("http://127.0.0.1:9 can't be reached: ")
    assert fetch.pauses_s == []  # nothing would change by trying again


@pytest.mark.parametrize("etag", ["../../../evil", "/etc/evil", "a b", "", "x" * 200])
async def test_a_hostile_etag(hub: HubServer, fetch: Work, etag: str) -> None:
    headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{etag}"'}
    hub.hub_faults.append(Fault(status=200, headers=headers))
    assert "does not answer like the Hub" in (await fetch.refused(PINNED)).message


@pytest.mark.parametrize("commit", ["../../evil", "main", "C0FFEE"])
async def test_a_hostile_commit(hub: HubServer, fetch: Work, commit: str) -> None:
    headers = {"X-Repo-Commit": commit, "ETag": f'"{SHA256}"'}
    hub.hub_faults.append(Fault(status=200, headers=headers))
    assert "does not answer like the Hub" in (await fetch.refused(PINNED)).message


# -- interruptions


async def test_a_cut_transfer_goes_on_where_it_was(hub: HubServer, fetch: Work) -> None:
    hub.store_faults.extend([Fault(cut=100_000), Fault(cut=50_000), Fault(cut=0)])
    fetched = await fetch(PINNED)
    assert fetched.sha256 == SHA256
    ranges = [asked.range for asked in hub.asked_store]
    assert ranges == [None, "bytes=100000-", "bytes=150000-", "bytes=150000-"]
    assert fetch.pauses_s == [1.0, 1.0, 2.0]  # counted anew after something came


async def test_it_gives_up_and_the_next_run_goes_on(hub: HubServer, fetch: Work) -> None:
    hub.store_faults.append(Fault(cut=120_000))
    hub.store_faults.extend([Fault(cut=0)] * 10)
    error = await fetch.refused(PINNED)
    assert "the connection was cut" in error.message
    assert "is kept" in error.hint
    assert fetch.pauses_s == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert resolve(PINNED, fetch.base) is None
    hub.store_faults.clear()
    hub.asked_store.clear()
    assert (await fetch(PINNED)).sha256 == SHA256
    assert [asked.range for asked in hub.asked_store] == ["bytes=120000-"]
    assert leftovers(hub_folder(REPO)) == []


async def test_a_whole_part_needs_no_transfer(hub: HubServer, fetch: Work) -> None:
    """Ended between the last byte and the name."""
    part = hub_folder(REPO) / "blobs" / f"{SHA256}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT)
    assert (await fetch(PINNED)).fetched
    assert hub.asked_store == []


@pytest.mark.parametrize("left", [b"GGUF but another one", gguf(size=400_000, seed=5)])
async def test_a_part_of_something_else(hub: HubServer, fetch: Work, left: bytes) -> None:
    part = hub_folder(REPO) / "blobs" / f"{SHA256}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    fetched = await fetch(PINNED)
    assert Path(fetched.path).read_bytes() == CONTENT


async def test_a_store_that_ignores_ranges(hub: HubServer, fetch: Work) -> None:
    hub.store_faults.extend([Fault(cut=100_000), Fault(no_ranges=True)])
    assert (await fetch(PINNED)).sha256 == SHA256


async def test_cancelling_keeps_what_came(hub: HubServer, fetch: Work) -> None:
    hub.store_faults.append(Fault(cut=200_000))
    at_the_pause = asyncio.Event()

    async def wait(_: float) -> None:
        at_the_pause.set()
        await asyncio.Event().wait()

    work = asyncio.create_task(fetch_model(PINNED, fetch.base, fetch.events.append, wait=wait))
    await at_the_pause.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert leftovers(hub_folder(REPO)) == [f"{SHA256}.part"]
    assert (await fetch(PINNED)).sha256 == SHA256
    assert hub.asked_store[-1].range == "bytes=200000-"


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
async def test_a_busy_server_is_asked_again(hub: HubServer, fetch: Work, status: int) -> None:
    hub.hub_faults.append(Fault(status=status, headers={"Retry-After": "7"}))
    hub.hub_faults.append(Fault(status=status))
    hub.store_faults.append(Fault(status=status, headers={"Retry-After": "30"}))
    assert (await fetch(PINNED)).sha256 == SHA256
    # The transfer begins at the Hub, too: its redirect is asked for anew each time.
    assert fetch.pauses_s == [7.0, 2.0, 30.0]
    assert any("next try in 7 s" in told.what for told in fetch.told())


@pytest.mark.parametrize("status", [429, 503])
async def test_a_server_that_stays_busy(hub: HubServer, fetch: Work, status: int) -> None:
    hub.store_faults.extend([Fault(status=status)] * 10)
    error = await fetch.refused(PINNED)
    assert f"{status}" in error.message
    assert len(fetch.pauses_s) == 5
    hub.hub_faults.extend([Fault(status=status)] * 10)
    assert f"{status}" in (await fetch.refused(PINNED)).message


async def test_a_server_that_asks_for_too_long_a_pause(hub: HubServer, fetch: Work) -> None:
    hub.store_faults.append(Fault(status=429, headers={"Retry-After": "3600"}))
    assert "too many requests" in (await fetch.refused(PINNED)).message
    assert fetch.pauses_s == []


async def test_two_at_once_fetch_once(hub: HubServer, fetch: Work) -> None:
    first, second = await asyncio.gather(fetch(PINNED), fetch(PINNED))
    assert {first.fetched, second.fetched} == {True, False}
    assert first.path == second.path
    assert len(hub.asked_store) == 1
    assert leftovers(hub_folder(REPO)) == []


# -- wrong content


async def test_a_wrong_hash_of_the_rig_is_seen_before_anything_comes(
    hub: HubServer, fetch: Work
) -> None:
    error = await fetch.refused(ModelFile(repo=REPO, file=FILE, sha256="0" * 64))
    assert error.evidence == (f"sha256 expected {'0' * 64}", f"sha256 found    {SHA256}")
    assert error.exit_code == ExitCode.FAILED
    assert hub.asked_store == []


async def test_wrong_bytes_of_the_right_size(hub: HubServer, fetch: Work) -> None:
    other = gguf(seed=3)
    hub.store_faults.append(Fault(content=other))
    error = await fetch.refused(PINNED)
    found = hashlib.sha256(other).hexdigest()
    assert error.evidence == (f"sha256 expected {SHA256}", f"sha256 found    {found}")
    assert resolve(PINNED, fetch.base) is None
    assert leftovers(hub_folder(REPO)) == []
    assert (await fetch(PINNED)).sha256 == SHA256


@pytest.mark.parametrize("change", [-5000, 5000])
async def test_wrong_sizes(hub: HubServer, fetch: Work, change: int) -> None:
    hub.store_faults.append(Fault(content=gguf(len(CONTENT) - 4 + change)))
    error = await fetch.refused(PINNED)
    announced, came = f"{len(CONTENT):,}", f"{len(CONTENT) + change:,}"
    assert f"{came} bytes where {announced} were announced" in error.message
    assert leftovers(hub_folder(REPO)) == []


@pytest.mark.parametrize(
    "fault",
    [
        Fault(raw=b"HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n\r\nabc"),
        Fault(
            raw=b"HTTP/1.1 206 OK\r\nContent-Range: bytes 7-9/10\r\nContent-Length: 3\r\n\r\nabc"
        ),
        Fault(raw=b"HTTP/1.1 206 OK\r\nContent-Range: kilos 1\r\nContent-Length: 3\r\n\r\nabc"),
        Fault(location="gopher://elsewhere/x"),
        Fault(location="http://[half"),
        Fault(location="/loop"),
    ],
)
async def test_nonsense_from_the_store(hub: HubServer, fetch: Work, fault: Fault) -> None:
    hub.store_faults.extend([fault] * 30)
    await fetch.refused(PINNED)
    assert resolve(PINNED, fetch.base) is None
    assert leftovers(hub_folder(REPO)) == []


@pytest.mark.parametrize("raw", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nCont"])
async def test_an_answer_that_is_none(hub: HubServer, fetch: Work, raw: bytes) -> None:
    hub.store_faults.append(Fault(raw=raw))
    assert (await fetch(PINNED)).sha256 == SHA256
    hub.store_faults.extend([Fault(raw=raw)] * 10)
    hub.add(REPO, "y.gguf", gguf(seed=6))
    await fetch.refused(ModelFile(repo=REPO, file="y.gguf"))


# -- plain URLs


def at(url: str, path: Path | str = "m/x.gguf", sha256: str | None = None) -> ModelFile:
    return ModelFile(path=str(path), url=url, sha256=sha256)


async def test_a_url_beside_a_path(hub: HubServer, fetch: Work) -> None:
    url = hub.add_plain("x.gguf", CONTENT)
    fetched = await fetch(at(url, sha256=SHA256))
    assert fetched == Fetched(
        path=str(fetch.base / "m/x.gguf"),
        source=url,
        size=len(CONTENT),
        sha256=SHA256,
        fetched=True,
    )
    assert (fetch.base / "m/x.gguf").read_bytes() == CONTENT
    assert not (await fetch(at(url))).fetched
    assert len(hub.asked_store) == 1
    assert "authorization" not in hub.asked_store[0].headers


async def test_a_wrong_hash_leaves_the_old_file(hub: HubServer, fetch: Work) -> None:
    path = fetch.base / "x.gguf"
    old = gguf(seed=4)
    path.write_bytes(old)
    url = hub.add_plain("x.gguf", CONTENT)
    error = await fetch.refused(at(url, path, sha256="0" * 64))
    assert error.evidence == (f"sha256 expected {'0' * 64}", f"sha256 found    {SHA256}")
    assert path.read_bytes() == old
    assert leftovers(fetch.base) == []
    assert (await fetch(at(url, path, sha256=SHA256))).fetched
    assert path.read_bytes() == CONTENT


async def test_a_file_of_ones_own_is_hashed_and_compared(hub: HubServer, fetch: Work) -> None:
    path = fetch.base / "x.gguf"
    path.write_bytes(CONTENT)
    assert (await fetch(ModelFile(path="x.gguf"))).sha256 == SHA256
    error = await fetch.refused(ModelFile(path="x.gguf", sha256="0" * 64))
    assert error.evidence[1].endswith(SHA256)
    error = await fetch.refused(ModelFile(path="y.gguf"))
    assert "does not say where to get it" in error.message


@pytest.mark.parametrize("pinned", [True, False])
async def test_only_a_pinned_url_is_taken_up_by_the_next_run(
    hub: HubServer, fetch: Work, pinned: bool
) -> None:
    """Without a hash nobody could tell a file that changed from one that did not."""
    file = at(hub.add_plain("x.gguf", CONTENT), sha256=SHA256 if pinned else None)
    hub.store_faults.append(Fault(cut=100_000))
    hub.store_faults.extend([Fault(cut=0)] * 10)
    await fetch.refused(file)
    hub.store_faults.clear()
    assert (await fetch(file)).sha256 == SHA256
    assert hub.asked_store[-1].range == ("bytes=100000-" if pinned else None)


async def test_a_url_whose_file_changes_meanwhile(hub: HubServer, fetch: Work) -> None:
    url = hub.add_plain("x.gguf", CONTENT)
    other = gguf(seed=8)
    hub.store_faults.append(Fault(cut=100_000))

    async def wait(_: float) -> None:
        hub.add_plain("x.gguf", other)

    fetched = await fetch_model(at(url), fetch.base, fetch.events.append, wait=wait)
    assert fetched.sha256 == hashlib.sha256(other).hexdigest()


async def test_a_url_with_secrets_is_told_without_them(hub: HubServer, fetch: Work) -> None:
    url = hub.add_plain("x.gguf", CONTENT) + f"?token={TOKEN}"
    hub.store_faults.extend([Fault(status=403), Fault(status=404), Fault(status=401)])
    for status in ("403", "404", "401"):
        error = await fetch.refused(at(url))
        assert status in error.message
        assert f"{hub.store}/plain/x.gguf" in error.message
    fetched = await fetch(at(url))
    assert TOKEN not in str(fetched)
    assert not any(TOKEN in str(event) for event in fetch.events)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<!DOCTYPE html><html>Sign in</html>", "a web page"),
        (b'{"error": "no"}', "a JSON answer"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"", "an empty file"),
    ],
)
async def test_what_comes_has_to_be_a_gguf(
    hub: HubServer, fetch: Work, content: bytes, what: str
) -> None:
    path = fetch.base / "x.gguf"
    for sha256 in (None, SHA256):
        error = await fetch.refused(at(hub.add_plain("x.gguf", content), path, sha256))
        assert what in error.message
    assert list(fetch.base.iterdir()) == []


async def test_a_split_model_behind_a_url(hub: HubServer, fetch: Work) -> None:
    names = [f"m-0000{number}-of-00002.gguf" for number in (1, 2)]
    contents = [gguf(1000, seed) for seed in (1, 2)]
    urls = [hub.add_plain(name, content) for name, content in zip(names, contents, strict=True)]
    fetched = await fetch(at(urls[0], names[0]))
    assert fetched.sha256 == hashlib.sha256(b"".join(contents)).hexdigest()
    (fetch.base / names[1]).unlink()
    assert (await fetch(at(urls[0], names[0], fetched.sha256))).fetched
    assert [asked.path for asked in hub.asked_store] == [
        f"/plain/{name}" for name in (*names, names[1])
    ]
    error = await fetch.refused(at(hub.add_plain("whole.gguf", CONTENT), f"x/{names[0]}"))
    assert "is one of 2 files" in error.message


async def test_a_linked_path_stays_linked(hub: HubServer, fetch: Work, tmp_path: Path) -> None:
    (fetch.base / "x.gguf").symlink_to(tmp_path / "elsewhere.gguf")
    await fetch(at(hub.add_plain("x.gguf", CONTENT), "x.gguf"))
    assert (fetch.base / "x.gguf").is_symlink()
    assert (tmp_path / "elsewhere.gguf").read_bytes() == CONTENT


# -- the disk


async def test_a_full_disk_is_seen_before_the_transfer(
    hub: HubServer, fetch: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=200_000))
    error = await fetch.refused(PINNED)
    assert "are still to come into" in error.message
    assert leftovers(hub_folder(REPO)) == []


async def test_a_disk_that_fills_up_keeps_what_came(
    hub: HubServer, fetch: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        error = await fetch.refused(PINNED)
    assert "No space left on device" in error.message
    assert "free some space" in error.hint
    hub.asked_store.clear()
    assert (await fetch(PINNED)).sha256 == SHA256
    assert hub.asked_store == []


async def test_a_folder_that_can_not_be_written(hub: HubServer, fetch: Work) -> None:
    (fetch.base / "m").write_text("a file")
    error = await fetch.refused(at(hub.add_plain("x.gguf", CONTENT)))
    assert "can't be written" in error.message


async def test_a_part_that_somebody_holds_is_waited_for(hub: HubServer, fetch: Work) -> None:
    part = hub_folder(REPO) / "blobs" / f"{SHA256}.part"
    part.parent.mkdir(parents=True)
    waits = asyncio.Event()

    def emit(event: Event) -> None:
        if isinstance(event, Progress) and "another tuirig is fetching it" in event.what:
            waits.set()

    with held(part):
        work = asyncio.create_task(fetch_model(PINNED, fetch.base, emit))
        await waits.wait()
        assert not work.done()
    assert (await work).fetched


@contextmanager
def held(path: Path) -> Iterator[None]:
    """As another process holds its part."""
    with open(path, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        yield


# -- what is told


async def test_progress_has_rate_and_time_left(hub: HubServer, fetch: Work) -> None:
    await fetch(PINNED)
    told = [event for event in fetch.told() if event.what == "fetching x.gguf"]
    assert (told[-1].done, told[-1].total, told[-1].unit) == (len(CONTENT), len(CONTENT), "B")
    assert [event.done for event in told] == sorted(event.done for event in told)
    assert told[-1].left_s in (0.0, None)


@pytest.mark.parametrize(
    ("header", "pause_s"),
    [
        ("12", 12.0),
        (" 0 ", 0.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("9" * 400, None),
        ("\u0661", None),
        ("", None),
        (None, None),
    ],
)
def test_pauses_that_servers_wish(header: Any, pause_s: float | None) -> None:
    assert wished_pause_s(header) == pause_s
