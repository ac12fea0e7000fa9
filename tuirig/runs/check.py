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
from tuirig.runs.fitting import (
    SettingMemory,
    Unfit,
    free_mib,
    layers_left,
    rig_models,
    row_memories,
    unfit_rows,
)
from tuirig.runs.holders import Holder, others_on
from tuirig.runs.opening import engine_of, host_of
from tuirig.runs.rest import rest_on

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
    """What the headers of the models say that a server will need, and what is free, in MiB.

    settings: `none` and every row at its longest draft length. fits: whether all of them fit what
    is free, None where that is not known.
    """

    settings: tuple[SettingMemory, ...]
    free_mib: float | None = None
    total_mib: float | None = None
    fits: bool | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Everything found out. What could not be looked at is None or empty; a problem tells why.

    port: one that is free now. remembered: servers of tuirig itself that run. notes: what may be
    meant so, and costs much if it is not.
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
    notes: tuple[str, ...] = ()

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
    headers, unread = await asyncio.to_thread(rig_models, files)
    unfit = (*unread, *await asyncio.to_thread(unfit_rows, rig, headers))
    problems.extend(_unfit_problems(unfit))
    engine: Engine | None = None
    try:
        engine = await engine_of(rig, host)
    except TuirigError as error:
        problems.append(_problem(error))
    port = host.free_port()
    settings = tuple(_settings(rig, engine, files, unfit, port)) if engine is not None else ()
    problems.extend(_refusals(rig, settings, files, unfit))
    remembered = await asyncio.to_thread(remembered_servers)
    info: CardInfo | None = None
    reading: Reading | None = None
    holders: tuple[Holder, ...] = ()
    try:
        info, reading, holders = await asyncio.to_thread(_look_at_card, rig)
    except TuirigError as error:
        problems.append(_problem(error))
    sizes = await asyncio.to_thread(lambda: tuple(_sizes(files)))
    rest_mib = await asyncio.to_thread(rest_on, info) if info is not None else None
    memory = _memory(row_memories(rig, headers, reading, rest_mib), reading)
    if memory is not None:
        problems.extend(_too_much(memory, holders))
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
        notes=tuple(filter(None, (layers_left(rig, headers),))),
    )


async def _missing_files(found: FoundRig, emit: Emit) -> list[Problem]:
    if found.built_in:
        try:
            await prepare(found, emit)
        except TuirigError as error:
            return [_problem(error)]
    missing = await asyncio.to_thread(models.missing, found.rig, found.base)
    return [
        Problem(message=str(file), next=file.next_step, exit_code=ExitCode.MISSING)
        for file in missing
    ]


def _settings(
    rig: Rig, engine: Engine, files: Mapping[str, Path], unfit: Sequence[Unfit], port: int
) -> Iterator[CheckedSetting]:
    paths = {row: str(path) for row, path in files.items()}
    reasons = {reason.row: reason for reason in reversed(unfit)}
    for setting in rig.settings():
        reason = reasons.get(TARGET) or reasons.get(_row(setting))
        if reason is not None:
            yield CheckedSetting(
                setting=str(setting),
                row=_row(setting),
                refusal=reason.reason,
                next=reason.next_step,
            )
            continue
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


def _unfit_problems(unfit: Sequence[Unfit]) -> Iterator[Problem]:
    for reason in unfit:
        yield Problem(
            message=f"{reason.row}: {reason.reason}",
            next=reason.next_step,
            exit_code=ExitCode.BAD_FILE,
        )


def _refusals(
    rig: Rig,
    settings: Sequence[CheckedSetting],
    files: Mapping[str, Path],
    unfit: Sequence[Unfit],
) -> Iterator[Problem]:
    """One problem per row and reason. What is refused for its file was told already."""
    needed = {TARGET, *(drafter.row for drafter in rig.drafter if drafter.has_file)}
    absent = (needed - files.keys()) | {reason.row for reason in unfit}
    told = set()
    for setting in settings:
        known = TARGET in absent or setting.row in absent
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


def _memory(settings: tuple[SettingMemory, ...], reading: Reading | None) -> Memory | None:
    if not settings:
        return None
    known = all(setting.fits is not None for setting in settings)
    return Memory(
        settings=settings,
        free_mib=free_mib(reading),
        total_mib=reading.memory_total_mib if reading is not None else None,
        fits=all(setting.fits for setting in settings) if known else None,
    )


def _too_much(memory: Memory, holders: Sequence[Holder]) -> Iterator[Problem]:
    """What does not fit, once for all rows: the one that needs most."""
    largest = max(memory.settings, key=lambda setting: setting.total_mib)
    if largest.fits is not False or memory.total_mib is None:
        return
    if holders and largest.total_mib < memory.total_mib:
        who = ", ".join(f"{holder.name} (process {holder.pid})" for holder in holders)
        yield Problem(
            message=f"the card's memory is held by {who}",
            next="end it yourself if you do not need it; tuirig does not touch it",
            exit_code=ExitCode.IN_USE,
        )
        return
    context = largest.largest_context
    yield Problem(
        message=(
            f"{largest.setting} needs about {largest.total_mib:,.0f} MiB,"
            f" {memory.free_mib:,.0f} MiB are free"
        ),
        next=f"-c {context} would fit" if context else "use smaller files; no -c would fit",
    )


def _problem(error: TuirigError) -> Problem:
    return Problem(message=_text(error), next=error.hint, exit_code=error.exit_code)


def _text(error: TuirigError) -> str:
    return "; ".join((error.message, *error.evidence))
