from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.rigs.examples import RIG, changed
from tuirig.files.hashes import identity
from tuirig.files.models import Missing, missing, resolve, rig_files
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import ModelFile

GGUF = b"GGUF" + bytes(60)
TWO_FILES = changed("~/models/target.gguf", "target.gguf")
HUB = ModelFile(repo="org/name", file="sub/x.gguf")


@pytest.fixture(autouse=True)
def user_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh HOME, so that no cache of the developer is found."""
    folder = tmp_path / "user"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CACHE_HOME", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def base(tmp_path: Path) -> Path:
    folder = tmp_path / "rigs"
    folder.mkdir()
    return folder


def put(path: Path, data: bytes = GGUF) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_paths(base: Path, user_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELS", str(base))
    relative = put(base / "m" / "a.gguf")
    in_home = put(user_folder / "b.gguf")
    assert resolve(ModelFile(path="m/a.gguf"), base) == relative
    assert resolve(ModelFile(path=str(relative)), Path("/elsewhere")) == relative
    assert resolve(ModelFile(path="~/b.gguf"), base) == in_home
    assert resolve(ModelFile(path="$MODELS/m/a.gguf"), base) is None
    assert resolve(ModelFile(path="m"), base) is None
    assert resolve(ModelFile(), base) is None


@pytest.mark.parametrize(
    ("variable", "value", "cache"),
    [
        ("HF_HUB_CACHE", "{user}/hub-cache", "hub-cache"),
        ("HUGGINGFACE_HUB_CACHE", "{user}/old-cache", "old-cache"),
        ("HF_HOME", "~/hf", "hf/hub"),
        ("XDG_CACHE_HOME", "{user}/xdg", "xdg/huggingface/hub"),
        (None, "", ".cache/huggingface/hub"),
    ],
)
def test_the_hub_cache_is_where_the_hub_puts_it(
    variable: str | None,
    value: str,
    cache: str,
    user_folder: Path,
    base: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if variable:
        monkeypatch.setenv(variable, value.format(user=user_folder))
    folder = user_folder / cache / "models--org--name"
    file = put(folder / "snapshots" / "c0ffee" / "sub" / "x.gguf")
    assert resolve(HUB, base) is None
    put(folder / "refs" / "main", b"c0ffee\n")
    assert resolve(HUB, base) == file
    assert resolve(ModelFile(repo="org/name", file="sub/x.gguf", revision="c0ffee"), base) == file
    assert resolve(ModelFile(repo="org/name", file="sub/x.gguf", revision="v2"), base) is None
    assert resolve(ModelFile(repo="org/name", file="y.gguf"), base) is None
    assert resolve(ModelFile(repo="org/other", file="x.gguf"), base) is None


def test_files_of_a_rig(base: Path) -> None:
    rig = parse_rig(TWO_FILES)
    target = put(base / "target.gguf")
    assert rig_files(rig, base) == {"target": target}
    drafter = put(base / "drafter-q4_0.gguf")
    assert rig_files(rig, base) == {"target": target, "q4_0": drafter}
    assert missing(rig, base) == ()


def test_every_missing_file_is_named(base: Path) -> None:
    rig = parse_rig(
        changed('path = "drafter-q4_0.gguf"', 'repo = "o/r"\nfile = "d.gguf"', TWO_FILES)
    )
    first, second = missing(rig, base)
    assert first == Missing(
        "target",
        str(base / "target.gguf"),
        "no such file",
        "correct its path in the rig, or download it there",
    )
    assert str(first) == f"target: {base}/target.gguf: no such file"
    assert str(second) == "q4_0: o/r/d.gguf: not in the Hub's cache"
    assert second.next_step == f"tuirig fetch {rig.name}"


def test_a_pinned_file_of_the_hub(base: Path) -> None:
    pinned = 'repo = "o/r"\nfile = "d.gguf"\nrevision = "abc"'
    rig = parse_rig(changed('path = "target.gguf"', pinned, TWO_FILES))
    problem = missing(rig, base)[0]
    assert problem.file == "o/r/d.gguf at abc"
    assert problem.next_step == f"tuirig fetch {rig.name}"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "an empty file"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"<html><body>404", "a web page"),
        (b"<?xml version='1.0'?><Error>", "a web page"),
        (b'{"error":"Repository not found"}', "a JSON answer"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "a Git LFS pointer"),
        (b"Invalid username or password.", "the Hub's error message"),
        (b"GGU", "it starts with b'GGU'"),
        (b"PK\x03\x04", "it starts with b'PK\\x03\\x04'"),
    ],
)
def test_what_is_not_a_gguf_is_named(base: Path, data: bytes, reason: str) -> None:
    put(base / "target.gguf", data)
    put(base / "drafter-q4_0.gguf")
    (problem,) = missing(parse_rig(TWO_FILES), base)
    assert reason in problem.reason
    assert problem.next_step == "download it again"


def test_a_folder_is_no_model(base: Path) -> None:
    (base / "target.gguf").mkdir()
    put(base / "drafter-q4_0.gguf")
    (problem,) = missing(parse_rig(TWO_FILES), base)
    assert problem.reason == "not a file"


def test_a_broken_link_is_no_model(base: Path) -> None:
    (base / "target.gguf").symlink_to(base / "gone")
    assert missing(parse_rig(TWO_FILES), base)[0].reason == "no such file"


def test_shards(base: Path) -> None:
    put(base / "drafter-q4_0.gguf")
    names = [f"t-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    rig = parse_rig(changed("target.gguf", names[0], TWO_FILES))
    for name in names:
        reason = missing(rig, base)[0].reason
        assert reason == ("no such file" if name == names[0] else f"its shard {name} is missing")
        put(base / name)
    assert missing(rig, base) == ()
    (problem,) = missing(parse_rig(changed("target.gguf", names[1], TWO_FILES)), base)
    assert problem.reason == "not the first shard"
    assert names[0] in problem.next_step


def test_another_file_than_the_rig_means(base: Path) -> None:
    path = put(base / "target.gguf")
    put(base / "drafter-q4_0.gguf")
    right, wrong = hashlib.sha256(GGUF).hexdigest(), "0" * 64
    rigs = {
        sha256: parse_rig(
            changed('path = "target', f'sha256 = "{sha256}"\npath = "target', TWO_FILES)
        )
        for sha256 in (right, wrong)
    }
    assert missing(rigs[wrong], base) == ()  # not hashed yet: not known
    identity(path, compute=True)
    assert missing(rigs[right], base) == ()
    (problem,) = missing(rigs[wrong], base)
    assert problem.reason == f"another file: its sha256 is {right}"


def test_rows_without_a_file_need_none() -> None:
    rig = parse_rig(RIG)
    assert [item.row for item in missing(rig, Path("/nowhere"))] == ["target", "q4_0"]
