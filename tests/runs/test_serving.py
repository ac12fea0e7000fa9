from __future__ import annotations

import msgspec
import pytest

from tuirig.errors import MissingError, TuirigError
from tuirig.files.profiles import write_profile
from tuirig.records import CardInfo, FileIdentity
from tuirig.rigs.profile import Evidence, Profile, ProfileCard, ProfileDrafter, ProfileModel
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server
from tuirig.runs.serving import profile_for, setting_of
from tuirig.runs.staleness import of_another_model

CARD = CardInfo(kind="nvidia", name="Some Card", memory_mib=8192)
RIG = Rig(
    name="mine",
    card="Some Card",
    target=ModelFile(path="models/target-q4_0.gguf"),
    drafter=(Drafter(format="q4_0", type="draft-mtp", path="drafter.gguf"),),
    server=Server(args=("-c", "2048", "-ngl", "99")),
)
PROFILE = Profile(
    source="published",
    setting="q4_0:2",
    argv=("llama-server",),
    card=ProfileCard(name="Some Card", memory_mib=8192),
    model=ProfileModel(name="target-q4_0", file="target-q4_0.gguf"),
    drafter=ProfileDrafter(format="q4_0", type="draft-mtp", file="drafter.gguf"),
    evidence=Evidence(tok_s=100.0, prompts=12, tokens=128, reference="a page"),
)


def test_the_profile_of_this_card_and_model() -> None:
    write_profile(PROFILE)
    assert profile_for(RIG, CARD) == PROFILE


@pytest.mark.parametrize(
    "other",
    [
        {"card": ProfileCard(name="Another Card")},
        {"card": ProfileCard(name="Some Card", memory_mib=12288)},
        {"model": ProfileModel(name="target-q8_0", file="target-q8_0.gguf")},
        {"objective": "code"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_profile_is_not_taken(other: dict[str, object]) -> None:
    write_profile(msgspec.structs.replace(PROFILE, **other))
    with pytest.raises(MissingError, match="no profile is saved for target") as caught:
        profile_for(RIG, CARD)
    assert "tuirig measure mine" in caught.value.hint


def test_a_profile_of_another_file_of_that_name_is_not_taken() -> None:
    model = msgspec.structs.replace(PROFILE.model, size=1000, sha256="a" * 64)
    profile = msgspec.structs.replace(PROFILE, model=model)
    write_profile(profile)
    same = FileIdentity(file=model.file, size=1000, sha256="a" * 64)
    assert profile_for(RIG, CARD, same) == profile
    unhashed = msgspec.structs.replace(same, sha256=None)
    assert profile_for(RIG, CARD, unhashed) == profile
    for other in (
        msgspec.structs.replace(same, sha256="b" * 64),
        msgspec.structs.replace(unhashed, size=1001),
    ):
        assert of_another_model(profile, other)
        with pytest.raises(MissingError, match="no profile is saved for target") as caught:
            profile_for(RIG, CARD, other)
        assert "is of another file: target" in caught.value.evidence[0]


def test_the_setting_of_a_profile_is_one_of_the_rig() -> None:
    assert str(setting_of(PROFILE, RIG)) == "q4_0:2"
    with pytest.raises(TuirigError, match="no drafter 'q4_0'"):
        setting_of(PROFILE, msgspec.structs.replace(RIG, drafter=()))
    other = msgspec.structs.replace(RIG, target=ModelFile(path="other.gguf"))
    with pytest.raises(TuirigError, match=r"for target-q4_0\.gguf, rig mine has other\.gguf"):
        setting_of(PROFILE, other)
