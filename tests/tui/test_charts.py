"""What the charts of a run are drawn from, and how they are drawn."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from tests.runs import stored
from tests.tui import example, example_runs
from tuirig.records import Reading
from tuirig.rigs.settings import parse_setting
from tuirig.runs.store import RunState, Store
from tuirig.tui import chart
from tuirig.tui.chart import Axis, Curve, Level
from tuirig.tui.panels.charts import CHARTS, acceptance, climate, memory, speeds
from tuirig.tui.panels.charts.facts import Facts, facts_of
from tuirig.tui.spans import Line, width

RIG = "3050-e4b"
LENGTHS = example.rig().tune.lengths


def facts(make: Callable[[], int]) -> Facts:
    run = make()
    with Store() as store:
        return facts_of(store.run(run), store.arms(run), LENGTHS)


def tuned() -> Facts:
    return facts(lambda: example_runs.store_tune(RIG))


def text(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in row) for row in lines)


def test_points_by_length_with_their_intervals() -> None:
    found = tuned()
    own = speeds.points(found)
    assert {drafter: [p.length for p in points] for drafter, points in own.items()} == {
        "q4_0": [2, 3, 4],
        "bf16": [2],
    }
    none = found.none_tok_s
    table = {one.setting: one for one in found.settings}
    assert none is not None
    for drafter, points in own.items():
        for point in points:
            one = table[f"{drafter}:{point.length}"]
            assert point.tok_s == one.tok_s
            assert one.interval is not None and point.low is not None and point.high is not None
            assert point.low / none == pytest.approx(one.interval[0])
            assert point.low < point.tok_s < point.high
    assert [level.text.split()[0] for level in speeds.levels(found)] == ["none", "ngram"]


def test_the_cost_models_curve_is_made_again_from_the_arms() -> None:
    found = tuned()
    assert {drafter: list(curve) for drafter, curve in found.predicted.items()} == {
        "q4_0": [1, 2, 3, 4],
        "bf16": [1, 2, 3, 4],
        }  # fmt: skip
    measured = {p.length: p.tok_s for p in speeds.points(found)["q4_0"]}
    for length, tok_s in measured.items():
        assert found.predicted["q4_0"][length] == pytest.approx(tok_s, rel=0.1)
        assert found.predicted["q4_0"][length] != tok_s
    assert facts(lambda: example_runs.store_bare(RIG)).predicted == {}


def test_a_run_without_intervals_has_points_without() -> None:
    whole = tuned()
    bare = whole._replace(
        settings=tuple(msgspec.structs.replace(one, interval=None) for one in whole.settings)
    )
    assert all(p.low is None for points in speeds.points(bare).values() for p in points)
    assert "interval" not in text(speeds.by_length(bare, 80, 12))
    assert "interval" in text(speeds.by_length(whole, 80, 12))


def test_starts_that_gave_no_figure_are_gaps() -> None:
    found = tuned()
    own = speeds.starts(found)
    assert [number for number, _ in own["q4_0:2"]] == [4, 8, 11]
    assert own["none"][1] == (2, None)  # the target's passes
    bare = facts(lambda: example_runs.store_bare(RIG))
    assert "bf16:1" not in speeds.starts(bare)
    assert "bf16" not in text(speeds.in_time(bare, 80, 12))


def test_a_start_under_way_is_none_yet() -> None:
    run = example_runs.store_tune(RIG, starts=3, state=None)
    with Store() as store:
        example_runs.add_start(store, run, 3, "q4_0:2", 100.0, ended=False)
        found = facts_of(store.run(run), store.arms(run), LENGTHS)
    assert (found.run.state, len(found.arms)) == (RunState.RUNNING, 4)
    assert list(speeds.starts(found)) == ["none", "q4_0:4"]
    assert list(speeds.points(found)) == ["q4_0"]
    for one in CHARTS:
        assert one.draw(found, 80, 12)


def test_acceptance_is_of_the_longest_length() -> None:
    own = acceptance.accepted(tuned())
    assert [(one.setting, len(one.shares)) for one in own] == [
        ("q4_0:4", 4),
        ("bf16:2", 2),
        ("ngram", 2),
    ]
    assert own[0].shares[:3] == pytest.approx(example_runs.SHARES["q4_0"])


def test_memory_in_parts_or_as_a_whole() -> None:
    found = tuned()
    own = {one.setting: one for one in memory.used(found)}
    parts = own["q4_0:2"].parts
    assert parts is not None and parts.drafter_mib == 61.0
    assert memory.total_mib(found.arms) == 8192.0
    drawn = text(memory.by_setting(found, 80, 20))
    assert "up to 8.00 GiB" in drawn and "drafter 61 MiB" in drawn
    none = next(row for row in drawn.splitlines() if row.startswith("none "))
    assert "▓" not in none and "█" in none
    bare = text(memory.by_setting(facts(lambda: example_runs.store_bare(RIG)), 80, 20))
    assert "parts not stored" in bare and "█" not in bare and "▪" in bare


def test_a_small_server_has_a_scale_of_its_own() -> None:
    run = facts(lambda: example_runs.store_bare(RIG, card=example_runs.CPU))
    drawn = text(memory.by_setting(run, 80, 20))
    assert "of 32.00 GiB, bars up to the largest" in drawn
    assert drawn.count("▪") > 50


def test_unknown_memory_is_no_bar() -> None:
    found = tuned()
    settings = tuple(
        msgspec.structs.replace(one, memory_mib=None, memory_parts=None)
        if one.setting == "none"
        else one
        for one in found.settings
    )
    drawn = text(memory.by_setting(found._replace(settings=settings), 80, 12))
    row = next(row for row in drawn.splitlines() if row.startswith("none "))
    assert row.split() == ["none", "–"]


def test_readings_in_minutes_with_a_gap_after_each_start() -> None:
    found = tuned()
    own, lacking = climate.strips(found)
    assert ([strip.name for strip in own], lacking) == (["temperature", "SM clock", "power"], [])
    heat = own[0].points
    assert heat[0] == (pytest.approx((4.0 + 1.5) / 60), 52.0)  # cooled down, loaded
    gaps = [minutes for minutes, value in heat if value is None]
    assert len(gaps) == len([arm for arm in found.arms if arm.replies])
    assert [minutes for minutes, _ in heat] == sorted(minutes for minutes, _ in heat)
    assert 0.0 not in own[0].values


def test_a_value_that_is_sometimes_unknown_is_a_gap() -> None:
    found = tuned()
    arm = found.arms[0]
    silent = Reading(at_s=arm.replies[3].reading_after.at_s)  # type: ignore[union-attr]
    replies = list(arm.replies)
    replies[3] = msgspec.structs.replace(replies[3], reading_after=silent)
    arms = (msgspec.structs.replace(arm, replies=tuple(replies)), *found.arms[1:])
    heat = climate.strips(found._replace(arms=arms))[0][0].points
    assert [value is None for _, value in heat[:9]] == [*[False] * 3, True, *[False] * 4, True]


@pytest.mark.parametrize(
    ("card", "said"),
    [
        (stored.CARD, "RTX 3050 does not tell temperature, SM clock and power"),
        (example_runs.CPU, "not told here: temperature"),
    ],
)
def test_what_a_card_does_not_tell_is_said(card: object, said: str) -> None:
    found = facts(lambda: example_runs.store_bare(RIG, card=card))  # type: ignore[arg-type]
    drawn = " ".join(text(climate.over_time(found, 80, 12)).split())
    assert said in drawn


@pytest.mark.parametrize("size", [(76, 11), (76, 3), (20, 6), (116, 20), (196, 40)])
@pytest.mark.parametrize("number", range(len(CHARTS)))
def test_every_chart_fits_its_place(number: int, size: tuple[int, int]) -> None:
    cells, rows = size
    for found in (tuned(), facts(lambda: example_runs.store_bare(RIG))):
        drawn = CHARTS[number].draw(found, cells, rows)
        if number not in (3, 5):  # lists, which are scrolled
            assert len(drawn) <= max(rows, 4)
        if cells > 40:
            assert max(map(width, drawn)) <= cells


@pytest.mark.parametrize("number", range(len(CHARTS)))
def test_a_run_in_which_nothing_was_measured_says_so(number: int) -> None:
    with Store() as store:
        run = store.run(store.begin_run("tune", RIG, {}))
    drawn = CHARTS[number].draw(facts_of(run, (), LENGTHS), 80, 12)
    assert text(drawn).strip()
    assert "0" not in text(drawn)


def test_a_gap_is_not_bridged() -> None:
    x, y = Axis(0, 4), Axis(0, 1)
    points = [(0.0, 0.5), (1.0, 0.5), (2.0, None), (3.0, 0.5), (4.0, 0.5)]
    row = text(chart.plot(41, 3, x, y, [Curve(points, join=chart.SOLID)])).splitlines()[1]
    assert row[2:9].strip() and row[32:38].strip()
    assert not row[13:28].strip()


def test_colours_are_roles() -> None:
    drawn = chart.plot(
        40,
        8,
        Axis(0, 1, ((0, "0"),)),
        Axis(0, 1, ((0, "0"),)),
        [Curve([(0.2, 0.5)], "●", role="bar"), Curve([(0.8, 0.5)], "■", role="good")],
        [Level(0.1, "none 1")],
    )
    roles = {span.roles: span.text for row in drawn for span in row if span.text.strip()}
    assert (roles["bar"], roles["good"]) == ("●", "■")
    assert set(roles) == {"bar", "good", "dim"}
    assert "\x1b" not in text(drawn)


def test_an_interval_far_out_does_not_flatten_the_curve() -> None:
    y = chart.y_axis([50.0, 100.0], 12, [1.0, 900.0])
    assert (y.low, y.high) == (pytest.approx(21.0), pytest.approx(129.0))


def test_levels_in_one_row_share_their_words() -> None:
    y = Axis(0.0, 100.0)
    close = [Level(52.0, "none 52"), Level(52.5, "ngram 52.5"), Level(90.0, "x 90")]
    assert [level.text for level in chart.apart(close, y, 12)] == ["none 52, ngram 52.5", "x 90"]


@pytest.mark.parametrize(
    ("low", "high", "most", "least", "expected"),
    [
        (1, 7, 7, 1.0, ["1", "2", "3", "4", "5", "6", "7"]),
        (1, 12, 6, 1.0, ["2", "4", "6", "8", "10", "12"]),
        (0, 1, 4, 0.0, ["0", ".5", "1"]),
        (48, 112, 4, 0.0, ["60", "80", "100"]),
        (1, 2, 9, 1.0, ["1", "2"]),
    ],
)
def test_ticks_are_round(
    low: float, high: float, most: int, least: float, expected: list[str]
) -> None:
    ticks = chart.round_numbers(low, high, most, least=least)
    assert [chart.number(tick) for tick in ticks] == expected


def test_settings_that_are_measured_by_no_length_stand_across() -> None:
    assert parse_setting("ngram").length is None
    assert "ngram 64.0" in text(speeds.by_length(tuned(), 80, 12))
