"""Choosing a setting: best by ratio, ties broken by fewer drafted tokens, then by less memory.

What "best" means is an objective: `all` kinds of work, one kind, or a mix such as
`mix:code=3,story=1`. Objectives become weights of prompts; every comparison behind a choice uses
them. `energy` weighs like `all`, but the rates to give are tokens per joule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from tuirig.stats.comparison import (
    CONFIDENCE,
    MIN_GAIN,
    Comparison,
    Start,
    Variance,
    Verdict,
    Weighting,
    compare,
    start_variance,
)

#: A verdict about one kind of work needs this many prompts of it.
PROMPTS_PER_KIND = 6


@dataclass(frozen=True)
class Objective:
    """What is to be best. mix: share of each kind, empty for all kinds alike.

    per: "second" (rates are tok/s) or "joule" (rates are tokens per joule).
    """

    mix: tuple[tuple[str, float], ...] = ()
    per: str = "second"

    def __str__(self) -> str:
        if self.per == "joule":
            return "energy"
        if len(self.mix) == 1:
            return self.mix[0][0]
        return "mix:" + ",".join(f"{k}={w:g}" for k, w in self.mix) if self.mix else "all"

    def weighting(self, kinds: Mapping[str, str]) -> Weighting | None:
        """How much each prompt counts, None for all alike. kinds: prompt id -> kind.

        A kind's share is spread evenly over its prompts. Raises ValueError when a kind of the mix
        has no prompt.
        """
        if not self.mix:
            return None
        found: dict[str, float] = {}
        for kind, share in self.mix:
            prompts = [prompt for prompt, its_kind in kinds.items() if its_kind == kind]
            if not prompts:
                raise ValueError(f"objective {self}: no prompt of kind {kind!r} was measured")
            found.update(dict.fromkeys(prompts, share / len(prompts)))
        return Weighting(found, kinds)


ALL = Objective()


def parse_objective(text: str, kinds: Collection[str]) -> Objective:
    """Read `all`, `energy`, a kind, or `mix:kind=share,...`. Raises ValueError with what is wrong.

    kinds: the kinds that exist.
    """
    head, colon, rest = text.strip().partition(":")
    if not colon:
        if head == "all":
            return ALL
        if head == "energy":
            return Objective(per="joule")
        if head in kinds:
            return Objective(((head, 1.0),))
    if head != "mix" or not colon:
        known = ", ".join(sorted(kinds))
        raise ValueError(f"objective {text!r}: expected all, energy, mix:KIND=SHARE,... or {known}")
    mix: dict[str, float] = {}
    for part in rest.split(","):
        kind, _, number = (piece.strip() for piece in part.partition("="))
        try:
            share = float(number)
        except ValueError:
            share = math.nan
        if kind not in kinds or kind in mix or not 0.0 < share < math.inf:
            raise ValueError(
                f"objective {text!r}: {part!r} is not KIND=SHARE with a share above 0 and each of "
                f"{', '.join(sorted(kinds))} at most once"
            )
        mix[kind] = share
    return Objective(tuple(mix.items()))


@dataclass(frozen=True)
class Candidate:
    """A measured setting. drafted: tokens drafted per step, 0 for none, None where it can't be set.

    memory_mib None: unknown. starts: its valid starts.
    """

    setting: str
    drafted: int | None
    memory_mib: float | None
    starts: tuple[Start, ...]


@dataclass(frozen=True)
class Choice:
    """The chosen setting and why.

    gain: chosen against the reference (the setting that drafts nothing, if there is one).
    best: the setting with the highest ratio. comparisons: every setting against best.
    tied: the settings level with best, best included.
    """

    setting: str
    best: str
    reference: str
    gain: Comparison
    comparisons: tuple[tuple[str, Comparison], ...]
    tied: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class KindChoice:
    """The choice for one kind; None with a reason when it can't be made.

    differs: on this kind its choice beats the overall choice by more than the detectable
    difference.
    """

    kind: str
    choice: Choice | None
    differs: bool
    reason: str = ""


def compare_within(
    candidates: Sequence[Candidate],
    a: Candidate,
    b: Candidate,
    history: Sequence[Variance] = (),
    weighting: Weighting | None = None,
    min_gain: float = MIN_GAIN,
    confidence: float = CONFIDENCE,
) -> Comparison:
    """Compare b with a, the start noise pooled over all candidates of the run and the history.

    history: of earlier runs only.
    """
    others = (start_variance(one.starts, weighting) for one in candidates if one not in (a, b))
    return compare(
        a.starts,
        b.starts,
        history=[*history, *(variance for variance in others if variance)],
        weighting=weighting,
        min_gain=min_gain,
        confidence=confidence,
    )


def choose(
    candidates: Sequence[Candidate],
    kinds: Mapping[str, str],
    *,
    objective: Objective = ALL,
    history: Sequence[Variance] = (),
    min_gain: float = MIN_GAIN,
    confidence: Callable[[str, str], float] = lambda a, b: CONFIDENCE,
) -> Choice | None:
    """The best candidate for an objective (default: all kinds). None when none was measured.

    kinds: prompt id -> kind. history: of earlier runs. confidence: of the comparison of two
    settings, 95 % if not given. Only level *with the best* counts as a tie: ties are not chained.
    """
    weighting = objective.weighting(kinds)
    measured = [candidate for candidate in candidates if candidate.starts]
    if not measured:
        return None

    def against(a: Candidate, b: Candidate) -> Comparison:
        level = confidence(a.setting, b.setting)
        return compare_within(measured, a, b, history, weighting, min_gain, level)

    reference = next((one for one in measured if one.drafted == 0), measured[0])
    gains = {one.setting: against(reference, one) for one in measured}
    ranked = [one for one in measured if gains[one.setting].ratio is not None]
    if not ranked:
        return None
    best = max(ranked, key=lambda one: gains[one.setting].ratio or 0.0)
    comparisons = {one.setting: against(best, one) for one in measured if one is not best}
    tied = [
        one for one in ranked if one is best or comparisons[one.setting].verdict is Verdict.LEVEL
    ]
    chosen = min(tied, key=lambda one: preference(one, gains[one.setting].ratio))
    return Choice(
        setting=chosen.setting,
        best=best.setting,
        reference=reference.setting,
        gain=gains[chosen.setting],
        comparisons=tuple(comparisons.items()),
        tied=tuple(one.setting for one in tied),
        reason=_reason(chosen, best),
    )


def choose_per_kind(
    candidates: Sequence[Candidate],
    kinds: Mapping[str, str],
    overall: Choice,
    *,
    history: Sequence[Variance] = (),
    min_gain: float = MIN_GAIN,
) -> tuple[KindChoice, ...]:
    """The best setting of each kind, in the order in which kinds first appear."""
    by_name = {candidate.setting: candidate for candidate in candidates}
    found = []
    for kind in dict.fromkeys(kinds.values()):
        count = sum(its_kind == kind for its_kind in kinds.values())
        if count < PROMPTS_PER_KIND:
            reason = f"{count} of the {PROMPTS_PER_KIND} prompts that a verdict per kind needs"
            found.append(KindChoice(kind, None, False, reason))
            continue
        objective = Objective(((kind, 1.0),))
        choice = choose(candidates, kinds, objective=objective, history=history, min_gain=min_gain)
        if choice is None:
            found.append(KindChoice(kind, None, False, "nothing was measured"))
            continue
        differs = choice.setting != overall.setting and _clearly_faster(
            compare_within(
                candidates,
                by_name[overall.setting],
                by_name[choice.setting],
                history,
                objective.weighting(kinds),
                min_gain,
            )
        )
        found.append(KindChoice(kind, choice, differs))
    return tuple(found)


def preference(candidate: Candidate, ratio: float | None) -> tuple[float, float, float]:
    """Sorts ties: fewer drafted tokens, less memory, higher ratio. Unknown comes last."""
    return (
        math.inf if candidate.drafted is None else candidate.drafted,
        math.inf if candidate.memory_mib is None else candidate.memory_mib,
        -(ratio or 0.0),
    )


def _reason(chosen: Candidate, best: Candidate) -> str:
    if chosen is best:
        return "highest ratio"
    if chosen.drafted != best.drafted:
        return f"level with {best.setting}, drafts fewer tokens"
    return f"level with {best.setting}, needs less memory"


def _clearly_faster(comparison: Comparison) -> bool:
    return (
        comparison.verdict is Verdict.FASTER
        and comparison.ratio is not None
        and comparison.detectable is not None
        and comparison.ratio - 1.0 > comparison.detectable
    )
