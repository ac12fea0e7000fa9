"""Stored runs of the example rig, the same each time: what the charts of History are drawn from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tests.runs import stored
from tests.runs.stored import circumstances
from tuirig.measure.prompts import choose
from tuirig.records import Arm, CardInfo, Cooling, MemoryParts, Reading, Reply
from tuirig.runs.store import ArmState, FailureNote, RunState, Store
from tuirig.runs.tune_plan import TuneOptions, TunePlan
from tuirig.runs.tune_result import result_of
from tuirig.runs.tune_state import CellStep, FinalistStep, PassesStep, Step
from tuirig.stats.cost_model import extrapolated
from tuirig.stats.search import Plan, Row

CPU = CardInfo(kind="cpu", name="Some CPU", memory_mib=32768.0)
PROMPTS = tuple(prompt.id for prompt in choose(4))
#: Shares of drafts accepted up to each position.
SHARES = {"q4_0": (0.72, 0.46, 0.29), "bf16": (0.74, 0.5, 0.33), "ngram": (0.3, 0.12)}
#: (setting, tok/s) in the order of the starts.
TUNE = (
    ("none", 58.3),
    ("passes", 0.0),
    ("q4_0:4", 92.0),
    ("q4_0:2", 100.0),
    ("q4_0:3", 99.3),
    ("bf16:2", 92.7),
    ("ngram", 63.1),
    ("q4_0:2", 99.2),
    ("q4_0:3", 98.2),
    ("q4_0:3", 97.5),
    ("q4_0:2", 98.4),
    ("none", 57.6),
)
PASSES_S = {n: 0.0171 * (1 + 0.045 * (n - 1)) for n in range(1, 6)}


def readings(start: int, count: int, *, card: CardInfo, bare: bool) -> list[Reading]:
    """After each reply of a start; a bare one tells nothing."""
    if bare:
        return [Reading(at_s=100.0 * start + 3.0 * n) for n in range(count)]
    if card.kind == "cpu":
        return [
            Reading(at_s=100.0 * start + 3.0 * n, load=1.0 + 0.2 * n + 0.05 * start)
            for n in range(count)
        ]
    return [
        Reading(
            at_s=100.0 * start + 3.0 * n,
            memory_total_mib=8192.0,
            temperature_c=52.0 + min(12.0, 2.5 * n + start),
            sm_clock_mhz=1905.0 - 15.0 * max(0, n + start - 8),
            power_w=96.0 + (n * 7 + start * 3) % 5,
        )
        for n in range(count)
    ]


def replies(setting: str, tok_s: float, own: Sequence[Reading]) -> list[Reply]:
    """Two rounds through the prompts."""
    drafter, _, length = setting.partition(":")
    shares = SHARES.get(drafter)
    accepted = extrapolated(shares, int(length or 2))[: int(length or 2)] if shares else None
    found = []
    for n, reading in enumerate(own):
        prompt = PROMPTS[n % len(PROMPTS)]
        reply = stored.reply(tok_s * (1 + 0.01 * (n % len(PROMPTS))), prompt)
        if accepted is not None:
            reply = msgspec.structs.replace(
                reply,
                drafted=60 * len(accepted),
                accepted=round(60 * sum(accepted)),
                kept=sum(accepted) / len(accepted),
                drafts=60,
                steps=61,
                accepted_per_position=accepted,
            )
        found.append(msgspec.structs.replace(reply, order=n, reading_after=reading))
    return found


def memory(setting: str) -> MemoryParts:
    """By purpose."""
    drafter = setting.partition(":")[0]
    extra = {"q4_0": 61.0, "bf16": 190.0}.get(drafter)
    return MemoryParts(
        target_mib=4147.0, drafter_mib=extra, cache_mib=123.0, buffers_mib=80.0 + (extra or 0) / 4
    )


def step_of(number: int, setting: str) -> Step:
    """What a start of TUNE was for."""
    if setting == "passes":
        return PassesStep(positions=5)
    if 7 <= number <= 10:
        return FinalistStep(
            block=1, a="q4_0:2", b="q4_0:3", order="ABBA", place=number - 7, reason="open"
        )
    return CellStep(reason="because")


def add_start(
    store: Store,
    run: int,
    number: int,
    setting: str,
    tok_s: float,
    *,
    card: CardInfo = stored.CARD,
    parts: bool = True,
    bare: bool = False,
    ended: bool = True,
) -> None:
    """A start of a run. bare: a card that tells nothing. ended: else it is under way."""
    name = "none" if setting == "passes" else setting
    under = circumstances(name, card=card)
    arm = store.begin_arm(run, name, step_of(number, setting), under, Cooling(seconds=4.0))
    if not ended:
        return
    if setting == "passes":
        store.end_arm(arm, ArmState.MEASURED, 20.0, passes_s=PASSES_S)
        return
    own = replies(name, tok_s, readings(number, 8, card=card, bare=bare))
    for n, reply in enumerate(own):
        store.add_reply(arm, n, reply)
    told = memory(name)
    used = 84.0 + sum(value or 0.0 for value in msgspec.structs.astuple(told))
    record: Arm = stored.arm(name, tuple(own), used)
    record = msgspec.structs.replace(record, memory_parts=told if parts else None)
    store.end_arm(arm, ArmState.MEASURED, 40.0, record=record)


def store_tune(rig: str, *, starts: int = len(TUNE), state: RunState | None = RunState.DONE) -> int:
    """A tune of the example rig, whole or its first starts; its number. state None: it runs."""
    with Store() as store:
        options = TuneOptions(prompts=choose(4))
        run = store.begin_run("tune", rig, options)
        for number, (setting, tok_s) in enumerate(TUNE[:starts]):
            add_start(store, run, number, setting, tok_s)
        rows = (Row("q4_0", (1, 2, 3, 4)), Row("bf16", (1, 2, 3, 4)), Row("ngram", ()))
        plan = TunePlan(Plan(rows, kinds=options.kinds), ())
        if state is not None:
            store.end_run(run, state, result_of(run, rig, plan, store.arms(run)))
    return run


def store_bare(rig: str, *, card: CardInfo = stored.CARD) -> int:
    """A comparison of old: no parts of the memory; its card tells nothing. One start failed."""
    with Store() as store:
        run = store.begin_run("ab", rig, {})
        for number, (setting, tok_s) in enumerate((("none", 58.3), ("q4_0:1", 89.8))):
            add_start(
                store, run, number, setting, tok_s, card=card, parts=False, bare=card.kind != "cpu"
            )
        arm = store.begin_arm(run, "bf16:1", {}, circumstances("bf16:1", card=card), Cooling())
        note = FailureNote(message="the server ended while it was loading: out of memory")
        store.end_arm(arm, ArmState.DOES_NOT_FIT, 3.0, failure=note)
        store.end_run(run, RunState.DONE)
    return run
