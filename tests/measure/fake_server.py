"""A server that misbehaves on demand, on a real socket, and the RunningServer in front of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tuirig.engines.base import Command, Counters
from tuirig.errors import ServerError
from tuirig.records import MemoryParts, Reply
from tuirig.rigs.settings import NONE, Setting


@dataclass
class Request:
    """What arrived."""

    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Client:
    """The server's end of one connection."""

    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    async def send(self, *parts: bytes) -> None:
        """Each part in a segment of its own as far as the system allows it."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def gone(self) -> None:
        """Wait until the client has closed its side."""
        while await self.reader.read(1024):
            pass


Answer = Callable[[Client], Awaitable[None]]


@dataclass
class FakeRunning:
    """A RunningServer: everything can be set by the test."""

    url: str = "http://127.0.0.1:9"
    api_key: str = "key"
    pid: int = 1
    build: str = "fake"
    setting: Setting = NONE
    command: Command = field(default_factory=lambda: Command(("llama-server", "-m", "x.gguf")))
    ready_s: float = 0.5
    warm_up: Reply = field(default_factory=lambda: Reply(prompt_id="warm-up", kind=""))
    memory_parts: MemoryParts = field(default_factory=MemoryParts)
    speculative: bool | None = False
    totals: list[Counters | None] = field(default_factory=list)
    dead: ServerError | None = None
    alive_checks_before_death: int = 0
    log: tuple[str, ...] = ()
    silent_evidence: tuple[str, ...] = ()
    requests: list[Request] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def check_alive(self) -> None:
        if self.dead is None:
            return
        if self.alive_checks_before_death > 0:
            self.alive_checks_before_death -= 1
            return
        raise self.dead

    async def is_speculative(self) -> bool | None:
        self.calls.append("is_speculative")
        return self.speculative

    async def counters(self) -> Counters | None:
        """The next of `totals`, the last one again when they run out."""
        self.calls.append("counters")
        if not self.totals:
            return None
        return self.totals.pop(0) if len(self.totals) > 1 else self.totals[0]

    async def wait_idle(self, timeout_s: float = 5.0) -> None:
        return None

    def log_tail(self, lines: int = 40) -> tuple[str, ...]:
        return self.log[-lines:]

    def silent_drafter_evidence(self) -> tuple[str, ...]:
        return self.silent_evidence


@asynccontextmanager
async def fake_server(answer: Answer, **fields: Any) -> AsyncIterator[FakeRunning]:
    """A server that gives every request the same answer."""
    running = FakeRunning(**fields)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            pairs = (line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            running.requests.append(Request(headers, json.loads(body)))
            running.calls.append("request")
            await answer(Client(writer, reader))
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        running.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield running


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
    b"Keep-Alive: timeout=5, max=100\r\nTransfer-Encoding: chunked\r\n\r\n"
)
END_OF_BODY = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def event(
    text: str | None = None,
    *,
    reasoning: str | None = None,
    finish: str | None = None,
    n: int | None = None,
    ms: float = 0.0,
    drafted: int | None = None,
    accepted: int | None = None,
) -> bytes:
    """One event as llama-server writes it; n None: without timings."""
    delta: dict[str, Any] = {}
    if text is not None:
        delta["content"] = text
    if reasoning is not None:
        delta["reasoning_content"] = reasoning
    data: dict[str, Any] = {
        "choices": [{"finish_reason": finish, "index": 0, "delta": delta}],
        "created": 1,
        "model": "x.gguf",
        "object": "chat.completion.chunk",
    }
    if n is not None:
        data["timings"] = {"cache_n": 0, "prompt_n": 7, "prompt_ms": 3.5, "predicted_n": n}
        data["timings"] |= {"predicted_ms": ms, "predicted_per_second": 0.0}
        if drafted is not None:
            data["timings"] |= {"draft_n": drafted, "draft_n_accepted": accepted}
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def stream(*parts: bytes) -> Answer:
    """An answer: a whole event stream, every part a chunk."""

    async def answer(client: Client) -> None:
        await client.send(STREAM_HEAD, *(chunk(part) for part in parts), END_OF_BODY)

    return answer


def refusal(status: int, body: bytes, content_type: str = "application/json") -> Answer:
    """An answer: a status with a body."""

    async def answer(client: Client) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\n"
        await client.send(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    return answer
