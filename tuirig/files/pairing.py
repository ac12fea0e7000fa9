"""Whether a target and a drafter can work together, by their headers.

The rules are those of llama.cpp (b10434, b11434), where breaking them ends in an abort, a
segmentation fault, an error on every request or a server that silently drafts nothing. Sources:
common/speculative.cpp (vocabularies), src/models/{gemma4-assistant,eagle3,dflash,qwen35}.cpp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tuirig.files.drafters import GEMMA4, Drafts, Role, drafts_as, is_mtp_head, role_of
from tuirig.files.gguf_model import Model
from tuirig.files.inspection import problems_of
from tuirig.files.tokens import first_difference
from tuirig.rigs.drafting import speculative_types

MTP, SIMPLE, EAGLE3 = "draft-mtp", "draft-simple", "draft-eagle3"
_DFLASH = ("draft-dflash", "draft-dspark")

#: common/speculative.cpp: SPEC_VOCAB_MAX_SIZE_DIFFERENCE, SPEC_VOCAB_CHECK_START_TOKEN_ID.
_MOST_APART = 128
_FIRST_COMPARED = 5
#: `tokenizer.ggml.model` -> llama.cpp's vocabulary type (src/llama-vocab.cpp).
_VOCABULARY_TYPES = {
    "llama": "SPM",
    "gpt2": "BPE",
    "gemma4": "BPE",
    "bert": "WPM",
    "t5": "UGM",
    "rwkv": "RWKV",
    "plamo2": "PLaMo-2",
}


@dataclass(frozen=True)
class Misfit:
    """Why a pair can't work. next_step may be empty."""

    reason: str
    next_step: str = ""


def pair(target: Model, drafter: Model | None, type: str) -> tuple[Misfit, ...]:
    """Why a target and a drafter can't work together; () if nothing speaks against it.

    drafter: None for a head inside the target or an n-gram method. type: a `--spec-type` list.
    Blocks; raises TuirigError where token lists have to be compared and can't be read.
    """
    problems = [
        Misfit(f"{model.label}: {problem}")
        for model in (target, drafter)
        if model is not None
        for problem in problems_of(model)
    ]
    return (*problems, *misfits(target, drafter, type))


def misfits(target: Model, drafter: Model | None, type: str) -> tuple[Misfit, ...]:
    """Like `pair`, but takes the files themselves for sound."""
    kinds = speculative_types(type)
    return tuple(misfit for kind in kinds for misfit in _misfits(target, drafter, kind.name))


def fits(target: Model, drafter: Model) -> Drafts | None:
    """How a drafter drafts for a target, None if it can't. Blocks; raises TuirigError."""
    drafts = drafts_as(drafter)
    if drafts is None or drafts.target == "itself":
        return None
    return None if pair(target, drafter, drafts.type) else drafts


def _misfits(target: Model, drafter: Model | None, type: str) -> Iterator[Misfit]:
    if type not in (MTP, SIMPLE, EAGLE3, *_DFLASH):
        return
    if role_of(target) in (Role.DRAFTER, Role.OTHER):
        yield Misfit(f"{target.label} can't be a target: it is {_what(target)}")
        return
    if drafter is None:
        if type == MTP and not target.mtp_layers:
            yield Misfit(
                f"{target.label} has no MTP head inside",
                "draft-mtp needs a drafter file here, or a target with its head",
            )
        return
    wanted = drafts_as(drafter)
    if wanted is None or not _is_of_type(drafter, wanted, type):
        yield _wrong_type(drafter, wanted, type)
        return
    if type == SIMPLE:
        yield from _vocabularies(target, drafter)
    elif drafter.architecture == "gemma4-assistant":
        yield from _gemma4_assistant(target, drafter)
    else:
        yield from _trained_for(target, drafter, wanted)


def _is_of_type(drafter: Model, wanted: Drafts, type: str) -> bool:
    """A model with its head inside may also draft plainly, and its head for its like."""
    if type == SIMPLE:
        return role_of(drafter) in (Role.MODEL, Role.MODEL_WITH_MTP)
    return wanted.type == type


def _wrong_type(drafter: Model, wanted: Drafts | None, type: str) -> Misfit:
    what = _what(drafter)
    if wanted is None:
        return Misfit(f"{drafter.label} can't draft: it is {what}")
    return Misfit(
        f"{drafter.label} is no drafter for {type}: it is {what}", f"its type is {wanted.type}"
    )


def _what(model: Model) -> str:
    drafts = drafts_as(model)
    if drafts is not None:
        return drafts.what
    kind = model.text("general.type")
    named = model.architecture if kind in (None, "model") else kind
    return f"a file of the kind {named!r}" if named else "of no architecture"


