"""Which profiles are stale, and why."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tuirig.files.hashes import identity
from tuirig.records import CardInfo
from tuirig.rigs.profile import Evidence, Profile, ProfileCard, ProfileDrafter, ProfileModel
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server
from tuirig.runs.catalog import FoundRig, Listing
from tuirig.runs.staleness import profile_changes, rig_of, staleness_of

BUILD = "0.1.0-dev (build 1, commit 7e4c0a9)"
CARD = CardInfo(kind="nvidia", name="RTX 3050", driver="615.78.08")
A, B = "a" * 64, "b" * 64

PROFILE = Profile(
    source="measured",
    setting="q4_0:2",
    argv=("llama-server",),
    card=ProfileCard(name="RTX 3050", driver="615.78.08"),
    model=ProfileModel(name="target", file="target.gguf", size=6),
    drafter=ProfileDrafter(format="q4_0", type="draft-mtp", file="drafter.gguf", size=7),
    evidence=Evidence(tok_s=100.0, prompts=12, tokens=128, server_build="b1-7e4c0a9", when="now"),
)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    found = {"target": tmp_path / "target.gguf", "q4_0": tmp_path / "drafter.gguf"}
    found["target"].write_bytes(b"target")
    found["q4_0"].write_bytes(b"drafter")
    return found


@pytest.fixture
def rig(files: dict[str, Path]) -> Rig:
    return Rig(
        name="mine",
        card="RTX 3050",
        target=ModelFile(path=str(files["target"])),
        drafter=(Drafter(format="q4_0", type="draft-mtp", path=str(files["q4_0"])),),
        server=Server(program="no-such-server", args=("-ngl", "99", "-c", "4096")),
    )


def test_nothing_has_changed(rig: Rig, files: dict[str, Path]) -> None:
    assert profile_changes(PROFILE, rig, files, BUILD, CARD) == ()


def test_a_hash_that_is_not_known_is_no_change(rig: Rig, files: dict[str, Path]) -> None:
    model = msgspec.structs.replace(PROFILE.model, sha256=A)
    known = msgspec.structs.replace(PROFILE, model=model)
    assert profile_changes(known, rig, files, BUILD, CARD) == ()
    sha256 = identity(files["target"], compute=True).sha256
    assert sha256 is not None
    (told,) = profile_changes(known, rig, files, BUILD, CARD)
    assert told == f"target target.gguf: sha256 aaaaaaaaaaaa -> {sha256[:12]}"


def test_everything_has_changed(rig: Rig, files: dict[str, Path]) -> None:
    files["target"].write_bytes(b"another target")
    files["q4_0"].write_bytes(b"another drafter")
    card = msgspec.structs.replace(CARD, driver="616.1")
    assert profile_changes(PROFILE, rig, files, "b2-0000000", card) == (
        "server build b1-7e4c0a9 -> b2-0000000",
        "driver 615.78.08 -> 616.1",
        "target target.gguf: 6 -> 14 bytes",
        "drafter drafter.gguf: 7 -> 15 bytes",
    )


def test_a_drafter_that_is_gone(rig: Rig, files: dict[str, Path]) -> None:
    other = msgspec.structs.replace(rig, drafter=())
    assert profile_changes(PROFILE, other, files, BUILD, CARD) == (
        "rig mine has no drafter q4_0 any more",
    )


async def test_without_a_program_the_rest_is_compared(rig: Rig, files: dict[str, Path]) -> None:
    files["q4_0"].write_bytes(b"another drafter")
    found = await staleness_of(PROFILE, FoundRig(rig, files["target"].with_name("rig.toml")), CARD)
    assert found.changes == ("drafter drafter.gguf: 7 -> 15 bytes",)
    assert found.next_step == "tuirig tune mine"


def test_the_rig_of_a_model_is_found_by_target_and_drafter(rig: Rig) -> None:
    namesake = msgspec.structs.replace(rig, name="namesake", drafter=())
    listings = [Listing(one.name, FoundRig(one, Path("x.toml"))) for one in (namesake, rig)]
    found = rig_of(PROFILE, listings)
    assert found is not None and found.rig.name == "mine"
    alone = rig_of(PROFILE, listings[:1])
    assert alone is not None and alone.rig.name == "namesake"
    other = msgspec.structs.replace(PROFILE.model, file="other.gguf")
    assert rig_of(msgspec.structs.replace(PROFILE, model=other), listings) is None
