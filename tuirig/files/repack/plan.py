"""What is done with each tensor of the template, decided before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tuirig.files.repack.layout import BF16, F16, F32, Q8_0, LaidTensor, Layout
from tuirig.files.repack.names import sources
from tuirig.files.repack.report import Refusal, RefusedError
from tuirig.files.repack.safetensors import SIZES, SourceTensor
from tuirig.files.repack.values import GROUP

_TEMPLATE_KINDS = (F16, BF16, Q8_0)
_OTHER_SNAPSHOT = "give the snapshot that the GGUF was converted from"
_OTHER_TEMPLATE = "make the template with llama.cpp's convert_hf_to_gguf.py --outtype q8_0"


@dataclass(frozen=True)
class Step:
    """A tensor of the template. source None: it is copied, for the reason given."""

    tensor: LaidTensor
    source: SourceTensor | None = None
    reason: str = ""


def plan(layout: Layout, snapshot: Mapping[str, SourceTensor]) -> tuple[Step, ...]:
    """One step per tensor, in the order in which their data lies in the template.

    Raises RefusedError for a tensor that is known and can't be written.
    """
    found = sources([tensor.name for tensor in layout.tensors], snapshot)
    ordered = sorted(layout.tensors, key=lambda tensor: tensor.start)
    steps = tuple(_step(tensor, found.get(tensor.name, ()), snapshot) for tensor in ordered)
    if not any(step.source for step in steps):
        raise RefusedError(
            Refusal(tensor=layout.path.name, reason="no matrix of it is known in the snapshot"),
            hint=_OTHER_SNAPSHOT,
        )
    return steps


def _step(
    tensor: LaidTensor, candidates: tuple[str, ...], snapshot: Mapping[str, SourceTensor]
) -> Step:
    reason = why_copied(tensor, candidates)
    if not reason and tensor.kind == F32:
        reason = "f32 in the template"
    if reason:
        return Step(tensor, reason=reason)
    if tensor.kind not in _TEMPLATE_KINDS:
        reason = f"{tensor.type.name} in the template, which proves too little about its source"
        raise _refused(tensor, reason, hint=_OTHER_TEMPLATE)
    return Step(tensor, the_source(tensor, candidates, snapshot))


def why_copied(tensor: LaidTensor, candidates: tuple[str, ...]) -> str:
    """Why a tensor has nothing to be written from or compared with, empty if it has."""
    if len(tensor.shape) == 1:
        return "a vector"
    return "" if candidates else "not in the snapshot"


def the_source(
    tensor: LaidTensor, candidates: tuple[str, ...], snapshot: Mapping[str, SourceTensor]
) -> SourceTensor:
    """The snapshot's tensor. Raises RefusedError where it can't be read as the GGUF's values."""
    if len(candidates) > 1:
        raise _refused(tensor, f"the snapshot has two: {', '.join(candidates)}")
    source = snapshot[candidates[0]]
    if source.dtype not in SIZES:
        raise _refused(tensor, f"{source.name} is {source.dtype}; {', '.join(SIZES)} are read")
    if source.shape != tensor.shape[::-1]:
        raise _refused(
            tensor,
            f"{source.name} is {_text(source.shape)}, the GGUF's tensor"
            f" {_text(tensor.shape[::-1])}",
            hint=_OTHER_SNAPSHOT,
        )
    if tensor.shape[0] % GROUP:
        raise _refused(tensor, f"its rows of {tensor.shape[0]} values are no multiple of {GROUP}")
    return source


def not_written(used: frozenset[str], snapshot: Mapping[str, SourceTensor]) -> tuple[str, ...]:
    """What the snapshot has beyond the file: unused matrices, and tensors that are no weights.

    Vectors of weights are left out: the converter writes them under names of its own.
    """
    return tuple(
        name
        for name, tensor in sorted(snapshot.items())
        if name not in used and (len(tensor.shape) > 1 or tensor.dtype not in SIZES)
    )


def _refused(tensor: LaidTensor, reason: str, *, hint: str = "") -> RefusedError:
    return RefusedError(Refusal(tensor=tensor.name, reason=reason), hint=hint)


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
