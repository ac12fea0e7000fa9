"""One setting measured in one server start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from tuirig.engines.base import RunningServer
from tuirig.events import ArmDone, Emit, Progress
from tuirig.measure.prompts import Prompt
from tuirig.measure.proof import prove
from tuirig.measure.reply import measure_reply
from tuirig.records import Arm, CardInfo, FileIdentity, Reading, Reply
from tuirig.rigs.schema import Rig


async def measure_arm(
    server: RunningServer,
    rig: Rig,
    card_info: CardInfo,
    prompts: Sequence[Prompt],
    *,
    tokens: int = 128,
    temperature: float = 0.0,
    seed: int = 42,
    repeats: int = 1,
    started_at: str,
    emit: Emit,
    read: Callable[[], Awaitable[Reading]] | None = None,
    keep: Callable[[Reply], Awaitable[None]] | None = None,
    target: FileIdentity | None = None,
    drafter: FileIdentity | None = None,
) -> Arm:
    """Measure every prompt, `repeats` times round, against a ready server.

    started_at: when the server was started (UTC, ISO 8601). read, keep: see measure_reply. Emits
    Progress in replies, what measure_reply emits, and ArmDone; an arm whose drafting is not proven
    is complete, too, and its proof says why. Raises ServerError with the first reply that fails;
    those before it have gone out as ReplyDone.
    """
    setting = server.setting
    wanted = [prompt for _ in range(repeats) for prompt in prompts]
    replies: list[Reply] = []
    for order, prompt in enumerate(wanted):
        emit(Progress(what=f"measuring {setting}", done=order, total=len(wanted), unit="replies"))
        replies.append(
            await measure_reply(
                server,
                prompt,
                order=order,
                tokens=tokens,
                temperature=temperature,
                seed=seed,
                emit=emit,
                read=read,
                keep=keep,
            )
        )
    emit(Progress(what=f"measuring {setting}", done=len(wanted), total=len(wanted), unit="replies"))
    asked = setting.drafter is not None
    evidence = server.silent_drafter_evidence() if asked else ()
    memory_mib, memory_source = _memory(replies)
    arm = Arm(
        rig=rig.name,
        setting=str(setting),
        argv=server.command.argv,
        server_build=server.build,
        started_at=started_at,
        ready_s=server.ready_s,
        card=card_info,
        replies=tuple(replies),
        proof=prove(asked, replies, evidence[-1] if evidence else ""),
        warm_up=server.warm_up,
        memory_mib=memory_mib,
        memory_source=memory_source,
        memory_parts=server.memory_parts,
        target=target,
        drafter=drafter,
    )
    emit(ArmDone(arm=arm))
    return arm


def _memory(replies: Sequence[Reply]) -> tuple[float | None, str]:
    """Memory of the server's process in MiB and its source, from the last reading that has it."""
    for reply in reversed(replies):
        for reading in (reply.reading_after, reply.reading_before):
            if reading is not None and reading.process_memory_mib is not None:
                return reading.process_memory_mib, reading.process_memory_source
    return None, ""
