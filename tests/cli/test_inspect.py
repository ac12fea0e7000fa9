from __future__ import annotations

from pathlib import Path

from tests.cli.support import Commands
from tests.files import shapes
from tuirig import locations
from tuirig.errors import ExitCode
from tuirig.hosts.programs import find_program
from tuirig.rigs.parse import parse_rig


def test_inspect_says_what_a_drafter_is(run: Commands, demo_files: Path) -> None:
    ran = run("inspect", str(demo_files / "gemma4-q4_0.gguf"))
    assert ran.code == ExitCode.OK
    lines = dict(line.split(maxsplit=1) for line in ran.stdout.splitlines())
    assert lines["role"] == "drafter"
    assert lines["encoding"].startswith("4.5")
    assert "q4_0 99." in lines["encoding"]
    assert lines["drafts"] == (
        "--spec-type draft-mtp: an MTP assistant of Gemma 4; for a gemma4 model of width 256"
    )
    assert ran.stderr == ""


def test_inspect_as_json(run: Commands, demo_files: Path) -> None:
    found = run("inspect", str(demo_files / "qwen35.gguf"), "--json").json
    assert (found["architecture"], found["layers"], found["mtp_layers"]) == ("qwen35", 4, 1)
    assert found["drafts"]["type"] == "draft-mtp"
    assert found["encodings"][0]["type"] == "f16"
    assert "against" not in found


def test_inspect_against_its_target(run: Commands, demo_files: Path) -> None:
    drafter, target = str(demo_files / "gemma4-q4_0.gguf"), str(demo_files / "gemma4.gguf")
    ran = run("inspect", drafter, "--against", target)
    assert ran.code == ExitCode.OK
    assert ran.stdout.splitlines()[-1] == "fits gemma4.gguf (draft-mtp)"
    found = run("inspect", drafter, "--against", target, "--json").json["against"]
    assert found == {"target": "gemma4.gguf", "type": "draft-mtp", "fits": True, "problems": []}


def test_inspect_against_a_wrong_target(run: Commands, demo_files: Path) -> None:
    words = ("inspect", str(demo_files / "gemma4-q4_0.gguf"), "--against")
    ran = run(*words, str(demo_files / "qwen35.gguf"))
    assert ran.code == ExitCode.BAD_FILE
    assert "does not fit qwen35.gguf (draft-mtp)" in ran.stdout
    assert "problem: an MTP assistant of Gemma 4 drafts for gemma4 models" in ran.stdout
    found = run(*words, str(demo_files / "qwen35.gguf"), "--json")
    assert found.code == ExitCode.BAD_FILE
    assert found.json["against"]["fits"] is False


def test_inspect_a_damaged_file(run: Commands, tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(b"GGUF\3\0\0\0")
    ran = run("inspect", str(path), "--json")
    assert (ran.code, ran.stdout) == (ExitCode.BAD_FILE, "")
    assert "it ends inside its header" in ran.stderr
    assert run("inspect", str(tmp_path / "absent.gguf")).code == ExitCode.MISSING
    shapes.gemma4_assistant(path, cut=100)
    ran = run("inspect", str(path))
    assert ran.code == ExitCode.BAD_FILE
    assert "problem: it is cut short: 100 bytes are missing at its end" in ran.stdout


def test_discover_lists_and_writes(run: Commands, demo_files: Path, tmp_path: Path) -> None:
    ran = run("rig", "discover", str(demo_files))
    assert ran.code == ExitCode.OK
    assert ran.stdout.endswith(f"write it: tuirig rig discover {demo_files} --write gemma4\n")
    table = [line.split()[:2] for line in ran.stdout.splitlines()]
    assert ["gemma4", "gemma4.gguf"] in table
    assert ["qwen35", "qwen35.gguf"] in table
    document = run("rig", "discover", str(demo_files), "--json").json
    offers = {offer["name"]: offer for offer in document["offers"]}
    assert [drafter["name"] for drafter in offers["gemma4"]["drafters"]] == [
        "f16", "q4_0", "q8_0", "ngram",
    ]  # fmt: skip
    written = run("rig", "discover", str(demo_files), "--write", "gemma4")
    path = locations.rigs_folder() / "gemma4.toml"
    assert written.stdout == f"{path}\n"
    assert path.read_text() == offers["gemma4"]["toml"]
    program = parse_rig(path.read_text()).server.program
    assert find_program(program) is not None, "the starter names a program that is there"
    target = parse_rig(path.read_text()).target.path
    assert target is not None
    assert Path(target).expanduser() == demo_files / "gemma4.gguf"
    again = run("rig", "discover", str(demo_files), "--write", "gemma4")
    assert again.code == ExitCode.FAILED
    assert "is there already" in again.stderr
    assert run("rig", "check", "gemma4", "--json").json["files"][0]["row"] == "target"


def test_discover_an_offer_by_a_name_that_is_none(
    run: Commands, demo_files: Path, tmp_path: Path
) -> None:
    ran = run("rig", "discover", str(demo_files), "--write", "unheard-of")
    assert ran.code == ExitCode.MISSING
    assert "gemma4" in ran.stderr
    shapes.qwen35(tmp_path / "only.gguf")
    ran = run("rig", "discover", str(tmp_path), "--write", "mine")
    assert ran.code == ExitCode.OK
    assert parse_rig((locations.rigs_folder() / "mine.toml").read_text()).name == "mine"
    assert run("rig", "discover", str(tmp_path / "absent")).code == ExitCode.MISSING
