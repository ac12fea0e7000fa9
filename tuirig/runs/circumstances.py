"""Under which circumstances an arm was measured, and what has changed since: stale figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tuirig.records import CardInfo, FileIdentity

_PORT = "--port"
_FILES = ("-m", "-md")


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What decides the figures of an arm besides noise.

    argv: as it ran. server_build: the program's own label; program: a mark that changes with the
    program's files, since some builds carry no number. drafter: None for none, an n-gram method
    and one inside the target.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    server_build: str
    program: str
    card: CardInfo
    target: FileIdentity
    drafter: FileIdentity | None = None


def changes(old: Circumstances, new: Circumstances) -> tuple[str, ...]:
    """What makes figures of `old` stale under `new`, in words; () if nothing does."""
    return tuple(_changes(old, new))


def _changes(old: Circumstances, new: Circumstances) -> Iterator[str]:
    if old.server_build != new.server_build:
        yield f"server build {old.server_build} -> {new.server_build}"
    elif old.program != new.program:
        yield f"the program's files (its build still calls itself {new.server_build})"
    if old.card.name != new.card.name or _both_differ(old.card.uuid, new.card.uuid):
        yield f"card {_card(old.card)} -> {_card(new.card)}"
    if old.card.driver != new.card.driver:
        yield f"driver {old.card.driver or 'none'} -> {new.card.driver or 'none'}"
    yield from file_change("target", old.target, new.target)
    if old.drafter is not None and new.drafter is not None:
        yield from file_change("drafter", old.drafter, new.drafter)
    before, after = _flags(old.argv), _flags(new.argv)
    if before != after:
        gone, come = _missing(before, after), _missing(after, before)
        yield f"command line {' '.join(gone) or 'without'} -> {' '.join(come) or 'without'}"
    for name in sorted({*old.env, *new.env}):
        if old.env.get(name) != new.env.get(name):
            yield f"variable {name} {old.env.get(name)!r} -> {new.env.get(name)!r}"


def file_change(role: str, old: FileIdentity, new: FileIdentity) -> Iterator[str]:
    """In words, that a model file is another one: by hash, or by size where a hash is unknown."""
    if old.sha256 is not None and new.sha256 is not None:
        if old.sha256 != new.sha256:
            yield f"{role} {new.file}: sha256 {old.sha256[:12]} -> {new.sha256[:12]}"
    elif _both_differ(old.size, new.size):
        yield f"{role} {new.file}: {old.size} -> {new.size} bytes"
    elif old.file != new.file:
        yield f"{role} {old.file} -> {new.file}"


def _both_differ(old: object, new: object) -> bool:
    return old is not None and new is not None and old != new


def _card(card: CardInfo) -> str:
    return f"{card.name} ({card.uuid})" if card.uuid else card.name


def _flags(argv: Sequence[str]) -> list[str]:
    """A command line without program, port and the places of the model files."""
    flags = list(argv[1:])
    for index, flag in enumerate(argv[1:-1]):
        if flag == _PORT:
            flags[index] = flags[index + 1] = ""
        elif flag in _FILES:
            flags[index + 1] = "FILE"
    return [flag for flag in flags if flag]


def _missing(flags: Sequence[str], others: Sequence[str]) -> list[str]:
    """The stretch of flags that others do not have at that place."""
    start = 0
    while start < min(len(flags), len(others)) and flags[start] == others[start]:
        start += 1
    end = 0
    while end < min(len(flags), len(others)) - start and flags[-1 - end] == others[-1 - end]:
        end += 1
    return list(flags[start : len(flags) - end])
