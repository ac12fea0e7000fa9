"""A rig and events with the published figures of an RTX 3050, for tests of the panels."""

from __future__ import annotations

from tuirig.events import ReadingTaken, ReplyDone, ServerChanged, ServerState
from tuirig.records import CardInfo, MemoryParts, Reading, Reply
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import Rig
from tuirig.tui.view import View

RIG = """
name = "3050-e4b"
card = "NVIDIA GeForce RTX 3050"
[target]
path = "/models/gemma-4-E4B-it-q4_0-exact.gguf"
[[drafter]]
format = "q4_0"
type = "draft-mtp"
path = "/models/assistant-q4_0.gguf"
[[drafter]]
format = "bf16"
type = "draft-mtp"
path = "/models/assistant-bf16.gguf"
[[drafter]]
format = "ngram"
type = "ngram-cache"
[server]
args = ["-ngl", "99", "-c", "8192"]
[tune]
lengths = [0, 1, 2, 3, 4]
"""


def rig() -> Rig:
    return parse_rig(RIG)


def reply(tok_s: float, *, prompt: str = "code-1", shares: tuple[float, ...] = ()) -> Reply:
    drafted = 100 if shares else None
    return Reply(
        prompt_id=prompt,
        kind="code",
        predicted_n=128,
        predicted_ms=127_000 / tok_s,
        tok_s=tok_s,
        drafted=drafted,
        accepted=48 if shares else None,
        kept=0.48 if shares else None,
        accepted_per_position=shares or None,
        mean_accepted_length=1 + sum(shares) if shares else None,
    )


def server(state: ServerState, setting: str = "") -> ServerChanged:
    return ServerChanged(
        state=state,
        setting=setting,
        url="http://127.0.0.1:41873",
        memory_parts=MemoryParts(
            target_mib=4147.0, drafter_mib=61.0, cache_mib=123.0, buffers_mib=80.0
        ),
    )


def measured() -> View:
    """`none`, `q4_0:1` and `q4_0:2` measured on one prompt; q4_0:2 is up."""
    view = View(rig())
    view.card = CardInfo(kind="nvidia", name="NVIDIA GeForce RTX 3050", memory_mib=8192)
    view.apply(ReplyDone(setting="none", reply=reply(58.3)), 0)
    view.apply(ReplyDone(setting="q4_0:1", reply=reply(89.8, shares=(0.62,))), 0)
    view.apply(server(ServerState.STARTING, "q4_0:2"), 0)
    view.apply(server(ServerState.READY, "q4_0:2"), 0)
    view.apply(ReplyDone(setting="q4_0:2", reply=reply(100.0, shares=(0.62, 0.34))), 0)
    view.apply(
        ReadingTaken(
            reading=Reading(
                at_s=1,
                memory_used_mib=4600,
                memory_total_mib=8192,
                process_memory_mib=4495,
                process_memory_source="nvml process",
                temperature_c=62,
                power_w=98,
                sm_clock_mhz=1905,
                throttle=(),
            )
        ),
        0,
    )
    return view
