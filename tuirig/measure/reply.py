"""One measured generation (method: "One reply")."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tuirig.engines.base import Counters, RunningServer
from tuirig.errors import ServerError
from tuirig.events import Emit, ReplyDone, ReplyStarted, TextArrived
from tuirig.measure.acceptance import acceptance, moved
from tuirig.measure.prompts import Prompt
from tuirig.measure.stream import Chunk, Timings, stream_chat
from tuirig.records import Reading, Reply

#: How long the counters may take to move after the last byte.
_COUNTERS_S = 2.0


def decode_speed(timings: Timings) -> float | None:
    """Tokens per second: (predicted_n - 1) * 1000 / predicted_ms, None before the second token.

    The first token comes with the prompt and is free; the server's own figure counts it in some
    builds.
    """
    if timings.predicted_n < 2 or timings.predicted_ms <= 0:
        return None
    return (timings.predicted_n - 1) * 1000 / timings.predicted_ms


async def measure_reply(
    server: RunningServer,
    prompt: Prompt,
    *,
    order: int,
    tokens: int = 128,
    temperature: float = 0.0,
    seed: int = 42,
    emit: Emit,
    read: Callable[[], Awaitable[Reading]] | None = None,
    keep: Callable[[Reply], Awaitable[None]] | None = None,
) -> Reply:
    """Generate one reply and measure it.

    read: takes a reading of the card; awaited before the request and after the reply, like every
    other question to the server, never between. keep: stores the reply, before ReplyDone tells of
    it. Emits ReplyStarted, a TextArrived per event with
    text, and ReplyDone. Cancelling stops the generation; the caller then awaits
    server.wait_idle() before the next request. Raises ServerError.
    """
    setting = str(server.setting)
    speculative = await server.is_speculative()
    before = await server.counters()
    reading_before = await read() if read else None

    emit(ReplyStarted(setting=setting, prompt_id=prompt.id, kind=prompt.kind, token_limit=tokens))
    received = Received(emit)
    await stream_chat(
        server,
        prompt.text,
        tokens=tokens,
        temperature=temperature,
        seed=seed,
        on_chunk=received.take,
    )

    reading_after = await read() if read else None
    timings = received.timings
    if timings is None:
        raise ServerError(
            "the reply carries no timings, so its speed is unknown",
            hint="measuring needs llama.cpp's llama-server",
        )
    counted = await _counted(server, before, timings.predicted_n)
    drafting = acceptance(
        timings.predicted_n,
        timings.draft_n,
        timings.draft_n_accepted,
        counted,
        server.setting.length,
    )
    text = "".join(received.parts)
    reply = Reply(
        prompt_id=prompt.id,
        kind=prompt.kind,
        order=order,
        text=text,
        text_sha256=hashlib.sha256(text.encode()).hexdigest(),
        finish_reason=received.finish_reason,
        ended_by_itself=received.finish_reason == "stop",
        token_limit=tokens,
        temperature=temperature,
        seed=seed,
        prompt_n=timings.prompt_n,
        prompt_ms=timings.prompt_ms,
        predicted_n=timings.predicted_n,
        predicted_ms=timings.predicted_ms,
        tok_s=decode_speed(timings),
        ttft_ms=received.ttft_ms,
        client_ms=received.ended_ms,
        clock_differs=received.clock_differs(),
        drafted=drafting.drafted,
        accepted=drafting.accepted,
        kept=drafting.kept,
        steps=drafting.steps,
        drafts=drafting.drafts,
        accepted_per_position=drafting.accepted_per_position,
        mean_accepted_length=drafting.mean_accepted_length,
        speculative=speculative,
        reading_before=reading_before,
        reading_after=reading_after,
    )
    if keep is not None:
        await keep(reply)
    emit(ReplyDone(setting=setting, reply=reply))
    return reply


async def _counted(
    server: RunningServer, before: Counters | None, predicted_n: int
) -> Counters | None:
    """What this reply moved the counters by; None where there are none or they tell of another.

    They move all at once when the slot is released, some ms after the last byte.
    """
    deadline = time.monotonic() + _COUNTERS_S
    while before is not None:
        after = await server.counters()
        if after is None:
            break
        if after.predicted != before.predicted:
            counted = moved(before, after)
            return counted if counted.predicted == predicted_n else None
        if time.monotonic() >= deadline:
            break
        await asyncio.sleep(0.01)
    return None


@dataclass
class Received:
    """What has arrived of one reply, by the client's clock."""

    emit: Emit
    parts: list[str] = field(default_factory=list)
    finish_reason: str = ""
    timings: Timings | None = None
    ttft_ms: float | None = None
    ended_ms: float | None = None
    _first: tuple[float, float] | None = None

    def take(self, chunk: Chunk) -> None:
        """One event."""
        self.ended_ms = chunk.at_ms
        self.finish_reason = chunk.finish_reason or self.finish_reason
        if chunk.timings is not None:
            self.timings = chunk.timings
            if self._first is None and chunk.timings.predicted_n > 0:
                self._first = (chunk.at_ms, chunk.timings.predicted_ms)
        if chunk.text:
            if self.ttft_ms is None:
                self.ttft_ms = chunk.at_ms
            self.parts.append(chunk.text)
            done = self.timings or Timings()
            self.emit(
                TextArrived(
                    text=chunk.text,
                    predicted_n=done.predicted_n,
                    tok_s=decode_speed(done),
                )
            )

    def clock_differs(self) -> bool:
        """Whether both clocks disagree by more than 3 % and 20 ms over the same stretch.

        From the first event with a generated token to the end; not from the first text, which
        comes later where the first tokens have none.
        """
        if self._first is None or self.ended_ms is None or self.timings is None:
            return False
        client_ms = self.ended_ms - self._first[0]
        server_ms = self.timings.predicted_ms - self._first[1]
        difference = abs(client_ms - server_ms)
        return difference > 20 and difference > 0.03 * server_ms
