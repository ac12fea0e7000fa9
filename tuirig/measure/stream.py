"""The streaming client: one chat completion of llama-server, event by event.

Facts of the wire: the server advertises keep-alive and closes all the same, so each request asks
for `Connection: close`; one read may hold several events or a part of one; lines that begin with
`:` are pings; an error after the first byte comes as an event `{"error": ...}`; `[DONE]` ends a
reply; chunks are not tokens (count with `timings.predicted_n`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tuirig.engines.base import RunningServer
from tuirig.errors import ServerError

if TYPE_CHECKING:
    import httpx2

#: How long a dying server may take from closing its sockets to being gone.
_DYING_S = 1.0


class Timings(msgspec.Struct, frozen=True):
    """llama-server's own account so far. draft_n is absent while nothing was drafted."""

    prompt_n: int = 0
    prompt_ms: float = 0.0
    predicted_n: int = 0
    predicted_ms: float = 0.0
    draft_n: int | None = None
    draft_n_accepted: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """One event of a reply. at_ms: client's clock, since the request was sent.

    text: content or reasoning, both count. finish_reason: "stop", "length", ... in the last one.
    """

    at_ms: float
    text: str
    finish_reason: str
    timings: Timings | None


class Delta(msgspec.Struct, frozen=True):
    """New text."""

    content: str | None = None
    reasoning_content: str | None = None


class Choice(msgspec.Struct, frozen=True):
    """The one answer; there is never a second."""

    delta: Delta = Delta()
    finish_reason: str | None = None


class Event(msgspec.Struct, frozen=True):
    """One `data:` line of `/v1/chat/completions`. choices is empty in the one with the usage."""

    choices: tuple[Choice, ...] = ()
    timings: Timings | None = None
    error: Any = None


async def stream_chat(
    server: RunningServer,
    text: str,
    *,
    tokens: int,
    temperature: float,
    seed: int,
    on_chunk: Callable[[Chunk], None],
    connect_s: float = 5.0,
    silence_s: float = 600.0,
) -> None:
    """Send one user message and hand each event of the reply to on_chunk until `[DONE]`.

    silence_s: the longest time without an event, pings apart; a long prompt is silent until it
    has been read. Cancelling closes the connection, which stops the generation on the server.
    Raises ServerError: an error of the server's, its death, silence, or a reply cut short.
    """
    import httpx2

    body = {
        "messages": [{"role": "user", "content": text}],
        "stream": True,
        "timings_per_token": True,
        "cache_prompt": False,
        "temperature": temperature,
        "seed": seed,
        "max_tokens": tokens,
    }
    headers = {
        "Authorization": f"Bearer {server.api_key}",
        "Connection": "close",
        "Accept-Encoding": "identity",
    }
    loop_time = asyncio.get_running_loop().time
    try:
        async with (
            httpx2.AsyncClient(
                # The default certificates take 25 ms to load, which a plain http URL never needs.
                verify=server.url.startswith("https:"),
                trust_env=False,
                headers=headers,
                timeout=httpx2.Timeout(None, connect=connect_s),
            ) as client,
            asyncio.timeout(silence_s) as silence,
        ):
            sent_s = time.monotonic()
            async with client.stream("POST", f"{server.url}/v1/chat/completions", json=body) as got:
                if got.status_code != 200:
                    raise _refusal(got.status_code, await got.aread(), server)
                async with aclosing(read_events(got)) as events:
                    async for event in events:
                        at_ms = (time.monotonic() - sent_s) * 1000
                        silence.reschedule(loop_time() + silence_s)
                        if event.error is not None:
                            raise ServerError(
                                f"the server broke off the reply: {_error_text(event.error)}",
                                evidence=server.log_tail(5),
                            )
                        on_chunk(_chunk(event, at_ms))
    except TimeoutError:
        raise await _lost(server, f"the server sent nothing for {silence_s:g} s") from None
    except httpx2.TimeoutException:
        raise await _lost(
            server, f"the server did not accept a connection within {connect_s:g} s"
        ) from None
    except httpx2.ConnectError:
        raise await _lost(server, f"no server answers at {server.url}") from None
    except httpx2.TransportError as error:
        raise await _lost(server, f"the reply ended early: {error}") from None


async def read_events(response: httpx2.Response) -> AsyncGenerator[Event, None]:
    """The events of a response up to `[DONE]`, however its bytes were cut.

    Raises ServerError for an event that is not understood or a body that is no event stream,
    httpx2.RemoteProtocolError when the body ends without `[DONE]`.
    """
    import httpx2

    content_type = response.headers.get("content-type", "")
    if not content_type.lower().startswith("text/event-stream"):
        raise ServerError(
            f"the server answered with {content_type or 'no content type'} instead of a stream",
            evidence=_first_line(await response.aread()),
        )
    decode = msgspec.json.Decoder(Event).decode
    # It is a generator: closed here and now, not when the garbage collector finds it.
    messages = cast(
        "AsyncGenerator[httpx2.ServerSentEvent, None]", aiter(httpx2.EventSource(response))
    )
    async with aclosing(messages):
        async for message in messages:
            if message.data == "[DONE]":
                return
            try:
                event = decode(message.data)
            except msgspec.DecodeError as error:
                raise ServerError(
                    f"the server sent an event that is not understood: {error}",
                    evidence=(message.data[:200],),
                ) from None
            yield event
    raise httpx2.RemoteProtocolError("the stream has no end mark")


def _chunk(event: Event, at_ms: float) -> Chunk:
    choice = event.choices[0] if event.choices else Choice()
    return Chunk(
        at_ms=at_ms,
        text=(choice.delta.reasoning_content or "") + (choice.delta.content or ""),
        finish_reason=choice.finish_reason or "",
        timings=event.timings,
    )


async def _lost(server: RunningServer, message: str) -> ServerError:
    """The server's death with its own reason if it died, else an error with this message.

    The sockets of a dying process close before it can be seen to be gone: look for a while.
    """
    deadline = time.monotonic() + _DYING_S
    while True:
        try:
            server.check_alive()
        except ServerError as death:
            return death
        if time.monotonic() >= deadline:
            return ServerError(message, evidence=server.log_tail(5))
        await asyncio.sleep(0.02)


def _refusal(status: int, body: bytes, server: RunningServer) -> ServerError:
    """What a status other than 200 means. The body is `{"error": {"message", "type", ...}}`."""
    try:
        error = msgspec.json.decode(body)["error"]
        text = _error_text(error)
    except (msgspec.DecodeError, KeyError, TypeError):
        return ServerError(f"the server answered with {status}", evidence=_first_line(body))
    kind = error.get("type", "") if isinstance(error, dict) else ""
    if kind == "exceed_context_size_error":
        return ServerError(
            f"the prompt does not fit: {text}",
            hint="give the rig's server a larger -c, or use a shorter prompt",
        )
    if status == 401:
        return ServerError(
            f"the server refused the key: {text}",
            hint="another server answers on this port; restart with a port of its own",
        )
    if status == 503:
        return ServerError(f"the server is not ready: {text}", hint="wait until it has loaded")
    evidence = server.log_tail(5) if status >= 500 else ()
    return ServerError(f"the server answered with {status}: {text}", evidence=evidence)


def _error_text(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or error)


def _first_line(body: bytes) -> tuple[str, ...]:
    line = body[:200].decode(errors="replace").strip().partition("\n")[0]
    return (line,) if line else ()
