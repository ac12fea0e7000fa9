"""Whether drafting is proven (method: "One reply").

Published tools have reported gains from a drafter that never ran, so figures count only where the
server drafted exactly when it was asked to.
"""

from __future__ import annotations

from collections.abc import Sequence

from tuirig.records import Proof, Reply


def prove(setting_has_drafter: bool, replies: Sequence[Reply], reason_from_log: str = "") -> Proof:
    """Weigh what /slots said and what the replies drafted.

    With a drafter: /slots said `speculative: true` before every reply and at least one reply
    drafted. Without: neither. reason_from_log: a log line that tells why the drafter is not used.
    """
    answers = {reply.speculative for reply in replies}
    speculative = None if not answers or None in answers else answers == {True}
    counts = [reply.drafted for reply in replies if reply.drafted is not None]
    drafted = sum(counts) if counts else None
    if setting_has_drafter:
        reason = _why_not_drafting(len(replies), speculative, drafted)
        if reason and reason_from_log:
            reason = f"{reason}: {reason_from_log}"
    else:
        reason = _why_drafting(replies, drafted)
    return Proof(
        asked=setting_has_drafter,
        speculative=speculative,
        drafted=drafted,
        proven=not reason,
        reason=reason,
    )


def _why_not_drafting(replies: int, speculative: bool | None, drafted: int | None) -> str:
    if not replies:
        return "no reply was measured"
    if speculative is False:
        return "the server runs without the drafter"
    if speculative is None:
        return "the server does not say whether it uses the drafter (/slots)"
    if not drafted:
        return f"the drafter is loaded but drafted nothing in {replies} replies"
    return ""


def _why_drafting(replies: Sequence[Reply], drafted: int | None) -> str:
    if not replies:
        return "no reply was measured"
    if drafted or any(reply.speculative for reply in replies):
        return "the server drafts although no drafter was asked for"
    return ""
