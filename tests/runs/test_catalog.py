from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.cli.support import save_rig
from tuirig.demo.catalog import BUILT_IN
from tuirig.errors import FileError, MissingError
from tuirig.events import ignore
from tuirig.rigs.schema import ModelFile, Rig
from tuirig.runs.catalog import find_rig, list_rigs, prepare


def test_ones_own_rigs_come_first(tiny_gemma4_rig: Rig) -> None:
    save_rig(tiny_gemma4_rig)
    assert [listing.name for listing in list_rigs()] == ["tiny-gemma4", *BUILT_IN]


def test_an_own_rig_hides_a_built_in_one_of_its_name(tiny_gemma4_rig: Rig) -> None:
    path = save_rig(msgspec.structs.replace(tiny_gemma4_rig, name="demo-gemma4"))
    assert sorted(listing.name for listing in list_rigs()) == sorted(BUILT_IN)
    assert find_rig("demo-gemma4").path == path
    assert not find_rig("demo-gemma4").built_in
    assert find_rig("demo-qwen35").built_in


def test_a_rig_is_found_by_its_path(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    path = save_rig(tiny_gemma4_rig, tmp_path)
    assert find_rig(str(path)).rig == tiny_gemma4_rig


def test_an_unknown_rig_is_told_with_the_known_ones() -> None:
    with pytest.raises(MissingError) as caught:
        find_rig("demo-gema4")
    assert "did you mean demo-gemma4?" in caught.value.hint
    assert all(name in caught.value.evidence[0] for name in BUILT_IN)


def test_a_broken_rig_is_told_where_it_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text('name = "broken"\n\n[target\n')
    with pytest.raises(FileError) as caught:
        find_rig(str(path))
    assert caught.value.line == 3


async def test_relative_paths_start_at_the_rig_file(
    tiny_gemma4_rig: Rig, demo_files: Path, tmp_path: Path
) -> None:
    (tmp_path / "models").symlink_to(demo_files)
    target = ModelFile(path="models/gemma4.gguf")
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, target=target, drafter=()), tmp_path)
    files = await prepare(find_rig(str(tmp_path / "tiny-gemma4.toml")), ignore)
    assert files.usable == {"target": tmp_path / "models" / "gemma4.gguf"}
    assert files.missing == {}


async def test_every_missing_file_is_named(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    rig = msgspec.structs.replace(
        tiny_gemma4_rig,
        target=ModelFile(path=str(tmp_path / "target.gguf")),
        drafter=(
            msgspec.structs.replace(tiny_gemma4_rig.drafter[0], path=str(tmp_path / "d.gguf")),
        ),
    )
    save_rig(rig)
    with pytest.raises(MissingError) as caught:
        await prepare(find_rig(rig.name), ignore)
    assert [line.split(":")[0] for line in caught.value.evidence] == ["target", "f16"]
    assert caught.value.hint


async def test_a_missing_drafter_refuses_its_row_alone(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    first, *others = tiny_gemma4_rig.drafter
    lost = msgspec.structs.replace(first, path=str(tmp_path / "lost.gguf"))
    save_rig(msgspec.structs.replace(tiny_gemma4_rig, drafter=(lost, *others)))
    files = await prepare(find_rig(tiny_gemma4_rig.name), ignore)
    assert list(files.missing) == [first.row]
    assert list(files.usable) == [
        "target", *(drafter.row for drafter in others if drafter.has_file),
    ]  # fmt: skip
