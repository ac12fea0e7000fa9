"""One matrix: its values read from the snapshot, encoded, and compared on the way.

Chunks keep the memory at a few MB, whatever the matrix, and the arrays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tuirig.errors import TuirigError
from tuirig.files.repack.comparison import Side, Tally
from tuirig.files.repack.grid import TOLERANCE, OffGridError, encode
from tuirig.files.repack.layout import LaidTensor
from tuirig.files.repack.report import Refusal, RefusedError, TensorReport, Verdict
from tuirig.files.repack.safetensors import SIZES, SourceTensor
from tuirig.files.repack.values import (
    GROUP,
    Floats,
    bf16_bytes,
    decode,
    q4_0_bytes,
)

#: Groups at a time: 131,072 values.
_GROUPS = 4096
#: At least this share of a tensor has to be identical in bf16: groups of a few values can fit a
#: grid by chance, whole tensors can't.
_EXACT_SHARE = 0.95
#: More than this share of the source has to agree with the template, else they are not the same.
_PROVED_SHARE = 0.999
_NOT_ROUNDED = "nothing was written, for nothing is rounded again; --bf16 keeps it as it is"
_OTHER_CHECKPOINT = "give the snapshot that the template was converted from"


class Matrix:
    """A matrix of the template that is written anew from its source."""

    def __init__(self, tensor: LaidTensor, template: Path, source: SourceTensor) -> None:
        self._tensor = tensor
        self._template = template
        self._source = source
        self._against_source = Tally()
        self._against_template = Tally()
        self._template_against_source = Tally()
        self._agreeing = 0

    def encoded(self, format: str) -> Iterator[bytes]:
        """The matrix as Q4_0 or BF16, piece by piece; all of it has to be asked for.

        Raises RefusedError where the source is not what the format holds exactly, and at the end
        if it is not what the template was made from or not identical enough.
        """
        for start, source in _chunks(self._tensor, self._source):
            template, allowance = _decoded(self._tensor, self._template, start, source.values)
            distance = source.values - template.values
            self._agreeing += int(np.count_nonzero(np.abs(distance, out=distance) <= allowance))
            if format == "q4_0":
                data, written = self._as_q4_0(source, start)
            else:
                data, written = self._as_bf16(source, start)
            self._against_source.add(written, source)
            self._against_template.add(written, template)
            self._template_against_source.add(template, source)
            yield data
        self._prove()

    def _as_q4_0(self, source: Side, start: int) -> tuple[bytes, Side]:
        try:
            groups = encode(source.values, source.in_bf16)
        except OffGridError as error:
            raise self._refused(
                error.reason, start + error.group, error.residual, hint=_NOT_ROUNDED
            ) from None
        return q4_0_bytes(groups.steps, groups.levels), Side.of(groups.values())

    def _as_bf16(self, source: Side, start: int) -> tuple[bytes, Side]:
        finite = np.isfinite(source.values).all(axis=0)
        if not finite.all():
            raise self._refused("NaN or infinity", start + int(np.argmin(finite)))
        same = (source.values == source.in_bf16).all(axis=0)
        if not same.all():
            reason = f"a value of {self._source.dtype} that bf16 can't hold"
            raise self._refused(reason, start + int(np.argmin(same)))
        return bf16_bytes(source.in_bf16), source

    def _prove(self) -> None:
        count = self._tensor.count
        if self._agreeing <= _PROVED_SHARE * count:
            share = self._agreeing / count if count else 1.0
            raise self._refused(
                f"{self._source.name} agrees with the template in {100 * share:.2f} % of values"
                f" only; more than {100 * _PROVED_SHARE:g} % are needed",
                hint=_OTHER_CHECKPOINT,
            )
        if self._against_source.identical_bf16 < _EXACT_SHARE:
            raise self._refused(
                f"only {100 * self._against_source.identical_bf16:.1f} % of values would be"
                " identical in bf16: they fit a 4-bit grid by chance",
                hint=_NOT_ROUNDED,
            )

    def _refused(
        self, reason: str, group: int | None = None, residual: float | None = None, hint: str = ""
    ) -> RefusedError:
        row = column = None
        if group is not None:
            row, column = divmod(group, self._tensor.shape[0] // GROUP)
        return RefusedError(
            Refusal(
                tensor=self._tensor.name, reason=reason, row=row, group=column, residual=residual
            ),
            hint=hint,
        )

    def report(self, type_name: str) -> TensorReport:
        """What was found, once all of it was encoded."""
        return TensorReport(
            name=self._tensor.name,
            shape=self._tensor.shape,
            type=type_name,
            verdict=Verdict.EXACT,
            source=self._source.name,
            groups_off=0,
            against_source=self._against_source.closeness(),
            against_template=self._against_template.closeness(),
            template_against_source=self._template_against_source.closeness(),
        )


def checked(tensor: LaidTensor, file: Path, source: SourceTensor) -> Iterator[TensorReport | int]:
    """A matrix that a file has, against its source: bytes read with each piece, then the report.

    Exact: no value is further from its source than 2**-7 of its group's largest, and at least 95 %
    are identical in bf16.
    """
    tally = Tally()
    groups_off = 0
    first: tuple[int, int] | None = None
    for start, reference in _chunks(tensor, source):
        written, _ = _decoded(tensor, file, start, reference.values)
        tally.add(written, reference)
        off = np.abs(written.values - reference.values).max(axis=0)
        # Not ">": NaN has to count.
        wrong = ~(off <= np.float32(TOLERANCE) * np.abs(reference.values).max(axis=0))
        if first is None and wrong.any():
            first = divmod(start + int(np.argmax(wrong)), tensor.shape[0] // GROUP)
        groups_off += int(np.count_nonzero(wrong))
        yield reference.values.shape[1] * _group_size(tensor)
    reason = ""
    if first is not None:
        reason = f"{groups_off} group(s) off, the first in row {first[0]}, group {first[1]}"
    elif tally.identical_bf16 < _EXACT_SHARE:
        reason = f"{100 * tally.identical_bf16:.1f} % identical in bf16"
    yield TensorReport(
        name=tensor.name,
        shape=tensor.shape,
        type=tensor.type.name,
        verdict=Verdict.NOT_EXACT if reason else Verdict.EXACT,
        source=source.name,
        reason=reason,
        groups_off=groups_off,
        against_source=tally.closeness(),
    )


def _chunks(tensor: LaidTensor, source: SourceTensor) -> Iterator[tuple[int, Side]]:
    """(first group, values) of a source, piece by piece."""
    each = SIZES[source.dtype] * GROUP
    for start in range(0, tensor.count // GROUP, _GROUPS):
        count = min(_GROUPS, tensor.count // GROUP - start)
        values, _ = decode(
            _read(source.file, source.start + start * each, count * each), source.dtype.lower()
        )
        yield start, Side(values, values) if source.dtype == "BF16" else Side.of(values)


def _decoded(tensor: LaidTensor, file: Path, start: int, like: Floats) -> tuple[Side, Floats]:
    """The groups of a GGUF from `start` on, as many as `like` has, and their allowance."""
    each = _group_size(tensor)
    data = _read(file, tensor.start + start * each, like.shape[1] * each)
    values, allowance = decode(data, tensor.type.name)
    return Side.of(values), allowance


def _group_size(tensor: LaidTensor) -> int:
    """Bytes of 32 values."""
    return tensor.size * GROUP // max(tensor.count, 1)


def _read(path: Path, start: int, size: int) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(start)
            data = file.read(size)
    except OSError as error:
        raise TuirigError(f"{path} can't be read: {error.strerror}") from None
    if len(data) != size:
        raise TuirigError(f"{path} became shorter while it was read", hint="try again")
    return data
