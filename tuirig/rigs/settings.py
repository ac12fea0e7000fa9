"""A setting: drafter, draft length and knobs, written `q4_0:2`, `inside:5,p_min=0.3` or `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Knobs and the range that each accepts (llama.cpp: `--spec-draft-p-min`, `--spec-draft-n-min`).
KNOBS: dict[str, tuple[float, float]] = {"p_min": (0.0, 1.0), "n_min": (0, 64)}
LONGEST = 64

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Setting:
    """drafter None is no drafter; length None belongs to a method whose length can't be set."""

    drafter: str | None = None
    length: int | None = None
    knobs: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        if self.drafter is None:
            return "none"
        text = self.drafter if self.length is None else f"{self.drafter}:{self.length}"
        return text + "".join(f",{name}={value:g}" for name, value in self.knobs)


NONE = Setting()


def is_name(text: str) -> bool:
    """Whether text can name a rig or a drafter: letters, digits, `.`, `_`, `-`; not `none`."""
    return bool(_NAME.fullmatch(text)) and text != "none"


def parse_setting(text: str) -> Setting:
    """Read the written form. Raises ValueError with what is wrong and what is expected."""
    head, *rest = text.strip().split(",")
    if head == "none":
        if rest:
            raise ValueError(f"{text!r}: none takes no knobs")
        return NONE
    name, colon, digits = head.partition(":")
    if not is_name(name):
        raise ValueError(f"{text!r}: expected a drafter's name, e.g. q4_0:2, inside:5 or none")
    length: int | None = None
    if colon:
        if not re.fullmatch(r"\d{1,3}", digits) or not 1 <= int(digits) <= LONGEST:
            raise ValueError(
                f"{text!r}: the draft length is a number from 1 to {LONGEST} (no drafter: none)"
            )
        length = int(digits)
    return Setting(name, length, tuple(sorted(_parse_knob(text, part) for part in rest)))


def _parse_knob(text: str, part: str) -> tuple[str, float]:
    name, equals, value = part.partition("=")
    if not equals or name not in KNOBS:
        raise ValueError(f"{text!r}: unknown knob {part!r}; known: {', '.join(KNOBS)}")
    low, high = KNOBS[name]
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        raise ValueError(f"{text!r}: {name} is a number from {low:g} to {high:g}")
    return name, number
