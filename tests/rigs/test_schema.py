from __future__ import annotations

import pytest

from tests.rigs.examples import RIG
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import ModelFile
from tuirig.rigs.settings import parse_setting


def test_the_grid_is_none_and_every_row_at_every_length() -> None:
    cells = [str(setting) for setting in parse_rig(RIG).settings()]
    rows = [f"{row}:{length}" for row in ("q4_0", "inside", "ngram") for length in (1, 2, 3)]
    assert cells == ["none", *rows, "cache"]


def test_every_cell_has_its_drafter() -> None:
    rig = parse_rig(RIG)
    for setting in rig.settings():
        drafter = rig.drafter_of(setting)
        assert (drafter.row if drafter else None) == setting.drafter


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("q8_0:2", "it has: none, q4_0, inside, ngram, cache"),
        ("q4_0", "a draft length is missing, e.g. q4_0:2"),
        ("cache:2", "ngram-cache has no draft length; write cache"),
        ("ngram:2,p_min=0.5", "ngram-simple asks no model"),
    ],
)
def test_settings_that_a_rig_can_not_run(setting: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^.") as caught:
        parse_rig(RIG).drafter_of(parse_setting(setting))
    assert message in str(caught.value)


def test_lengths_that_no_column_has_are_fine() -> None:
    drafter = parse_rig(RIG).drafter_of(parse_setting("q4_0:64,p_min=0.5"))
    assert drafter is not None and drafter.row == "q4_0"


@pytest.mark.parametrize(
    ("file", "label"),
    [
        (ModelFile(path="~/a/b.gguf"), "b.gguf"),
        (ModelFile(path="C:\\a\\b.gguf"), "b.gguf"),
        (ModelFile(repo="o/r", file="q/c.gguf"), "c.gguf"),
        (ModelFile(), ""),
    ],
)
def test_labels(file: ModelFile, label: str) -> None:
    assert file.label == label
