from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from tests.measure.fake_server import (
    DONE,
    END_OF_BODY,
    STREAM_HEAD,
    Answer,
    Client,
    FakeRunning,
    chunk,
    event,
    fake_server,
    refusal,
    stream,
)
from tuirig.errors import ExitCode, ServerError
from tuirig.measure.stream import Chunk, Event, read_events, stream_chat


@pytest.fixture(autouse=True)
def short_agony(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuirig.measure.stream._DYING_S", 0.1)


async def chunks_of(running: FakeRunning, **options: Any) -> list[Chunk]:
    chunks: list[Chunk] = []
    await stream_chat(
        running,
        "hello",
        tokens=16,
        temperature=0.0,
        seed=42,
        on_chunk=chunks.append,
        **options,
    )
    return chunks


async def failure_of(answer: Answer, *, fields: dict[str, Any] = {}, **options: Any) -> ServerError:  # noqa: B006
    async with fake_server(answer, **fields) as running:
        with pytest.raises(ServerError) as caught:
            await chunks_of(running, **options)
    assert caught.value.exit_code is ExitCode.SERVER
    return caught.value


def text_of(chunks: list[Chunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


REPLY = (
    b'data: {"choices":[{"finish_reason":null,"index":0,'
    b'"delta":{"role":"assistant","content":null}}]}\n\n'
    + event("Gr", n=1, ms=0.001)
    + b":\n\n"
    + event("\u2028ü\u0085ße \U0001f99c", n=4, ms=30.0, drafted=6, accepted=2)
    + b": a ping\r\n\r\n"
    + event(finish="length", n=6, ms=50.0, drafted=9, accepted=3)
    + b'data: {"choices":[],"usage":{"completion_tokens":6}}\n\n'
    + DONE
)


async def events_of(pieces: list[bytes]) -> list[Event]:
    async def body() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    response = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        content=body(),
        request=httpx2.Request("POST", "http://server"),
    )
    return [event async for event in read_events(response)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
async def test_any_cut_of_the_bytes_gives_the_same_events(line_end: bytes) -> None:
    reply = REPLY.replace(b"\r\n", b"\n").replace(b"\n", line_end)
    whole = await events_of([reply])
    assert [e.timings.predicted_n for e in whole if e.timings] == [1, 4, 6]
    assert "".join(e.choices[0].delta.content or "" for e in whole if e.choices) == (
        "Gr\u2028ü\u0085ße \U0001f99c"
    )
    for size in (1, 2, 3, 7, 64):
        pieces = [reply[at : at + size] for at in range(0, len(reply), size)]
        assert await events_of(pieces) == whole, size
    for at in range(1, len(reply)):
        assert await events_of([reply[:at], reply[at:]]) == whole, at
    seeded = random.Random(1)
    for _ in range(200):
        cuts = sorted(seeded.sample(range(1, len(reply)), seeded.randint(2, 12)))
        edges = [0, *cuts, len(reply)]
        pieces = [reply[a:b] for a, b in itertools.pairwise(edges)]
        assert await events_of(pieces) == whole, cuts


async def test_the_request_is_the_methods() -> None:
    async with fake_server(stream(DONE)) as running:
        await chunks_of(running)
    (request,) = running.requests
    assert request.body == {
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "timings_per_token": True,
        "cache_prompt": False,
        "temperature": 0.0,
        "seed": 42,
        "max_tokens": 16,
    }
    assert request.headers["connection"] == "close"
    assert request.headers["authorization"] == "Bearer key"


async def test_a_proxy_of_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    async with fake_server(stream(event("hi", n=1), DONE)) as running:
        assert text_of(await chunks_of(running)) == "hi"


async def test_several_events_in_one_chunk_and_one_event_over_several() -> None:
    parts = [REPLY[:200], REPLY[200:201], REPLY[201:]]
    async with fake_server(stream(*parts)) as running:
        chunks = await chunks_of(running)
    assert text_of(chunks) == "Gr\u2028ü\u0085ße \U0001f99c"
    last = [chunk.timings for chunk in chunks if chunk.timings][-1]
    assert (last.predicted_n, last.draft_n, last.draft_n_accepted) == (6, 9, 3)
    assert [chunk.finish_reason for chunk in chunks if chunk.finish_reason] == ["length"]
    times = [chunk.at_ms for chunk in chunks]
    assert times == sorted(times)
    assert times[0] > 0


async def test_reasoning_is_text() -> None:
    parts = event(reasoning="hm", n=1), event(reasoning=", so", n=2), event("Yes", n=3), DONE
    async with fake_server(stream(*parts)) as running:
        assert text_of(await chunks_of(running)) == "hm, soYes"


async def test_a_server_that_closes_after_each_reply_answers_twenty_in_a_row() -> None:
    async with fake_server(stream(event("hi", n=1), DONE)) as running:
        for _ in range(20):
            assert text_of(await chunks_of(running)) == "hi"


async def test_a_slow_first_byte_is_waited_for() -> None:
    asked, ready = asyncio.Event(), asyncio.Event()

    async def answer(client: Client) -> None:
        asked.set()
        await ready.wait()
        await client.send(STREAM_HEAD, chunk(event("late", n=1)), chunk(DONE), END_OF_BODY)

    async with fake_server(answer) as running:
        task = asyncio.create_task(chunks_of(running, connect_s=0.5))
        async with asyncio.timeout(5):
            await asked.wait()
        assert not task.done()
        ready.set()
        assert text_of(await task) == "late"


async def test_an_error_inside_the_stream() -> None:
    late = (
        b'data: {"error":{"code":500,"message":"context shift failed","type":"server_error"}}\n\n'
    )
    error = await failure_of(
        stream(event("a", n=1), late), fields={"log": ("0.1 E srv something",)}
    )
    assert error.message == "the server broke off the reply: context shift failed"
    assert error.evidence == ("0.1 E srv something",)


@pytest.mark.parametrize(
    ("status", "body", "message", "hint"),
    [
        (
            400,
            {
                "code": 400,
                "message": "request (6001 tokens) exceeds the available context size (1024 tokens)",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 6001,
                "n_ctx": 1024,
            },
            "the prompt does not fit: request (6001 tokens) exceeds",
            "larger -c",
        ),
        (
            400,
            {"code": 400, "message": "'messages' is required", "type": "invalid_request_error"},
            "the server answered with 400: 'messages' is required",
            "",
        ),
        (
            401,
            {"code": 401, "message": "Invalid API Key", "type": "authentication_error"},
            "the server refused the key: Invalid API Key",
            "another server",
        ),
        (
            500,
            {"code": 500, "message": "decode() failed", "type": "server_error"},
            "the server answered with 500: decode() failed",
            "",
        ),
        (
            503,
            {"code": 503, "message": "Loading model", "type": "unavailable_error"},
            "the server is not ready: Loading model",
            "wait",
        ),
    ],
)
async def test_error_bodies_are_understood(
    status: int, body: dict[str, Any], message: str, hint: str
) -> None:
    error = await failure_of(refusal(status, json.dumps({"error": body}).encode()))
    assert error.message.startswith(message)
    assert hint in error.hint


@pytest.mark.parametrize(
    "body", [b"<h1>Bad gateway</h1>\n<p>nginx", b'"Bad gateway"', b'{"detail": "Bad gateway"}', b""]
)
async def test_an_error_body_that_is_not_the_servers(body: bytes) -> None:
    error = await failure_of(refusal(502, body, "text/html"))
    assert error.message == "the server answered with 502"
    assert "".join(error.evidence) == body.decode().partition("\n")[0]


async def test_an_error_that_is_only_a_text() -> None:
    error = await failure_of(refusal(404, b'{"error": "no such model"}'))
    assert error.message == "the server answered with 404: no such model"


async def test_an_answer_that_is_no_stream() -> None:
    error = await failure_of(refusal(200, b'{"choices":[]}'))
    assert error.message == "the server answered with application/json instead of a stream"
    assert error.evidence == ('{"choices":[]}',)


async def test_an_event_that_is_not_understood() -> None:
    error = await failure_of(stream(b"data: {half\n\n", DONE))
    assert "not understood" in error.message
    assert error.evidence == ("{half",)


async def cut_chunks(client: Client) -> None:
    await client.send(STREAM_HEAD, chunk(event("half", n=1)))


async def complete_without_end_mark(client: Client) -> None:
    await client.send(STREAM_HEAD, chunk(event("half", n=1)), END_OF_BODY)


async def nothing_at_all(client: Client) -> None:
    return None


@pytest.mark.parametrize("answer", [cut_chunks, complete_without_end_mark, nothing_at_all])
async def test_a_reply_that_just_ends(answer: Answer) -> None:
    error = await failure_of(answer, fields={"log": ("last line",)})
    assert error.message.startswith("the reply ended early")
    assert error.evidence == ("last line",)


@pytest.mark.parametrize("answer", [cut_chunks, nothing_at_all])
async def test_a_dying_server_is_reported_as_its_death(answer: Answer) -> None:
    death = ServerError("the server died with SIGABRT", evidence=("GGML_ASSERT",))
    error = await failure_of(answer, fields={"dead": death, "alive_checks_before_death": 3})
    assert error is death


async def test_nobody_listens() -> None:
    async with fake_server(stream(DONE)) as running:
        pass
    with pytest.raises(ServerError, match="no server answers at http://127"):
        await chunks_of(running)


async def test_silence_ends_the_wait_although_pings_arrive() -> None:
    async def answer(client: Client) -> None:
        await client.send(STREAM_HEAD, chunk(event("a", n=1)))
        while True:
            await client.send(chunk(b":\n\n"))
            await asyncio.sleep(0.01)

    error = await failure_of(answer, silence_s=0.2)
    assert error.message == "the server sent nothing for 0.2 s"


async def test_a_reply_that_never_ends_can_be_cancelled_and_the_server_sees_it() -> None:
    gone = asyncio.Event()

    async def answer(client: Client) -> None:
        await client.send(STREAM_HEAD, chunk(event("a", n=1)))
        await client.gone()
        gone.set()

    async with fake_server(answer) as running:
        started = asyncio.Event()
        task = asyncio.create_task(
            stream_chat(
                running,
                "hello",
                tokens=16,
                temperature=0.0,
                seed=42,
                on_chunk=lambda _: started.set(),
            )
        )
        async with asyncio.timeout(5):
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone.wait()
