from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.measure.fake_server import (
    DONE,
    STREAM_HEAD,
    Client,
    FakeRunning,
    chunk,
    event,
    fake_server,
    stream,
)
from tuirig.errors import ServerError
from tuirig.events import ArmDone, Event, Progress, ReplyDone, ignore
from tuirig.measure.arm import measure_arm
from tuirig.measure.prompts import choose
from tuirig.records import Arm, CardInfo, FileIdentity, Reading, Reply
from tuirig.rigs.schema import ModelFile, Rig, Server
from tuirig.rigs.settings import parse_setting

RIG = Rig(name="rig", card="cpu", target=ModelFile(path="x.gguf"), server=Server(args=()))
CARD = CardInfo(kind="cpu", name="fake")
DRAFTED = stream(
    event("a", n=1),
    event("b", n=3, ms=10.0, drafted=4, accepted=1),
    event(finish="length", n=3, ms=10.0, drafted=4, accepted=1),
    DONE,
)
PLAIN = stream(event("a", n=1), event(finish="length", n=2, ms=10.0), DONE)


async def arm_of(running: FakeRunning, count: int = 2, **options: Any) -> Arm:
    defaults = {"tokens": 16, "emit": ignore, "started_at": "2026-01-02T03:04:05+00:00"}
    return await measure_arm(running, RIG, CARD, choose(count), **(defaults | options))


async def test_an_arm_is_the_whole_record() -> None:
    events: list[Event] = []
    target, drafter = FileIdentity(file="x.gguf", size=1), FileIdentity(file="d.gguf")
    async with fake_server(DRAFTED, setting=parse_setting("q4_0:2"), speculative=True) as running:
        arm = await arm_of(running, repeats=2, emit=events.append, target=target, drafter=drafter)
    assert (arm.rig, arm.setting, arm.server_build) == ("rig", "q4_0:2", "fake")
    assert arm.argv == running.command.argv
    assert (arm.ready_s, arm.warm_up, arm.card) == (0.5, running.warm_up, CARD)
    assert arm.started_at == "2026-01-02T03:04:05+00:00"
    assert (arm.target, arm.drafter) == (target, drafter)
    assert [reply.prompt_id for reply in arm.replies] == ["code-1", "advice-1"] * 2
    assert [reply.order for reply in arm.replies] == [0, 1, 2, 3]
    assert arm.proof.proven
    assert arm.proof.drafted == 16
    assert events[-1] == ArmDone(arm=arm)
    steps = [event for event in events if isinstance(event, Progress)]
    assert [(step.done, step.total, step.unit) for step in steps] == [
        (done, 4, "replies") for done in range(5)
    ]


async def test_a_drafter_that_is_not_used_ends_as_not_proven_with_the_reason() -> None:
    async with fake_server(
        PLAIN,
        setting=parse_setting("small:2"),
        speculative=False,
        silent_evidence=("the target and draft vocabs are not compatible",),
    ) as running:
        arm = await arm_of(running)
    assert not arm.proof.proven
    assert "the target and draft vocabs are not compatible" in arm.proof.reason


async def test_no_drafter_needs_no_evidence() -> None:
    async with fake_server(PLAIN, silent_evidence=("an unrelated line",)) as running:
        arm = await arm_of(running)
    assert arm.proof.proven
    assert not arm.proof.asked


async def test_memory_is_the_last_that_was_read() -> None:
    sizes: Iterator[float | None] = iter([100.0, 200.0, 300.0, None])

    async def read() -> Reading:
        size = next(sizes)
        source = "nvml process" if size else ""
        return Reading(at_s=0.0, process_memory_mib=size, process_memory_source=source)

    async with fake_server(PLAIN) as running:
        arm = await arm_of(running, read=read)
    assert (arm.memory_mib, arm.memory_source) == (300.0, "nvml process")


async def test_memory_that_nobody_read_is_unknown() -> None:
    async with fake_server(PLAIN) as running:
        arm = await arm_of(running)
    assert (arm.memory_mib, arm.memory_source) == (None, "")


async def test_a_reply_that_fails_fails_the_arm_and_the_others_have_gone_out() -> None:
    events: list[Event] = []
    death = ServerError("the server died with SIGSEGV")

    async def dies_at_the_third(client: Client) -> None:
        if len(running.requests) < 3:
            await PLAIN(client)
        else:
            running.dead = death
            await client.send(STREAM_HEAD, chunk(event("a", n=1)))

    async with fake_server(dies_at_the_third) as running:
        with pytest.raises(ServerError) as caught:
            await arm_of(running, count=4, emit=events.append)
    assert caught.value is death
    assert len([event for event in events if isinstance(event, ReplyDone)]) == 2
    assert not [event for event in events if isinstance(event, ArmDone)]


async def test_a_reply_is_kept_before_anybody_is_told() -> None:
    order: list[tuple[str, str]] = []

    async def keep(reply: Reply) -> None:
        order.append(("kept", reply.prompt_id))

    def told(event: Event) -> None:
        if isinstance(event, ReplyDone):
            order.append(("told", event.reply.prompt_id))

    async with fake_server(PLAIN) as running:
        await arm_of(running, keep=keep, emit=told)
    assert order == [
        ("kept", "code-1"), ("told", "code-1"), ("kept", "advice-1"), ("told", "advice-1"),
    ]  # fmt: skip
