from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.files import gguf_bytes as g
from tests.files import shapes
from tuirig.files.discovery import Found, discover, rig_text, usual_folders
from tuirig.rigs.parse import parse_rig

WORDS = [f"word {number}" for number in range(300)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "models"
    place.mkdir()
    return place


def plain(path: Path, *, layers: int = 4, words: list[str] = WORDS) -> Path:
    return shapes.llama(
        path, width=64, ff=64, layers=layers, heads=2, kv_heads=1, head=32, vocabulary=words
    )


def rows(found: Found) -> dict[str, list[tuple[str, str]]]:
    return {
        offer.name: [(drafter.name, drafter.type) for drafter in offer.drafters]
        for offer in found.offers
    }


def test_targets_are_paired_with_what_fits_them(folder: Path) -> None:
    shapes.gemma4(folder / "gemma-4-E4B.gguf")
    shapes.gemma4_assistant(folder / "assistant-q8.gguf")
    shapes.gemma4_assistant(folder / "assistant-q4.gguf", kind="q4_0")
    shapes.gemma4_assistant(folder / "of-e2b.gguf", target_width=1536)
    shapes.qwen35(folder / "Qwen3.5.gguf")
    found = discover([folder])
    assert rows(found) == {
        "Qwen3.5": [("inside", "draft-mtp"), ("ngram", "ngram-simple")],
        "gemma-4-E4B": [("q4_0", "draft-mtp"), ("q8_0", "draft-mtp"), ("ngram", "ngram-simple")],
    }
    assert (found.alone, found.unusable) == ((), ())


def test_a_plain_drafter_is_clearly_smaller_and_speaks_the_same(folder: Path) -> None:
    plain(folder / "big.gguf", layers=12)
    plain(folder / "small.gguf", layers=2)
    plain(folder / "nearly-as-big.gguf", layers=11)
    plain(folder / "another-tongue.gguf", layers=2, words=["x", *WORDS[:-1]])
    found = discover([folder])
    assert rows(found) == {
        "big": [("q8_0", "draft-simple"), ("ngram", "ngram-simple")],
        "nearly-as-big": [("q8_0", "draft-simple"), ("ngram", "ngram-simple")],
    }
    assert [model.label for model in found.alone] == ["another-tongue.gguf"]


def test_drafters_of_one_format_are_told_apart_by_their_files(folder: Path) -> None:
    shapes.gemma4(folder / "target.gguf")
    for name in ("one", "two"):
        shapes.gemma4_assistant(folder / f"{name}.gguf")
    assert rows(discover([folder]))["target"][:2] == [("one", "draft-mtp"), ("two", "draft-mtp")]


def test_what_can_not_be_used_is_listed_with_its_reason(folder: Path) -> None:
    (folder / "page.gguf").write_bytes(b"<!doctype html>")
    shapes.gemma4_assistant(folder / "cut.gguf", cut=10)
    os.symlink(folder / "nowhere", folder / "broken.gguf")
    shapes.write(
        folder / "mmproj.gguf", "clip", {}, [("a", (32,), "f16")], general__type=g.string("mmproj")
    )
    found = discover([folder, folder / "absent"])
    assert found.offers == found.alone == ()
    assert {Path(file.path).name: file.reason for file in found.unusable} == {
        "cut.gguf": "it is cut short: 10 bytes are missing at its end",
        "page.gguf": "not a GGUF file (it starts with b'<!do') (at byte 0)",
    }


def test_the_cache_of_the_hub_has_each_file_once(folder: Path) -> None:
    """Snapshots link to blobs; two snapshots may link to one."""
    repo = folder / "models--org--name"
    for revision in ("aaa", "bbb"):
        (repo / "snapshots" / revision).mkdir(parents=True)
    (repo / "blobs").mkdir()
    shapes.qwen35(repo / "blobs" / "123.gguf")
    for revision in ("aaa", "bbb"):
        os.symlink("../../blobs/123.gguf", repo / "snapshots" / revision / "Qwen3.5.gguf")
    found = discover([folder])
    (offer,) = found.offers
    assert offer.target.reference == str(repo / "snapshots" / "aaa" / "Qwen3.5.gguf")


def test_of_shards_the_first_stands_for_the_model(folder: Path) -> None:
    for number in (1, 2):
        keys: dict[str, shapes.Key] = {"block_count": 1}
        name = f"blk.0.part{number}"
        path = folder / f"model-0000{number}-of-00002.gguf"
        shapes.write(path, "llama", keys, [(name, (32,), "f16")])
    assert [model.label for model in discover([folder]).alone] == ["model-00001-of-00002.gguf"]


def test_every_offer_is_a_rig_that_reads_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    shapes.gemma4(folder / 'odd "name" é.gguf')
    shapes.gemma4_assistant(folder / "assistant.gguf")
    (offer,) = discover([folder]).offers
    assert offer.name == "odd-name"
    text = rig_text(offer, "mine", 'A "card"')
    rig = parse_rig(text)
    assert (rig.name, rig.card, rig.target.path) == (
        "mine", 'A "card"', '~/models/odd "name" é.gguf',
    )  # fmt: skip
    assert [(drafter.row, drafter.type, drafter.path) for drafter in rig.drafter] == [
        ("q8_0", "draft-mtp", "~/models/assistant.gguf"),
        ("ngram", "ngram-simple", None),
    ]
    assert '"-ngl", "99"' in text
    assert '"-ngl", "0"' in rig_text(offer, "mine", "cpu")


def test_the_usual_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("LLAMA_CACHE", str(tmp_path / "llama"))
    assert usual_folders() == tuple(
        tmp_path / name
        for name in (
            "hf/hub", "llama", ".lmstudio/models", ".cache/lm-studio/models", "models",
        )
    )  # fmt: skip
    monkeypatch.delenv("LLAMA_CACHE")
    assert usual_folders()[1] == tmp_path / "cache" / "llama.cpp"


def test_folders_are_not_followed_without_end(folder: Path) -> None:
    deep = folder
    for number in range(12):
        deep = deep / str(number)
    deep.mkdir(parents=True)
    os.symlink(folder, deep / "round")
    os.symlink(folder, folder / "around")
    plain(deep / "too-deep.gguf")
    plain(folder / "here.gguf")
    assert [model.label for model in discover([folder]).alone] == ["here.gguf"]
