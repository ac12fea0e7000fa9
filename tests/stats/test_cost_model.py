import pytest

from tests.stats import published
from tests.stats.published import Curve
from tuirig.stats.cost_model import (
    CostModel,
    DraftedStart,
    accepted_between,
    accepted_from_kept,
    extrapolated,
    tokens_per_step,
)

ARTICLE = published.article()
PASSES = published.passes_1650ti()
RTX5090 = published.rtx5090()

BASE_S = 0.020
TRUE_PASSES = {1: 0.020, 2: 0.022, 3: 0.025, 4: 0.031, 5: 0.040, 6: 0.044, 7: 0.049, 8: 0.053}
ACCEPTED = (0.7, 0.5, 0.4, 0.33, 0.25, 0.2, 0.17)


def speed(length: int, fixed: float, token: float) -> float:
    if not length:
        return 1.0 / BASE_S
    step = TRUE_PASSES[length + 1] + fixed + length * token
    return (1.0 + sum(ACCEPTED[:length])) / step


def starts_at(*lengths: int, fixed: float, token: float) -> list[DraftedStart]:
    return [DraftedStart(n, speed(n, fixed, token), ACCEPTED[:n]) for n in lengths]


def off(model: CostModel, curve: Curve, length: int) -> float:
    prediction = model.predict(length)
    assert prediction is not None
    return abs(prediction.tok_s / curve.tok_s[length] - 1.0)


def test_tokens_per_step_is_one_more_than_the_accepted_ones() -> None:
    assert tokens_per_step((0.7, 0.5), 0) == 1.0
    assert tokens_per_step((0.7, 0.5), 2) == pytest.approx(2.2)
    # Beyond what is known the last conditional acceptance is kept: 0.5 * 0.5 / 0.7.
    assert tokens_per_step((0.7, 0.5), 3) == pytest.approx(2.2 + 0.25 / 0.7)
    assert extrapolated((0.6,), 3) == pytest.approx((0.6, 0.36, 0.216))
    assert extrapolated((0.6, 0.0), 4) == (0.6, 0.0, 0.0, 0.0)
    with pytest.raises(ValueError, match="acceptance"):
        tokens_per_step((), 1)


def test_acceptance_by_position_from_a_table_of_kept() -> None:
    kept = [0.7, 1.2 / 2, 1.6 / 3]
    assert accepted_from_kept(kept) == pytest.approx((0.7, 0.5, 0.4))
    first, second, third = accepted_between(0.6, 1.1)
    assert first + second + third == pytest.approx(1.1)
    assert third == pytest.approx(second * second / first)


def test_one_drafted_start_and_the_passes_predict_every_length() -> None:
    starts = starts_at(7, fixed=0.0, token=0.0016)
    model = CostModel(1.0 / BASE_S, starts, TRUE_PASSES)
    for length in range(8):
        prediction = model.predict(length)
        assert prediction is not None
        assert prediction.tok_s == pytest.approx(speed(length, 0.0, 0.0016), rel=0.02)
        assert prediction.low < speed(length, 0.0, 0.0016) < prediction.high
    assert model.gain(2) == pytest.approx(speed(2, 0.0, 0.0016) * BASE_S, rel=0.02)
    assert model.predict(8) is None and model.gain(8) is None


def test_more_starts_separate_the_fixed_cost_from_the_cost_per_token() -> None:
    few = CostModel(1.0 / BASE_S, starts_at(7, fixed=0.002, token=0.001), TRUE_PASSES)
    many = CostModel(
        1.0 / BASE_S,
        starts_at(1, 2, 4, 7, fixed=0.002, token=0.001),
        TRUE_PASSES,
        noise=0.002,
    )
    assert abs(many.fixed_s - 0.002) < abs(few.fixed_s - 0.002)
    assert many.fixed_s == pytest.approx(0.002, rel=0.1)
    assert many.token_s == pytest.approx(0.001, rel=0.1)
    narrow, wide = many.predict(3), few.predict(3)
    assert narrow and wide
    assert narrow.high / narrow.low < wide.high / wide.low


def test_passes_from_another_start_are_scaled_to_the_baseline() -> None:
    starts = starts_at(7, fixed=0.0, token=0.001)
    slower = {k: seconds * 1.03 for k, seconds in TRUE_PASSES.items()}
    one = CostModel(1.0 / BASE_S, starts, TRUE_PASSES)
    other = CostModel(1.0 / BASE_S, starts, slower)
    assert other.step_s(3) == pytest.approx(one.step_s(3))


