"""Stored arms of a tune run <-> the state of its search. What each arm was for stands with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from tuirig.measure import summary
from tuirig.records import Reply
from tuirig.rigs.settings import Setting, parse_setting
from tuirig.runs.flags import greedy, stood_still
from tuirig.runs.store import ArmState, StoredArm
from tuirig.stats.choice import Objective
from tuirig.stats.ratio import geometric_mean
from tuirig.stats.search import AGAIN, Cell, CellResult, Outcome, State

_BLOCK = 4
#: Below this share of steps that drafted, acceptance per position does not tell tokens per step.
_NEARLY_ALWAYS = 0.9


class CellStep(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One start of one setting. again: for one in which replies stood still."""

    reason: str
    again: bool = False


class PassesStep(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The start that measured V(k)."""

    positions: int


class FinalistStep(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A place in a block of two finalists: block counted from 1 over the run, place from 0.

    again: the place had a start in which replies stood still.
    """

    block: int
    a: str
    b: str
    order: str
    place: int
    reason: str
    again: bool = False

    @property
    def setting(self) -> str:
        """What starts at this place."""
        return self.a if self.order[self.place] == "A" else self.b


Step: TypeAlias = CellStep | PassesStep | FinalistStep


def step_of(arm: StoredArm) -> Step:
    """What an arm of a tune run was for."""
    return msgspec.json.decode(arm.step, type=Step)


def cell_of(setting: Setting) -> Cell:
    """A setting as a cell of the search, which knows one knob."""
    if setting.drafter is None:
        return Cell()
    return Cell(setting.drafter, setting.length, dict(setting.knobs).get("p_min"))


def setting_of(cell: Cell) -> Setting:
    """A cell of the search as a setting."""
    return parse_setting(str(cell))


def state_of(
    arms: Sequence[StoredArm], objective: Objective, *, whole_blocks: bool = True
) -> State:
    """What the search has seen. whole_blocks: leave out a block that is under way (next_place)."""
    open_block = _open_block(arms) if whole_blocks else None
    results = []
    passes_s: Mapping[int, float] | None = None
    passes_failed = False
    blocks: dict[int, list[FinalistStep]] = {}
    for arm in arms:
        step = step_of(arm)
        if isinstance(step, PassesStep):
            passes_s = arm.passes_s or passes_s
            passes_failed = passes_s is None
            continue
        if isinstance(step, FinalistStep):
            if step.block == open_block:
                continue
            blocks.setdefault(step.block, []).append(step)
        results.append(_result(arm, objective, again=step.again))
    return State(
        results=tuple(results),
        passes_s=passes_s,
        passes_failed=passes_failed,
        blocks=tuple(
            (cell_of(parse_setting(steps[0].a)), cell_of(parse_setting(steps[0].b)))
            for steps in blocks.values()
            if len({step.place for step in steps}) == _BLOCK
        ),
    )


def next_place(arms: Sequence[StoredArm], repeats_left: int = 0) -> FinalistStep | None:
    """The first place of the last block that misses a start, None if none does.

    repeats_left: how many starts in which replies stood still may still be repeated.
    """
    steps = [(step, arm) for arm in arms if isinstance(step := step_of(arm), FinalistStep)]
    last = max((step.block for step, _ in steps), default=None)
    own = [(step, arm) for step, arm in steps if step.block == last]
    latest = {step.place: (step, arm) for step, arm in own}
    for place in range(_BLOCK) if own else ():
        if place not in latest:
            return msgspec.structs.replace(own[0][0], place=place)
        step, arm = latest[place]
        if repeats_left and not step.again and stood_still(arm):
            return msgspec.structs.replace(step, again=True, reason=AGAIN)
    return None


def next_block(arms: Sequence[StoredArm]) -> int:
    """The number of a new block."""
    steps = (step_of(arm) for arm in arms)
    return 1 + max((step.block for step in steps if isinstance(step, FinalistStep)), default=0)


def rates(replies: Sequence[Reply], objective: Objective) -> dict[str, float]:
    """What is to be best, by prompt: tok/s, or tokens per joule where energy is known."""
    if objective.per != "joule":
        return summary.tok_s_by_prompt(replies)
    found: dict[str, list[float]] = {}
    for reply in replies:
        energy_j = _energy_j(reply)
        if energy_j and reply.predicted_n:
            found.setdefault(reply.prompt_id, []).append(reply.predicted_n / energy_j)
    return {id: mean for id, values in found.items() if (mean := geometric_mean(values))}


def _energy_j(reply: Reply) -> float | None:
    before, after = reply.reading_before, reply.reading_after
    if before is None or after is None or before.energy_j is None or after.energy_j is None:
        return None
    return max(after.energy_j - before.energy_j, 0.0)


def _result(arm: StoredArm, objective: Objective, *, again: bool) -> CellResult:
    cell = cell_of(parse_setting(arm.setting))
    if arm.state is ArmState.DOES_NOT_FIT:
        return CellResult(cell, Outcome.DOES_NOT_FIT, again=again)
    replies = greedy(arm)
    speeds = rates(replies, objective)
    if arm.state is not ArmState.MEASURED or not speeds:
        return CellResult(cell, Outcome.FAILED, again=again)
    return CellResult(
        cell,
        speeds=speeds,
        accepted=_accepted(replies),
        memory_mib=arm.arm.memory_mib if arm.arm else None,
        stood_still=stood_still(arm),
        again=again,
    )


def _accepted(replies: Sequence[Reply]) -> tuple[float, ...] | None:
    """a_1 .. a_n; None where the server does not tell, or many steps drafted nothing.

    The last step before the token limit drafts nothing anyway.
    """
    steps = sum((reply.steps or 0) - 1 for reply in replies)
    drafts = sum(reply.drafts or 0 for reply in replies)
    if drafts < _NEARLY_ALWAYS * steps:
        return None
    return summary.accepted_per_position(replies)


def _open_block(arms: Sequence[StoredArm]) -> int | None:
    """The last block, if it misses places."""
    steps = [step for arm in arms if isinstance(step := step_of(arm), FinalistStep)]
    last = max((step.block for step in steps), default=None)
    taken = {step.place for step in steps if step.block == last}
    return None if len(taken) == _BLOCK else last
