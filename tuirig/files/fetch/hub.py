"""Files of a Hub repository: what the Hub says of them, and their place in its cache.

The cache has the layout of huggingface_hub, so that it and llama.cpp find what is put there: blobs
by their ETag, snapshots/<commit>/<file> as links to them, refs/<revision> with the commit. The
transfer is tuirig's own, because `hf_hub_download` starts anew after every interruption and gives
a file its name unchecked.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tuirig.atomic import write_atomically
from tuirig.errors import TuirigError
from tuirig.files.fetch.refusals import AskedHub
from tuirig.files.fetch.retrying import PASSING, PassingError, Wait, persistently, wished_pause_s
from tuirig.files.fetch.transfer import unreachable
from tuirig.files.models import hub_folder
from tuirig.rigs.shards import shards_of

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_ETAG = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,127}")
_TIMEOUT_S = 15.0
_TRUE = ("1", "ON", "YES", "TRUE")


@dataclass(frozen=True)
class HubFile:
    """A file as the Hub describes it. sha256: None for one that is not in LFS or Xet."""

    asked: AskedHub
    url: str
    headers: Mapping[str, str] = field(repr=False)
    commit: str
    etag: str
    size: int | None

    @property
    def sha256(self) -> str | None:
        """The content's hash, which is the ETag of large files."""
        return self.etag if _SHA256.fullmatch(self.etag) else None

    @property
    def blob(self) -> Path:
        """Its content's place in the cache."""
        return hub_folder(self.asked.repo) / "blobs" / self.etag

    @property
    def place(self) -> Path:
        """Its name in the cache."""
        return hub_folder(self.asked.repo) / "snapshots" / self.commit / self.asked.file


def is_commit(revision: str | None) -> bool:
    """Whether a revision is a whole commit hash, which names the same for ever."""
    return revision is not None and _COMMIT.fullmatch(revision) is not None


def is_offline() -> bool:
    """Whether the Hub must not be asked."""
    wish = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return wish.upper() in _TRUE


def endpoint() -> str:
    """The Hub's address: HF_ENDPOINT, or the public one."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


async def look_up(
    repo: str, file: str, revision: str, tell: Callable[[str, float], None], wait: Wait
) -> tuple[HubFile, ...]:
    """What the Hub says of a file, and of the other shards of a split one at the same commit.

    tell: called with the cause and the pause before the Hub is asked again. Raises MissingError or
    TuirigError.
    """
    found: list[HubFile] = []
    for shard in shards_of(Path(file)):
        at = found[0].commit if found else revision
        ask = partial(asyncio.to_thread, _ask, repo, shard.as_posix(), at)
        found.append(await persistently(ask, progress=lambda: None, tell=tell, wait=wait))
    return tuple(found)


def commit_of(path: Path, repo: str) -> str:
    """The commit of a file in the cache."""
    return path.relative_to(hub_folder(repo) / "snapshots").parts[0]


def _ask(repo: str, file: str, revision: str) -> HubFile:
    import httpx2
    from huggingface_hub import constants, get_hf_file_metadata, get_token, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    address = endpoint()
    asked = AskedHub(repo, file, revision, address, has_token=token is not None)
    try:
        url = hf_hub_url(repo, file, revision=revision, endpoint=address)
        found = get_hf_file_metadata(
            url, token=token or False, timeout=_TIMEOUT_S, library_name="tuirig", endpoint=address
        )
    except HfHubHTTPError as error:
        answer = error.response
        refusal = asked.refused(answer.status_code, answer.headers.get("X-Error-Code", ""))
        if answer.status_code in PASSING:
            pause_s = wished_pause_s(answer.headers.get("Retry-After"))
            raise PassingError(refusal, pause_s) from None
        raise refusal from None
    except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
        raise unreachable(address, str(error) or type(error).__name__) from None
    except httpx2.TransportError as error:
        raise PassingError(unreachable(address, str(error) or type(error).__name__)) from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise TuirigError(
            f"{repo} at {address} can't be asked for: {error}",
            hint="look at the repo in the rig, and at HF_ENDPOINT",
        ) from None
    commit, etag = found.commit_hash or "", found.etag or ""
    if not _COMMIT.fullmatch(commit) or not _ETAG.fullmatch(etag):
        raise TuirigError(
            f"{address} does not answer like the Hub: {'ETag' if commit else 'commit'} is missing",
            hint="look at HF_ENDPOINT and at proxy settings",
        )
    url = hf_hub_url(repo, file, revision=commit, endpoint=address)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return HubFile(asked, url, headers, commit, etag, found.size)


def put_in_cache(file: HubFile, revision: str) -> None:
    """Give a blob that is there its name in the cache, and note what the revision is now."""
    file.place.parent.mkdir(parents=True, exist_ok=True)
    _link(file.blob, file.place)
    if revision != file.commit:
        write_atomically(hub_folder(file.asked.repo) / "refs" / revision, file.commit)


def _link(blob: Path, place: Path) -> None:
    """A relative link, as the cache has them; the file itself where there can be none."""
    target = os.path.relpath(blob, place.parent)
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}.tmp")
    try:
        os.symlink(target, temporary)
    except OSError:
        os.replace(blob, place)
    else:
        os.replace(temporary, place)
