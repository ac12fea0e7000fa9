"""Ratios of speeds: geometric means (Fleming & Wallace 1986, "How not to lie with statistics")."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean of positive numbers, None for none. ValueError if one is not positive."""
    logs = []
    for value in values:
        if not value > 0 or math.isinf(value):
            raise ValueError(f"a geometric mean needs positive, finite numbers, not {value}")
        logs.append(math.log(value))
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def paired_gain(a: Mapping[str, float], b: Mapping[str, float]) -> float | None:
    """How many times as fast b is as a: geometric mean of b/a over the prompts of both.

    a, b: tok/s by prompt id; a is the baseline. None without a common prompt.
    """
    return geometric_mean(b[prompt] / a[prompt] for prompt in a if prompt in b)
