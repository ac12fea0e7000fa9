from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.support import Commands, pid_file, save_rig, spawn
from tuirig import locations
from tuirig.errors import ExitCode
from tuirig.files.profiles import find_profile
from tuirig.records import Reply
from tuirig.rigs.schema import Drafter, Rig
from tuirig.runs import fitting

PROMPTS, TOKENS = 2, 48
SHORT = ("--prompts", str(PROMPTS), "--tokens", str(TOKENS))


class Measurement(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The document's fields and their types; what is optional here may be null there."""

    schema: int
    rig: str
    setting: str
    server_build: str
    argv: list[str]
    env: dict[str, str]
    card: dict[str, Any] | None
    started_at: str | None
    ready_s: float | None
    tok_s: float | None
    ttft_ms: float | None
    kept: float | None
    accepted_per_position: list[float] | None
    mean_accepted_length: float | None
    gain: float | None
    valid: bool
    drafting_proven: bool | None
    proof: dict[str, Any]
    memory_mib: float | None
    memory_source: str | None
    memory_parts: dict[str, float | None] | None
    ended_by_itself: float | None
    profile: str | None
    warm_up: Reply | None
    replies: list[Reply]


def measurement(text: str) -> Measurement:
    return msgspec.json.decode(text, type=Measurement)


@pytest.fixture
def rigs(tiny_gemma4_rig: Rig, tiny_qwen35_rig: Rig, smollm2_rig: Rig) -> dict[str, Rig]:
    """The small rigs by name, each saved in the rigs folder."""
    found = {rig.name: rig for rig in (tiny_gemma4_rig, tiny_qwen35_rig, smollm2_rig)}
    for rig in found.values():
        save_rig(rig)
    return found


@pytest.mark.parametrize(
    ("rig", "setting", "length", "flags"),
    [
        ("tiny-gemma4", "none", 0, []),
        ("tiny-gemma4", "q4_0:2", 2, ["--spec-type", "draft-mtp"]),
        ("tiny-gemma4", "f16:3,p_min=0.2", 3, ["--spec-draft-p-min", "0.2"]),
        ("tiny-gemma4", "ngram:3", 3, ["--spec-ngram-map-k-size-m", "3"]),
        ("tiny-qwen35", "inside:2", 2, ["--spec-draft-n-max", "2"]),
        ("smollm2", "q4_0:2", 2, ["--spec-type", "draft-simple"]),
    ],
)
def test_every_sort_of_drafter_is_measured(
    run: Commands, rigs: dict[str, Rig], rig: str, setting: str, length: int, flags: list[str]
) -> None:
    tokens = 12 if rig == "smollm2" else TOKENS  # the only one that is not tiny
    ran = run(
        "measure", rig, "--setting", setting, "--prompts", "2", "--tokens", str(tokens), "--json"
    )
    assert ran.code == ExitCode.OK, ran.stderr
    found = measurement(ran.stdout)
    assert (found.schema, found.rig, found.setting) == (1, rig, setting)
    assert found.server_build
    assert found.argv[0] == rigs[rig].server.program
    assert " ".join(flags) in " ".join(found.argv)
    assert found.valid
    assert found.tok_s is not None and found.tok_s > 0
    assert found.ttft_ms is not None and found.ttft_ms > 0
    assert found.memory_mib is not None and found.memory_mib > 0
    assert found.memory_source == "resident memory"
    assert found.memory_parts is not None and found.memory_parts["target_mib"]
    assert [reply.prompt_id for reply in found.replies] == ["code-1", "advice-1"]
    assert all(reply.token_limit == tokens for reply in found.replies)
    if length:
        assert found.drafting_proven is True
        assert found.kept is not None and 0 <= found.kept <= 1
        positions = found.accepted_per_position
        assert positions is not None and len(positions) == length
        assert all(0 <= share <= 1 for share in positions)
        assert found.mean_accepted_length == pytest.approx(1 + sum(positions))
        assert found.proof["drafted"] > 0
    else:
        assert found.drafting_proven is None
        assert (found.kept, found.accepted_per_position) == (None, None)
        assert found.proof["speculative"] is False


def test_people_see_progress_and_a_table_and_stdout_stays_empty(
    run: Commands, rigs: dict[str, Rig]
) -> None:
    ran = run("measure", "tiny-gemma4", "--setting", "q4_0:2", *SHORT)
    assert ran.code == ExitCode.OK
    assert ran.stdout == ""
    lines = [line for line in ran.stderr.splitlines() if not line.startswith("note: ")]
    assert lines[0].startswith(rigs["tiny-gemma4"].server.program)
    assert lines[1] == "q4_0:2: starting"
    assert lines[2].startswith("q4_0:2: ready after ")
    assert [line.split()[0] for line in lines[3:5]] == ["code-1", "advice-1"]
    assert lines[5] == "q4_0:2: stopped"
    assert lines[7].split() == ["KIND", "REPLIES", "TOK/S", "KEPT"]
    assert any(line.startswith("q4_0:2 on tiny-gemma4: ") for line in lines)
    assert not any("\r" in line or "\x1b" in line for line in lines)


def test_a_drafter_with_another_vocabulary_is_refused_by_headers_and_by_the_proof(
    run: Commands, rigs: dict[str, Rig], smollm2_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Drafter(
        format="other", type="draft-simple", path=str(smollm2_files / "smollm2-q4_0.gguf")
    )
    save_rig(msgspec.structs.replace(rigs["tiny-gemma4"], drafter=(other,)))
    words = ("measure", "tiny-gemma4", "--setting", "other:2", *SHORT, "--json")
    refused = run(*words)
    assert (refused.code, refused.stdout) == (ExitCode.BAD_FILE, "")
    # A pair that headers can't tell apart is still caught by the server's own word.
    monkeypatch.setattr(fitting, "require_fit", lambda *_: None)
    ran = run(*words)
    assert ran.code == ExitCode.NOT_PROVEN
    found = measurement(ran.stdout)
    assert (found.valid, found.drafting_proven, found.tok_s) == (False, False, None)
    assert "does not draft" in found.proof["reason"]
    assert any("vocab" in line for line in found.proof["evidence"])
    assert found.replies == []
    assert "other:2" in ran.stderr


def test_a_method_that_finds_nothing_to_draft_is_not_proven(
    run: Commands, rigs: dict[str, Rig]
) -> None:
    blind = Drafter(format="blind", type="ngram-map-k", args=("--spec-ngram-map-k-size-n", "40"))
    save_rig(msgspec.structs.replace(rigs["tiny-gemma4"], drafter=(blind,)))
    ran = run("measure", "tiny-gemma4", "--setting", "blind:2", *SHORT, "--json", "--save")
    assert ran.code == ExitCode.NOT_PROVEN
    found = measurement(ran.stdout)
    assert (found.valid, found.drafting_proven, found.profile) == (False, False, None)
    assert len(found.replies) == PROMPTS
    assert found.proof["reason"]
    assert not locations.profiles_folder().exists()


def test_saving_measures_none_first_and_writes_the_profile(
    run: Commands, rigs: dict[str, Rig]
) -> None:
    words = ("measure", "tiny-gemma4", "--setting", "q4_0:2", *SHORT, "--save")
    ran = run(*words, "--json")
    assert ran.code == ExitCode.OK, ran.stderr
    found = measurement(ran.stdout)
    starts = [line for line in ran.stderr.splitlines() if line.endswith(": starting")]
    assert starts == ["none: starting", "q4_0:2: starting"]
    path = Path(found.profile or "")
    assert path.is_relative_to(locations.profiles_folder())
    profile = find_profile(str(path))
    assert (profile.source, profile.setting) == ("measured", "q4_0:2")
    assert list(profile.argv) == found.argv
    assert profile.evidence.tok_s == pytest.approx(found.tok_s, abs=0.01)
    assert profile.evidence.gain == found.gain
    assert (profile.evidence.prompts, profile.evidence.tokens) == (PROMPTS, TOKENS)
    for file in (profile.model, profile.drafter):
        assert file is not None and file.size and len(file.sha256 or "") == 64
    (listed,) = [
        p for p in run("profiles", "--json").json["profiles"] if p["path"] == found.profile
    ]
    assert (listed["fits"], listed["shipped"]) == ("this card", False)


def test_ones_own_prompts(run: Commands, rigs: dict[str, Rig], tmp_path: Path) -> None:
    file = tmp_path / "prompts.jsonl"
    file.write_text(
        json.dumps({"prompt": "Say one.", "kind": "code", "id": "one"})
        + "\n"
        + json.dumps({"prompt": "Say two."})
        + "\n"
    )
    ran = run(
        "measure", "tiny-gemma4", "--setting", "none", "--tokens", "8",
        "--prompt-file", str(file), "--json",
    )  # fmt: skip
    found = measurement(ran.stdout)
    assert [(reply.prompt_id, reply.kind) for reply in found.replies] == [
        ("one", "code"),
        ("prompt-2", "own"),
    ]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--setting", "q5_0:2"), ExitCode.USAGE, "no drafter 'q5_0'; it has: none, f16"),
        (("--setting", "q4_0"), ExitCode.USAGE, "a draft length is missing"),
        (("--setting", "q4_0:2:3"), ExitCode.USAGE, "the draft length is a number"),
        (("--setting", "q4_0:2,x=1"), ExitCode.USAGE, "unknown knob 'x=1'"),
        (
            ("--setting", "q4_0:2", "--save", "--temperature", "0.8"),
            ExitCode.USAGE,
            "exclude each other",
        ),
        (("--setting", "none", "--prompt-file", "absent"), ExitCode.BAD_FILE, "absent"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_can_not_be_measured_is_told_before_a_server_starts(
    run: Commands, rigs: dict[str, Rig], words: tuple[str, ...], code: ExitCode, told: str
) -> None:
    ran = run("measure", "tiny-gemma4", *words)
    assert ran.code == code
    assert told in ran.stderr
    assert ran.stdout == ""
    assert pid_file() is None
    assert not (locations.state_folder() / "logs").exists()


def test_a_server_that_does_not_start_is_told_with_its_log(
    run: Commands, rigs: dict[str, Rig]
) -> None:
    rig = rigs["tiny-gemma4"]
    args = (*rig.server.args, "--lora", str(rig.target.path))  # a model is no adapter
    save_rig(msgspec.structs.replace(rig, server=msgspec.structs.replace(rig.server, args=args)))
    ran = run("measure", "tiny-gemma4", "--setting", "none", *SHORT, "--json")
    assert ran.code == ExitCode.SERVER
    assert ran.stdout == ""
    assert "tuirig: the server did not start" in ran.stderr


def test_a_target_that_is_no_model_is_named_before_a_server_starts(
    run: Commands, rigs: dict[str, Rig], tmp_path: Path
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(200))
    target = msgspec.structs.replace(rigs["tiny-gemma4"].target, path=str(broken))
    save_rig(msgspec.structs.replace(rigs["tiny-gemma4"], target=target))
    ran = run("measure", "tiny-gemma4", "--setting", "none", *SHORT, "--json")
    assert ran.code == ExitCode.BAD_FILE
    assert ran.stdout == ""
    assert "broken.gguf" in ran.stderr


def test_a_pipe_gets_one_document_and_nothing_else(rigs: dict[str, Rig]) -> None:
    process = spawn("measure", "tiny-gemma4", "--setting", "q4_0:1", *SHORT, "--json")
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitCode.OK, stderr
    assert measurement(stdout).setting == "q4_0:1"
