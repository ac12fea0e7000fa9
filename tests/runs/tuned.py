"""Made-up arms of a tune run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tests.runs.stored import arm, circumstances, reply
from tuirig.records import Cooling
from tuirig.runs.store import ArmState, StoredArm
from tuirig.runs.tune_state import CellStep, FinalistStep, PassesStep, Step

PROMPTS = tuple(f"{kind}-{n}" for n in (1, 2, 3, 4, 5, 6) for kind in ("code", "story"))


def started(setting: str, tok_s: float, step: Step | None = None, **changes: Any) -> StoredArm:
    """A measured arm: tok_s at the first prompt, a little more at each further one."""
    kept = None if setting == "none" else 0.5
    replies = tuple(
        reply(tok_s * (1 + 0.01 * n), prompt, kept=kept) for n, prompt in enumerate(PROMPTS)
    )
    values: dict[str, Any] = {
        "id": 1,
        "run": 1,
        "setting": setting,
        "step": msgspec.Raw(msgspec.json.encode(step or CellStep(reason="because"))),
        "state": ArmState.MEASURED,
        "started_at": "",
        "seconds": 10.0,
        "circumstances": circumstances(setting),
        "cooling": Cooling(),
        "arm": arm(setting, replies, 1000.0),
        "replies": replies,
        **changes,
    }
    return StoredArm(**values)


def stalled(setting: str, tok_s: float, step: Step | None = None) -> StoredArm:
    """An arm in which two replies stood still."""
    good = started(setting, tok_s, step)
    slow = tuple(reply(tok_s / 20, prompt) for prompt in PROMPTS[:2])
    return msgspec.structs.replace(good, replies=(*slow, *good.replies[2:]))


def passes(passes_s: dict[int, float] | None) -> StoredArm:
    """The start that measured V(k), or failed to."""
    step = PassesStep(positions=8)
    state = ArmState.FAILED if passes_s is None else ArmState.MEASURED
    return started("none", 1.0, step, passes_s=passes_s, state=state, arm=None, replies=())


def block(
    number: int, a: str, b: str, speeds: Sequence[float], order: str = "ABBA"
) -> list[StoredArm]:
    """As many places of a finalists' block as there are speeds."""
    steps = [
        FinalistStep(block=number, a=a, b=b, order=order, place=place, reason="open")
        for place in range(len(speeds))
    ]
    return [started(step.setting, speed, step) for step, speed in zip(steps, speeds, strict=True)]
