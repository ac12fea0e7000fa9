"""The whole repack on small checkpoints: what is written, what is refused, what is left behind."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gguf
import numpy as np
import pytest
from gguf import GGUFReader
from numpy.typing import NDArray

from tests.files.repack.checkpoints import (
    Checkpoint,
    Floats,
    as_bf16,
    on_grid,
    write_safetensors,
    write_sharded,
    write_template,
)
from tuirig.errors import MissingError, TuirigError
from tuirig.files.gguf import KEYS_START
from tuirig.files.repack.build import FORMATS, CancelledError, repack, verify
from tuirig.files.repack.layout import LaidTensor, Layout, read_layout
from tuirig.files.repack.report import RefusedError, Report, TensorReport, Verdict
from tuirig.files.repack.writing import header

UP, GATE = "blk.0.ffn_up.weight", "blk.0.ffn_gate.weight"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint.made(tmp_path)


def written(checkpoint: Checkpoint, format: str = "q4_0") -> Report:
    return repack(checkpoint.snapshot, checkpoint.template, checkpoint.out, format)


def values(path: Path) -> dict[str, Floats]:
    """Every tensor of a GGUF, read by the gguf package."""
    return {
        tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        for tensor in GGUFReader(path).tensors
    }


def of(report: Report, name: str) -> TensorReport:
    (found,) = [tensor for tensor in report.tensors if tensor.name == name]
    return found


def refused(checkpoint: Checkpoint, format: str = "q4_0") -> RefusedError:
    """The refusal; nothing may be left behind."""
    before = sorted(checkpoint.folder.rglob("*"))
    with pytest.raises(RefusedError) as caught:
        written(checkpoint, format)
    assert sorted(checkpoint.folder.rglob("*")) == before
    assert caught.value.hint
    return caught.value


@pytest.mark.parametrize("format", FORMATS)
def test_the_file_holds_the_trained_weights(checkpoint: Checkpoint, format: str) -> None:
    report = written(checkpoint, format)
    assert report.exact
    assert report.size == checkpoint.out.stat().st_size
    read = values(checkpoint.out)
    for name, weights in checkpoint.weights.items():
        same = as_bf16(read[name]) == weights
        assert same.mean() > 0.995
        if weights.ndim == 1:
            assert of(report, name).verdict is Verdict.COPIED
            continue
        found = of(report, name)
        assert found.verdict is Verdict.EXACT
        assert found.type == format
        assert found.source == checkpoint.NAMES[name]
        assert found.against_source is not None
        assert found.against_source.identical_bf16 == pytest.approx(same.mean())
        assert found.against_source.identical_fp32 == pytest.approx((read[name] == weights).mean())
        error = np.sqrt(((read[name] - weights) ** 2).sum() / (weights**2).sum())
        assert found.against_source.error == pytest.approx(error, rel=1e-4)
        if format == "bf16":
            assert (read[name] == weights).all()


def test_the_report_compares_with_the_template(checkpoint: Checkpoint) -> None:
    report = written(checkpoint)
    template, read = values(checkpoint.template), values(checkpoint.out)
    for name, weights in checkpoint.weights.items():
        found = of(report, name)
        if found.against_template is None or found.template_against_source is None:
            assert weights.ndim == 1
            continue
        assert found.against_template.identical_bf16 == pytest.approx(
            (as_bf16(read[name]) == as_bf16(template[name])).mean()
        )
        assert found.template_against_source.identical_fp32 == pytest.approx(
            (template[name] == weights).mean()
        )
        assert found.template_against_source.error == pytest.approx(0.00495, rel=0.05)


def test_keys_are_copied_byte_for_byte(checkpoint: Checkpoint) -> None:
    written(checkpoint)
    template, out = read_layout(checkpoint.template), read_layout(checkpoint.out)
    keys = [layout.path.read_bytes()[KEYS_START : layout.keys_end] for layout in (template, out)]
    assert keys[0] == keys[1]
    assert (template.version, template.key_count, template.alignment) == (
        out.version, out.key_count, out.alignment,
    )  # fmt: skip
    assert [(each.name, each.shape) for each in template.tensors] == [
        (each.name, each.shape) for each in out.tensors
    ]


def test_what_only_one_side_has(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    del source[checkpoint.NAMES[GATE]]
    checkpoint.write_snapshot(source)
    report = written(checkpoint)
    assert report.not_written == (
        "masked_embedding.centroids.weight",
        "masked_embedding.token_ordering",
    )
    assert of(report, GATE).verdict is Verdict.COPIED
    assert of(report, GATE).type == "q8_0"
    template, out = values(checkpoint.template), values(checkpoint.out)
    assert (template[GATE] == out[GATE]).all()
    assert report.exact


@pytest.mark.parametrize("prefix", ["model.language_model.", "language_model.model.", ""])
def test_a_main_model_in_several_files(tmp_path: Path, prefix: str) -> None:
    random = np.random.default_rng(2)
    names = {
        "token_embd.weight": "embed_tokens.weight",
        "per_layer_token_embd.weight": "embed_tokens_per_layer.weight",
        "per_layer_model_proj.weight": "per_layer_model_projection.weight",
        "blk.11.attn_k.weight": "layers.11.self_attn.k_proj.weight",
        "blk.11.attn_v.weight": "layers.11.self_attn.v_proj.weight",
        "blk.11.inp_gate.weight": "layers.11.per_layer_input_gate.weight",
        "blk.11.proj.weight": "layers.11.per_layer_projection.weight",
    }
    weights = {name: on_grid(random, 64, 96) for name in names}
    (tmp_path / "s").mkdir()
    tower = {"model.vision_tower.encoder.layers.11.self_attn.k_proj.weight": np.ones((32, 32))}
    source = {prefix + names[name]: weights[name] for name in names}
    write_sharded(tmp_path / "s", {**source, **tower}, 3)
    write_template(tmp_path / "t.gguf", weights)
    report = repack(tmp_path / "s", tmp_path / "t.gguf", tmp_path / "o.gguf", "q4_0")
    assert report.exact
    assert {tensor.verdict for tensor in report.tensors} == {Verdict.EXACT}
    assert report.not_written == tuple(tower)


@pytest.mark.parametrize("kind", ["F16", "BF16", "Q8_0"])
def test_templates_that_prove_the_source(checkpoint: Checkpoint, kind: str) -> None:
    write_template(checkpoint.template, checkpoint.weights, kind)
    assert written(checkpoint).exact


def test_a_source_in_fp32_or_fp16(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    source[checkpoint.NAMES[UP]] = checkpoint.weights[UP].astype(np.float64)  # written as F32
    name = checkpoint.NAMES["blk.0.attn_q.weight"]
    source[name] = source[name].astype(np.float16)
    checkpoint.write_snapshot(source)
    assert written(checkpoint).exact


def test_weights_of_fp32_that_bf16_can_not_hold(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    finer = source[checkpoint.NAMES[UP]] * np.float32(1 + 2.0**-12)
    source[checkpoint.NAMES[UP]] = finer.astype(np.float64)  # written as F32
    checkpoint.write_snapshot(source)
    write_template(checkpoint.template, {**checkpoint.weights, UP: finer})
    assert written(checkpoint).exact  # Q4_0 has steps for them
    checkpoint.out.unlink()
    found = refused(checkpoint, "bf16").refusal
    assert (found.tensor, found.reason) == (UP, "a value of F32 that bf16 can't hold")


# -- refusals


def changed(checkpoint: Checkpoint, name: str, row: int, column: int, value: float) -> None:
    """Put one value into both the snapshot and the template."""
    checkpoint.weights[name][row, column] = value
    checkpoint.write()


def test_refuses_a_group_on_no_grid_and_says_where(checkpoint: Checkpoint) -> None:
    largest = np.abs(checkpoint.weights[UP][70, 32:]).max()
    changed(checkpoint, UP, 70, 40, float(as_bf16(np.array([largest * 0.44]))[0]))
    found = refused(checkpoint).refusal
    assert (found.tensor, found.row, found.group) == (UP, 70, 1)
    assert "no step" in found.reason
    assert found.residual is not None
    assert 2.0**-7 < found.residual < 0.5
    assert written(checkpoint, "bf16").exact  # which asks for no grid


def test_refuses_17_levels(checkpoint: Checkpoint) -> None:
    row = checkpoint.weights[UP][5, :32]
    extreme = int(np.argmax(np.abs(row)))
    changed(checkpoint, UP, 5, (extreme + 1) % 32, -float(row[extreme]))
    found = refused(checkpoint).refusal
    assert (found.tensor, found.row, found.group) == (UP, 5, 0)
    assert "17 levels" in found.reason


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_refuses_what_is_no_number(checkpoint: Checkpoint, value: float, format: str) -> None:
    source = checkpoint.source()
    source[checkpoint.NAMES[UP]] = source[checkpoint.NAMES[UP]].copy()
    source[checkpoint.NAMES[UP]][95, 63] = value
    checkpoint.write_snapshot(source)
    found = refused(checkpoint, format).refusal
    assert (found.tensor, found.row, found.group) == (UP, 95, 1)
    assert found.reason == "NaN or infinity"


@pytest.mark.parametrize(("factor", "reason"), [(2.0**20, "above 65504"), (2.0**-25, "too small")])
def test_refuses_steps_that_fp16_can_not_hold(
    checkpoint: Checkpoint, factor: float, reason: str
) -> None:
    checkpoint.weights[UP] *= np.float32(factor)
    checkpoint.write_snapshot()
    found = refused(checkpoint).refusal
    assert (found.tensor, found.row, found.group) == (UP, 0, 0)
    assert reason in found.reason


def test_refuses_rows_that_are_no_multiple_of_32(checkpoint: Checkpoint) -> None:
    checkpoint.weights[UP] = checkpoint.weights[UP][:, :48].copy()
    checkpoint.write_snapshot()
    write_template(checkpoint.template, checkpoint.weights, "F16")
    found = refused(checkpoint).refusal
    assert (found.tensor, found.reason) == (UP, "its rows of 48 values are no multiple of 32")


def test_refuses_a_tensor_that_fits_by_chance(checkpoint: Checkpoint) -> None:
    """Values of nearly one size fit the largest as their step, but are not it in bf16."""
    random = np.random.default_rng(4)
    sparse = np.zeros((96, 64), np.float32)
    sparse[:, ::4] = random.choice([0.996, 1.0], (96, 16))
    checkpoint.weights[UP] = as_bf16(sparse)
    checkpoint.write()
    found = refused(checkpoint).refusal
    assert (found.tensor, found.row) == (UP, None)
    assert "by chance" in found.reason


def test_refuses_swapped_matrices_by_their_content(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    up, gate = checkpoint.NAMES[UP], checkpoint.NAMES[GATE]
    checkpoint.write_snapshot({**source, up: source[gate], gate: source[up]})
    for format in FORMATS:
        found = refused(checkpoint, format).refusal
        assert found.tensor == GATE
        assert "agrees with the template in" in found.reason


def test_refuses_another_checkpoint(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Checkpoint.made(tmp_path / "other", seed=2)
    shutil.copy(other.template, checkpoint.template)
    assert "agrees with the template" in refused(checkpoint).refusal.reason


def test_a_tenth_of_a_percent_may_disagree_with_the_template(checkpoint: Checkpoint) -> None:
    """Of 19,200 values 15 may; 25 may not."""
    name = checkpoint.NAMES["token_embd.weight"]
    for count, good in ((15, True), (25, False)):
        source = checkpoint.source()
        weights = source[name].copy()
        some = np.argwhere(np.abs(weights) > 0.5)[:count]
        weights[tuple(some.T)] *= -1
        checkpoint.write_snapshot({**source, name: weights})
        if good:
            assert written(checkpoint, "bf16").exact
            checkpoint.out.unlink()
        else:
            assert refused(checkpoint, "bf16").refusal.tensor == "token_embd.weight"


def test_refuses_other_shapes(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    name = checkpoint.NAMES["blk.0.ffn_down.weight"]
    checkpoint.write_snapshot({**source, name: source[name].T.copy()})
    assert "96 x 64" in refused(checkpoint).refusal.reason


def test_refuses_other_types(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    name = checkpoint.NAMES[UP]
    checkpoint.write_snapshot({**source, name: np.ones((96, 64), np.uint8)})
    assert "is U8" in refused(checkpoint).refusal.reason


def test_refuses_a_template_that_proves_too_little(checkpoint: Checkpoint) -> None:
    write_template(checkpoint.template, checkpoint.weights, "Q4_0")
    error = refused(checkpoint)
    assert "q4_0 in the template" in error.refusal.reason
    assert "--outtype q8_0" in error.hint


def test_refuses_two_candidates(checkpoint: Checkpoint) -> None:
    source = checkpoint.source()
    source["model.language_model.embed_tokens.weight"] = source["model.embed_tokens.weight"]
    checkpoint.write_snapshot(source)
    assert "the snapshot has two" in refused(checkpoint).refusal.reason


def test_refuses_a_snapshot_of_something_else(checkpoint: Checkpoint) -> None:
    checkpoint.write_snapshot({"bert.embeddings.weight": np.ones((3, 32), np.float32)})
    assert "no matrix of it is known" in refused(checkpoint).refusal.reason


# -- files


def test_an_old_file_stays_until_the_new_one_is_whole(checkpoint: Checkpoint) -> None:
    checkpoint.out.write_bytes(b"old")
    changed(checkpoint, "blk.0.ffn_down.weight", 63, 0, 0.123)
    refused(checkpoint)
    assert checkpoint.out.read_bytes() == b"old"
    assert written(checkpoint, "bf16").exact
    assert checkpoint.out.read_bytes().startswith(b"GGUF")


def test_cancelling_leaves_nothing(checkpoint: Checkpoint) -> None:
    before = sorted(checkpoint.folder.rglob("*"))
    seen: list[int] = []
    with pytest.raises(CancelledError):
        repack(
            *(checkpoint.snapshot, checkpoint.template, checkpoint.out, "q4_0"),
            on_progress=lambda done, total: seen.append(done),
            cancelled=lambda: len(seen) > 5,
        )
    assert sorted(checkpoint.folder.rglob("*")) == before


def test_progress_rises_to_the_whole_file(checkpoint: Checkpoint) -> None:
    seen: list[tuple[int, int]] = []
    repack(
        *(checkpoint.snapshot, checkpoint.template, checkpoint.out, "q4_0"),
        on_progress=lambda done, total: seen.append((done, total)),
    )
    size = checkpoint.out.stat().st_size
    assert seen == sorted(set(seen))
    assert seen[-1] == (size, size)
    assert {total for _, total in seen} == {size}


def test_what_is_read_is_never_written(checkpoint: Checkpoint) -> None:
    link = checkpoint.folder / "link.gguf"
    link.symlink_to(checkpoint.template)
    before = checkpoint.template.read_bytes()
    for out in (checkpoint.template, link, checkpoint.snapshot / "model.safetensors"):
        with pytest.raises(TuirigError, match="is read for the repack"):
            repack(checkpoint.snapshot, checkpoint.template, out, "q4_0")
    assert checkpoint.template.read_bytes() == before


def test_two_at_once(checkpoint: Checkpoint) -> None:
    part = checkpoint.out.with_name(f"{checkpoint.out.name}.part")
    with open(part, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(TuirigError, match="another tuirig is writing"):
            written(checkpoint)
        assert part.exists()
    assert written(checkpoint).exact  # what a killed one left is no obstacle
    assert not part.exists()


def test_a_full_disk_is_seen_before_the_work(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sorted(checkpoint.folder.rglob("*"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with pytest.raises(TuirigError, match="are free"):
        written(checkpoint)
    assert sorted(checkpoint.folder.rglob("*")) == before


def test_a_disk_that_fills_up_leaves_nothing(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system that allocates late says so when the file is synced."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = sorted(checkpoint.folder.rglob("*"))
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TuirigError, match="can't be written: No space left"):
        written(checkpoint)
    assert sorted(checkpoint.folder.rglob("*")) == before


def test_what_is_not_there(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(MissingError):
        repack(tmp_path / "nowhere", checkpoint.template, checkpoint.out, "q4_0")
    with pytest.raises(MissingError):
        repack(checkpoint.snapshot, tmp_path / "nowhere", checkpoint.out, "q4_0")
    with pytest.raises(TuirigError, match="can't be written"):
        repack(checkpoint.snapshot, checkpoint.template, tmp_path / "no" / "o.gguf", "q4_0")


def test_memory_stays_far_below_the_matrix(tmp_path: Path) -> None:
    weights = on_grid(np.random.default_rng(0), 16384, 512)
    write_safetensors(tmp_path / "model.safetensors", {"model.embed_tokens.weight": weights})
    write_template(tmp_path / "t.gguf", {"token_embd.weight": weights})
    largest = weights.size * 2
    del weights
    for format in FORMATS:
        tracemalloc.start()
        repack(tmp_path, tmp_path / "t.gguf", tmp_path / "o.gguf", format)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(peak, largest)
        assert peak < largest


def test_published_sizes() -> None:
    """97.8, 59.2 and 170.2 MB for the drafter of E2B, from its shapes and 15.8 MB of keys."""
    shapes = [(256, 262144), (3072, 256), (256, 1536)]
    for width in (1024, 1024, 1024, 2048):
        shapes += [(256, width), (width, 256), (256, 2048), (256, 2048), (2048, 256)]
    assert len(shapes) == 23
    tensors = [
        LaidTensor(f"{index}", shape, 8, index, shape[0] * shape[1] * 34 // 32)
        for index, shape in enumerate(shapes)
    ]
    layout = Layout(Path("x"), 3, 40, 15_770_000, 32, tuple(tensors))
    assert header(layout, {})[2] == pytest.approx(97.8e6, abs=0.05e6)
    for format, size in (("q4_0", 59.2e6), ("bf16", 170.2e6)):
        kinds = {tensor.name: FORMATS[format] for tensor in tensors}
        assert header(layout, kinds)[2] == pytest.approx(size, abs=0.05e6)


# -- verify


def damaged(path: Path, name: str) -> None:
    """Change one block of a tensor."""
    (tensor,) = [each for each in read_layout(path).tensors if each.name == name]
    with open(path, "r+b") as file:
        file.seek(tensor.start + tensor.size - 18 + 2)
        block = file.read(16)
        file.seek(tensor.start + tensor.size - 18 + 2)
        file.write(bytes(byte ^ 0x88 for byte in block))


@pytest.mark.parametrize("format", FORMATS)
def test_verify_agrees_with_the_repack(checkpoint: Checkpoint, format: str) -> None:
    report = written(checkpoint, format)
    checked = verify(checkpoint.snapshot, checkpoint.out)
    assert checked.exact
    for name in checkpoint.NAMES:
        assert of(checked, name).against_source == of(report, name).against_source
    assert checked.not_written == report.not_written


def test_verify_finds_one_damaged_block(checkpoint: Checkpoint) -> None:
    written(checkpoint)
    damaged(checkpoint.out, UP)
    checked = verify(checkpoint.snapshot, checkpoint.out)
    assert not checked.exact
    found = of(checked, UP)
    assert (found.verdict, found.groups_off) == (Verdict.NOT_EXACT, 1)
    assert found.reason == "1 group(s) off, the first in row 95, group 1"
    assert of(checked, GATE).verdict is Verdict.EXACT


def test_verify_of_the_converters_file(checkpoint: Checkpoint) -> None:
    """Q8_0 rounds again: nothing is off the grid by much, and little is identical."""
    seen: list[tuple[int, int]] = []
    checked = verify(
        checkpoint.snapshot,
        checkpoint.template,
        on_progress=lambda done, total: seen.append((done, total)),
    )
    assert not checked.exact
    assert seen[-1][0] == seen[-1][1]
    found = of(checked, "token_embd.weight")
    assert (found.verdict, found.groups_off) == (Verdict.NOT_EXACT, 0)
    assert found.against_source is not None
    assert found.against_source.error == pytest.approx(0.00495, rel=0.03)
    assert found.against_source.identical_fp32 == pytest.approx(0.117, abs=0.01)


def test_verify_of_a_swapped_file(checkpoint: Checkpoint) -> None:
    written(checkpoint)
    source = checkpoint.source()
    up, gate = checkpoint.NAMES[UP], checkpoint.NAMES[GATE]
    checkpoint.write_snapshot({**source, up: source[gate], gate: source[up]})
    checked = verify(checkpoint.snapshot, checkpoint.out)
    assert {of(checked, UP).verdict, of(checked, GATE).verdict} == {Verdict.NOT_EXACT}


def test_verify_of_what_can_not_be_compared(checkpoint: Checkpoint) -> None:
    source: Mapping[str, NDArray[Any]] = checkpoint.source()
    name = checkpoint.NAMES["blk.0.ffn_down.weight"]
    checkpoint.write_snapshot({**source, name: source[name].T.copy()})
    write_template(checkpoint.out, checkpoint.weights, "Q5_0")
    checked = verify(checkpoint.snapshot, checkpoint.out)
    assert of(checked, UP).verdict is Verdict.NOT_COMPARED
    assert "q5_0 is not read" in of(checked, UP).reason
    assert not checked.exact
    write_template(checkpoint.out, checkpoint.weights, "BF16")
    checked = verify(checkpoint.snapshot, checkpoint.out)
    assert "96 x 64" in of(checked, "blk.0.ffn_down.weight").reason
    assert of(checked, UP).verdict is Verdict.EXACT
    assert not checked.exact


def test_verify_can_be_cancelled(checkpoint: Checkpoint) -> None:
    with pytest.raises(CancelledError):
        verify(checkpoint.snapshot, checkpoint.template, cancelled=lambda: True)
