from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.measure.fake_server import (
    DONE,
    END_OF_BODY,
    STREAM_HEAD,
    Client,
    FakeRunning,
    chunk,
    event,
    fake_server,
    stream,
)
from tuirig.engines.base import Counters
from tuirig.errors import ServerError
from tuirig.events import Event, ReplyDone, ReplyStarted, TextArrived, ignore
from tuirig.measure.prompts import prompt
from tuirig.measure.reply import Received, decode_speed, measure_reply
from tuirig.measure.stream import Chunk, Timings
from tuirig.records import Reading, Reply
from tuirig.rigs.settings import parse_setting

PROMPT = prompt("code-1")


async def measured(running: FakeRunning, **options: Any) -> Reply:
    return await measure_reply(running, PROMPT, **({"order": 3, "emit": ignore} | options))


def drafted_reply(end: str = "length") -> Any:
    return stream(
        event("One", n=1, ms=0.0),
        event(" two three", n=3, ms=10.0, drafted=2, accepted=1),
        event(" four", n=5, ms=20.0, drafted=6, accepted=2),
        event(finish=end, n=6, ms=25.0, drafted=6, accepted=2),
        DONE,
    )


TOTALS = [
    Counters(predicted=16, drafts=5, drafted=10, accepted=6, per_position=(4, 2)),
    Counters(predicted=22, drafts=7, drafted=16, accepted=8, per_position=(5, 3)),
]


@pytest.mark.parametrize(
    ("n", "ms", "expected"),
    [(128, 1270.0, 100.0), (2, 10.0, 100.0), (1, 0.001, None), (0, 0.0, None), (5, 0.0, None)],
)
def test_the_first_token_is_free(n: int, ms: float, expected: float | None) -> None:
    assert decode_speed(Timings(predicted_n=n, predicted_ms=ms)) == expected


async def test_every_figure_of_a_drafted_reply() -> None:
    async with fake_server(
        drafted_reply(), setting=parse_setting("q4_0:2"), speculative=True, totals=[*TOTALS]
    ) as running:
        reply = await measured(running, tokens=6, temperature=0.8, seed=7)
    assert reply.text == "One two three four"
    assert reply.text_sha256 == hashlib.sha256(b"One two three four").hexdigest()
    assert (reply.prompt_id, reply.kind, reply.order) == ("code-1", "code", 3)
    assert (reply.token_limit, reply.temperature, reply.seed) == (6, 0.8, 7)
    assert (reply.finish_reason, reply.ended_by_itself) == ("length", False)
    assert (reply.prompt_n, reply.prompt_ms) == (7, 3.5)
    assert (reply.predicted_n, reply.predicted_ms) == (6, 25.0)
    assert reply.tok_s == 200.0
    assert (reply.drafted, reply.accepted, reply.kept) == (6, 2, pytest.approx(1 / 3))
    assert (reply.steps, reply.drafts) == (3, 2)
    assert reply.accepted_per_position == (0.5, 0.5)
    assert reply.mean_accepted_length == 2.0
    assert reply.speculative is True
    assert reply.ttft_ms is not None
    assert reply.client_ms is not None
    assert 0 < reply.ttft_ms <= reply.client_ms
    assert reply.client_ms > 0


async def test_a_reply_without_drafts_leaves_them_unknown() -> None:
    answer = stream(
        event("a", n=1), event("b", n=2, ms=10.0), event(finish="stop", n=2, ms=10.0), DONE
    )
    async with fake_server(
        answer, totals=[Counters(predicted=1), Counters(predicted=3)]
    ) as running:
        reply = await measured(running)
    assert (reply.drafted, reply.accepted, reply.kept) == (None, None, None)
    assert reply.accepted_per_position is None
    assert reply.steps == 1
    assert reply.ended_by_itself
    assert reply.speculative is False


async def test_the_stream_of_events() -> None:
    events: list[Event] = []
    async with fake_server(drafted_reply(), setting=parse_setting("q4_0:2")) as running:
        reply = await measured(running, tokens=6, emit=events.append)
    assert events == [
        ReplyStarted(setting="q4_0:2", prompt_id="code-1", kind="code", token_limit=6),
        TextArrived(text="One", predicted_n=1, tok_s=None),
        TextArrived(text=" two three", predicted_n=3, tok_s=200.0),
        TextArrived(text=" four", predicted_n=5, tok_s=200.0),
        ReplyDone(setting="q4_0:2", reply=reply),
    ]


