"""A repacked drafter drafts like the unpacked one, with the real server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import gguf
import msgspec
import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter

from tests.files.repack.checkpoints import Floats, as_bf16, write_safetensors
from tuirig.engines.base import RunningServer
from tuirig.engines.llamacpp.engine import LlamaCpp
from tuirig.events import ignore
from tuirig.files.repack.build import repack, verify
from tuirig.hosts.local import LocalHost
from tuirig.measure import summary
from tuirig.measure.arm import measure_arm
from tuirig.measure.prompts import choose
from tuirig.records import CardInfo
from tuirig.rigs.schema import Drafter, Rig
from tuirig.rigs.settings import parse_setting

NAMES = {"token_embd": "model.embed_tokens"} | {
    f"nextn.{part}_projection": f"{part}_projection" for part in ("pre", "post")
}
IN_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
NAMES |= {
    f"blk.{layer}.{part}": f"model.layers.{layer}.{name}"
    for layer in range(4)
    for part, name in IN_LAYER.items()
}


@dataclass
class Trained:
    """A drafter as training for Q4_0 leaves it: its snapshot, and GGUFs of it."""

    snapshot: Path
    q8_0: Path
    unpacked: Path


def on_its_grid(weights: Floats) -> Floats:
    """The nearest weights on a 4-bit grid, kept as bf16."""
    groups = weights.reshape(-1, 32)
    steps = np.abs(groups).max(axis=1, keepdims=True) / np.float32(8)
    levels = np.clip(np.rint(groups / np.where(steps == 0, 1, steps)), -8, 7)
    return as_bf16(levels * steps).reshape(weights.shape)


def write_like(reader: GGUFReader, path: Path, matrices: dict[str, Floats], kind: str) -> None:
    """A GGUF with the keys and vectors of another, its matrices in one type."""
    writer = GGUFWriter(path, reader.fields["general.architecture"].contents())
    for key, key_field in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            types = [*key_field.types, None]
            element = types[1] if types[0] is GGUFValueType.ARRAY else None
            writer.add_key_value(key, key_field.contents(), types[0], sub_type=element)
    for tensor in reader.tensors:
        if tensor.name in matrices:
            into = GGMLQuantizationType[kind]
            data = gguf.quants.quantize(matrices[tensor.name], into)
            writer.add_tensor(tensor.name, data, raw_dtype=into)
        else:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def trained(demo_files: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    reader = GGUFReader(demo_files / "gemma4-f16.gguf")
    matrices = {
        tensor.name: on_its_grid(tensor.data.astype(np.float32))
        for tensor in reader.tensors
        if tensor.name.removesuffix(".weight") in NAMES
    }
    assert len(matrices) == 23
    (folder / "snapshot").mkdir()
    write_safetensors(
        folder / "snapshot" / "model.safetensors",
        {f"{NAMES[name.removesuffix('.weight')]}.weight": matrices[name] for name in matrices},
    )
    made = Trained(folder / "snapshot", folder / "q8_0.gguf", folder / "unpacked.gguf")
    write_like(reader, made.q8_0, matrices, "Q8_0")
    write_like(reader, made.unpacked, matrices, "F32")
    return made


@asynccontextmanager
async def served(rig: Rig, drafter: Path) -> AsyncIterator[tuple[RunningServer, Rig]]:
    """The rig's target with one drafter file."""
    row = Drafter(format="drafter", type="draft-mtp", path=str(drafter))
    rig = msgspec.structs.replace(rig, drafter=(row,))
    host = LocalHost()
    engine = await LlamaCpp.load(host, rig.server.program, rig.server.env)
    setting = parse_setting("drafter:3")
    paths = {"target": rig.target.path or "", "drafter": str(drafter)}
    command = engine.command(rig, setting, port=host.free_port(), paths=paths)
    async with engine.running(command, rig, setting, host, ignore) as server:
        yield server, rig


async def kept(rig: Rig, drafter: Path) -> float:
    """The share of drafted tokens that the target accepts."""
    async with served(rig, drafter) as (server, of):
        arm = await measure_arm(
            *(server, of, CardInfo(kind="cpu", name="this machine"), choose(6)),
            tokens=64,
            started_at="",
            emit=ignore,
        )
    share = summary.kept(arm.replies)
    assert share is not None
    return share


async def test_a_repacked_drafter_is_accepted_as_often(
    trained: Trained, tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    unpacked = await kept(tiny_gemma4_rig, trained.unpacked)
    assert unpacked > 0.1  # it drafts for real
    sizes = {"unpacked": trained.unpacked.stat().st_size}
    for format in ("q4_0", "bf16"):
        out = tmp_path / f"{format}.gguf"
        report = repack(trained.snapshot, trained.q8_0, out, format)
        assert report.exact
        assert sum(tensor.source is not None for tensor in report.tensors) == 23
        assert verify(trained.snapshot, out).exact
        assert await kept(tiny_gemma4_rig, out) == pytest.approx(unpacked, abs=0.02)
        sizes[format] = out.stat().st_size
    assert sizes["q4_0"] < trained.q8_0.stat().st_size < sizes["bf16"] < sizes["unpacked"]
