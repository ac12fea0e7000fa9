"""V(k): how long the target takes for one pass over k positions, measured without a drafter.

A server with k slots and one shared cache takes one token of each of k running requests into every
pass. With k requests side by side, the time per token of each of them is V(k).
"""

from __future__ import annotations

import asyncio
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from tuirig.engines.base import RunningServer
from tuirig.errors import ServerError
from tuirig.events import Emit, Progress
from tuirig.measure.prompts import PROMPTS
from tuirig.stats.ratio import geometric_mean

if TYPE_CHECKING:
    import httpx2

TOKENS = 16
_SETTLING_TOKENS = 4
_WORDS = 8
_SILENCE_S = 600.0
_DYING_S = 0.5
#: The share of the whole time that the longest request must have taken by the server's clock.
#: One after the other would be 1 / k; a client that is late only makes it smaller.
_SIDE_BY_SIDE = 0.75
#: A busy machine may delay one of the requests: then again, with twice the tokens.
_ATTEMPTS = 4


@dataclass(frozen=True)
class _Together:
    """Requests that were sent together. wall_s: client's clock, until the last one ended."""

    wall_s: float
    timings: tuple[_Timings, ...]


class _Timings(msgspec.Struct, frozen=True):
    """The server's clock."""

    prompt_ms: float
    predicted_n: int
    predicted_ms: float


class _Completion(msgspec.Struct, frozen=True):
    timings: _Timings


async def measure_passes(
    server: RunningServer, positions: int, *, tokens: int = TOKENS, emit: Emit
) -> dict[int, float]:
    """V(1) .. V(positions) in seconds, by number of positions.

    server: without a drafter, with at least `positions` slots that share a cache. tokens: of each
    request, more where they would not overlap. Each number is measured on the way up and on the
    way down, so that a slow drift cancels. The texts differ, as the positions of a drafted step do
    (a mixture of experts would otherwise be too cheap). Emits Progress. Raises ServerError, also if
    the requests did not run side by side.
    """
    import httpx2

    up = list(range(1, positions + 1))
    order = [*up, *reversed(up)]
    found: dict[int, list[float]] = {}
    async with httpx2.AsyncClient(
        base_url=server.url,
        headers={"Authorization": f"Bearer {server.api_key}", "Connection": "close"},
        timeout=httpx2.Timeout(_SILENCE_S),
        trust_env=False,
        verify=False,  # plain http: reading certificates would cost time
    ) as client:
        for done, count in enumerate(order):
            emit(_progress(done, len(order)))
            if count not in found:
                await _side_by_side(client, server, count, _SETTLING_TOKENS)
            found.setdefault(count, []).append(await _pass_s(client, server, count, tokens))
    emit(_progress(len(order), len(order)))
    return {count: mean for count, values in found.items() if (mean := geometric_mean(values))}


def _progress(done: int, total: int) -> Progress:
    return Progress(what="measuring target passes", done=done, total=total, unit="passes")


async def _side_by_side(
    client: httpx2.AsyncClient, server: RunningServer, count: int, tokens: int
) -> _Together:
    began_s = time.monotonic()
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_one(client, server, slot, tokens)) for slot in range(count)]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return _Together(time.monotonic() - began_s, tuple(task.result() for task in tasks))


async def _one(
    client: httpx2.AsyncClient, server: RunningServer, slot: int, tokens: int
) -> _Timings:
    import httpx2

    body = {
        "prompt": " ".join(PROMPTS[slot % len(PROMPTS)].text.split()[:_WORDS]),
        "n_predict": tokens,
        "temperature": 0.0,
        "seed": 1,
        "ignore_eos": True,
        "cache_prompt": False,
        "id_slot": slot,
    }
    try:
        answer = await client.post("/completion", json=body)
    except httpx2.TransportError as error:
        await _raise_its_death(server)
        raise ServerError(
            f"the server broke off a request: {error or type(error).__name__}",
            evidence=server.log_tail(5),
        ) from error
    if answer.status_code != 200:
        raise ServerError(
            f"the server answered with {answer.status_code}", evidence=(answer.text[:300],)
        )
    try:
        return msgspec.json.decode(answer.content, type=_Completion).timings
    except msgspec.DecodeError as error:
        raise ServerError(f"the server's answer is not understood: {error}") from error


async def _raise_its_death(server: RunningServer) -> None:
    """The sockets of a dying server close before it can be seen to be gone: look for a while."""
    deadline = time.monotonic() + _DYING_S
    while time.monotonic() < deadline:
        server.check_alive()
        await asyncio.sleep(0.01)


async def _pass_s(
    client: httpx2.AsyncClient, server: RunningServer, count: int, tokens: int
) -> float:
    """Seconds per pass: the median over the requests. Raises ServerError."""
    for attempt in range(_ATTEMPTS):
        together = await _side_by_side(client, server, count, tokens << attempt)
        timings = together.timings
        if any(one.predicted_n < 2 or one.predicted_ms <= 0 for one in timings):
            raise ServerError("a reply was too short to time a pass")
        longest_s = max(one.prompt_ms + one.predicted_ms for one in timings) / 1000
        if count == 1 or longest_s >= _SIDE_BY_SIDE * together.wall_s:
            return statistics.median(
                one.predicted_ms / 1000 / (one.predicted_n - 1) for one in timings
            )
    raise ServerError(f"{count} requests did not run side by side, so they do not share passes")
