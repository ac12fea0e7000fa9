"""Making a small model look big, and its drafter: a padded copy and a requantised copy of a GGUF.

No training and no second model is needed for real text with real acceptance: the padded target
costs as much as a bigger model and says what the small one would say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from numpy.typing import NDArray

from tuirig.demo.writing import FILE_TYPES, finish

#: A layer whose output projections are zero adds nothing to the residual stream.
_SILENCED = ("attn_output.weight", "ffn_down.weight")


def append_layers(source: GGUFReader, destination: Path, count: int) -> None:
    """Write source with `count` more layers that cost time and change no token.

    The new layers are copies of the last one with zero output projections. Works for architectures
    without post-norms (llama).
    """
    architecture = source.fields["general.architecture"].contents()
    layers = source.fields[f"{architecture}.block_count"].contents()
    writer = _writer(source, destination, {f"{architecture}.block_count": layers + count})
    for tensor in source.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    last = f"blk.{layers - 1}."
    for layer in range(layers, layers + count):
        for tensor in source.tensors:
            if tensor.name.startswith(last):
                part = tensor.name.removeprefix(last)
                data = np.zeros_like(tensor.data) if part in _SILENCED else tensor.data
                writer.add_tensor(f"blk.{layer}.{part}", data, raw_dtype=tensor.tensor_type)
    finish(writer)


def requantise(source: GGUFReader, destination: Path, format: str) -> None:
    """Write source with every quantised matrix encoded as `format`; the rest is copied."""
    kind = GGMLQuantizationType[format.upper()]
    writer = _writer(source, destination, {"general.file_type": int(FILE_TYPES[format])})
    for tensor in source.tensors:
        data, written = tensor.data, tensor.tensor_type
        if written not in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
            data, written = _encode(data, written, kind), kind
        writer.add_tensor(tensor.name, data, raw_dtype=written)
    finish(writer)


def _encode(
    data: NDArray[Any], source: GGMLQuantizationType, kind: GGMLQuantizationType
) -> NDArray[Any]:
    return gguf.quants.quantize(gguf.quants.dequantize(data, source), kind)


def _writer(source: GGUFReader, destination: Path, changed: dict[str, int]) -> GGUFWriter:
    """A writer with the source's keys, some of them changed."""
    writer = GGUFWriter(destination, source.fields["general.architecture"].contents())
    for key, field in source.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        value = changed.get(key, field.contents())
        is_array = field.types[0] == GGUFValueType.ARRAY
        sub_type = field.types[-1] if is_array else None
        writer.add_key_value(key, value, field.types[0], sub_type=sub_type)
    return writer
