"""rigs, rig new, profiles, doctor."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tests.cli.support import Commands, save_rig
from tuirig import locations
from tuirig.demo.catalog import BUILT_IN
from tuirig.errors import ExitCode
from tuirig.files.hashes import identity
from tuirig.files.profiles import find_profile, write_profile
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import Rig


def broken_rig() -> Path:
    path = locations.rigs_folder() / "broken.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('name = "broken"\ncard = 3\n')
    return path


def test_rigs_lists_the_built_in_ones(run: Commands) -> None:
    listed = run("rigs", "--json").json["rigs"]
    assert [rig["name"] for rig in listed] == list(BUILT_IN)
    gemma4 = listed[0]
    assert gemma4["source"] == "built-in"
    assert gemma4["path"] is None
    assert gemma4["card"] == "cpu"
    assert {drafter["name"]: drafter["type"] for drafter in gemma4["drafters"]} == {
        "f16": "draft-mtp",
        "q8_0": "draft-mtp",
        "q4_0": "draft-mtp",
        "ngram": "ngram-map-k",
    }
    (files,) = gemma4["missing"]
    assert (files["what"], files["reason"], files["blocks"]) == ("files", "4 not made yet", False)


def test_rigs_says_what_is_missing(run: Commands, tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    drafters = list(tiny_gemma4_rig.drafter)
    drafters[0] = msgspec.structs.replace(drafters[0], path=str(tmp_path / "absent.gguf"))
    server = msgspec.structs.replace(tiny_gemma4_rig.server, program="no-such-server")
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=tuple(drafters), server=server)
    path = save_rig(rig)
    target = Path(tiny_gemma4_rig.target.path or "")
    identity(target, compute=True)
    (mine, *_) = run("rigs", "--json").json["rigs"]
    assert (mine["source"], mine["path"]) == ("file", str(path))
    lacks = {lack["what"]: (lack["reason"], lack["blocks"]) for lack in mine["missing"]}
    assert lacks == {
        "f16": (f"{tmp_path / 'absent.gguf'}: no such file", True),
        "q8_0": ("hash unknown", False),
        "q4_0": ("hash unknown", False),
        "program": ("no-such-server not found", True),
    }
    text = run("rigs").stdout
    for what in lacks:
        assert f"\ntiny-gemma4: {what}: " in text


def test_a_broken_rig_does_not_hide_the_others(run: Commands, tiny_gemma4_rig: Rig) -> None:
    path = broken_rig()
    save_rig(tiny_gemma4_rig)
    listed = {rig["name"]: rig for rig in run("rigs", "--json").json["rigs"]}
    assert list(listed) == ["broken", "tiny-gemma4", *BUILT_IN]
    assert listed["broken"]["error"].startswith(f"{path}:2: card: expected a string")
    assert (listed["broken"]["line"], listed["broken"]["key"]) == (2, "card")
    assert listed["tiny-gemma4"]["error"] is None
    text = run("rigs").stdout
    assert f"broken: {path}:2: card: expected a string" in text
    assert "\ndemo-smollm2 " in text


def test_a_new_rig_is_one_to_start_from(run: Commands) -> None:
    ran = run("rig", "new", "my-card")
    path = Path(ran.stdout.rstrip("\n"))
    assert path == locations.rigs_folder() / "my-card.toml"
    assert "tuirig rig check my-card" in ran.stderr
    assert parse_rig(path.read_text(), str(path)).name == "my-card"


def test_a_new_rig_overwrites_nothing(run: Commands) -> None:
    path = broken_rig()
    before = path.read_text()
    assert run("rig", "new", "broken").code == ExitCode.FAILED
    assert path.read_text() == before


def test_a_rig_needs_a_name_that_can_be_one(run: Commands) -> None:
    assert run("rig", "new", "../up").code == ExitCode.USAGE


def test_profiles_lists_the_shipped_ones(run: Commands) -> None:
    listed = run("profiles", "--json").json["profiles"]
    assert sorted(profile["source"] for profile in listed) == [
        *["measured"] * 5, *["published"] * 4,
    ]  # fmt: skip
    for profile in listed:
        assert profile["shipped"]
        assert profile["fits"] == "other card"
    e4b = next(p for p in listed if "3050" in p["name"] and "e4b" in p["name"])
    assert (e4b["setting"], e4b["evidence"]["tok_s"], e4b["evidence"]["gain"]) == (
        "q4_0:2", 100.0, 1.72,
    )  # fmt: skip


def test_profiles_can_be_those_of_one_card(run: Commands) -> None:
    listed = run("profiles", "--json", "--card", "rtx 3050").json["profiles"]
    assert {profile["card"]["name"] for profile in listed} == {"NVIDIA GeForce RTX 3050 OEM"}
    assert run("profiles", "--card", "no such card").stdout == "no profiles\n"


def test_an_own_profile_wins_and_a_broken_one_does_not_hide_the_others(run: Commands) -> None:
    shipped = run("profiles", "--json").json["profiles"]
    own = msgspec.structs.replace(find_profile(shipped[0]["name"]), setting="q4_0:3")
    write_profile(own)
    (locations.profiles_folder() / "some-card").mkdir()
    (locations.profiles_folder() / "some-card" / "broken.toml").write_text("schema = 9")
    listed = {p["name"]: p for p in run("profiles", "--json").json["profiles"]}
    assert len(listed) == len(shipped) + 1
    assert listed[shipped[0]["name"]]["setting"] == "q4_0:3"
    assert listed[shipped[0]["name"]]["shipped"] is False
    assert "schema" in listed["some-card/broken"]["error"]
    text = run("profiles").stdout
    assert "some-card/\n  broken  " in text
    assert "\nnvidia-geforce-rtx-3050-oem/" in text


def test_doctor_looks_at_everything_that_is_needed(run: Commands, server_program: Path) -> None:
    ran = run("doctor", "--json")
    findings = {finding["what"]: finding for finding in ran.json["findings"]}
    assert ran.code == ExitCode.OK
    assert {
        "tuirig",
        "system",
        "Python packages",
        "card",
        "program",
        "rigs",
        "servers",
        "start",
    } <= (findings.keys())
    assert str(server_program) in findings["program"]["found"]
    assert findings["cache folder"]["found"].startswith(str(locations.cache_folder()))
    assert {finding["health"] for finding in findings.values()} <= {"ok", "warn"}


def test_doctor_fails_with_the_next_step(run: Commands, tiny_gemma4_rig: Rig) -> None:
    server = msgspec.structs.replace(tiny_gemma4_rig.server, program="no-such-server")
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, server=server))
    broken = broken_rig()
    ran = run("doctor")
    assert ran.code == ExitCode.MISSING
    lines = ran.stdout.splitlines()
    failures = [index for index, line in enumerate(lines) if line.startswith("fail ")]
    assert [lines[index].split()[1] for index in failures] == ["program", "rig"]
    assert "no program no-such-server" in lines[failures[0]]
    assert f"{broken}:2: card" in lines[failures[1]]
    for index in failures:
        assert lines[index + 1].lstrip().startswith("next: ")
