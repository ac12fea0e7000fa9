"""What a rig would run, found out without starting a server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tuirig.engines.base import Engine
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import Emit
from tuirig.files import models
from tuirig.files.hashes import identity
from tuirig.hosts.remembered import RememberedServer, remembered_servers
from tuirig.records import CardInfo, Reading
from tuirig.rigs.schema import TARGET, Rig
from tuirig.rigs.settings import Setting
from tuirig.runs.catalog import FoundRig, prepare
from tuirig.runs.holders import Holder, others_on
from tuirig.runs.opening import engine_of, host_of

_MIB = 1024 * 1024


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a setting, or all of them, can't run. next: the step that mends it."""

    message: str
    next: str = ""
    exit_code: ExitCode = ExitCode.FAILED


class CheckedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A model file. row: "target" or the drafter's."""

    row: str
    path: str
    size_mib: float


class CheckedSetting(msgspec.Struct, frozen=True, kw_only=True):
    """A setting: its command line, or why this build can't run it and the next step.

    row: "none" or the drafter's.
    """

    setting: str
    row: str
    argv: tuple[str, ...] = ()
    command: str = ""
    refusal: str = ""
    next: str = ""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A rough forecast in MiB: the weights are file sizes; cache and buffers come on top.

    weights_mib: the target and the largest drafter. fits: whether they fit what is free, None
    where that is not known.
    """

    weights_mib: float
    free_mib: float | None = None
    total_mib: float | None = None
    fits: bool | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Everything found out. What could not be looked at is None or empty; a problem tells why.

    port: one that is free now. remembered: servers of tuirig itself that run.
    """

    rig: str
    path: str | None
    program: str | None
    build: str | None
    card: CardInfo | None
    port: int
    files: tuple[CheckedFile, ...]
    settings: tuple[CheckedSetting, ...]
    memory: Memory | None
    holders: tuple[Holder, ...]
    remembered: tuple[RememberedServer, ...]
    problems: tuple[Problem, ...]

    @property
    def exit_code(self) -> ExitCode:
        """OK if every setting can run, else that of the first problem."""
        return self.problems[0].exit_code if self.problems else ExitCode.OK


async def check(found: FoundRig, emit: Emit) -> Check:
    """Look at everything that a rig needs. The files of a built-in rig are made first.

    A part that fails becomes a problem; the other parts are looked at all the same.
    """
    rig, host = found.rig, host_of(found.rig)
    problems = await _missing_files(found, emit)
    files = await asyncio.to_thread(models.rig_files, rig, found.base)
    engine: Engine | None = None
    try:
        engine = await engine_of(rig, host)
    except TuirigError as error:
        problems.append(_problem(error))
    port = host.free_port()
    settings = tuple(_settings(rig, engine, files, port)) if engine is not None else ()
    problems.extend(_refusals(rig, settings, files))
    remembered = await asyncio.to_thread(remembered_servers)
    info: CardInfo | None = None
    reading: Reading | None = None
    holders: tuple[Holder, ...] = ()
    try:
        info, reading, holders = await asyncio.to_thread(_look_at_card, rig)
    except TuirigError as error:
        problems.append(_problem(error))
    sizes = await asyncio.to_thread(lambda: tuple(_sizes(files)))
    memory = _forecast(sizes, reading)
    if memory is not None and holders:
        problems.extend(_held(memory, holders))
    program = host.find_program(rig.server.program)
    return Check(
        rig=rig.name,
        path=str(found.path) if found.path else None,
        program=str(program) if program else None,
        build=engine.build if engine is not None else None,
        card=info,
        port=port,
        files=sizes,
        settings=settings,
        memory=memory,
        holders=holders,
        remembered=remembered,
        problems=tuple(problems),
    )


async def _missing_files(found: FoundRig, emit: Emit) -> list[Problem]:
    try:
        await prepare(found, emit)
    except TuirigError as error:
        if found.built_in:
            return [_problem(error)]
        missing = await asyncio.to_thread(models.missing, found.rig, found.base)
        return [
            Problem(message=str(item), next=item.next_step, exit_code=ExitCode.MISSING)
            for item in missing
        ] or [_problem(error)]
    return []


def _settings(
    rig: Rig, engine: Engine, files: Mapping[str, Path], port: int
) -> Iterator[CheckedSetting]:
    paths = {row: str(path) for row, path in files.items()}
    for setting in rig.settings():
        try:
            command = engine.command(rig, setting, port=port, paths=paths)
        except TuirigError as error:
            yield CheckedSetting(
                setting=str(setting), row=_row(setting), refusal=_text(error), next=error.hint
            )
        else:
            yield CheckedSetting(
                setting=str(setting),
                row=_row(setting),
                argv=command.argv,
                command=command.shell(),
            )


def _row(setting: Setting) -> str:
    return setting.drafter or "none"


def _refusals(
    rig: Rig, settings: Sequence[CheckedSetting], files: Mapping[str, Path]
) -> Iterator[Problem]:
    """One problem per row and reason. What is refused for want of its file was told already."""
    absent = {drafter.row for drafter in rig.drafter if drafter.has_file} - files.keys()
    told = set()
    for setting in settings:
        known = TARGET not in files or setting.row in absent
        if setting.refusal and not known and (setting.row, setting.refusal) not in told:
            told.add((setting.row, setting.refusal))
            yield Problem(message=setting.refusal, next=setting.next, exit_code=ExitCode.BAD_FILE)


def _look_at_card(rig: Rig) -> tuple[CardInfo, Reading, tuple[Holder, ...]]:
    from tuirig.cards.detect import open_card

    card = open_card(rig.card, rig.card_memory_mib)
    try:
        return card.info, card.read(), others_on(card)
    finally:
        card.close()


def _sizes(files: Mapping[str, Path]) -> Iterator[CheckedFile]:
    for row, path in files.items():
        size = identity(path, compute=False).size
        yield CheckedFile(row=row, path=str(path), size_mib=(size or 0) / _MIB)


def _forecast(files: Sequence[CheckedFile], reading: Reading | None) -> Memory | None:
    sizes = {file.row: file.size_mib for file in files}
    target_mib = sizes.pop(TARGET, None)
    if target_mib is None:
        return None
    weights_mib = target_mib + max(sizes.values(), default=0.0)
    if reading is None or reading.memory_total_mib is None or reading.memory_used_mib is None:
        return Memory(weights_mib=weights_mib)
    free_mib = reading.memory_total_mib - reading.memory_used_mib
    return Memory(
        weights_mib=weights_mib,
        free_mib=free_mib,
        total_mib=reading.memory_total_mib,
        fits=weights_mib < free_mib,
    )


def _held(memory: Memory, holders: Sequence[Holder]) -> Iterator[Problem]:
    """The card has room, were it not for others."""
    if memory.fits is not False or memory.total_mib is None:
        return
    if memory.weights_mib < memory.total_mib:
        who = ", ".join(f"{holder.name} (process {holder.pid})" for holder in holders)
        yield Problem(
            message=f"the card's memory is held by {who}",
            next="end it yourself if you do not need it; tuirig does not touch it",
            exit_code=ExitCode.IN_USE,
        )


def _problem(error: TuirigError) -> Problem:
    return Problem(message=_text(error), next=error.hint, exit_code=error.exit_code)


def _text(error: TuirigError) -> str:
    return "; ".join((error.message, *error.evidence))
