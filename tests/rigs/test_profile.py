from __future__ import annotations

import random
import re

import msgspec
import pytest
import tomli_w

from tests.rigs.examples import changed, line_of
from tuirig.errors import FileError
from tuirig.rigs.profile import (
    Change,
    Evidence,
    Profile,
    ProfileCard,
    ProfileDrafter,
    ProfileModel,
    difference,
    parse_profile,
    profile_name,
    slug,
    to_dict,
)

PROFILE = Profile(
    source="measured",
    setting="q4_0:2,p_min=0.3",
    argv=("llama-server", "-m", "/models/my target.gguf", "-c", "8192"),
    env={"CUDA_VISIBLE_DEVICES": "0"},
    card=ProfileCard(name="Card One", uuid="GPU-1", memory_mib=8192.0, driver="615.1"),
    model=ProfileModel(
        name="target", file="target-Q4_0.gguf", size=10, sha256="a" * 64, format="q4_0"
    ),
    drafter=ProfileDrafter(format="q4_0", type="draft-mtp", file="d.gguf", size=5, sha256="b" * 64),
    evidence=Evidence(
        tok_s=100.25,
        none_tok_s=58.3,
        gain=1.72,
        kept=0.481,
        accepted_per_position=(0.62, 0.34),
        mean_accepted_length=1.96,
        ttft_ms=31.5,
        memory_mib=4499.0,
        memory_source="nvml process",
        prompts=12,
        tokens=256,
        server_build="b1-7e4c0a9",
        when="2026-11-30T12:00:00+00:00",
        tuirig="0.1.0",
        note='quotes " and \\ and\nlines',
    ),
)
LEAST = Profile(
    source="simulated",
    setting="none",
    argv=("llama-server",),
    card=ProfileCard(name="cpu"),
    model=ProfileModel(name="m", file="m.gguf"),
    evidence=Evidence(tok_s=1.0, prompts=1, tokens=1),
)
TEXT = tomli_w.dumps(to_dict(PROFILE))


def test_both_ways() -> None:
    for profile in (PROFILE, LEAST):
        assert parse_profile(tomli_w.dumps(to_dict(profile))) == profile


def test_a_file_always_says_its_schema_and_objective_and_never_the_unknown() -> None:
    assert to_dict(LEAST) == {
        "schema": 1,
        "source": "simulated",
        "objective": "all",
        "setting": "none",
        "argv": ("llama-server",),
        "card": {"name": "cpu"},
        "model": {"name": "m", "file": "m.gguf"},
        "evidence": {"tok_s": 1.0, "prompts": 1, "tokens": 1},
    }


@pytest.mark.parametrize(
    ("old", "new", "key", "part", "message"),
    [
        ("schema = 1\n", "", "schema", None, "this key is missing"),
        ("schema = 1", "schema = 2", "schema", "schema", "reads schema 1, not 2"),
        ('source = "measured"', 'source = "guessed"', "source", "source", "'guessed'"),
        ('objective = "all"', 'objective = ""', "objective", "objective", "length >= 1"),
        ("q4_0:2,p_min=0.3", "q4_0:0", "setting", "setting", "from 1 to 64"),
        ("q4_0:2,p_min=0.3", "none", "setting", "setting", "none needs no [drafter]"),
        ("tok_s = 100.25", "tok_s = 0", "evidence.tok_s", "tok_s", "> 0"),
        ("tok_s = 100.25", "tok_s = nan", "evidence.tok_s", "tok_s", "> 0"),
        ("tok_s = 100.25\n", "", "evidence.tok_s", "[evidence]", "this key is missing"),
        ("kept = 0.481", "kept = 48.1", "evidence.kept", "kept", "<= 1"),
        ("    0.34,", "    1.34,", "evidence.accepted_per_position[1]", "accepted_per", "<= 1"),
        ("prompts = 12", "prompts = 0", "evidence.prompts", "prompts", ">= 1"),
        ("prompts = 12", 'prompts = "12"', "evidence.prompts", "prompts", "a whole number"),
        ("size = 10", "size = 1.5", "model.size", "size = 1.5", "a whole number"),
        ('sha256 = "aaaa', 'sha256 = "AAAA', "model.sha256", "AAAA", "64 hexadecimal digits"),
        ('type = "draft-mtp"\n', "", "drafter.type", "[drafter]", "this key is missing"),
        ("[card]", "[kard]", "kard", "[kard]", "unknown key"),
        ('driver = "615.1"', 'drivers = "615.1"', "card.drivers", "drivers", "unknown key"),
        ('when = "2026-11-30T12:00:00+00:00"\n', "", "evidence", "[evidence]", "`when`"),
        ('server_build = "b1-7e4c0a9"\n', "", "evidence", "[evidence]", "`server_build`"),
        ('"measured"', '"published"', "evidence.reference", "[evidence]", "where it was published"),
    ],
)
def test_errors_name_file_line_and_key(
    old: str, new: str, key: str, part: str | None, message: str
) -> None:
    text = changed(old, new, TEXT)
    with pytest.raises(FileError) as caught:
        parse_profile(text, "p.toml")
    error = caught.value
    assert (error.path, error.key) == ("p.toml", key)
    assert message in error.message
    assert error.line == (line_of(part, text) if part else None)


