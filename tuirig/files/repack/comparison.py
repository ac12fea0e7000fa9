"""How close values are to others: relative error, and shares that are identical."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tuirig.files.repack.report import Closeness
from tuirig.files.repack.values import Floats, rounded_to_bf16


@dataclass(frozen=True)
class Side:
    """Values to compare, as they are and rounded to bf16."""

    values: Floats
    in_bf16: Floats

    @classmethod
    def of(cls, values: Floats) -> Side:
        """Values of any precision."""
        return cls(values, rounded_to_bf16(values))


class Tally:
    """Adds up what is found chunk by chunk. Values are equal as numbers: -0.0 is 0.0."""

    def __init__(self) -> None:
        self._count = 0
        self._identical_fp32 = 0
        self._identical_bf16 = 0
        self._squared_error = 0.0
        self._squares = 0.0

    def add(self, side: Side, reference: Side) -> None:
        """Compare a chunk with what it should be."""
        difference = side.values - reference.values
        self._count += difference.size
        self._identical_fp32 += int(np.count_nonzero(side.values == reference.values))
        self._identical_bf16 += int(np.count_nonzero(side.in_bf16 == reference.in_bf16))
        self._squared_error += _sum_of_squares(difference)
        self._squares += _sum_of_squares(reference.values)

    @property
    def identical_bf16(self) -> float:
        """Share of values that are identical after rounding to bf16; 1 for no values."""
        return self._identical_bf16 / self._count if self._count else 1.0

    def closeness(self) -> Closeness:
        """What was found so far."""
        error = None
        if self._squares:
            error = math.sqrt(self._squared_error / self._squares)
        elif not self._squared_error:
            error = 0.0
        count = max(self._count, 1)
        return Closeness(
            error=error,
            identical_fp32=self._identical_fp32 / count,
            identical_bf16=self._identical_bf16 / count,
        )


def _sum_of_squares(values: Floats) -> float:
    return float(np.einsum("ij,ij->j", values, values).sum(dtype=np.float64))
