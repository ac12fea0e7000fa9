"""Reports and comparisons of stored runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import pytest

from tests.runs.stored import CARD, arm, circumstances, reply
from tuirig.errors import MissingError
from tuirig.records import Cooling, MemoryParts, Reply
from tuirig.runs.between_runs import compare_runs
from tuirig.runs.report import report_of
from tuirig.runs.store import ArmState, FailureNote, RunState, Store

PROMPTS = ("code-1", "story-1", "list-1")


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as opened:
        yield opened


def replies(tok_s: float, kept: float | None, texts: Sequence[str] = PROMPTS) -> tuple[Reply, ...]:
    return tuple(
        reply(tok_s * (1 + 0.1 * n), prompt, kept=kept, text=texts[n])
        for n, prompt in enumerate(PROMPTS)
    )


def add(
    store: Store,
    run: int,
    setting: str,
    found: tuple[Reply, ...],
    memory_mib: float,
    **changes: object,
) -> None:
    number = store.begin_arm(
        run, setting, {"type": "CellStep"}, circumstances(setting, **changes), Cooling()
    )
    for order, one in enumerate(found):
        store.add_reply(number, order, one)
    parts = MemoryParts(target_mib=memory_mib - 50, drafter_mib=20.0, cache_mib=30.0)
    record = msgspec.structs.replace(arm(setting, found, memory_mib), memory_parts=parts)
    store.end_arm(number, ArmState.MEASURED, 10.0, record=record)


def a_run(store: Store, faster: float = 1.0, **changes: object) -> int:
    """none, two formats at two tokens (one text differs), one of them at one token."""
    run = store.begin_run("speed", "example", {})
    add(store, run, "none", replies(50.0 * faster, None), 4415.0, **changes)
    add(store, run, "q8_0:2", replies(86.0 * faster, 0.48), 4537.0, **changes)
    other = ("code-1", "another text", "list-1")
    add(store, run, "q4_0:2", replies(86.5 * faster, 0.48, other), 4499.0, **changes)
    add(store, run, "q4_0:1", replies(77.0 * faster, 0.62), 4490.0, **changes)
    return run


def test_formats_side_by_side(store: Store) -> None:
    found, arms = report_of(store, a_run(store))
    assert len(arms) == 4
    (formats,) = found.formats
    assert (formats.length, formats.prompts) == (2, 3)
    assert (formats.identical, formats.identical_to_none) == (2, 2)
    q8_0, q4_0 = formats.rows
    assert (q8_0.format, q8_0.setting) == ("q8_0", "q8_0:2")
    assert (q8_0.gain, q4_0.gain) == (pytest.approx(1.72), pytest.approx(1.73))
    assert (q8_0.memory_mib, q8_0.more_mib, q4_0.more_mib) == (4537.0, 122.0, 84.0)


def test_settings_have_gain_and_interval(store: Store) -> None:
    found, _ = report_of(store, a_run(store))
    none, *drafted = found.settings
    assert (none.setting, none.gain, none.memory_mib) == ("none", None, 4415.0)
    for one in drafted:
        assert one.gain is not None and one.interval is not None
        assert one.interval[0] < one.gain < one.interval[1]
        assert one.memory_parts is not None and one.memory_parts.drafter_mib == 20.0
    assert (found.prompts, found.tokens, found.card) == (3, 128, CARD)
    assert (found.starts, found.seconds, found.state) == (4, 40.0, RunState.RUNNING)


def test_a_run_without_a_measured_arm(store: Store) -> None:
    run = store.begin_run("tune", "example", {})
    number = store.begin_arm(run, "none", {}, circumstances(), Cooling())
    store.end_arm(number, ArmState.FAILED, 1.0, failure=FailureNote(message="it died"))
    with pytest.raises(MissingError, match=f"in run {run} nothing was measured"):
        report_of(store, run)
    with pytest.raises(MissingError, match="no run 9"):
        report_of(store, 9)


def test_two_runs_of_a_rig(store: Store) -> None:
    first = a_run(store)
    second = a_run(store, 1.2, server_build="a newer one")
    found = compare_runs(store, first, second)
    assert (found.a.run, found.b.run) == (first, second)
    assert found.changed == (f"server build {circumstances().server_build} -> a newer one",)
    rows = {row.setting: row for row in found.settings}
    assert list(rows) == ["none", "q8_0:2", "q4_0:2", "q4_0:1"]
    assert rows["none"].ratio == pytest.approx(1.2)
    assert rows["none"].verdict == "faster"
    row = rows["q4_0:2"]
    assert (row.a_gain, row.b_gain) == (pytest.approx(1.73), pytest.approx(1.73))
    assert row.interval is not None and row.interval[0] < 1.2 < row.interval[1]
    assert (found.a_best, found.b_best) == ("q4_0:2", "q4_0:2")


def test_two_cards_with_other_settings(store: Store) -> None:
    first = a_run(store)
    card = msgspec.structs.replace(CARD, name="NVIDIA GeForce GTX 1650 Ti", uuid="GPU-2")
    second = store.begin_run("speed", "other", {})
    add(store, second, "q4_0:3", replies(50.0, 0.4), 1557.0, card=card)
    found = compare_runs(store, first, second)
    rows = {row.setting: row for row in found.settings}
    assert rows["q4_0:3"].a_tok_s is None and rows["q4_0:3"].ratio is None
    assert rows["none"].b_tok_s is None
    (changed,) = found.changed
    assert changed.startswith("card NVIDIA GeForce RTX 3050 (GPU-1) -> NVIDIA GeForce GTX 1650 Ti")
    assert found.b_best is None