def test_a_drafter_has_its_table() -> None:
    with pytest.raises(FileError, match=r"q4_0:2 needs a \[drafter\]"):
        parse_profile(tomli_w.dumps({**to_dict(LEAST), "setting": "q4_0:2"}))


def test_slugs_by_the_rule() -> None:
    rng = random.Random(7)
    alphabet = "abzABZ019 -_.()/\\:@é İßñ語\n\t"
    for _ in range(3000):
        text = "".join(rng.choice(alphabet) for _ in range(rng.randrange(20)))
        made = slug(text)
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", made), text
        assert slug(made) == made
        assert slug(f" {text.upper().lower()}_") == slug(text.upper())
        words = re.findall(r"[a-z0-9]+", text.lower())
        assert made == ("-".join(words) or "unnamed")


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("NVIDIA GeForce RTX 3050 OEM", "nvidia-geforce-rtx-3050-oem"),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", "intel-r-xeon-r-cpu-2-20ghz"),
        ("../../etc", "etc"),
        ("--", "unnamed"),
    ],
)
def test_slugs(text: str, made: str) -> None:
    assert slug(text) == made


def test_names_of_profiles() -> None:
    card = "NVIDIA H200"
    assert profile_name(card, "Big-Q8_0-00001-of-00003.gguf") == "nvidia-h200/big-q8-0.toml"
    assert profile_name(card, "Big-Q4_0.gguf") == "nvidia-h200/big-q4-0.toml"
    assert profile_name(card, "Big-Q4_0.gguf", "code") == "nvidia-h200/big-q4-0--code.toml"
    assert PROFILE.file_name == "card-one/target-q4-0.toml"


def test_no_model_name_looks_like_another_objective() -> None:
    assert profile_name("c", "m--code.gguf") != profile_name("c", "m.gguf", "code")


def test_what_saving_changes() -> None:
    new = msgspec.structs.replace(
        PROFILE,
        setting="none",
        argv=("llama-server", "-m", "a b"),
        env={},
        drafter=None,
        evidence=msgspec.structs.replace(
            PROFILE.evidence, tok_s=101.0, accepted_per_position=None, reference="here"
        ),
    )
    assert difference(PROFILE, new) == (
        Change("setting", "q4_0:2,p_min=0.3", "none"),
        Change("argv", "llama-server -m '/models/my target.gguf' -c 8192", "llama-server -m 'a b'"),
        Change("evidence.tok_s", "100.25", "101.0"),
        Change("evidence.reference", None, "here"),
        Change("env.CUDA_VISIBLE_DEVICES", "0", None),
        Change("drafter.format", "q4_0", None),
        Change("drafter.type", "draft-mtp", None),
        Change("drafter.file", "d.gguf", None),
        Change("drafter.size", "5", None),
        Change("drafter.sha256", "b" * 64, None),
        Change("evidence.accepted_per_position", "0.62, 0.34", None),
    )


def test_the_same_changes_nothing_and_nothing_saved_changes_all() -> None:
    assert difference(PROFILE, PROFILE) == ()
    assert {change.old for change in difference(None, LEAST)} == {None}
    assert [change.key for change in difference(None, LEAST)][:3] == [
        "schema",
        "source",
        "objective",
    ]
