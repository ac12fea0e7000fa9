from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.files.repack.checkpoints import Floats, as_bf16, bf16_bits, on_grid
from tuirig.files.repack.grid import Groups, OffGridError, encode, rounded_steps, trained_grid
from tuirig.files.repack.values import (
    bf16_bytes,
    columns,
    decode,
    from_bf16,
    q4_0_bytes,
    rounded_to_bf16,
)


def group(*levels: float, step: float = 0.125) -> Floats:
    """One group with these levels first and zeros behind, in bf16."""
    values = np.zeros(32, np.float32)
    values[: len(levels)] = levels
    return as_bf16(values * np.float32(step)).reshape(32, 1)


def encoded(weights: Floats) -> Groups:
    return encode(weights, rounded_to_bf16(weights))


def error(values: Floats, reference: Floats) -> float:
    return float(np.sqrt(((values - reference) ** 2).sum() / (reference**2).sum()))


@pytest.fixture(scope="module")
def trained() -> Floats:
    """Two million Gaussian weights on a step of an eighth of the largest."""
    return columns(on_grid(np.random.default_rng(7), 2048, 1024))


def test_published_figures_of_the_plain_search(trained: Floats) -> None:
    """Relative error .00138, 28.9 % identical in fp32 and 96.83 % in bf16 without neighbours."""
    levels, steps = trained_grid(trained)
    values = Groups(rounded_steps(steps), levels).values()
    assert error(values, trained) == pytest.approx(0.00138, rel=0.01)
    assert (values == trained).mean() == pytest.approx(0.289, abs=0.01)
    assert (as_bf16(values) == trained).mean() == pytest.approx(0.9683, abs=0.01)


def test_neighbouring_steps_lift_the_share_identical_in_bf16(trained: Floats) -> None:
    values = encoded(trained).values()
    assert (as_bf16(values) == trained).mean() > 0.995
    assert error(values, trained) < 0.0015


def slowly(weights: Floats) -> tuple[Floats, np.float32]:
    """The search for one group as the specification words it."""
    largest = np.abs(weights).max()
    for count in range(1, 9):
        for sign in (1, -1):
            step = sign * largest / np.float32(count)
            levels = np.clip(np.rint(weights / step), -8, 7)
            if np.abs(weights - levels * step).max() <= largest * 2.0**-7:
                fitted = (weights * levels).sum() / (levels * levels).sum()
                return levels * sign, np.float32(fitted * sign)
    raise AssertionError("no step")


def test_agrees_with_the_search_written_for_one_group() -> None:
    random = np.random.default_rng(3)
    groups = []
    for _ in range(600):
        top = random.integers(1, 9)
        levels = random.integers(-top, min(top, 7) + 1, 32)
        levels[random.integers(32)] = -top
        levels *= random.random(32) < random.choice([1.0, 0.7, 0.1])
        if random.random() < 0.2:
            levels = levels // 2 * 2
        levels[0] = levels[0] or 1
        step = np.float32(random.lognormal() * random.choice([-1, 1]))
        groups.append(as_bf16((levels * step).astype(np.float32)))
    weights = np.array(groups).T.copy()
    levels, steps = trained_grid(weights)
    for index in range(weights.shape[1]):
        expected, step = slowly(weights[:, index])
        sign = np.sign(step) * np.sign(steps[index])
        assert (levels[:, index] * sign == expected).all()
        assert steps[index] * sign == pytest.approx(step, rel=1e-5)


def exhaustively(weights: Floats, levels: Floats, step: float) -> int:
    """The most values identical in bf16 that any of nine fp16 steps gives."""
    bits = np.array([step], np.float16).view(np.int16)
    near = (bits + np.arange(-4, 5, dtype=np.int16)).view(np.float16).astype(np.float32)
    return max(int((as_bf16(levels * each) == weights).sum()) for each in near)


def test_no_neighbour_would_keep_more(trained: Floats) -> None:
    weights = trained[:, :400]
    levels, steps = trained_grid(weights)
    kept = (as_bf16(encoded(weights).values()) == weights).sum(axis=0)
    best = [exhaustively(weights[:, i], levels[:, i], steps[i]) for i in range(400)]
    assert kept.tolist() == best


@pytest.mark.parametrize("top", range(1, 9))
def test_every_step_from_the_largest_to_an_eighth(top: int) -> None:
    weights = group(-top, *range(-top, min(top, 7) + 1), step=0.0625)
    found = encoded(weights)
    assert (found.values() == weights).all()
    assert abs(float(found.steps[0])) == 0.0625


