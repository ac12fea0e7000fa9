"""The built-in rigs as texts, and where their server and SmolLM2 come from."""

from __future__ import annotations

import platform
import tomllib
from pathlib import Path

import pytest

from tests.files.hub_server import HubServer
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
        odd / "cache" / "demo" / "demo-gemma4" / "demo-gemma4-f32.gguf"
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


def test_smollm2_comes_pinned_from_the_hub(
    monkeypatch: pytest.MonkeyPatch, hub_server: HubServer
) -> None:
    wheel = smollm2.in_wheel()
    assert wheel is not None
    assert smollm2.obtain() == wheel
    monkeypatch.setattr(smollm2, "in_wheel", lambda: None)
    hub_server.add(smollm2.REPO, smollm2.FILE, b"GGUF of another", smollm2.REVISION)
    with pytest.raises(MissingError, match="could not be had") as caught:
        smollm2.obtain()
    assert any(smollm2.SHA256 in line for line in caught.value.evidence)
    hub_server.add(smollm2.REPO, smollm2.FILE, wheel.read_bytes(), smollm2.REVISION)
    assert smollm2.obtain().read_bytes() == wheel.read_bytes()
    assert smollm2.REVISION in hub_server.asked_hub[0].path


def test_without_a_network_the_message_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, hub_server: HubServer
) -> None:
    monkeypatch.setattr(smollm2, "in_wheel", lambda: None)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(MissingError, match="could not be had") as caught:
        smollm2.obtain()
    assert "hf download" in caught.value.hint
    assert caught.value.evidence
