"""Each rule of llama.cpp that a pair can break, on headers of real shapes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.files import gguf_bytes as g
from tests.files import shapes
from tuirig.files.gguf_model import Model, read_model
from tuirig.files.pairing import Misfit, fits, pair

WORDS = ["<unk>", "<s>", "</s>", *(f"word {number}" for number in range(400))]


@pytest.fixture
def e4b(tmp_path: Path) -> Model:
    return read_model(shapes.gemma4(tmp_path / "e4b.gguf"))


@pytest.fixture
def assistant(tmp_path: Path) -> Callable[..., Model]:
    def make(**changes: object) -> Model:
        return read_model(shapes.gemma4_assistant(tmp_path / "assistant.gguf", **changes))  # type: ignore[arg-type]

    return make


def small(path: Path, words: list[str] | int = 300, **more: g.Typed) -> Model:
    """A plain model of a size that a test can afford."""
    return read_model(
        shapes.llama(path, width=64, ff=64, layers=2, heads=2, kv_heads=1, head=32,
                     vocabulary=words, **more)
    )  # fmt: skip


def reasons(misfits: tuple[Misfit, ...]) -> str:
    return "; ".join(misfit.reason for misfit in misfits)


def test_an_assistant_fits_its_target(e4b: Model, assistant: Callable[..., Model]) -> None:
    drafter = assistant()
    assert pair(e4b, drafter, "draft-mtp") == ()
    drafts = fits(e4b, drafter)
    assert drafts is not None
    assert drafts.type == "draft-mtp"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"target_width": 1536}, "made for a target of width 1536; e4b.gguf has 2560"),
        ({"head": 256}, "keys of full layers differ in length: target 512, drafter 256"),
        ({"sliding_head": 128}, "values of sliding layers differ in length"),
        ({"kv_heads": 4}, "heads of keys and values of sliding layers differ: target 2, drafter 4"),
        ({"vocabulary": 262208}, "differ in size: target 262,144, drafter 262,208 tokens"),
        ({"masked": True}, "masked_embd_centroids.weight, which llama.cpp does not take"),
        ({"cut": 1000}, "it is cut short: 1,000 bytes are missing"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_assistant_that_would_crash_the_server(
    e4b: Model, assistant: Callable[..., Model], changes: dict[str, object], words: str
) -> None:
    drafter = assistant(**changes)
    assert words in reasons(pair(e4b, drafter, "draft-mtp"))
    assert fits(e4b, drafter) is None


def test_an_assistant_wants_a_gemma4_target_that_ends_right(
    tmp_path: Path, assistant: Callable[..., Model]
) -> None:
    other = read_model(shapes.llama(tmp_path / "llama.gguf", width=2560))
    assert "drafts for gemma4 models; llama.gguf is llama" in reasons(
        pair(other, assistant(), "draft-mtp")
    )
    odd = read_model(shapes.gemma4(tmp_path / "odd.gguf", layers=40))
    assert "does not end in a sliding and a full layer" in reasons(
        pair(odd, assistant(), "draft-mtp")
    )


def test_a_wrong_type_is_told_with_the_right_one(
    e4b: Model, assistant: Callable[..., Model], tmp_path: Path
) -> None:
    (misfit,) = pair(e4b, assistant(), "draft-simple")
    assert misfit.reason.endswith(
        "is no drafter for draft-simple: it is an MTP assistant of Gemma 4"
    )
    assert misfit.next_step == "its type is draft-mtp"
    plain = small(tmp_path / "plain.gguf")
    for type in ("draft-mtp", "draft-eagle3", "draft-dflash"):
        assert f"is no drafter for {type}: it is a plain model" in reasons(pair(e4b, plain, type))
    assert "can't be a target" in reasons(pair(assistant(), plain, "draft-simple"))


def test_a_head_inside(tmp_path: Path, e4b: Model) -> None:
    target = read_model(shapes.qwen35(tmp_path / "qwen.gguf"))
    assert pair(target, None, "draft-mtp") == ()
    assert pair(target, None, "ngram-mod,draft-mtp") == ()
    assert pair(e4b, None, "ngram-simple") == ()
    assert reasons(pair(e4b, None, "draft-mtp")) == "e4b.gguf has no MTP head inside"


def test_a_head_in_a_file_of_its_own(tmp_path: Path, e4b: Model) -> None:
    target = read_model(shapes.qwen35(tmp_path / "target.gguf", mtp=0))
    head = read_model(shapes.qwen35(tmp_path / "head.gguf", only_head=True))
    assert pair(target, head, "draft-mtp") == ()
    smaller = read_model(shapes.qwen35(tmp_path / "smaller.gguf", mtp=0, width=2048))
    assert "made for a target of width 4096" in reasons(pair(smaller, head, "draft-mtp"))
    assert "it is the head of a qwen35 model; e4b.gguf is gemma4" in reasons(
        pair(e4b, head, "draft-mtp")
    )


@pytest.mark.parametrize("architecture", ["eagle3", "dflash"])
def test_heads_that_were_trained_for_a_target(architecture: str, tmp_path: Path) -> None:
    target = read_model(shapes.llama(tmp_path / "target.gguf"))

    def head(layers: list[int], width: int = 4096, *, spark: bool = False) -> Model:
        keys: dict[str, shapes.Key] = {
            "block_count": 1,
            "embedding_length": width,
            "target_hidden_size": width,
            "target_layers": layers,
        }
        tensors: list[shapes.Entry] = [("fc.weight", (3 * width, width), "q8_0")]
        if spark:
            tensors.append(("markov_w1.weight", (64, 128256), "q8_0"))
        path = tmp_path / "head.gguf"
        return read_model(shapes.write(path, architecture, keys, tensors, 128256))

    type = f"draft-{architecture}"
    assert pair(target, head([2, 16, 29]), type) == ()
    assert "made for a target of width 2048" in reasons(pair(target, head([2, 3, 4], 2048), type))
    assert "it reads layer 40 of the target, which has 32" in reasons(
        pair(target, head([2, 16, 40]), type)
    )
    assert "target_layers does not name" in reasons(pair(target, head([]), type))
    if architecture == "dflash":
        assert pair(target, head([2], spark=True), "draft-dspark") == ()


def test_equal_vocabularies_fit(tmp_path: Path) -> None:
    target, drafter = small(tmp_path / "t.gguf", WORDS), small(tmp_path / "d.gguf", WORDS)
    assert pair(target, drafter, "draft-simple") == ()


def test_the_first_five_tokens_and_128_at_the_end_may_differ(tmp_path: Path) -> None:
    target = small(tmp_path / "t.gguf", WORDS)
    drafter = small(tmp_path / "d.gguf", ["a", "b", "c", "d", "e", *WORDS[5:]][:-128])
    assert pair(target, drafter, "draft-simple") == ()
    shorter = small(tmp_path / "s.gguf", WORDS[:-129])
    assert "differ in size by more than 128: target 403, drafter 274 tokens" in reasons(
        pair(target, shorter, "draft-simple")
    )


@pytest.mark.parametrize("number", [5, 200, 402])
def test_the_first_token_that_differs_is_named(tmp_path: Path, number: int) -> None:
    words = list(WORDS)
    words[number] = "other"
    target, drafter = small(tmp_path / "t.gguf", WORDS), small(tmp_path / "d.gguf", words)
    assert reasons(pair(target, drafter, "draft-simple")) == (
        f"the vocabularies differ: token {number} is '{WORDS[number]}' for the target, 'other' for"
        " the drafter"
    )


def test_vocabularies_of_other_types_and_ends(tmp_path: Path) -> None:
    target = small(tmp_path / "t.gguf", tokenizer__ggml__add_bos_token=g.flag(True))
    other = small(tmp_path / "o.gguf", tokenizer__ggml__model=g.string("gpt2"))
    assert "of different types: target llama, drafter gpt2" in reasons(
        pair(target, other, "draft-simple")
    )
    another_end = small(
        tmp_path / "e.gguf",
        tokenizer__ggml__add_bos_token=g.flag(True),
        tokenizer__ggml__bos_token_id=g.u32(7),
    )
    assert "different tokens first: target token 1, drafter token 7" in reasons(
        pair(target, another_end, "draft-simple")
    )
    none = small(tmp_path / "n.gguf", tokenizer__ggml__add_bos_token=g.flag(False))
    assert "different tokens first: target token 1, drafter none" in reasons(
        pair(target, none, "draft-simple")
    )


def test_a_vocabulary_that_changed_since_its_header_was_read(tmp_path: Path) -> None:
    target = small(tmp_path / "t.gguf", WORDS)
    drafter = small(tmp_path / "d.gguf", [*WORDS[:-1], "other"])
    tokens = drafter.tokens
    assert tokens is not None
    with (tmp_path / "d.gguf").open("r+b") as file:
        file.seek(tokens.offset)
        file.write(struct.pack("<Q", 2**40))
    with pytest.raises(Exception, match="a token claims 1,099,511,627,776 bytes"):
        pair(target, drafter, "draft-simple")


def test_the_built_in_pairs_fit(demo_files: Path) -> None:
    target = read_model(demo_files / "gemma4.gguf")
    for format in ("f16", "q8_0", "q4_0"):
        assert pair(target, read_model(demo_files / f"gemma4-{format}.gguf"), "draft-mtp") == ()
    assert pair(read_model(demo_files / "qwen35.gguf"), None, "draft-mtp") == ()