def test_missing_passes_are_interpolated_but_not_extrapolated() -> None:
    model = CostModel(
        1.0 / BASE_S, starts_at(3, fixed=0.0, token=0.001), {1: 0.020, 2: 0.022, 4: 0.030}
    )
    assert model.pass_s(3) == pytest.approx(0.026)
    assert model.pass_s(5) is None
    assert model.step_s(4) is None


def test_beyond_the_measured_positions_the_interval_is_wider() -> None:
    model = CostModel(1.0 / BASE_S, starts_at(4, fixed=0.0, token=0.001), TRUE_PASSES)
    widths = [p.high / p.low for n in range(3, 8) if (p := model.predict(n))]
    assert widths[2:] == sorted(widths[2:])
    assert widths[2] > max(widths[:2])


def test_without_passes_the_line_through_the_nearest_two_is_used() -> None:
    starts = starts_at(1, 2, 6, fixed=0.001, token=0.001)
    model = CostModel(1.0 / BASE_S, starts)
    t1, t2, t6 = (start.step_s for start in starts)
    assert model.step_s(3) == pytest.approx(2 * t2 - t1)
    assert model.step_s(5) == pytest.approx(t6 - (t6 - t2) / 4)
    assert CostModel(1.0 / BASE_S, starts[2:]).step_s(3) == pytest.approx((BASE_S + t6) / 2)


def test_a_model_needs_a_drafted_start() -> None:
    with pytest.raises(ValueError, match="drafted start"):
        CostModel(50.0, [])


# The limits below are those of the method's page for the published tables.


@pytest.mark.parametrize("key", ARTICLE)
def test_lengths_0_1_2_predict_3_within_4_5_percent(key: tuple[str, str]) -> None:
    curve = ARTICLE[key]
    model = CostModel(curve.tok_s[0], [curve.start(1), curve.start(2)])
    assert off(model, curve, 3) <= 0.045


@pytest.mark.parametrize("key", ARTICLE)
def test_lengths_0_1_3_predict_2_within_3_percent(key: tuple[str, str]) -> None:
    curve = ARTICLE[key]
    accepted = accepted_between(curve.kept[1], 3 * curve.kept[3])
    starts = [curve.start(1), DraftedStart(3, curve.tok_s[3], accepted)]
    assert off(CostModel(curve.tok_s[0], starts), curve, 2) <= 0.03


@pytest.mark.parametrize("longest", [2, 3])
@pytest.mark.parametrize("model_name", ["E2B", "E4B"])
def test_passes_and_one_drafted_start_predict_the_1650ti(model_name: str, longest: int) -> None:
    curve = ARTICLE["1650ti", model_name]
    model = CostModel(curve.tok_s[0], [curve.start(longest)], PASSES[model_name])
    for length in range(1, longest + 1):
        assert off(model, curve, length) <= 0.03


@pytest.mark.parametrize("cap", RTX5090)
def test_lengths_0_and_6_predict_an_rtx_5090_within_4_percent(cap: str) -> None:
    curve = RTX5090[cap]
    model = CostModel(curve.tok_s[0], [curve.start(6)])
    for length in range(1, 6):
        assert off(model, curve, length) <= 0.04
        prediction = model.predict(length)
        assert prediction and prediction.low < curve.tok_s[length] < prediction.high


@pytest.mark.parametrize("kind", ["prose", "code"])
def test_lengths_0_and_6_choose_the_right_length_on_a_v100(kind: str) -> None:
    table = published.load("community_sweeps.json")["v100"]
    tok_s = dict(zip(table["lengths"], table[kind], strict=True))
    kept = dict(zip(table["lengths"], table["kept_mid"], strict=True))
    # Length 5 was not published: its acceptance lies on the line between 4 and 6.
    kept[5] = (kept[4] + kept[6]) / 2
    accepted = accepted_from_kept([kept[n] for n in range(1, 7)])
    model = CostModel(tok_s[0], [DraftedStart(6, tok_s[6], accepted)])
    predicted = {n: p.tok_s for n in tok_s if (p := model.predict(n))}
    assert max(predicted, key=predicted.__getitem__) == max(tok_s, key=tok_s.__getitem__) == 2
    assert max(abs(predicted[n] / tok_s[n] - 1.0) for n in tok_s) <= 0.10