def _vocabularies(target: Model, drafter: Model) -> Iterator[Misfit]:
    """What makes draft-simple stay silent: "the target and draft vocabs are not compatible"."""
    theirs, its = (model.text("tokenizer.ggml.model") or "none" for model in (target, drafter))
    if _VOCABULARY_TYPES.get(theirs, theirs) != _VOCABULARY_TYPES.get(its, its):
        yield Misfit(f"the vocabularies are of different types: target {theirs}, drafter {its}")
        return
    for name, word in (("bos", "first"), ("eos", "last")):
        ends = [_end(model, name) for model in (target, drafter)]
        if None not in ends and ends[0] != ends[1]:
            shown = [_shown_end(end) for end in ends]
            yield Misfit(f"they put different tokens {word}: target {shown[0]}, drafter {shown[1]}")
    sizes = (target.vocabulary_size or 0, drafter.vocabulary_size or 0)
    if abs(sizes[0] - sizes[1]) > _MOST_APART:
        yield Misfit(
            f"the vocabularies differ in size by more than {_MOST_APART}: target {sizes[0]:,},"
            f" drafter {sizes[1]:,} tokens"
        )
        return
    different = first_difference(target, drafter, _FIRST_COMPARED)
    if different is not None:
        yield Misfit(
            f"the vocabularies differ: token {different.number} is {different.target} for the"
            f" target, {different.drafter} for the drafter"
        )


def _end(model: Model, name: str) -> tuple[bool, int | None] | None:
    """(whether it is added, its number); None where the header leaves it to llama.cpp."""
    added = model.flag(f"tokenizer.ggml.add_{name}_token")
    if added is None:
        return None
    return added, model.whole(f"tokenizer.ggml.{name}_token_id") if added else None


def _shown_end(end: tuple[bool, int | None] | None) -> str:
    return f"token {end[1]}" if end is not None and end[0] else "none"


def _gemma4_assistant(target: Model, drafter: Model) -> Iterator[Misfit]:
    """It reads the keys and values of the target's last two layers: sizes have to be the same."""
    if target.architecture != GEMMA4:
        yield Misfit(
            f"an MTP assistant of Gemma 4 drafts for gemma4 models; {target.label} is"
            f" {target.architecture or 'of no architecture'}"
        )
        return
    yield from _same_width(target, drafter, drafter.number("embedding_length_out"))
    for name, words in (
        ("attention.key_length", "keys of full layers"),
        ("attention.value_length", "values of full layers"),
        ("attention.key_length_swa", "keys of sliding layers"),
        ("attention.value_length_swa", "values of sliding layers"),
    ):
        theirs, its = target.number(name), drafter.number(name)
        if theirs != its:
            yield Misfit(f"{words} differ in length: target {theirs}, drafter {its}")
    for sliding, layer in ((True, -2), (False, -1)):
        heads = _kv_heads(target)[layer:][:1]
        differing = {
            count
            for count, slides in zip(_kv_heads(drafter), _sliding(drafter), strict=True)
            if slides == sliding and heads and count != heads[0]
        }
        if differing:
            kind = "sliding" if sliding else "full"
            yield Misfit(
                f"heads of keys and values of {kind} layers differ: target {heads[0]}, drafter"
                f" {', '.join(map(str, sorted(differing)))}"
            )
    if target.blocks >= 2 and _sliding(target)[-2:] != (True, False):
        yield Misfit("the target does not end in a sliding and a full layer, as it needs")
    yield from _same_vocabulary_size(target, drafter)


def _trained_for(target: Model, drafter: Model, wanted: Drafts) -> Iterator[Misfit]:
    """Heads that read the hidden states of one target: MTP heads, EAGLE-3, DFlash, DSpark."""
    if wanted.architecture is not None and wanted.architecture != target.architecture:
        yield Misfit(
            f"it is the head of a {wanted.architecture} model; {target.label} is"
            f" {target.architecture or 'of no architecture'}"
        )
        return
    yield from _same_width(target, drafter, wanted.width)
    read = drafter.numbers("target_layers") or ()
    trunk = target.blocks - target.mtp_layers
    if read and max(read) > trunk:
        yield Misfit(f"it reads layer {max(read)} of the target, which has {trunk}")
    if is_mtp_head(drafter) and drafter.blocks != target.blocks and target.mtp_layers:
        yield Misfit(
            f"it is the head of a model of {drafter.blocks - drafter.mtp_layers} layers; the"
            f" target has {trunk}"
        )
    yield from _same_vocabulary_size(target, drafter)


def _same_width(target: Model, drafter: Model, width: int | None) -> Iterator[Misfit]:
    if width is not None and target.width is not None and width != target.width:
        yield Misfit(
            f"it was made for a target of width {width}; {target.label} has {target.width}",
            "it belongs to another size of this model",
        )


def _same_vocabulary_size(target: Model, drafter: Model) -> Iterator[Misfit]:
    sizes = (target.vocabulary_size, drafter.vocabulary_size)
    if None not in sizes and sizes[0] != sizes[1]:
        yield Misfit(
            f"the vocabularies differ in size: target {sizes[0]:,}, drafter {sizes[1]:,} tokens"
        )


def _kv_heads(model: Model) -> tuple[int, ...]:
    return model.per_layer("attention.head_count_kv", model.number("attention.head_count") or 0)


def _sliding(model: Model) -> tuple[bool, ...]:
    return tuple(map(bool, model.per_layer("attention.sliding_window_pattern")))
