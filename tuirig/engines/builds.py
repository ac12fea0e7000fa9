"""The names that llama-server gives its build, which differ with where it is asked.

`--version` says `0.1.0-dev (build 1, commit 7e4c0a9)` or, in older builds, `4567 (7e4c0a9)`; /props
says `b1-7e4c0a9`; published figures often name the commit alone.
"""

from __future__ import annotations

import re

_FORMS = (
    re.compile(r"\(build (?P<number>\d+), commit (?P<commit>\w+)\)"),
    re.compile(r"^b(?P<number>\d+)-(?P<commit>\w+)$"),
    re.compile(r"^(?P<number>\d+) \((?P<commit>\w+)\)$"),
    re.compile(r"^(?P<number>)(?P<commit>[0-9a-f]{7,40})$"),
)


def same_build(one: str, other: str) -> bool:
    """Whether two names may mean the same build; commits may be cut to different lengths."""
    first, second = _parts(one), _parts(other)
    if first is None or second is None:
        return one == other
    numbers = {number for number, _ in (first, second) if number}
    short, long = sorted((first[1], second[1]), key=len)
    return len(numbers) < 2 and long.startswith(short)


def _parts(name: str) -> tuple[str, str] | None:
    """(build number, commit)."""
    for form in _FORMS:
        found = form.search(name.strip())
        if found:
            return found["number"], found["commit"]
    return None
