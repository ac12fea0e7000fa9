from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

from tests.rigs.test_profile import LEAST, PROFILE
from tuirig import locations
from tuirig.errors import FileError, MissingError, TuirigError
from tuirig.files.profiles import (
    all_profiles,
    find_profile,
    fits,
    profile_text,
    read_profile,
    saved_profile,
    shipped_folder,
    write_profile,
)
from tuirig.records import CardInfo
from tuirig.rigs.profile import Profile

ROOT = Path(__file__).parents[2]
PUBLISHED = json.loads((ROOT / "tests/data/published/served.json").read_text())
LENGTHS = json.loads((ROOT / "tests/data/published/draft_length_table.json").read_text())
SHIPPED = (
    "nvidia-geforce-gtx-1650-ti-with-max-q-design/gemma-4-e2b-it-q4-0-exact",
    "nvidia-geforce-gtx-1650-ti-with-max-q-design/gemma-4-e4b-it-q4-0-exact",
    "nvidia-geforce-rtx-3050-oem/gemma-4-e2b-it-q4-0-exact",
    "nvidia-geforce-rtx-3050-oem/gemma-4-e4b-it-q4-0-exact",
    "nvidia-h200/gemma4-mini-0b5-f16",
    "nvidia-h200/gemma4-mini-1b7-f16",
    "nvidia-h200/gemma4-mini-3b5-f16",
    "nvidia-h200/smollm2-pad120-q4-1",
    "nvidia-h200/smollm2-pad60-q4-1",
)


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_written_and_read_back() -> None:
    path = write_profile(PROFILE)
    assert path == locations.profiles_folder() / "card-one" / "target-q4-0.toml"
    assert read_profile(path) == PROFILE
    assert path.read_text() == profile_text(PROFILE)
    assert saved_profile("Card One", "target-Q4_0.gguf") == PROFILE


def test_written_over(tmp_path: Path) -> None:
    path = write_profile(PROFILE, tmp_path)
    changed = msgspec.structs.replace(PROFILE, setting="q4_0:3")
    assert write_profile(changed, tmp_path) == path
    assert read_profile(path).setting == "q4_0:3"
    assert os.listdir(path.parent) == [path.name]


def test_a_profile_that_would_not_read_back_is_not_written(tmp_path: Path) -> None:
    path = write_profile(PROFILE, tmp_path)
    evidence = msgspec.structs.replace(PROFILE.evidence, kept=48.1)
    with pytest.raises(FileError, match=r"evidence\.kept"):
        write_profile(msgspec.structs.replace(PROFILE, evidence=evidence), tmp_path)
    assert read_profile(path) == PROFILE


def test_a_folder_that_can_not_be_made(home: Path) -> None:
    home.write_text("a file, not a folder")
    with pytest.raises(TuirigError, match="can't be written: Not a directory"):
        write_profile(PROFILE)


def test_nothing_saved_and_damaged_count_as_none() -> None:
    assert saved_profile("Card One", "target-Q4_0.gguf") is None
    write_profile(PROFILE).write_text("damaged")
    assert saved_profile("Card One", "target-Q4_0.gguf") is None
    assert saved_profile("Card One", "target-Q4_0.gguf", "code") is None


def test_the_shipped_ones_are_there_without_any_of_ones_own() -> None:
    files = all_profiles()
    assert tuple(file.name for file in files) == SHIPPED
    assert all(file.shipped and isinstance(file.content, Profile) for file in files)


def test_ones_own_win_and_a_broken_one_hides_no_other() -> None:
    own = locations.profiles_folder()
    put(own, SHIPPED[3], profile_text(PROFILE))
    broken = put(own, "a-card/broken", "schema = 1\nsource =\n")
    put(own, "a-card/.hidden", "")
    put(own, "not-in-a-card-folder", "")
    files = {file.name: file for file in all_profiles()}
    assert set(files) == {*SHIPPED, "a-card/broken"}
    assert files[SHIPPED[3]].content == PROFILE
    assert not files[SHIPPED[3]].shipped
    assert files[SHIPPED[2]].shipped
    error = files["a-card/broken"].content
    assert isinstance(error, FileError)
    assert (error.path, error.line) == (str(broken), 2)


