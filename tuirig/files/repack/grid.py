"""The 4-bit grid of quantization-aware-trained weights: its step and levels, group by group.

Groups are columns: arrays are [32, groups], so that every operation runs over long rows.
A weight is step * level with levels -8..7, as in Q4_0; the trained step is read off the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuirig.files.repack.values import GROUP, Floats, rounded_to_bf16

#: How far a value may be from its level, as a share of the group's largest value. Rounding to bf16
#: moves a value, and the largest one that the step is read off, by at most 2**-9 of itself.
TOLERANCE = 2.0**-7
#: The largest level: a group's step is its largest value by one of 1 to 8.
_HIGHEST = 8
#: Rows looked at first: a step that is not a group's own rarely fits more.
_LOOKED_AT_FIRST = 4
#: How far rounding to fp16 may move a step. Its 11 bits move one by 2**-12; subnormal ones by more.
_LARGEST_MOVE = 2.0**-9
#: Groups with a smaller largest value have no fp16 step in any case; scaling them could overflow.
_SMALLEST_PEAK = 2.0**-26
_LARGEST_STEP = 65504.0
#: fp16 numbers beside the best guess that are tried, nearest first.
_NEIGHBOURS = (-1, 1, -2, 2, -3, 3, -4, 4)


class OffGridError(Exception):
    """A group that Q4_0 can't hold as it is.

    group: its index. residual: the largest distance of a value from the grid that fits best, as a
    share of the group's largest value; None where the values fit and the step is the trouble.
    """

    def __init__(self, group: int, reason: str, residual: float | None = None) -> None:
        super().__init__(reason)
        self.group = group
        self.reason = reason
        self.residual = residual


@dataclass(frozen=True)
class Groups:
    """Groups as Q4_0 holds them. steps: fp16 [groups]; levels: whole numbers, [32, groups]."""

    steps: NDArray[np.float16]
    levels: Floats

    def values(self) -> Floats:
        """What Q4_0 reads back, [32, groups]; exact, for a product has at most 15 bits."""
        return self.levels * self.steps.astype(np.float32)


def encode(weights: Floats, in_bf16: Floats) -> Groups:
    """The trained grid of each group, with the fp16 step that keeps the most values in bf16.

    weights, and the same rounded to bf16: [32, groups]. Raises OffGridError for the first group
    that has no grid.
    """
    levels, steps = trained_grid(weights)
    groups = Groups(rounded_steps(steps), levels)
    return Groups(_best_steps(groups, in_bf16), levels)


def trained_grid(weights: Floats) -> tuple[Floats, Floats]:
    """(levels [32, groups], steps [groups]): the first step that fits, refined by least squares.

    Steps are tried from the largest value itself down to an eighth of it; an eighth is negative
    where the extreme stands at +8. An all-zero group has step 0. Raises OffGridError.
    """
    highest, lowest = weights.max(axis=0), -weights.min(axis=0)
    peak = np.maximum(highest, lowest)
    zero = peak == 0
    _refuse_peaks(peak, zero)
    peak[zero] = 1
    scaled = weights * (np.float32(_HIGHEST) / peak)
    levels: Floats = np.rint(scaled)
    fits = _largest_difference(scaled, levels) <= TOLERANCE * _HIGHEST
    at_top, at_bottom = (np.rint(end * _HIGHEST / peak) == _HIGHEST for end in (highest, lowest))
    levels *= np.where(at_top, np.float32(-1), np.float32(1))
    fits &= ~(at_top & at_bottom)
    # An odd level of the finest grid is at least an eighth of a step off every coarser one.
    odd = (levels[:_LOOKED_AT_FIRST].astype(np.int8) & np.int8(1)).any(axis=0)
    others = np.flatnonzero(~(fits & odd))
    for found, coarse in _coarser(_some(scaled, others)):
        levels[:, others[found]] = coarse
        fits[others[found]] = True
    if not fits.all():
        raise _off_grid(scaled, int(np.argmin(fits)))
    squares = np.einsum("ij,ij->j", levels, levels)
    products = np.einsum("ij,ij->j", levels, weights)
    return levels, products / np.maximum(squares, np.float32(1))


def _off_grid(scaled: Floats, group: int) -> OffGridError:
    residuals = [
        float(_distances(scaled[:, group : group + 1], count)[0]) / count
        for count in range(1, _HIGHEST + 1)
    ]
    if residuals[-1] <= TOLERANCE:
        return OffGridError(group, "17 levels: both -8 and +8 occur")
    reason = "no step from 1/1 to 1/8 of the largest value fits"
    return OffGridError(group, reason, min(residuals))


def _refuse_peaks(peak: Floats, zero: NDArray[np.bool_]) -> None:
    finite = np.isfinite(peak)
    if not finite.all():
        raise OffGridError(int(np.argmin(finite)), "NaN or infinity")
    small = (peak < _SMALLEST_PEAK) & ~zero
    if small.any():
        raise OffGridError(int(np.argmax(small)), "its step is too small for fp16")


def _some(columns: Floats, which: NDArray[np.intp]) -> Floats:
    """Some groups, each row in one piece, which columns[:, which] would not give."""
    return np.take(columns, which, axis=1)


def _coarser(scaled: Floats) -> Iterator[tuple[NDArray[np.intp], Floats]]:
    """(groups, levels) of those whose step is the largest value by a number from 1 to 7.

    scaled: levels under an eighth. A group comes once, with the largest step that fits.
    """
    first = scaled[:_LOOKED_AT_FIRST]
    taken = np.zeros(scaled.shape[1], bool)
    for count in range(1, _HIGHEST):
        likely = np.flatnonzero((_distances(first, count) <= TOLERANCE * count) & ~taken)
        exact = _some(scaled, likely) * np.float32(count / _HIGHEST)
        levels = np.rint(exact)
        fits = _largest_difference(exact, levels) <= TOLERANCE * count
        taken[likely[fits]] = True
        yield likely[fits], levels[:, fits]


def _distances(scaled: Floats, count: int) -> Floats:
    """How far each group is from the levels under the step largest / count, in such steps."""
    levels = scaled * np.float32(count / _HIGHEST)
    return _largest_difference(levels, np.rint(levels))


def _largest_difference(values: Floats, others: Floats) -> Floats:
    difference = values - others
    largest: Floats = np.abs(difference, out=difference).max(axis=0)
    return largest


def rounded_steps(steps: Floats) -> NDArray[np.float16]:
    """Steps as fp16. Raises OffGridError for one that fp16 can't hold."""
    large = np.abs(steps) > _LARGEST_STEP
    if large.any():
        raise OffGridError(int(np.argmax(large)), "its step is above 65504, the largest fp16")
    rounded = steps.astype(np.float16)
    moved = np.abs(rounded.astype(np.float32) - steps) > _LARGEST_MOVE * np.abs(steps)
    if moved.any():
        raise OffGridError(int(np.argmax(moved)), "its step is too small for fp16")
    return rounded


def _best_steps(groups: Groups, in_bf16: Floats) -> NDArray[np.float16]:
    """The steps, each replaced by a neighbour where that keeps more values identical in bf16."""
    steps = groups.steps.copy()
    identical = _identical(steps, groups.levels, in_bf16)
    left = np.flatnonzero(identical < GROUP)
    most, levels, kept = identical[left], _some(groups.levels, left), _some(in_bf16, left)
    bits = groups.steps[left].view(np.int16)
    for distance in _NEIGHBOURS:
        near = (bits + np.int16(distance)).view(np.float16)
        identical = _identical(near, levels, kept)
        better = identical > most
        steps[left[better]] = near[better]
        most[better] = identical[better]
    return steps


def _identical(steps: NDArray[np.float16], levels: Floats, in_bf16: Floats) -> NDArray[np.uint8]:
    """How many values of each group are identical after rounding to bf16."""
    with np.errstate(invalid="ignore"):  # beside the largest fp16 stands infinity
        values = rounded_to_bf16(levels * steps.astype(np.float32))
    # A sum of bytes is much faster here than counting along an axis.
    identical: NDArray[np.uint8] = (values == in_bf16).view(np.uint8).sum(axis=0, dtype=np.uint8)
    return identical
