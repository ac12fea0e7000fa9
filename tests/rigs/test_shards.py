from __future__ import annotations

from pathlib import Path

import pytest

from tuirig.rigs.shards import model_name, shards_of


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("gemma-4-E4B-it-q4_0-exact.gguf", "gemma-4-E4B-it-q4_0-exact"),
        ("Big-Q8_0-00002-of-00003.gguf", "Big-Q8_0"),
        ("Upper.GGUF", "Upper"),
        ("no-suffix", "no-suffix"),
        ("a.gguf.part", "a.gguf.part"),
        ("a-00001-of-00003", "a-00001-of-00003"),
    ],
)
def test_a_model_is_named_by_its_file(file: str, name: str) -> None:
    assert model_name(file) == name


def test_shards_are_named_in_order() -> None:
    names = [path.name for path in shards_of(Path("m/a-00002-of-00003.gguf"))]
    assert names == [f"a-0000{number}-of-00003.gguf" for number in (1, 2, 3)]


@pytest.mark.parametrize("name", ["a.gguf", "a-00004-of-00003.gguf", "a-00000-of-00000.gguf"])
def test_other_files_stand_alone(name: str) -> None:
    assert shards_of(Path(name)) == (Path(name),)
