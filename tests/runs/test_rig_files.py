"""The model files of a rig, by their headers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.tui.driving import found
from tuirig.rigs.schema import TARGET, Rig
from tuirig.runs.rig_files import look_at_files


def test_every_row_with_its_file_its_header_and_its_memory(tiny_gemma4_rig: Rig) -> None:
    looked = look_at_files(found(tiny_gemma4_rig), server_runs=False)
    rows = {file.row: file for file in looked.files}
    assert list(rows) == [TARGET, "f16", "q8_0", "q4_0", "ngram"]
    assert looked.free_mib
    target, drafter, ngram = rows[TARGET], rows["q8_0"], rows["ngram"]
    assert target.inspection is not None
    assert target.inspection.architecture == "gemma4"
    assert target.size_mib == pytest.approx(Path(target.place).stat().st_size / 2**20)
    assert drafter.inspection is not None
    assert drafter.inspection.encoding == "q8_0"
    assert drafter.memory is not None
    assert drafter.memory.fits
    assert ngram.present
    assert (ngram.place, ngram.inspection) == ("", None)
    assert not any(file.problems for file in looked.files)


def test_a_missing_file_and_one_that_does_not_fit(
    tiny_gemma4_rig: Rig, tiny_qwen35_rig: Rig, tmp_path: Path
) -> None:
    f16, q8_0, *others = tiny_gemma4_rig.drafter
    absent = msgspec.structs.replace(f16, path=str(tmp_path / "absent.gguf"))
    other = msgspec.structs.replace(q8_0, path=tiny_qwen35_rig.target.path)
    rig = msgspec.structs.replace(tiny_gemma4_rig, drafter=(absent, other, *others))
    rows = {file.row: file for file in look_at_files(found(rig), server_runs=True).files}
    assert not rows["f16"].present
    assert rows["f16"].problems[0].reason == "no such file"
    assert rows["q8_0"].present
    assert rows["q8_0"].problems
    assert not rows["q4_0"].problems
    assert rows["q4_0"].memory is not None
    assert rows["q4_0"].memory.fits is None
