"""`tuirig measure RIG --setting S`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tuirig.cli import signals
from tuirig.cli.narration import Narrator
from tuirig.cli.output import answer_json, columns, say
from tuirig.cli.prompts import prompts_of
from tuirig.errors import ExitCode, NotProvenError, TuirigError
from tuirig.records import Arm, Reply
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting, parse_setting
from tuirig.runs.catalog import FoundRig, find_rig
from tuirig.tui.figures import DASH, gain, memory, rate, share

if TYPE_CHECKING:
    from tuirig.measure.prompts import Prompt
    from tuirig.runs.measuring import Outcome


def run(options: argparse.Namespace) -> int:
    """Measure one setting; NOT_PROVEN if its figures do not count."""
    found = find_rig(options.rig)
    setting = setting_of(options.setting, found.rig)
    if options.save and options.temperature:
        raise TuirigError(
            "--save and --temperature exclude each other: a profile is measured greedily",
            exit_code=ExitCode.USAGE,
        )
    return signals.run(_measure(options, found, setting, prompts_of(options)))


def setting_of(text: str, rig: Rig) -> Setting:
    """A setting as it was written on the command line, checked against the rig."""
    try:
        setting = parse_setting(text)
        rig.drafter_of(setting)
    except ValueError as error:
        raise TuirigError(f"--setting {error}", exit_code=ExitCode.USAGE) from None
    return setting


async def _measure(
    options: argparse.Namespace, found: FoundRig, setting: Setting, prompts: tuple[Prompt, ...]
) -> int:
    import asyncio

    from tuirig.cli.company import tell_of_others
    from tuirig.runs.fitting import require_fit
    from tuirig.runs.measuring import measure_setting
    from tuirig.runs.opening import open_session

    narrator = Narrator()
    try:
        # The card is read before and after each reply; a look beside the work would cost CPU.
        async with open_session(found, narrator, rate_hz=0) as session:
            await tell_of_others(session.card)
            await asyncio.to_thread(require_fit, session.rig, session.files, setting)
            outcome = await measure_setting(
                session,
                setting,
                prompts,
                tokens=options.tokens,
                temperature=options.temperature,
                save=options.save,
                emit=narrator,
                show=lambda command: say(command.shell()),
            )
            build = session.engine.build
    finally:
        narrator.close()
    if options.json:
        answer_json(document(found.rig, setting, outcome, build))
    if outcome.arm is not None:
        say("\n".join(_report(outcome.arm, outcome)))
    if outcome.not_proven is not None:
        raise outcome.not_proven
    return ExitCode.OK


def document(rig: Rig, setting: Setting, outcome: Outcome, build: str) -> dict[str, object]:
    """The JSON of one measurement; what is not known is null.

    tok_s: geometric mean over prompts. ttft_ms: median. Shares run from 0 to 1.
    accepted_per_position has as many as the draft length. gain: against `none`, with --save.
    valid: the figures count. drafting_proven: null for `none`, where there is nothing to prove.
    """
    from tuirig.measure import summary

    arm = outcome.arm
    replies = arm.replies if arm else ()
    evidence = outcome.profile.evidence if outcome.profile else None
    return {
        "rig": rig.name,
        "setting": str(setting),
        "server_build": arm.server_build if arm else build,
        "argv": outcome.command.argv,
        "env": outcome.command.env,
        "card": arm.card if arm else None,
        "started_at": arm.started_at if arm else None,
        "ready_s": arm.ready_s if arm else None,
        "tok_s": summary.tok_s(replies),
        "ttft_ms": summary.ttft_ms(replies),
        "kept": summary.kept(replies),
        "accepted_per_position": summary.accepted_per_position(replies),
        "mean_accepted_length": summary.mean_accepted_length(replies),
        "gain": evidence.gain if evidence else None,
        "valid": outcome.not_proven is None,
        "drafting_proven": outcome.not_proven is None if setting.drafter else None,
        "proof": _proof(arm, outcome.not_proven),
        "memory_mib": arm.memory_mib if arm else None,
        "memory_source": (arm.memory_source or None) if arm else None,
        "memory_parts": arm.memory_parts if arm else None,
        "ended_by_itself": summary.ended_by_itself(replies),
        "profile": str(outcome.path) if outcome.path else None,
        "warm_up": arm.warm_up if arm else None,
        "replies": replies,
    }


def _proof(arm: Arm | None, not_proven: NotProvenError | None) -> dict[str, object]:
    return {
        "speculative": arm.proof.speculative if arm else False,
        "drafted": arm.proof.drafted if arm else None,
        "reason": not_proven.message if not_proven else None,
        "evidence": not_proven.evidence if not_proven else (),
    }


def _report(arm: Arm, outcome: Outcome) -> Iterator[str]:
    from tuirig.measure import summary

    positions = summary.accepted_per_position(arm.replies)
    by_position = " ".join(share(value, 2) for value in positions or ())
    yield ""
    yield from columns(_kinds(arm), right=(1, 2, 3))
    yield ""
    yield f"{arm.setting} on {arm.rig}: {rate(summary.tok_s(arm.replies))} tok/s"
    if positions is not None:
        length = summary.mean_accepted_length(arm.replies)
        a_step = DASH if length is None else f"{length:.2f}"
        kept = share(summary.kept(arm.replies))
        yield f"  kept {kept} (by position {by_position}), {a_step} tokens a step"
    ttft_ms = summary.ttft_ms(arm.replies)
    yield f"  first text after {DASH if ttft_ms is None else f'{ttft_ms:.0f}'} ms"
    source = f" ({arm.memory_source})" if arm.memory_source else ""
    yield f"  memory {memory(arm.memory_mib)}{source}"
    if outcome.profile is not None:
        yield f"  {gain(outcome.profile.evidence.gain)} of none; saved: {outcome.path}"


def _kinds(arm: Arm) -> list[tuple[str, ...]]:
    from tuirig.measure import summary

    by_kind: dict[str, list[Reply]] = {}
    for reply in arm.replies:
        by_kind.setdefault(reply.kind, []).append(reply)
    rows = [("KIND", "REPLIES", "TOK/S", "KEPT")]
    for kind, replies in by_kind.items():
        speed, kept = rate(summary.tok_s(replies)), share(summary.kept(replies))
        rows.append((kind, str(len(replies)), speed, kept))
    return list(rows)
