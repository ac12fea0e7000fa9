from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

from tests.cli.support import Commands, read_until, running
from tests.files.repack.checkpoints import Checkpoint, write_zeros
from tuirig.errors import ExitCode


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return Checkpoint.made(tmp_path)


def words(checkpoint: Checkpoint) -> list[str]:
    return [str(path) for path in (checkpoint.snapshot, checkpoint.template, checkpoint.out)]


def test_a_report_for_people(run: Commands, checkpoint: Checkpoint) -> None:
    ran = run("repack", *words(checkpoint))
    assert ran.code == ExitCode.OK
    lines = ran.stdout.splitlines()
    assert lines[0].split() == [
        *("TENSOR", "TYPE", "ERROR", "SAME", "FP32", "SAME", "BF16", "TEMPLATE'S", "ERROR"),
        "VERDICT",
    ]
    assert lines[1].startswith("token_embd.weight")
    assert lines[1].endswith("  exact")
    assert "copied: a vector" in ran.stdout
    assert lines[-2] == (
        "not in the file: masked_embedding.centroids.weight, masked_embedding.token_ordering"
    )
    assert lines[-1] == f"{checkpoint.out}: 0.1 MB, 8 exact, 1 copied"
    assert ran.stderr.splitlines() == ["writing tiny-q4_0.gguf", "writing tiny-q4_0.gguf: done"]


@pytest.mark.parametrize(("flags", "kind"), [((), "q4_0"), (("--bf16",), "bf16")])
def test_a_report_for_scripts(
    run: Commands, checkpoint: Checkpoint, flags: tuple[str, ...], kind: str
) -> None:
    document = run("repack", *words(checkpoint), *flags, "--json").json
    assert document["ok"] is True
    assert document["refusal"] is None
    assert document["size"] == checkpoint.out.stat().st_size
    first = document["tensors"][0]
    assert (first["type"], first["verdict"], first["groups_off"]) == (kind, "exact", 0)
    for what in ("against_source", "against_template", "template_against_source"):
        assert first[what].keys() == {"error", "identical_fp32", "identical_bf16"}


def test_a_refusal_is_told_and_is_in_the_json(run: Commands, checkpoint: Checkpoint) -> None:
    group = checkpoint.weights["blk.0.ffn_up.weight"][2, 32:]
    group[1 if abs(group[1]) < abs(group).max() else 2] = 0.44 * abs(group).max()
    checkpoint.write()
    ran = run("repack", *words(checkpoint), "--json")
    assert ran.code == ExitCode.FAILED
    assert ran.json["ok"] is False
    assert ran.json["refusal"]["tensor"] == "blk.0.ffn_up.weight"
    assert (ran.json["refusal"]["row"], ran.json["refusal"]["group"]) == (2, 1)
    assert "tuirig: blk.0.ffn_up.weight, row 2, group 1: no step" in ran.stderr
    assert not checkpoint.out.exists()


def test_verify_tells_by_its_exit_code(run: Commands, checkpoint: Checkpoint) -> None:
    assert run("repack", *words(checkpoint)).code == ExitCode.OK
    snapshot = str(checkpoint.snapshot)
    ran = run("repack", snapshot, "--verify", str(checkpoint.out), "--json")
    assert (ran.code, ran.json["ok"], ran.json["template"]) == (ExitCode.OK, True, None)
    ran = run("repack", snapshot, "--verify", str(checkpoint.template))
    assert ran.code == ExitCode.FAILED
    assert "8 not exact, 1 not compared" in ran.stdout


def test_what_has_to_be_given(run: Commands, checkpoint: Checkpoint) -> None:
    snapshot, template, out = words(checkpoint)
    for given in ([snapshot], [snapshot, template]):
        ran = run("repack", *given)
        assert ran.code == ExitCode.USAGE
        assert "needs SNAPSHOT, TEMPLATE.gguf and OUT.gguf" in ran.stderr
    assert run("repack", snapshot, template, out, "--verify", out).code == ExitCode.USAGE
    assert run("repack", snapshot, "--verify", out, "--bf16").code == ExitCode.USAGE
    assert run("repack", snapshot, str(checkpoint.folder / "x"), out).code == ExitCode.MISSING


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, ExitCode.INTERRUPTED), (signal.SIGTERM, ExitCode.TERMINATED)],
)
def test_a_signal_leaves_nothing(tmp_path: Path, number: signal.Signals, code: int) -> None:
    snapshot, template = write_zeros(tmp_path, rows=400_000)
    with running("repack", str(snapshot), str(template), str(tmp_path / "out.gguf")) as process:
        read_until(process, "writing out.gguf")
        process.send_signal(number)
        process.communicate(timeout=30)
    assert process.returncode == code
    assert {path.name for path in tmp_path.glob("*.*")} == {snapshot.name, template.name}


def test_without_numpy_it_names_the_extra(
    run: Commands, checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    ran = run("repack", *words(checkpoint))
    assert ran.code == ExitCode.MISSING
    assert "pip install 'tuirig[repack]'" in ran.stderr
