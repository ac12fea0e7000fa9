"""What kind of drafter a model is, by what stands in its header.

Sources: src/models/{gemma4-assistant,eagle3,dflash,qwen35}.cpp and common/speculative.cpp of
llama.cpp (b10434).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tuirig.files.gguf_model import Model

GEMMA4 = "gemma4"
_MARKOV_HEAD = "markov_w1.weight"


class Role(StrEnum):
    """What a file is good for."""

    MODEL = "model"
    MODEL_WITH_MTP = "model with its MTP head inside"
    DRAFTER = "drafter"
    OTHER = "no language model"


class Drafts(msgspec.Struct, frozen=True, kw_only=True):
    """How a file drafts. type: the `--spec-type` it wants. what: its sort, with its article.

    target: what its target has to be, in words. architecture, width: of the target, where the
    header tells (width: length of an embedding).
    """

    type: str
    what: str
    target: str
    architecture: str | None = None
    width: int | None = None


#: `general.architecture` of files that go beside a model or do not write text.
_OTHERS = (
    "clip",
    "bert",
    "nomic-bert",
    "jina-bert-v2",
    "modern-bert",
    "t5encoder",
    "wavtokenizer-dec",
)


def role_of(model: Model) -> Role:
    """What a file is good for."""
    kind = model.text("general.type")
    if kind not in (None, "model") or model.architecture in _OTHERS:
        return Role.OTHER
    if is_drafter_only(model):
        return Role.DRAFTER
    return Role.MODEL_WITH_MTP if model.mtp_layers else Role.MODEL


def is_drafter_only(model: Model) -> bool:
    """Whether a file can do nothing but draft."""
    return model.architecture in _DRAFTERS or is_mtp_head(model)


def is_mtp_head(model: Model) -> bool:
    """Whether a file has the MTP head of a model without the layers before it."""
    return model.mtp_layers > 0 and not model.has_trunk and model.architecture not in _DRAFTERS


def drafts_as(model: Model) -> Drafts | None:
    """How a file drafts, None for one that can't. A plain model drafts for a bigger one."""
    role = role_of(model)
    if role is Role.OTHER or not model.architecture:
        return None
    if model.architecture in _DRAFTERS:
        return _DRAFTERS[model.architecture](model)
    width = f", width {model.width}" if model.width else ""
    if is_mtp_head(model):
        return Drafts(
            type="draft-mtp",
            what=f"an MTP head of a {model.architecture} model, in a file of its own",
            target=f"the {model.architecture} model that it was cut from{width}",
            architecture=model.architecture,
            width=model.width,
        )
    if role is Role.MODEL_WITH_MTP:
        return Drafts(
            type="draft-mtp",
            what="a model with its MTP head inside: drafts for itself, without a drafter file",
            target="itself",
            architecture=model.architecture,
            width=model.width,
        )
    return Drafts(
        type="draft-simple",
        what="a plain model",
        target="a bigger model with the same vocabulary",
    )


def _gemma4_assistant(model: Model) -> Drafts:
    width = model.number("embedding_length_out")
    return Drafts(
        type="draft-mtp",
        what="an MTP assistant of Gemma 4",
        target=f"a gemma4 model of width {width or 'unknown'}",
        architecture=GEMMA4,
        width=width,
    )


def _eagle3(model: Model) -> Drafts:
    width = model.number("target_hidden_size")
    return Drafts(
        type="draft-eagle3",
        what="an EAGLE-3 head",
        target=f"the model that it was trained for, of width {width or 'unknown'}",
        width=width,
    )


def _dflash(model: Model) -> Drafts:
    spark = _MARKOV_HEAD in model.tensors
    return Drafts(
        type="draft-dspark" if spark else "draft-dflash",
        what="a DSpark drafter" if spark else "a DFlash drafter",
        target=f"the model that it was trained for, of width {model.width or 'unknown'}",
        width=model.width,
    )


_DRAFTERS = {"gemma4-assistant": _gemma4_assistant, "eagle3": _eagle3, "dflash": _dflash}