def test_found_by_name_or_path(tmp_path: Path) -> None:
    path = write_profile(PROFILE, tmp_path)
    assert find_profile(str(path)) == PROFILE
    assert find_profile(SHIPPED[0]).card.memory_mib == 4096
    assert find_profile(f"{SHIPPED[0]}.toml") == find_profile(SHIPPED[0])
    put(locations.profiles_folder(), SHIPPED[0], "broken")
    with pytest.raises(FileError, match="not valid TOML"):
        find_profile(SHIPPED[0])
    with pytest.raises(MissingError) as caught:
        find_profile("a/b")
    assert caught.value.evidence == SHIPPED


@pytest.mark.parametrize(
    ("name", "memory_mib", "words"),
    [
        ("Card One", 8188, "this card"),
        ("CARD ONE", None, "this card"),
        ("Card One", 4096, "same card, other memory"),
        ("Card One Ti", 8192, "other card"),
    ],
)
def test_which_card_a_profile_fits(name: str, memory_mib: float | None, words: str) -> None:
    card = CardInfo(kind="nvidia", name=name, uuid="GPU-2", memory_mib=memory_mib)
    assert fits(PROFILE, card) == words


def test_an_unknown_memory_fits() -> None:
    assert fits(LEAST, CardInfo(kind="cpu", name="cpu", memory_mib=1)) == "this card"


@pytest.mark.parametrize("card", ["3050", "1650ti"])
@pytest.mark.parametrize("model", ["E2B", "E4B"])
def test_the_shipped_profiles_say_what_was_published(card: str, model: str) -> None:
    published = PUBLISHED["cards"][card]
    rows = {
        row["n"]: row for row in LENGTHS["rows"] if (row["card"], row["model"]) == (card, model)
    }
    best = max(rows.values(), key=lambda row: row["tok_s"])
    (profile,) = (
        file.content
        for file in all_profiles()
        if isinstance(file.content, Profile)
        and file.content.card.name == published["name"]
        and file.content.model.name == f"gemma-4-{model}-it"
    )
    assert profile.source == "published"
    assert profile.setting == f"q4_0:{best['n']}"
    assert profile.card.memory_mib == published["memory_mib"]
    assert profile.card.driver == published["driver"]
    evidence = profile.evidence
    assert evidence.tok_s == best["tok_s"]
    assert evidence.none_tok_s == rows[0]["tok_s"]
    assert evidence.gain == best["gain"]
    assert evidence.kept == best["kept"]
    assert evidence.memory_mib == PUBLISHED["memory_mib"][card][model]
    assert evidence.prompts == len(LENGTHS["protocol"]["prompts"])
    assert evidence.tokens == LENGTHS["protocol"]["max_tokens"]
    assert evidence.server_build == PUBLISHED["server_build"]
    assert evidence.reference == PUBLISHED["source"]
    command = PUBLISHED["command"].replace("E4B", model)
    assert shlex.join(profile.argv) == f"{command.removesuffix('2')}{best['n']}"


def test_the_gains_that_were_published_are_their_ratios() -> None:
    for name in SHIPPED:
        evidence = find_profile(name).evidence
        assert evidence.none_tok_s and evidence.gain
        assert evidence.tok_s / evidence.none_tok_s == pytest.approx(evidence.gain, abs=0.006)


def test_shipped_files_lie_where_their_names_say() -> None:
    for file in all_profiles():
        assert isinstance(file.content, Profile)
        assert file.path == shipped_folder() / file.content.file_name


LIST_NAMES = (
    "from tuirig.files.profiles import all_profiles\n"
    "import tuirig\n"
    "print(tuirig.__file__)\n"
    "for file in all_profiles(): print(file.name, file.shipped)\n"
)


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv builds the wheel")
def test_the_wheel_carries_them(tmp_path: Path) -> None:
    subprocess.run(
        ["uv", "build", "--quiet", "--wheel", "--out-dir", str(tmp_path), str(ROOT)],
        check=True,
        timeout=120,
    )
    (wheel,) = tmp_path.glob("*.whl")
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    done = subprocess.run(
        [sys.executable, "-P", "-c", LIST_NAMES],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    place, *names = done.stdout.splitlines()
    assert place == str(site / "tuirig" / "__init__.py")
    assert names == [f"{name} True" for name in SHIPPED]