async def test_nothing_is_asked_between_the_request_and_its_end() -> None:
    async with fake_server(drafted_reply(), totals=[*TOTALS]) as running:

        async def read() -> Reading:
            running.calls.append("read")
            return Reading(at_s=float(len(running.calls)))

        reply = await measured(running, read=read)
    assert running.calls == ["is_speculative", "counters", "read", "request", "read", "counters"]
    assert reply.reading_before == Reading(at_s=3.0)
    assert reply.reading_after == Reading(at_s=5.0)


async def test_counters_that_move_late_are_waited_for() -> None:
    totals = [TOTALS[0], TOTALS[0], TOTALS[0], TOTALS[1]]
    async with fake_server(
        drafted_reply(), setting=parse_setting("q4_0:2"), totals=totals
    ) as running:
        reply = await measured(running)
    assert reply.drafts == 2


@pytest.mark.parametrize(
    "totals",
    [
        [],
        [
            TOTALS[0],
            Counters(predicted=99, drafts=50, drafted=80, accepted=40, per_position=(9, 9)),
        ],
        [TOTALS[0]],
    ],
    ids=["none", "of another reply", "never move"],
)
async def test_counters_that_do_not_tell_of_this_reply_are_not_used(
    totals: list[Counters | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.measure.reply._COUNTERS_S", 0.1)
    async with fake_server(
        drafted_reply(), setting=parse_setting("q4_0:2"), totals=[*totals]
    ) as running:
        reply = await measured(running)
    assert (reply.drafts, reply.accepted_per_position) == (None, None)
    assert (reply.steps, reply.mean_accepted_length) == (3, pytest.approx(5 / 3))


async def test_a_reply_of_reasoning_alone_is_measured() -> None:
    answer = stream(event(reasoning="hm", n=1), event(finish="length", n=3, ms=10.0), DONE)
    async with fake_server(answer) as running:
        reply = await measured(running)
    assert reply.text == "hm"
    assert reply.ttft_ms is not None
    assert reply.tok_s == 200.0


async def test_chunks_are_not_tokens() -> None:
    answer = stream(event("ab", n=2, ms=5.0), event("cdefgh", n=8, ms=35.0), DONE)
    async with fake_server(answer) as running:
        assert (await measured(running)).tok_s == 200.0


@pytest.mark.parametrize(
    ("client_ms", "server_ms", "differs"),
    [
        (1000.0, 1000.0, False),
        (1029.0, 1000.0, False),  # 2.9 %
        (1031.0, 1000.0, True),
        (970.0, 1001.0, True),
        (119.0, 100.0, False),  # 19 ms
        (121.0, 100.0, True),
        (515.0, 500.0, False),
    ],
)
def test_clocks_are_compared_from_the_first_token_on(
    client_ms: float, server_ms: float, differs: bool
) -> None:
    received = Received(ignore)
    received.take(Chunk(250.0, "", "", Timings(predicted_n=0)))
    received.take(Chunk(300.0, "", "", Timings(predicted_n=1, predicted_ms=2.0)))
    received.take(Chunk(310.0, "a", "", Timings(predicted_n=2, predicted_ms=12.0)))
    end = Timings(predicted_n=9, predicted_ms=2.0 + server_ms)
    received.take(Chunk(300.0 + client_ms, "", "length", end))
    assert received.clock_differs() is differs
    assert received.ttft_ms == 310.0


async def test_a_flag_reaches_the_reply() -> None:
    claims_ten_seconds = stream(event("a", n=1), event("b", n=2, ms=10_000.0), DONE)
    async with fake_server(claims_ten_seconds) as running:
        assert (await measured(running)).clock_differs


async def test_a_reply_without_timings_is_no_measurement() -> None:
    async with fake_server(stream(event("a"), DONE)) as running:
        with pytest.raises(ServerError, match="no timings"):
            await measured(running)


async def test_a_failed_reply_is_started_and_never_done() -> None:
    events: list[Event] = []

    async def dies(client: Client) -> None:
        await client.send(STREAM_HEAD, chunk(event("a", n=1)))

    death = ServerError("the server died with SIGKILL")
    async with fake_server(dies, dead=death) as running:
        with pytest.raises(ServerError) as caught:
            await measured(running, emit=events.append)
    assert caught.value is death
    assert [type(event) for event in events] == [ReplyStarted, TextArrived]


async def test_an_empty_reply_has_no_speed() -> None:
    async def empty(client: Client) -> None:
        body = chunk(event(finish="stop", n=1, ms=0.01)), chunk(DONE), END_OF_BODY
        await client.send(STREAM_HEAD, *body)

    async with fake_server(empty) as running:
        reply = await measured(running)
    assert (reply.text, reply.tok_s, reply.ttft_ms) == ("", None, None)
    assert reply.steps == 0
