"""Writing a GGUF key by key and tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType
from numpy.typing import NDArray

from tuirig.demo.bigram import Floats
from tuirig.demo.tokenizer import Tokenizer

#: GGUF's label of a whole file, by the type of its matrices.
FILE_TYPES = {
    "f32": LlamaFileType.ALL_F32,
    "f16": LlamaFileType.MOSTLY_F16,
    "bf16": LlamaFileType.MOSTLY_BF16,
    "q8_0": LlamaFileType.MOSTLY_Q8_0,
    "q4_0": LlamaFileType.MOSTLY_Q4_0,
}
_PLAIN = {"f32": np.float32, "f16": np.float16}


class ModelWriter:
    """Writes one GGUF when its `with` block ends well. format: what matrices are encoded as."""

    def __init__(
        self, path: Path, architecture: str, *, name: str, tokenizer: Tokenizer, format: str
    ) -> None:
        self._writer = GGUFWriter(path, architecture)
        self._architecture = architecture
        self._format = format
        self._writer.add_name(name)
        self._writer.add_type("model")
        self._writer.add_size_label("tiny")
        self._writer.add_file_type(FILE_TYPES[format])
        self._writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
        tokenizer.write_to(self._writer)

    def __enter__(self) -> ModelWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            finish(self._writer)

    def keys(self, **values: int | float | Sequence[int] | Sequence[bool]) -> None:
        """Keys of the architecture; a double underscore stands for the dot between names."""
        for name, value in values.items():
            key = f"{self._architecture}.{name.replace('__', '.')}"
            if isinstance(value, int):
                self._writer.add_uint32(key, value)
            elif isinstance(value, float):
                self._writer.add_float32(key, value)
            else:
                self._writer.add_array(key, value)

    def matrix(self, name: str, values: NDArray[np.floating], format: str = "") -> None:
        """A matrix [out, in] in the file's format, unless another is given."""
        format = format or self._format
        values = np.ascontiguousarray(values, dtype=np.float32)
        if format in _PLAIN:
            self._writer.add_tensor(f"{name}.weight", values.astype(_PLAIN[format]))
        else:
            kind = GGMLQuantizationType[format.upper()]
            encoded = gguf.quants.quantize(values, kind)
            self._writer.add_tensor(f"{name}.weight", encoded, raw_dtype=kind)

    def vector(self, name: str, values: NDArray[np.floating]) -> None:
        """A vector; always f32, as llama.cpp expects. name is the whole name."""
        self._writer.add_tensor(name, values.astype(np.float32))

    def gain(self, name: str, size: int, value: float = 1.0) -> None:
        """The gain of a norm (`.weight`), the same for each of its `size` channels."""
        self.vector(f"{name}.weight", np.full(size, value))


def random_matrix(
    random: np.random.Generator, rows: int, columns: int, gain: float = 1.0
) -> Floats:
    """[rows, columns] that keeps the size of a vector: entries of variance gain**2 / columns."""
    values: Floats = random.standard_normal((rows, columns)) * gain / np.sqrt(columns)
    return values.astype(np.float32)


def finish(writer: GGUFWriter) -> None:
    """Write everything that was added and close the file."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
