"""What the replies of one setting say together. Pure; None where nothing is known."""

from __future__ import annotations

from collections.abc import Sequence

from tuirig.records import Reply
from tuirig.stats.ratio import geometric_mean


def tok_s_by_prompt(replies: Sequence[Reply]) -> dict[str, float]:
    """tok/s by prompt id: the geometric mean over the replies to the same prompt."""
    speeds: dict[str, list[float]] = {}
    for reply in replies:
        if reply.tok_s is not None:
            speeds.setdefault(reply.prompt_id, []).append(reply.tok_s)
    return {id: mean for id, values in speeds.items() if (mean := geometric_mean(values))}


def tok_s(replies: Sequence[Reply]) -> float | None:
    """tok/s: the geometric mean over prompts, each counted once."""
    return geometric_mean(tok_s_by_prompt(replies).values())


def ttft_ms(replies: Sequence[Reply]) -> float | None:
    """The median time to the first text, in ms."""
    import statistics  # 8 ms that the start of the program has no use for

    times = [reply.ttft_ms for reply in replies if reply.ttft_ms is not None]
    return statistics.median(times) if times else None


def kept(replies: Sequence[Reply]) -> float | None:
    """Accepted of all drafted tokens, None if none were drafted."""
    drafted = sum(reply.drafted or 0 for reply in replies)
    return sum(reply.accepted or 0 for reply in replies) / drafted if drafted else None


def accepted_per_position(replies: Sequence[Reply]) -> tuple[float, ...] | None:
    """Share of drafts whose token i was accepted, over all drafts of all replies."""
    known = [
        (reply.drafts, reply.accepted_per_position)
        for reply in replies
        if reply.drafts and reply.accepted_per_position is not None
    ]
    if not known:
        return None
    drafts = sum(count for count, _ in known)
    return tuple(
        sum(count * (shares[i] if i < len(shares) else 0.0) for count, shares in known) / drafts
        for i in range(max(len(shares) for _, shares in known))
    )


def mean_accepted_length(replies: Sequence[Reply]) -> float | None:
    """Tokens per step that drafted, the target's own included, over all drafts of all replies."""
    known = [
        (reply.accepted or 0, verified)
        for reply in replies
        if reply.drafted and (verified := reply.steps if reply.drafts is None else reply.drafts)
    ]
    drafts = sum(verified for _, verified in known)
    return 1 + sum(accepted for accepted, _ in known) / drafts if drafts else None


def ended_by_itself(replies: Sequence[Reply]) -> float | None:
    """The share of replies that ended before the token limit: their acceptance is understated."""
    if not replies:
        return None
    return sum(reply.ended_by_itself for reply in replies) / len(replies)
