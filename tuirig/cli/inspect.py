"""`tuirig inspect FILE|URL`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import msgspec

from tuirig.cli.output import answer, answer_json, columns
from tuirig.errors import ExitCode
from tuirig.files.drafters import Role, drafts_as
from tuirig.files.gguf_model import Model, read_model
from tuirig.files.inspection import Inspection, inspection_of
from tuirig.files.pairing import SIMPLE, Misfit, pair
from tuirig.tui.figures import memory

_MIB = 1024 * 1024


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a file can draft for a target. type: the `--spec-type` that was asked about."""

    target: str
    type: str
    fits: bool
    problems: tuple[Misfit, ...]


def run(options: argparse.Namespace) -> int:
    """Say what a file is, and whether it drafts for a target; BAD_FILE if something is wrong."""
    model = read_model(options.file)
    inspection = inspection_of(model)
    against = _against(options.against, model) if options.against else None
    if options.json:
        document: dict[str, object] = msgspec.to_builtins(inspection)
        if options.against:
            document["against"] = msgspec.to_builtins(against)
        answer_json(document)
    else:
        answer("\n".join(_report(inspection, against)))
    wrong = inspection.problems or (against is not None and not against.fits)
    return ExitCode.BAD_FILE if wrong else ExitCode.OK


def _against(reference: str, drafter: Model) -> Against:
    target = read_model(reference)
    drafts = drafts_as(drafter)
    # A model with its head inside drafts so for itself; for another model it is a plain one.
    type = SIMPLE if drafts is None or drafts.target == "itself" else drafts.type
    problems = pair(target, drafter, type)
    return Against(target=target.label, type=type, fits=not problems, problems=problems)


def _report(inspection: Inspection, against: Against | None) -> Iterator[str]:
    yield from columns([(name, text) for name, text in _facts(inspection) if text])
    for problem in inspection.problems:
        yield f"problem: {problem}"
    if against is not None:
        yield ""
        words = "fits" if against.fits else "does not fit"
        yield f"{words} {against.target} ({against.type})"
        for misfit in against.problems:
            yield f"problem: {misfit.reason}"
            if misfit.next_step:
                yield f"  next: {misfit.next_step}"


def _facts(inspection: Inspection) -> Iterator[tuple[str, str]]:
    shards = f", {inspection.shards} shards" if inspection.shards > 1 else ""
    yield "file", f"{inspection.file}  {memory(inspection.size / _MIB)}{shards}"
    name = f"{inspection.name}, " if inspection.name else ""
    yield "model", f"{name}{inspection.architecture}, {_amount(inspection.parameters)} parameters"
    yield "role", str(inspection.role)
    yield "encoding", _encoding(inspection)
    yield "vocabulary", _vocabulary(inspection)
    if inspection.context_length:
        yield "context", f"{inspection.context_length:,} tokens"
    width = f", width {inspection.width:,}" if inspection.width else ""
    inside = inspection.role is Role.MODEL_WITH_MTP
    heads = f" and {inspection.mtp_layers} of its MTP head" if inside else ""
    yield "layers", f"{inspection.layers}{heads}{width}"
    drafts = inspection.drafts
    if drafts is not None:
        yield "drafts", f"--spec-type {drafts.type}: {drafts.what}; for {drafts.target}"


def _encoding(inspection: Inspection) -> str:
    """The mix of types by parameters, and what the file claims where it claims another."""
    if not inspection.encodings:
        return ""
    bits = inspection.bits_per_weight
    shares = ", ".join(
        f"{encoding.type} {100 * encoding.parameters / max(1, inspection.parameters):.3g} %"
        for encoding in inspection.encodings
    )
    claim = inspection.claimed
    other = f"; it says {claim}" if claim and not claim.startswith(inspection.encoding) else ""
    return (f"{bits:.2f} bits per weight: " if bits else "") + shares + other


def _vocabulary(inspection: Inspection) -> str:
    vocabulary = inspection.vocabulary
    if vocabulary.size is None:
        return ""
    kind = "/".join(part for part in (vocabulary.model, vocabulary.pre) if part)
    digest = f", sha256 {vocabulary.sha256[:12]}…" if vocabulary.sha256 else ""
    return f"{vocabulary.size:,} tokens ({kind or 'of no kind'}){digest}"


def _amount(count: int) -> str:
    """46.2 M, 4.63 G."""
    for size, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if count >= size:
            return f"{count / size:.3g}{unit}"
    return str(count)
