"""Bursts of events become few frames, and nothing that matters is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from tuirig.events import Event, Failed, Progress, ServerChanged, ServerState, TextArrived
from tuirig.tui.bridge import Bridge, coalesce


def token(text: str, count: int) -> TextArrived:
    return TextArrived(text=text, predicted_n=count, tok_s=None if count % 2 else 10.0 * count)


def test_texts_join_and_keep_the_last_known_rate() -> None:
    assert coalesce([token("a", 1), token("b", 2), token("c", 3)]) == [
        TextArrived(text="abc", predicted_n=3, tok_s=20.0)
    ]


def test_states_stay_in_order_and_only_repeats_of_one_state_join() -> None:
    states = [ServerState.STARTING, ServerState.STARTING, ServerState.READY, ServerState.RUNNING]
    events = [ServerChanged(state=state, seconds=i) for i, state in enumerate(states)]
    assert coalesce(events) == events[1:]


def test_failures_never_join() -> None:
    events: list[Event] = [Failed(message="a"), Failed(message="b")]
    assert coalesce(events) == events


async def test_a_burst_from_another_thread_is_one_or_two_frames() -> None:
    frames: list[Sequence[Event]] = []
    done = asyncio.Event()

    def deliver(events: Sequence[Event]) -> None:
        frames.append(events)
        if any(isinstance(event, Failed) for event in events):
            done.set()

    bridge = Bridge(deliver, rate_hz=20)

    def burst() -> None:
        for count in range(500):
            bridge.emit(token("x", count))
        bridge.emit(Progress(what="w", done=1))
        bridge.emit(Failed(message="last"))

    thread = threading.Thread(target=burst)
    thread.start()
    await asyncio.wait_for(done.wait(), 10)
    thread.join()
    texts = [event for frame in frames for event in frame if isinstance(event, TextArrived)]
    assert "".join(event.text for event in texts) == "x" * 500
    assert len(texts) == len([f for f in frames if any(isinstance(e, TextArrived) for e in f)])
