"""Against the real llama-server: every sort of drafter, and what only a real server can show."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from tuirig.engines.base import Counters, RunningServer
from tuirig.engines.llamacpp.engine import LlamaCpp
from tuirig.errors import ServerError
from tuirig.events import Event, TextArrived, ignore
from tuirig.hosts.local import LocalHost
from tuirig.measure import summary
from tuirig.measure.arm import measure_arm
from tuirig.measure.prompts import OWN, Prompt, choose, prompt
from tuirig.measure.reply import measure_reply
from tuirig.records import Arm, CardInfo, Reply
from tuirig.rigs.schema import Drafter, Rig
from tuirig.rigs.settings import parse_setting

TOKENS = 64
CARD = CardInfo(kind="cpu", name="this machine")


@asynccontextmanager
async def running(rig: Rig, setting: str) -> AsyncIterator[RunningServer]:
    host = LocalHost()
    engine = await LlamaCpp.load(host, rig.server.program, rig.server.env)
    paths = {drafter.row: drafter.path for drafter in rig.drafter if drafter.path}
    chosen = parse_setting(setting)
    command = engine.command(
        rig, chosen, port=host.free_port(), paths={"target": rig.target.path or "", **paths}
    )
    async with engine.running(command, rig, chosen, host, ignore) as server:
        yield server


async def arm_of(rig: Rig, setting: str, prompts: Sequence[Prompt], tokens: int = TOKENS) -> Arm:
    async with running(rig, setting) as server:
        return await measure_arm(
            server, rig, CARD, prompts, tokens=tokens, started_at="", emit=ignore
        )


async def counters_of(server: RunningServer) -> Counters:
    counters = await server.counters()
    assert counters is not None
    return counters


def assert_consistent(reply: Reply, length: int) -> None:
    """What has to hold between the figures of a drafted reply, whatever the model says."""
    assert reply.predicted_n <= reply.token_limit
    assert reply.drafted is not None
    assert reply.accepted is not None
    assert reply.steps is not None
    assert reply.drafts is not None
    assert reply.accepted_per_position is not None
    assert 0 <= reply.accepted <= reply.drafted <= reply.drafts * length
    assert reply.kept == reply.accepted / reply.drafted
    # The passes that drafted nothing: the last one before the limit, and those without a match.
    assert reply.drafts <= reply.steps
    if not reply.ended_by_itself:
        assert reply.steps == reply.predicted_n - 1 - reply.accepted
    shares = reply.accepted_per_position
    assert len(shares) == length
    assert list(shares) == sorted(shares, reverse=True)
    assert sum(shares) * reply.drafts == pytest.approx(reply.accepted)
    assert reply.mean_accepted_length == pytest.approx(1 + sum(shares))
    assert reply.ttft_ms is not None
    assert reply.client_ms is not None
    assert reply.prompt_ms < reply.client_ms
    assert reply.speculative is True


async def test_an_mtp_assistant_drafts_and_keeps_the_text(tiny_gemma4_rig: Rig) -> None:
    prompts = choose(6)
    none = await arm_of(tiny_gemma4_rig, "none", prompts)
    drafted = await arm_of(tiny_gemma4_rig, "q4_0:3", prompts)

    assert none.proof.proven
    assert none.proof.speculative is False
    assert {reply.drafted for reply in none.replies} == {None}
    for reply in none.replies:
        assert reply.accepted_per_position is None
        assert reply.steps == reply.predicted_n - 1
        assert (reply.finish_reason, reply.predicted_n) == ("length", TOKENS)

    assert drafted.proof.proven
    for reply in drafted.replies:
        assert_consistent(reply, 3)
        assert reply.drafts in (reply.steps, (reply.steps or 0) - 1)
    assert 0.1 < (summary.kept(drafted.replies) or 0) < 0.9
    assert len(summary.accepted_per_position(drafted.replies) or ()) == 3

    # Verifying several tokens runs other kernels than one, so a near tie may fall the other way.
    texts = [(reply.text, reply.text_sha256) for reply in none.replies]
    same = [
        (reply.text, reply.text_sha256) == text
        for reply, text in zip(drafted.replies, texts, strict=True)
    ]
    assert sum(same) >= 4, same
    assert len(set(texts)) > 1


async def test_an_mtp_head_inside_the_target_drafts(tiny_qwen35_rig: Rig) -> None:
    arm = await arm_of(tiny_qwen35_rig, "inside:2", choose(2))
    assert arm.proof.proven
    for reply in arm.replies:
        assert_consistent(reply, 2)
    assert 0.3 < (summary.kept(arm.replies) or 0) <= 1


async def test_a_plain_small_model_drafts(smollm2_rig: Rig) -> None:
    arm = await arm_of(smollm2_rig, "q4_0:2", choose(1), tokens=24)
    assert arm.proof.proven
    for reply in arm.replies:
        assert_consistent(reply, 2)
    assert 0.3 < (summary.kept(arm.replies) or 0) <= 1


async def test_ngrams_draft_where_the_text_repeats(tiny_gemma4_rig: Rig) -> None:
    arm = await arm_of(tiny_gemma4_rig, "ngram:4", choose(3))
    assert arm.proof.proven
    drafted = [reply for reply in arm.replies if reply.drafted]
    assert drafted
    for reply in drafted:
        assert_consistent(reply, 4)
        assert (reply.drafts or 0) < (reply.steps or 0)


async def test_another_vocabulary_is_not_proven_and_says_why(
    tiny_gemma4_rig: Rig, smollm2_files: Path
) -> None:
    stranger = Drafter(
        format="stranger", type="draft-simple", path=str(smollm2_files / "smollm2-q4_0.gguf")
    )
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(stranger,))
    arm = await arm_of(rig, "stranger:2", choose(1))
    assert not arm.proof.proven
    assert (arm.proof.asked, arm.proof.speculative, arm.proof.drafted) == (True, False, None)
    assert arm.proof.reason.startswith("the server runs without the drafter: ")
    assert "vocab" in arm.proof.reason


async def test_cancelling_stops_the_generation(tiny_gemma4_rig: Rig) -> None:
    text_arrived = asyncio.Event()

    def emit(event: Event) -> None:
        if isinstance(event, TextArrived):
            text_arrived.set()

    async with running(tiny_gemma4_rig, "q4_0:2") as server:
        endless = asyncio.create_task(
            measure_reply(server, prompt("code-1"), order=0, tokens=100_000, emit=emit)
        )
        async with asyncio.timeout(30):
            await text_arrived.wait()
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        await server.wait_idle()
        stopped = await counters_of(server)
        (end,) = [line for line in server.log_tail(5) if "stop processing" in line]
        tokens = re.search(r"n_(?:tokens|past) = (\d+)", end)
        assert tokens is not None and int(tokens[1]) < 1500, "it ran to the end of its context"

        reply = await measure_reply(server, prompt("code-1"), order=1, tokens=8, emit=ignore)
        assert_consistent(reply, 2)
        assert (await counters_of(server)).predicted == stopped.predicted + 8


async def test_a_server_that_is_killed_in_a_reply_is_named(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig, "none") as server:

        def emit(event: Event) -> None:
            if isinstance(event, TextArrived):
                with contextlib.suppress(ProcessLookupError):  # more text was on its way
                    os.kill(server.pid, signal.SIGKILL)

        with pytest.raises(ServerError, match="SIGKILL"):
            await measure_reply(server, prompt("code-1"), order=0, tokens=2000, emit=emit)


async def test_refusals_of_the_real_server_are_understood(tiny_gemma4_rig: Rig) -> None:
    too_long = Prompt("long", OWN, "too long", "word " * 3000)
    async with running(tiny_gemma4_rig, "none") as server:
        with pytest.raises(ServerError, match="the prompt does not fit") as caught:
            await measure_reply(server, too_long, order=0, emit=ignore)
        assert "-c" in caught.value.hint

        server.api_key, key = "wrong", server.api_key
        with pytest.raises(ServerError, match="refused the key"):
            await measure_reply(server, prompt("code-1"), order=0, emit=ignore)
        server.api_key = key

        reply = await measure_reply(server, prompt("code-1"), order=0, tokens=8, emit=ignore)
        assert reply.predicted_n == 8