def test_an_extreme_at_plus_8_has_a_negative_step() -> None:
    weights = group(8, -7, 3, 1)
    found = encoded(weights)
    assert float(found.steps[0]) == -0.125
    assert found.levels[:4, 0].tolist() == [-8, 7, -3, -1]
    assert (found.values() == weights).all()


def test_an_all_zero_group_has_step_zero() -> None:
    found = encoded(np.concatenate([group(-8, 1), group()], axis=1))
    assert found.steps.tolist() == [0.125, 0.0]
    assert not found.values()[:, 1].any()


def test_minus_zero_is_zero() -> None:
    weights = group(-8, 3)
    weights[5] = -0.0
    assert (encoded(weights).values() == weights).all()


def refusal(weights: Floats) -> OffGridError:
    """What is said of a group that stands behind three good ones."""
    good = group(-8, *range(-8, 8))
    with pytest.raises(OffGridError) as caught:
        encoded(np.concatenate([good, good, good, weights, good], axis=1))
    assert caught.value.group == 3
    return caught.value


def test_refuses_17_levels() -> None:
    assert refusal(group(8, -8, 7, 1)).reason == "17 levels: both -8 and +8 occur"


def test_plus_and_minus_8_are_no_trouble_on_a_coarser_grid() -> None:
    weights = group(8, -8, 2, -6)
    assert (encoded(weights).values() == weights).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refuses_what_is_no_number(value: float) -> None:
    weights = group(-8, 1)
    weights[7] = value
    assert refusal(weights).reason == "NaN or infinity"


def test_refuses_a_step_above_fp16() -> None:
    assert "above 65504" in refusal(group(-8, 1, 7, step=65536.0)).reason
    assert (encoded(group(-8, 1, 7, step=32768.0)).steps == 32768).all()


@pytest.mark.parametrize("step", [2.0**-24 * 1.4, 2.0**-40, 2.0**-120, 2.0**-18 * (1 + 2.0**-7)])
def test_refuses_a_step_that_fp16_moves(step: float) -> None:
    assert "too small for fp16" in refusal(group(-8, 1, 7, step=step)).reason


def test_a_subnormal_step_that_fp16_holds_is_good() -> None:
    weights = group(-8, 1, 7, step=2.0**-20)
    assert (encoded(weights).values() == weights).all()


def test_refuses_weights_on_no_grid_and_says_how_far_they_are_off() -> None:
    weights = group(-8, 1, 2.4, 7)
    found = refusal(weights)
    assert "no step" in found.reason
    assert found.residual == pytest.approx(0.125 / 7)  # nearest to a step of a seventh


def test_bf16_rounding_is_to_the_nearest_even() -> None:
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 31, 100_000, dtype=np.uint32)
    bits[:1000] = bits[:1000] & np.uint32(0xFFFF0000) | np.uint32(0x8000)  # ties
    values = bits.view(np.float32)
    values = columns(values[np.abs(values) < 1e38][:64_000])
    assert (rounded_to_bf16(values) == as_bf16(values)).all()


def test_bf16_is_the_upper_half_of_fp32() -> None:
    bits = np.arange(0, 1 << 16, dtype=np.uint16).reshape(-1, 32).T.copy()
    values = from_bf16(bits)
    finite = np.isfinite(values)
    assert (bf16_bits(values)[finite] == bits[finite]).all()
    assert np.frombuffer(bf16_bytes(values), "<u2").tolist() == list(range(1 << 16))


@pytest.mark.parametrize("name", ["F32", "F16", "BF16", "Q8_0", "Q4_0"])
def test_reads_what_the_gguf_package_wrote(name: str, trained: Floats) -> None:
    import gguf

    kind = gguf.GGMLQuantizationType[name]
    flat = trained[:, :64].T.reshape(8, -1)
    data: NDArray[np.uint8] = gguf.quants.quantize(flat, kind)
    values, allowance = decode(data.tobytes(), name.lower())
    expected = gguf.quants.dequantize(data, kind)
    assert (values == columns(expected)).all()
    assert (np.abs(values - columns(flat)) <= allowance).mean() > (0.9 if name == "Q4_0" else 0.999)


def test_the_gguf_package_reads_what_is_written(trained: Floats) -> None:
    import gguf

    found = encoded(trained[:, :64])
    data = np.frombuffer(q4_0_bytes(found.steps, found.levels), np.uint8).reshape(8, -1)
    read = gguf.quants.dequantize(data, gguf.GGMLQuantizationType.Q4_0)
    assert (columns(read) == found.values()).all()
