"""What a rig's models say about its settings before a server is started: do they fit together, and
does everything fit the memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tuirig.cards.detect import CPU
from tuirig.errors import ExitCode, TuirigError
from tuirig.files.forecast import (
    CARD_REST_MIB,
    Forecast,
    forecast,
    largest_context,
    left_off_card,
)
from tuirig.files.gguf_model import Model, read_model
from tuirig.files.inspection import problems_of
from tuirig.files.memory_flags import memory_flags
from tuirig.files.pairing import Misfit, misfits
from tuirig.records import MemoryParts, Reading
from tuirig.rigs.schema import TARGET, Rig
from tuirig.rigs.settings import NONE, Setting


@dataclass(frozen=True)
class Unfit:
    """Why a row can't run. row: "target" for a reason that concerns every setting."""

    row: str
    reason: str
    next_step: str = ""


class SettingMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of one setting in MiB.

    card: on the card, or in the machine's memory for a rig without one; host: beside the card.
    fits is None where the free memory is unknown; largest_context is told where it does not fit,
    None where no context would.
    """

    setting: str
    row: str
    card: MemoryParts
    host: MemoryParts | None
    full_mib: float
    sliding_mib: float
    recurrent_mib: float
    rest_mib: float
    total_mib: float
    fits: bool | None
    largest_context: int | None
    rough: tuple[str, ...]


def rig_models(files: Mapping[str, Path]) -> tuple[dict[str, Model], tuple[Unfit, ...]]:
    """The headers of a rig's files by row, and what can't be read. Blocks."""
    models: dict[str, Model] = {}
    unread = []
    for row, path in files.items():
        try:
            models[row] = read_model(path)
        except TuirigError as error:
            unread.append(Unfit(row, error.message, error.hint))
    return models, tuple(unread)


def unfit_rows(rig: Rig, models: Mapping[str, Model]) -> tuple[Unfit, ...]:
    """Rows that can't run, by the headers of their files. Blocks on the disk."""
    return tuple(_unfit(rig, models))


def require_fit(rig: Rig, files: Mapping[str, Path], setting: Setting) -> None:
    """Raise TuirigError if a setting can't run by the headers of its files. Blocks on the disk."""
    drafters = tuple(one for one in rig.drafter if one.row == setting.drafter)
    rows = {TARGET, *(drafter.row for drafter in drafters)}
    models, unread = rig_models({row: path for row, path in files.items() if row in rows})
    alone = msgspec.structs.replace(rig, drafter=drafters)
    problems = (*unread, *unfit_rows(alone, models))
    if problems:
        raise TuirigError(
            f"{setting} can't run: {problems[0].reason}",
            evidence=[problem.reason for problem in problems[1:]],
            hint=problems[0].next_step or f"tuirig rig check {rig.name}",
            exit_code=ExitCode.BAD_FILE,
        )


def _unfit(rig: Rig, models: Mapping[str, Model]) -> Iterator[Unfit]:
    target = models.get(TARGET)
    for row, model in models.items():
        for problem in problems_of(model):
            yield Unfit(row, f"{model.label}: {problem}")
    for drafter in rig.drafter if target is not None else ():
        if drafter.has_file and drafter.row not in models:
            continue  # told already
        for misfit in _misfits(target, models.get(drafter.row), drafter.type):
            yield Unfit(drafter.row, misfit.reason, misfit.next_step)


def _misfits(target: Model | None, drafter: Model | None, type: str) -> tuple[Misfit, ...]:
    if target is None:
        return ()
    try:
        return misfits(target, drafter, type)
    except TuirigError as error:
        return (Misfit(error.message, error.hint),)


def forecast_setting(
    rig: Rig,
    setting: Setting,
    models: Mapping[str, Model],
    *,
    slots: int = 1,
    rest_mib: float | None = None,
) -> Forecast | None:
    """The memory of a setting's server; None if the header of its target or drafter is not known.

    rest_mib: beside the buffers, as it was seen on this card (rest.rest_on); None for a guess.

    Raises ValueError for a setting that the rig does not have.
    """
    drafter = rig.drafter_of(setting)
    model = models.get(drafter.row) if drafter is not None else None
    if TARGET not in models or (drafter is not None and drafter.has_file and model is None):
        return None
    args = (*rig.server.args, *(drafter.args if drafter is not None else ()))
    return forecast(
        models[TARGET],
        model,
        memory_flags(args, slots=slots),
        type=drafter.type if drafter is not None else "",
        length=setting.length or 0,
        on_card=rig.card != CPU,
        rest_mib=CARD_REST_MIB if rest_mib is None else rest_mib,
    )


def layers_left(rig: Rig, models: Mapping[str, Model]) -> str:
    """What a server's `-ngl` leaves to the CPU although there is a card, in words; else empty."""
    target, layers = models.get(TARGET), memory_flags(rig.server.args, slots=1).layers
    if target is None or rig.card == CPU or not layers:
        return ""
    left, counted = left_off_card(target, layers)
    return f"{left} of the target's {counted} layers stay on the CPU: -ngl {layers}" * bool(left)


def row_memories(
    rig: Rig, models: Mapping[str, Model], reading: Reading | None, rest_mib: float | None = None
) -> tuple[SettingMemory, ...]:
    """The forecast of `none` and of every row at its longest draft length, which needs most."""
    rows = (setting_memory(rig, setting, models, reading, rest_mib) for setting in _longest(rig))
    return tuple(row for row in rows if row is not None)


def setting_memory(
    rig: Rig,
    setting: Setting,
    models: Mapping[str, Model],
    reading: Reading | None,
    rest_mib: float | None = None,
) -> SettingMemory | None:
    """The forecast of a setting beside what is free; None if a header is not known.

    Raises ValueError for a setting that the rig does not have.
    """
    needed = forecast_setting(rig, setting, models, rest_mib=rest_mib)
    if needed is None:
        return None
    free = free_mib(reading)
    fits = None if free is None else needed.total_mib <= free
    too_much = free is not None and not fits
    return SettingMemory(
        setting=str(setting),
        row=setting.drafter or str(NONE),
        card=needed.card,
        host=needed.host,
        full_mib=needed.full_mib,
        sliding_mib=needed.sliding_mib,
        recurrent_mib=needed.recurrent_mib,
        rest_mib=needed.rest_mib,
        total_mib=needed.total_mib,
        fits=fits,
        largest_context=(
            _largest_context(rig, setting, models, free, needed.rest_mib)
            if free is not None and too_much
            else None
        ),
        rough=needed.rough,
    )


def free_mib(reading: Reading | None) -> float | None:
    """What is free on the card (or of the machine's memory), None where that is not known."""
    if reading is None or reading.memory_total_mib is None or reading.memory_used_mib is None:
        return None
    return reading.memory_total_mib - reading.memory_used_mib


def _longest(rig: Rig) -> tuple[Setting, ...]:
    """The last setting of every row; settings come row by row with rising lengths."""
    return tuple({setting.drafter: setting for setting in rig.settings()}.values())


def _largest_context(
    rig: Rig, setting: Setting, models: Mapping[str, Model], free_mib: float, rest_mib: float
) -> int | None:
    drafter = rig.drafter_of(setting)
    args = (*rig.server.args, *(drafter.args if drafter is not None else ()))
    return largest_context(
        models[TARGET],
        models.get(drafter.row) if drafter is not None else None,
        memory_flags(args),
        free_mib,
        type=drafter.type if drafter is not None else "",
        length=setting.length or 0,
        on_card=rig.card != CPU,
        rest_mib=rest_mib,
    )
