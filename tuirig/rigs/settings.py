"""A setting: drafter, draft length and knobs, written `q4_0:2`, `inside:5,p_min=0.3` or `none`."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: Knobs and the range that each accepts (llama.cpp: `--spec-draft-p-min`, `--spec-draft-n-min`).
LONGEST = 64
KNOBS: dict[str, tuple[float, float]] = {"p_min": (0.0, 1.0), "n_min": (0, LONGEST)}
WHOLE_NUMBERS = {"n_min"}

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?")


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
        return text + "".join(f",{name}={_number(value)}" for name, value in self.knobs)


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


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
        if not re.fullmatch(r"[0-9]{1,3}", digits) or not 1 <= int(digits) <= LONGEST:
            raise ValueError(
                f"{text!r}: the draft length is a number from 1 to {LONGEST} (no drafter: none)"
            )
        length = int(digits)
    knobs = sorted(_parse_knob(text, part) for part in rest)
    values = dict(knobs)
    if len(values) < len(knobs):
        raise ValueError(f"{text!r}: a knob stands twice")
    if length is not None and values.get("n_min", 0) > length:
        raise ValueError(f"{text!r}: n_min is above the draft length, so nothing would be drafted")
    return Setting(name, length, tuple(knobs))


def _parse_knob(text: str, part: str) -> tuple[str, float]:
    name, equals, value = part.partition("=")
    if not equals or name not in KNOBS:
        raise ValueError(f"{text!r}: unknown knob {part!r}; known: {', '.join(KNOBS)}")
    low, high = KNOBS[name]
    whole = name in WHOLE_NUMBERS
    number = float(value) if _NUMBER.fullmatch(value) else float("nan")
    if not low <= number <= high or (whole and not number.is_integer()):
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{text!r}: {name} is {kind} from {low:g} to {high:g}")
    return name, number
