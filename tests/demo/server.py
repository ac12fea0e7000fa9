"""A llama-server for one test, started by hand: these tests stand below the engine's."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuirig.rigs.schema import Drafter, Rig

PROMPTS = (
    "Explain how a class statement creates a new object.",
    "Write a short list of things to check before a long trip.",
)


@dataclass(frozen=True)
class Answer:
    """Greedy text and what was drafted for it."""

    text: str
    drafted: int
    accepted: int


@dataclass(frozen=True)
class Server:
    """A server that is ready."""

    url: str

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """An answer as JSON."""
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            answer: dict[str, Any] = json.load(response)
            return answer

    def answers(self, tokens: int) -> list[Answer]:
        """The greedy replies to PROMPTS."""
        replies = [
            self.post(
                "/v1/chat/completions",
                {
                    "messages": [{"role": "user", "content": prompt}],
                    "max_tokens": tokens,
                    "temperature": 0,
                    "cache_prompt": False,
                },
            )
            for prompt in PROMPTS
        ]
        return [
            Answer(
                reply["choices"][0]["message"]["content"],
                reply["timings"].get("draft_n", 0),
                reply["timings"].get("draft_n_accepted", 0),
            )
            for reply in replies
        ]


@contextmanager
def running(rig: Rig, drafter: Drafter | None = None, length: int = 0) -> Iterator[Server]:
    """The rig's server, with a drafter or without."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [rig.server.program, "-m", str(rig.target.path), *rig.server.args]
    command += ["--host", "127.0.0.1", "--port", str(port), "-np", "1", "--no-ui"]
    if drafter:
        flag = (
            "--spec-ngram-map-k-size-m" if drafter.type == "ngram-map-k" else "--spec-draft-n-max"
        )
        command += ["--spec-type", drafter.type, flag, str(length), *drafter.args]
        if drafter.path:
            command += ["-md", drafter.path]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=rig.server.env or None
    ) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(url, process)
            yield Server(url)
        finally:
            process.kill()


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, f"the server ended with code {process.returncode}"
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except urllib.error.HTTPError as error:  # 503 while it loads
            error.close()
        except OSError:
            pass
        time.sleep(0.02)
    raise AssertionError("the server did not get ready")


def with_target(rig: Rig, target: Path) -> Rig:
    """The rig with another target file."""
    import msgspec

    return msgspec.structs.replace(
        rig, target=msgspec.structs.replace(rig.target, path=str(target))
    )
