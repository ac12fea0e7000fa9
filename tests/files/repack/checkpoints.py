"""Small checkpoints for tests: a snapshot in safetensors and the converter's Q8_0 GGUF of it."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def bf16_bits(values: Floats) -> NDArray[np.uint16]:
    """The nearest bf16 of each value, ties to even; written another way than the code tested."""
    wide = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    halves, rest = wide >> np.uint64(16), wide & np.uint64(0xFFFF)
    up = (rest > 0x8000) | ((rest == 0x8000) & (halves & np.uint64(1) == 1))
    return (halves + up).astype(np.uint16)


def as_bf16(values: Floats) -> Floats:
    """The values that bf16 keeps."""
    return (bf16_bits(values).astype(np.uint32) << np.uint32(16)).view(np.float32)


def on_grid(random: np.random.Generator, rows: int, columns: int) -> Floats:
    """Gaussian weights as quantization-aware training leaves them: bf16 of step * level.

    The step of 32 values is an eighth of their largest (fp32), levels run from -8 to 7.
    """
    groups = random.standard_normal((rows * columns // 32, 32)).astype(np.float32)
    steps = np.abs(groups).max(axis=1, keepdims=True) / np.float32(8)
    levels = np.clip(np.rint(groups / steps), -8, 7)
    return as_bf16(levels * steps).reshape(rows, columns)


def write_safetensors(path: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """float32 arrays are written as BF16, float64 as F32, others as they are."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in tensors.items():
        dtype, raw = _stored(array)
        header[name] = {
            "dtype": dtype,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _stored(array: NDArray[Any]) -> tuple[str, bytes]:
    if array.dtype == np.float32:
        return "BF16", bf16_bits(array).tobytes()
    if array.dtype == np.float64:
        return "F32", array.astype(np.float32).tobytes()
    return {"float16": "F16", "int64": "I64", "uint8": "U8"}[str(array.dtype)], array.tobytes()


def write_sharded(folder: Path, tensors: Mapping[str, NDArray[Any]], count: int) -> None:
    """The tensors dealt to `count` files with an index."""
    names = sorted(tensors)
    weight_map = {}
    for shard in range(count):
        file = f"model-{shard + 1:05}-of-{count:05}.safetensors"
        write_safetensors(folder / file, {name: tensors[name] for name in names[shard::count]})
        weight_map |= dict.fromkeys(names[shard::count], file)
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def write_template(path: Path, tensors: Mapping[str, Floats], matrix_type: str = "Q8_0") -> None:
    """A GGUF as the converter writes it: matrices in one type, vectors in F32, some keys."""
    writer = GGUFWriter(path, "gemma4-assistant")
    writer.add_name("Tiny")
    writer.add_array("gemma4-assistant.attention.sliding_window_pattern", [True, False])
    writer.add_token_list([f"token {index}" for index in range(500)])
    writer.add_chat_template("{{ messages }}")
    kind = GGMLQuantizationType[matrix_type]
    for name, values in tensors.items():
        if values.ndim == 1:
            writer.add_tensor(name, values)
        else:
            writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@dataclass
class Checkpoint:
    """A drafter with one layer. weights: GGUF name -> values."""

    folder: Path
    weights: dict[str, Floats] = field(default_factory=dict)

    NAMES = {
        "token_embd.weight": "model.embed_tokens.weight",
        "nextn.pre_projection.weight": "pre_projection.weight",
        "nextn.post_projection.weight": "post_projection.weight",
        "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight",
        "blk.0.attn_output.weight": "model.layers.0.self_attn.o_proj.weight",
        "blk.0.ffn_gate.weight": "model.layers.0.mlp.gate_proj.weight",
        "blk.0.ffn_up.weight": "model.layers.0.mlp.up_proj.weight",
        "blk.0.ffn_down.weight": "model.layers.0.mlp.down_proj.weight",
        "output_norm.weight": "model.norm.weight",
    }
    SHAPES = {
        "token_embd.weight": (300, 64),
        "nextn.pre_projection.weight": (64, 256),
        "nextn.post_projection.weight": (128, 64),
        "blk.0.attn_q.weight": (128, 64),
        "blk.0.attn_output.weight": (64, 128),
        "blk.0.ffn_gate.weight": (96, 64),
        "blk.0.ffn_up.weight": (96, 64),
        "blk.0.ffn_down.weight": (64, 96),
    }

    @classmethod
    def made(cls, folder: Path, seed: int = 1) -> Checkpoint:
        """Weights on a grid, both files written."""
        random = np.random.default_rng(seed)
        made = cls(folder)
        made.weights = {name: on_grid(random, *shape) for name, shape in cls.SHAPES.items()}
        made.weights["output_norm.weight"] = np.ones(64, np.float32)
        made.write()
        return made

    @property
    def snapshot(self) -> Path:
        return self.folder / "snapshot"

    @property
    def template(self) -> Path:
        return self.folder / "tiny-q8_0.gguf"

    @property
    def out(self) -> Path:
        return self.folder / "tiny-q4_0.gguf"

    def source(self) -> dict[str, NDArray[Any]]:
        """The snapshot's tensors: the weights, and two that no GGUF has."""
        return {
            **{self.NAMES[name]: values for name, values in self.weights.items()},
            "masked_embedding.centroids.weight": self.weights["blk.0.ffn_up.weight"][:32],
            "masked_embedding.token_ordering": np.arange(300),
        }

    def write(self) -> None:
        """Both files, from the weights as they are now."""
        self.write_snapshot()
        write_template(self.template, self.weights)

    def write_snapshot(self, tensors: Mapping[str, NDArray[Any]] | None = None) -> None:
        """Only the snapshot, from the weights or from other tensors."""
        self.snapshot.mkdir(exist_ok=True)
        write_safetensors(self.snapshot / "model.safetensors", tensors or self.source())


def write_zeros(folder: Path, rows: int) -> tuple[Path, Path]:
    """(snapshot, template) of a matrix [rows, 1024] of zeros that take no room on the disk."""
    snapshot, template = folder / "zeros.safetensors", folder / "zeros.gguf"
    shape, name = (rows, 1024), b"token_embd.weight"
    entry = {"dtype": "BF16", "shape": shape, "data_offsets": [0, rows * 2048]}
    text = json.dumps({"model.embed_tokens.weight": entry}).encode()
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    head += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 1024, rows, 8, 0)
    for path, start, size in (
        (snapshot, struct.pack("<Q", len(text)) + text, rows * 2048),
        (template, head + bytes(-len(head) % 32), rows * 1088),
    ):
        path.write_bytes(start)
        os.truncate(path, len(start) + size)
    return snapshot, template
