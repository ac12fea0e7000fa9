"""How much of what was drafted was accepted in one reply.

A step is one pass of the target after the prompt; it yields the accepted tokens and one of the
target's own, and the first token comes with the prompt:

    steps = predicted_n - 1 - accepted

/metrics counts only the steps that drafted something (`drafts`). Fewer than the steps: the last
one before the token limit drafts nothing, n-gram methods and p_min often draft nothing. More than
the formula gives: a reply that ended by itself inside an accepted draft, whose tokens past the end
count as accepted but not as predicted; then steps = drafts.

    kept                     = accepted / drafted
    accepted_per_position[i] = per_position[i] / drafts
    mean_accepted_length     = 1 + accepted / drafts = 1 + sum of accepted_per_position

as llama-server and the literature count (per step that drafted); where the build counts no
drafts, steps stand in for them and the positions are unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from tuirig.engines.base import Counters


@dataclass(frozen=True)
class Acceptance:
    """The fields of a Reply with the same names. None where unknown or nothing was drafted."""

    drafted: int | None
    accepted: int | None
    kept: float | None
    steps: int | None
    drafts: int | None
    accepted_per_position: tuple[float, ...] | None
    mean_accepted_length: float | None


def acceptance(
    predicted_n: int,
    drafted: int | None,
    accepted: int | None,
    counted: Counters | None,
    length: int | None,
) -> Acceptance:
    """Acceptance of one reply.

    drafted, accepted: the server's timings, None where it reported no drafts. counted: what the
    counters moved by, None where unknown. length: the setting's draft length, to which the
    positions are cut or filled up with 0; None for a method that has none: as many as were seen.
    """
    taken = accepted or 0
    drafts = counted.drafts if counted else None
    steps = max(predicted_n - 1 - taken, drafts or 0) if predicted_n > 0 else None
    verified = steps if drafts is None else drafts
    if not drafted or not verified:
        return Acceptance(drafted, accepted, None, steps, drafts, None, None)
    positions = None
    if counted and drafts:
        shares = [count / drafts for count in counted.per_position]
        length = len(shares) if length is None else length
        positions = tuple((shares + [0.0] * length)[:length])
    return Acceptance(
        drafted=drafted,
        accepted=taken,
        kept=taken / drafted,
        steps=steps,
        drafts=drafts,
        accepted_per_position=positions,
        mean_accepted_length=1 + taken / verified,
    )


def moved(before: Counters, after: Counters) -> Counters:
    """What the counters moved by."""

    def difference(old: int | None, new: int | None) -> int | None:
        return None if old is None or new is None else new - old

    known = before.per_position + (0,) * (len(after.per_position) - len(before.per_position))
    return Counters(
        predicted=after.predicted - before.predicted,
        drafts=difference(before.drafts, after.drafts),
        drafted=difference(before.drafted, after.drafted),
        accepted=difference(before.accepted, after.accepted),
        per_position=tuple(new - old for old, new in zip(known, after.per_position, strict=False)),
    )
