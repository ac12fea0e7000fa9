from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import msgspec
import pytest

from tests.processes import until
from tuirig.errors import NotProvenError, TuirigError
from tuirig.events import Event, Progress
from tuirig.files.profiles import read_profile
from tuirig.records import Reply
from tuirig.rigs.profile import Profile, difference
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs import saving
from tuirig.runs.catalog import FoundRig
from tuirig.runs.opening import open_session

Q4_0 = parse_setting("q4_0:2")
NONE_REPLIES = (
    Reply(prompt_id="code-1", kind="code", tok_s=100.0, ttft_ms=10.0, token_limit=64),
    Reply(prompt_id="story-1", kind="story", tok_s=50.0, ttft_ms=20.0, token_limit=64),
)
REPLIES = (
    Reply(
        prompt_id="code-1", kind="code", tok_s=200.0, ttft_ms=11.0, token_limit=64,
        speculative=True, drafted=40, accepted=20, drafts=20, steps=20,
        accepted_per_position=(0.75, 0.25),
    ),
    Reply(
        prompt_id="story-1", kind="story", tok_s=50.0, ttft_ms=21.0, token_limit=64,
        speculative=True, drafted=40, accepted=10, drafts=20, steps=20,
        accepted_per_position=(0.25, 0.25),
    ),
)  # fmt: skip


async def profile_of(
    rig: Rig, tmp_path: Path, setting: Setting, replies: tuple[Reply, ...], events: list[Event]
) -> Profile:
    found = FoundRig(rig, tmp_path / "rig.toml")
    async with open_session(found, events.append, rate_hz=0) as session:
        return await saving.profile_of(
            session,
            setting,
            replies,
            NONE_REPLIES,
            server_build="b1-test",
            argv=("llama-server", "-m", "target.gguf"),
            env={"GGML_VK_VISIBLE_DEVICES": "0"},
            memory_mib=123.456,
            memory_source="resident memory",
            emit=events.append,
        )


async def test_a_profile_says_what_was_measured(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    events: list[Event] = []
    profile = await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, events)
    evidence = profile.evidence
    assert (profile.source, profile.setting) == ("measured", "q4_0:2")
    assert profile.argv == ("llama-server", "-m", "target.gguf")
    assert profile.env == {"GGML_VK_VISIBLE_DEVICES": "0"}
    assert (evidence.tok_s, evidence.none_tok_s) == (100.0, pytest.approx(70.71))
    assert evidence.gain == pytest.approx(2**0.5, abs=1e-4)
    assert (evidence.kept, evidence.accepted_per_position) == (0.375, (0.5, 0.25))
    assert (evidence.prompts, evidence.tokens, evidence.ttft_ms) == (2, 64, 16.0)
    assert (evidence.memory_mib, evidence.memory_source) == (123.5, "resident memory")
    assert (evidence.server_build, evidence.when is not None) == ("b1-test", True)
    target = Path(tiny_gemma4_rig.target.path or "")
    assert (profile.model.file, profile.model.name) == ("gemma4.gguf", "gemma4")
    assert profile.model.size == target.stat().st_size
    assert profile.model.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()
    assert profile.drafter is not None
    assert (profile.drafter.format, profile.drafter.type) == ("q4_0", "draft-mtp")
    assert profile.drafter.file == "gemma4-q4_0.gguf"
    hashed = [event for event in events if isinstance(event, Progress)]
    assert {event.what for event in hashed} == {"hashing gemma4.gguf", "hashing gemma4-q4_0.gguf"}
    assert all(event.unit == "B" for event in hashed)


async def test_a_file_is_hashed_once(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    events: list[Event] = []
    first = await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, [])
    again = await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, events)
    assert again.model == first.model
    assert events == []


async def test_a_drafter_without_a_file(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    setting = parse_setting("ngram:2")
    profile = await profile_of(tiny_gemma4_rig, tmp_path, setting, REPLIES, [])
    assert profile.drafter is not None
    assert (profile.drafter.type, profile.drafter.file) == ("ngram-map-k", None)


async def test_none_has_no_drafter_and_no_gain(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    profile = await profile_of(tiny_gemma4_rig, tmp_path, NONE, NONE_REPLIES, [])
    assert (profile.drafter, profile.evidence.gain) == (None, None)
    assert saving.save(profile).is_file()


async def test_saving_writes_what_was_shown(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    profile = await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, [])
    assert saving.saved_profile(profile) is None
    shown = saving.preview(profile, None).splitlines()
    path = saving.save(profile)
    assert path == saving.profile_path(profile)
    assert sorted(shown) == sorted(
        f"{change.key}: {change.new}" for change in difference(None, read_profile(path))
    )
    assert shown[-1].startswith("argv: ")  # the longest line comes last
    assert read_profile(path) == profile
    assert saving.saved_profile(profile) == profile


async def test_saving_over_a_profile_shows_the_difference(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    before = await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, [])
    saving.save(before)
    after = await profile_of(tiny_gemma4_rig, tmp_path, parse_setting("q8_0:2"), REPLIES, [])
    shown = saving.preview(after, saving.saved_profile(after)).splitlines()
    assert "setting: q4_0:2 -> q8_0:2" in shown
    assert "drafter.file: gemma4-q4_0.gguf -> gemma4-q8_0.gguf" in shown
    assert not any(line.startswith("model.") for line in shown)


async def test_saving_over_a_profile_of_another_model_says_so(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    profile = await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, [])
    assert not saving.preview(profile, profile).startswith("replaces")
    model = msgspec.structs.replace(profile.model, sha256="0" * 64)
    shown = saving.preview(profile, msgspec.structs.replace(profile, model=model))
    assert shown.startswith("replaces the profile of another model: target gemma4.gguf: sha256")


async def test_nothing_measured_is_nothing_to_save(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    with pytest.raises(TuirigError, match="no reply with a known speed"):
        await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, (), [])


async def test_what_is_not_proven_is_not_saved(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    silent = tuple(
        msgspec.structs.replace(reply, drafted=None, accepted=None, speculative=False)
        for reply in REPLIES
    )
    with pytest.raises(NotProvenError, match="runs without the drafter"):
        await profile_of(tiny_gemma4_rig, tmp_path, Q4_0, silent, [])


async def test_hashing_can_be_cancelled(
    tiny_gemma4_rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tuirig.files import hashes

    monkeypatch.setattr(hashes, "_CHUNK", 64)  # long enough to be cancelled
    events: list[Event] = []
    saved = asyncio.create_task(profile_of(tiny_gemma4_rig, tmp_path, Q4_0, REPLIES, events))
    await until(lambda: any(isinstance(event, Progress) for event in events), "progress")
    saved.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saved
    target = Path(tiny_gemma4_rig.target.path or "")
    assert hashes.identity(target, compute=False).sha256 is None
