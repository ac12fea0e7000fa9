from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.files import shapes
from tuirig.errors import ExitCode, TuirigError
from tuirig.files.models import rig_files
from tuirig.records import Reading
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server, Tune
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.fitting import (
    Unfit,
    forecast_setting,
    layers_left,
    require_fit,
    rig_models,
    row_memories,
    setting_memory,
    unfit_rows,
)


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A rig on a card, with drafters of every sort."""
    shapes.gemma4(tmp_path / "target.gguf")
    shapes.gemma4_assistant(tmp_path / "q8_0.gguf")
    shapes.gemma4_assistant(tmp_path / "e2b.gguf", target_width=1536)
    return Rig(
        name="mine",
        card="A card",
        target=ModelFile(path="target.gguf"),
        drafter=(
            Drafter(format="q8_0", type="draft-mtp", path="q8_0.gguf"),
            Drafter(format="e2b", type="draft-mtp", path="e2b.gguf"),
            Drafter(format="plain", type="draft-simple", path="q8_0.gguf"),
            Drafter(format="inside", type="draft-mtp"),
            Drafter(format="ngram", type="ngram-simple"),
        ),
        server=Server(args=("-ngl", "99", "-c", "65536")),
        tune=Tune(lengths=(0, 1, 3)),
    )


def test_wrong_pairs_and_types_are_found(rig: Rig, tmp_path: Path) -> None:
    models, unread = rig_models(rig_files(rig, tmp_path))
    assert unread == ()
    found = {unfit.row: unfit for unfit in unfit_rows(rig, models)}
    assert list(found) == ["e2b", "plain", "inside"]
    assert "made for a target of width 1536" in found["e2b"].reason
    assert found["plain"].next_step == "its type is draft-mtp"
    assert found["inside"].reason == "target.gguf has no MTP head inside"


def test_a_setting_that_does_not_fit_is_refused(rig: Rig, tmp_path: Path) -> None:
    files = rig_files(rig, tmp_path)
    for setting in (NONE, Setting("q8_0", 1), Setting("ngram", 3)):
        require_fit(rig, files, setting)
    with pytest.raises(TuirigError, match=r"e2b:1 can't run: .*width 1536") as caught:
        require_fit(rig, files, Setting("e2b", 1))
    assert caught.value.exit_code == ExitCode.BAD_FILE
    with pytest.raises(TuirigError, match="plain:1 can't run") as caught:
        require_fit(rig, files, Setting("plain", 1))
    assert caught.value.hint == "its type is draft-mtp"


def test_a_damaged_target_concerns_every_row(rig: Rig, tmp_path: Path) -> None:
    shapes.gemma4_assistant(tmp_path / "q8_0.gguf", cut=7)
    (tmp_path / "target.gguf").write_bytes(b"GGUF")
    models, unread = rig_models(rig_files(rig, tmp_path))
    (target,) = unread
    assert (target.row, "it ends inside its header" in target.reason) == ("target", True)
    reason = "q8_0.gguf: it is cut short: 7 bytes are missing at its end"
    assert unfit_rows(rig, models) == (Unfit("q8_0", reason), Unfit("plain", reason))
    assert forecast_setting(rig, NONE, models) is None
    assert row_memories(rig, models, None) == ()


@pytest.mark.parametrize(
    ("card", "layers", "told"),
    [
        ("A card", "30", "13 of the target's 43 layers stay on the CPU: -ngl 30"),
        ("A card", "42", "1 of the target's 43 layers stay on the CPU: -ngl 42"),
        ("A card", "43", ""),
        ("A card", "all", ""),
        ("A card", "0", ""),  # said with one number, so meant
        ("cpu", "30", ""),
    ],
)
def test_layers_beside_the_card_are_told(
    card: str, layers: str, told: str, rig: Rig, tmp_path: Path
) -> None:
    models, _ = rig_models(rig_files(rig, tmp_path))
    server = Server(args=("-ngl", layers, "-c", "8192"))
    assert layers_left(msgspec.structs.replace(rig, card=card, server=server), models) == told


def test_the_memory_of_every_row(rig: Rig, tmp_path: Path) -> None:
    models, _ = rig_models(rig_files(rig, tmp_path))
    rows = {row.row: row for row in row_memories(rig, models, None)}
    assert list(rows) == ["none", "q8_0", "e2b", "plain", "inside", "ngram"]
    assert rows["q8_0"].setting == "q8_0:3"
    assert rows["none"].card.drafter_mib is None
    assert rows["q8_0"].total_mib == pytest.approx(
        rows["none"].total_mib + (rows["q8_0"].card.drafter_mib or 0), abs=0.1
    )
    assert (rows["none"].fits, rows["none"].largest_context) == (None, None)


def test_what_does_not_fit_says_which_context_would(rig: Rig, tmp_path: Path) -> None:
    models, _ = rig_models(rig_files(rig, tmp_path))
    setting = Setting("q8_0", 3)
    needed = forecast_setting(rig, setting, models)
    assert needed is not None
    reading = Reading(at_s=0, memory_total_mib=needed.total_mib, memory_used_mib=200)
    found = setting_memory(rig, setting, models, reading)
    assert found is not None
    assert found.fits is False
    assert found.largest_context is not None
    assert found.largest_context < 65536
    smaller = msgspec.structs.replace(
        rig, server=Server(args=("-ngl", "99", "-c", str(found.largest_context)))
    )
    found = setting_memory(smaller, setting, models, reading)
    assert found is not None
    assert (found.fits, found.largest_context) == (True, None)
    tiny = setting_memory(
        rig, setting, models, Reading(at_s=0, memory_total_mib=9, memory_used_mib=0)
    )
    assert tiny is not None
    assert (tiny.fits, tiny.largest_context) == (False, None)


def test_a_rig_without_a_card_needs_the_machines_memory(rig: Rig, tmp_path: Path) -> None:
    models, _ = rig_models(rig_files(rig, tmp_path))
    found = forecast_setting(msgspec.structs.replace(rig, card="cpu"), NONE, models)
    assert found is not None
    assert (found.host, found.rest_mib) == (None, 0.0)
    more = forecast_setting(rig, NONE, models, slots=4)
    assert more is not None
    assert more.sliding_mib == pytest.approx(4 * found.sliding_mib)


def test_the_driver_takes_what_was_seen_on_the_card(rig: Rig, tmp_path: Path) -> None:
    models, _ = rig_models(rig_files(rig, tmp_path))
    reading = Reading(at_s=0, memory_total_mib=6000, memory_used_mib=0)
    found = [
        setting_memory(rig, NONE, models, reading, rest_mib) for rest_mib in (112.0, None, 660.0)
    ]
    needs = [one.total_mib for one in found if one is not None]
    assert [need - needs[1] for need in needs] == pytest.approx([-188.0, 0.0, 360.0])
    contexts = [one.largest_context or 0 for one in found if one is not None]
    assert contexts[0] > contexts[1] > contexts[2] > 0
