"""What a repack or a check of one found, tensor by tensor."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tuirig.errors import TuirigError


class Verdict(StrEnum):
    """What became of a tensor."""

    EXACT = "exact"
    NOT_EXACT = "not exact"
    COPIED = "copied"
    NOT_COMPARED = "not compared"


class Closeness(msgspec.Struct, frozen=True, kw_only=True):
    """How close values are to others.

    error: root of the sum of squared differences by that of squared values; None where the others
    are all 0. Shares of values that are identical as they are, and after rounding to bf16.
    """

    error: float | None
    identical_fp32: float
    identical_bf16: float


class TensorReport(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor. shape: the row's length first. type: its encoding in the file.

    source: the snapshot's tensor, if any. reason: why it was copied, was not compared or is
    not exact.
    against_source and against_template compare the file's values; template_against_source compares
    the template's, for scale. groups_off: groups with a value further from its source than 2**-7 of
    the group's largest.
    """

    name: str
    shape: tuple[int, ...]
    type: str
    verdict: Verdict
    source: str | None = None
    reason: str = ""
    groups_off: int | None = None
    against_source: Closeness | None = None
    against_template: Closeness | None = None
    template_against_source: Closeness | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A whole file. size: in bytes. template: None for a file that was only checked.

    not_written: matrices and other tensors of the snapshot that the file does not hold.
    """

    file: str
    snapshot: str
    template: str | None
    size: int
    tensors: tuple[TensorReport, ...]
    not_written: tuple[str, ...]

    @property
    def exact(self) -> bool:
        """Whether something stands against the snapshot, and all of that is exact."""
        verdicts = {tensor.verdict for tensor in self.tensors}
        return Verdict.EXACT in verdicts and Verdict.NOT_EXACT not in verdicts


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """Where a repack stopped. residual: share of the group's largest value; None if not measured.

    row and group: None where the whole tensor is refused; a group counts from its row's start.
    """

    tensor: str
    reason: str
    row: int | None = None
    group: int | None = None
    residual: float | None = None


class RefusedError(TuirigError):
    """The checkpoint can't be repacked exactly; nothing was written."""

    def __init__(self, refusal: Refusal, *, hint: str = "") -> None:
        where = ""
        if refusal.row is not None:
            where = f", row {refusal.row}, group {refusal.group}"
        off = "" if refusal.residual is None else f" (off by {refusal.residual:.4f} of the largest)"
        super().__init__(
            f"{refusal.tensor}{where}: {refusal.reason}{off}", hint=hint or "nothing was written"
        )
        self.refusal = refusal
