from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cli.support import Commands, read_until, running, save_rig
from tuirig.errors import ExitCode
from tuirig.rigs.schema import Drafter, Rig


def test_a_rig_whose_every_setting_can_run(run: Commands, tiny_gemma4_rig: Rig) -> None:
    path = save_rig(tiny_gemma4_rig)
    ran = run("rig", "check", "tiny-gemma4", "--json")
    check = ran.json
    assert ran.code == ExitCode.OK
    assert (check["ok"], check["problems"], check["notes"]) == (True, [], [])
    assert (check["path"], check["program"]) == (str(path), tiny_gemma4_rig.server.program)
    assert check["build"]
    assert check["card"]["kind"] == "cpu"
    settings = {setting["setting"]: setting for setting in check["settings"]}
    assert list(settings) == [str(setting) for setting in tiny_gemma4_rig.settings()]
    argv = settings["q4_0:2"]["argv"]
    assert argv[0] == tiny_gemma4_rig.server.program
    assert argv[argv.index("--spec-draft-n-max") + 1] == "2"
    assert argv[argv.index("--port") + 1] == str(check["port"])
    needs = {need["row"]: need for need in check["memory"]["settings"]}
    assert list(needs) == ["none", "f16", "q8_0", "q4_0", "ngram"]
    assert needs["f16"]["setting"] == "f16:3"
    assert needs["f16"]["total_mib"] > needs["q4_0"]["total_mib"] > needs["none"]["total_mib"]
    assert check["memory"]["fits"] is True
    assert check["memory"]["free_mib"] < check["memory"]["total_mib"]


def test_the_report_has_a_command_line_for_each_row(run: Commands, tiny_gemma4_rig: Rig) -> None:
    path = save_rig(tiny_gemma4_rig)
    ran = run("rig", "check", str(path))
    lines = ran.stdout.splitlines()
    for row in ("none:", "f16:1, f16:2, f16:3:", "q4_0:1, q4_0:2, q4_0:3:"):
        command = lines[lines.index(row) + 1]
        assert tiny_gemma4_rig.server.program in command
        assert ("-md" in command) == (row != "none:")
    assert lines[-1] == "every setting can run"
    assert ran.stderr == ""


def test_what_a_build_can_not_run_is_refused_row_by_row(
    run: Commands, tiny_gemma4_rig: Rig
) -> None:
    odd = Drafter(format="odd", type="draft-telepathy")
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, drafter=(*tiny_gemma4_rig.drafter, odd)))
    ran = run("rig", "check", "tiny-gemma4", "--json")
    assert ran.code == ExitCode.BAD_FILE
    (problem,) = ran.json["problems"]
    assert "has no type draft-telepathy" in problem["message"]
    assert "draft-mtp" in problem["next"]
    refused = [s["setting"] for s in ran.json["settings"] if s["refusal"]]
    assert refused == ["odd:1", "odd:2", "odd:3"]
    assert "odd: can't run, " in run("rig", "check", "tiny-gemma4").stdout


def test_a_missing_file_blocks_its_own_row_alone(
    run: Commands, tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    drafters = list(tiny_gemma4_rig.drafter)
    drafters[1] = msgspec.structs.replace(drafters[1], path=str(tmp_path / "absent.gguf"))
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, drafter=tuple(drafters)))
    ran = run("rig", "check", "tiny-gemma4", "--json")
    assert ran.code == ExitCode.MISSING
    (problem,) = ran.json["problems"]
    assert problem["message"] == f"q8_0: {tmp_path / 'absent.gguf'}: no such file"
    assert problem["next"]
    rows = {s["row"] for s in ran.json["settings"] if s["refusal"]}
    assert rows == {"q8_0"}


def test_without_a_program_the_rest_is_looked_at(run: Commands, tiny_gemma4_rig: Rig) -> None:
    server = msgspec.structs.replace(tiny_gemma4_rig.server, program="no-such-server")
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, server=server))
    ran = run("rig", "check", "tiny-gemma4", "--json")
    assert ran.code == ExitCode.MISSING
    assert (ran.json["program"], ran.json["build"], ran.json["settings"]) == (None, None, [])
    assert ran.json["memory"]["fits"] is True
    assert "no-such-server" in run("rig", "check", "tiny-gemma4").stdout


def test_a_built_in_rig_that_can_not_be_made(
    run: Commands, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuirig.demo.catalog._PACKAGES", ("no_such_package",))
    ran = run("rig", "check", "demo-qwen35", "--json")
    assert ran.code == ExitCode.MISSING
    (problem,) = ran.json["problems"]
    assert "no_such_package" in problem["message"]
    assert "tuirig[demo]" in problem["next"]


def test_a_card_that_is_not_there(run: Commands, tiny_gemma4_rig: Rig) -> None:
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, card="No Such Card 9000"))
    ran = run("rig", "check", "tiny-gemma4", "--json")
    assert ran.code == ExitCode.MISSING
    assert ran.json["card"] is None
    assert ran.json["memory"]["fits"] is None
    (problem,) = ran.json["problems"]
    assert "No Such Card 9000" in problem["message"]


def test_servers_are_told_apart(
    run: Commands, tiny_gemma4_rig: Rig, home: Path, tmp_path: Path
) -> None:
    """Another person's server is a holder, named with its port; tuirig's own is remembered."""
    save_rig(tiny_gemma4_rig)
    other = tmp_path / "other"
    path = save_rig(tiny_gemma4_rig, other)
    words = ("serve", str(path), "--setting", "none")
    with (
        running(*words, env={"TUIRIG_HOME": str(other)}) as theirs,
        running(*words) as ours,
    ):
        (their_url,) = read_until(theirs, "serving ")[-1:]
        (our_url,) = read_until(ours, "serving ")[-1:]
        ran = run("rig", "check", "tiny-gemma4", "--json")
        check = ran.json
        text = run("rig", "check", "tiny-gemma4").stdout
    assert ran.code == ExitCode.OK
    (remembered,) = check["remembered"]
    assert f":{remembered['port']}/" in our_url
    holders = {port: holder for holder in check["holders"] for port in holder["ports"]}
    their_port = int(their_url.rpartition(":")[2].partition("/")[0])
    assert holders[their_port]["name"] == "llama-server"
    assert remembered["pid"] not in {holder["pid"] for holder in check["holders"]}
    assert f"process {holders[their_port]['pid']}, port {their_port}" in text
    assert f"port {remembered['port']}; used by tuirig, process {ours.pid}" in text
