from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.rigs.examples import RIG, changed
from tuirig import locations
from tuirig.errors import ExitCode, FileError, MissingError, TuirigError
from tuirig.files.rigs import (
    load_all,
    load_rig,
    rig_path,
    rig_paths,
    unknown_rig,
    write_starter,
)
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import Rig


def write_rig(name: str, text: str | None = None) -> Path:
    path = locations.rigs_folder() / f"{name}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(changed("box-e4b", name) if text is None else text)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_no_folder_no_rigs() -> None:
    assert rig_paths() == {}
    assert load_all() == ()


def test_rigs_by_name() -> None:
    two, one = write_rig("two"), write_rig("one")
    (one.parent / ".hidden.toml").write_text("")
    (one.parent / "notes.txt").write_text("")
    assert list(rig_paths().items()) == [("one", one), ("two", two)]
    assert load_rig("one").name == "one"


def test_a_broken_file_hides_no_other() -> None:
    write_rig("a-broken", "name =")
    write_rig("b-binary", "x").write_bytes(b'name = "a"\ncard = "\xff"\n')
    write_rig("c-good")
    write_rig("d-folder").unlink()
    (locations.rigs_folder() / "d-folder.toml").mkdir()
    names = {name: content for name, _, content in load_all()}
    assert list(names) == ["a-broken", "b-binary", "c-good", "d-folder"]
    texts = {name: str(value) for name, value in names.items() if isinstance(value, FileError)}
    assert "a-broken.toml:1: not valid TOML" in texts["a-broken"]
    assert "b-binary.toml:2: not UTF-8 text" in texts["b-binary"]
    assert "d-folder.toml: Is a directory" in texts["d-folder"]
    assert "c-good" not in texts


def test_a_file_in_the_folder_is_named_like_its_rig() -> None:
    path = write_rig("mine", RIG)
    with pytest.raises(FileError) as caught:
        load_rig("mine")
    assert (caught.value.path, caught.value.line, caught.value.key) == (str(path), 1, "name")
    assert "'box-e4b'" in caught.value.message
    assert 'name = "mine"' in caught.value.hint


def test_any_path_with_any_name(here: Path) -> None:
    (here / "any.toml").write_text(RIG)
    (here / "bare").write_text(RIG)
    for reference in ("any.toml", "./any.toml", str(here / "any.toml"), "bare", "./bare"):
        assert load_rig(reference).name == "box-e4b"
        assert rig_path(reference) == Path(reference)


def test_the_home_folder_is_expanded(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    (here / "any.toml").write_text(RIG)
    assert rig_path("~/any.toml") == here / "any.toml"


def test_a_name_comes_before_a_file_that_lies_here(here: Path) -> None:
    path = write_rig("box")
    (here / "box").write_text(RIG)
    (here / "other").mkdir()
    assert rig_path("box") == path
    assert rig_path("./box") == Path("box")
    assert rig_path("other") is None


def test_a_windows_editor_may_have_written_it(here: Path) -> None:
    (here / "any.toml").write_bytes(b"\xef\xbb\xbf" + RIG.replace("\n", "\r\n").encode())
    assert load_rig("any.toml").name == "box-e4b"


@pytest.mark.parametrize(
    "reference", ["nothing", "nothing.toml", "a/nothing", "~nobody/x", "x" * 999]
)
def test_what_is_not_there(reference: str, here: Path) -> None:
    with pytest.raises(MissingError) as caught:
        load_rig(reference)
    assert reference in caught.value.message
    assert caught.value.exit_code == ExitCode.MISSING


def test_close_names_are_suggested() -> None:
    write_rig("box-e4b")
    error = unknown_rig("box-e4", also=["demo-gemma4"])
    assert error.evidence == ("known: box-e4b, demo-gemma4",)
    assert error.hint == "did you mean box-e4b?"
    assert unknown_rig("demo-gema4", also=["demo-gemma4"]).hint == "did you mean demo-gemma4?"
    assert unknown_rig("quite-another").hint == "tuirig rig new quite-another starts one"


def test_the_starter_is_a_rig() -> None:
    path = write_starter("my-box", 'Card "One" \\ é')
    assert path == locations.rigs_folder() / "my-box.toml"
    rig = load_rig("my-box")
    assert (rig.name, rig.card) == ("my-box", 'Card "One" \\ é')
    assert os.listdir(path.parent) == ["my-box.toml"]


def test_what_the_starter_comments_out_is_valid_too() -> None:
    starter = write_starter("my-box").read_text()
    starter = starter.replace('# sha256 = "<64 digits>"', f'# sha256 = "{"0" * 64}"')

    def without(*keys: str) -> Rig:
        """The rig with every comment taken in, but without these lines of the target."""
        text = re.sub(r"(?m)^# (?=\[|\w+ = )", "", starter)
        for key in keys:
            text = re.sub(rf"(?m)^{key} = .*\n", "", text, count=1)
        return parse_rig(text)

    assert without("repo", "file", "revision").target.url
    rig = without("path", "url")
    assert rig.target.repo and rig.target.file and rig.target.revision and rig.target.sha256
    assert [drafter.row for drafter in rig.drafter] == ["q4_0", "inside", "ngram"]
    assert rig.card_memory_mib == 8192
    assert rig.server.env == {"GGML_VK_VISIBLE_DEVICES": "0"}


def test_the_starter_replaces_nothing() -> None:
    path = write_rig("my-box", "mine")
    with pytest.raises(TuirigError, match="is there already"):
        write_starter("my-box")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["", "none", "../x", "a b", ".x"])
def test_names_that_can_not_be(name: str) -> None:
    with pytest.raises(TuirigError, match="can't name a rig") as caught:
        write_starter(name)
    assert caught.value.exit_code == ExitCode.USAGE
    assert not locations.rigs_folder().exists()


def test_a_folder_that_can_not_be_made(home: Path) -> None:
    home.write_text("a file, not a folder")
    with pytest.raises(TuirigError, match="can't be written: Not a directory"):
        write_starter("my-box")
