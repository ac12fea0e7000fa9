"""The header of a GGUF file: its keys and the list of its tensors, nothing of the weights.

Made for files that nobody vouches for: every count and length is checked against what is left of
the file before anything is read or kept, what is kept is bounded, and whatever is wrong ends in a
GgufError that says what and at which byte. Long lists (a vocabulary) are walked, not built.

Format: ggml's docs/gguf.md, versions 2 and 3; checks as in gguf.cpp of llama.cpp b10434.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from tuirig.errors import ExitCode, TuirigError
from tuirig.files.sources import Source, opened
from tuirig.files.tensor_types import TENSOR_TYPES

if TYPE_CHECKING:
    from hashlib import _Hash

MAGIC = b"GGUF"
TOKENS = "tokenizer.ggml.tokens"
ALIGNMENT = 32
#: Where the keys begin: after the magic, the version and two counts.
KEYS_START = 24

_VERSIONS = (2, 3)
#: Real models have below 200 keys, below 10,000 tensors and below 5 million strings.
_MOST_KEYS = 65_536
_MOST_TENSORS = 65_536
_MOST_STRINGS = 32_000_000
_MOST_DIMENSIONS = 4
_LONGEST_NAME = 65_535
#: A longer text (no chat template is) is left in the file, and so is a longer list of numbers.
_LONGEST_TEXT = 1024 * 1024
_LONGEST_LIST = 4096
#: Bytes of texts and numbers that are kept in all.
_MOST_KEPT = 16 * 1024 * 1024
_MOST_READ = 256 * 1024

_STRING, _ARRAY, _BOOL = 8, 9, 7
#: Value type -> (struct's letter, bytes).
_NUMBERS = {
    0: ("B", 1), 1: ("b", 1), 2: ("H", 2), 3: ("h", 2), 4: ("I", 4), 5: ("i", 4),
    6: ("f", 4), _BOOL: ("?", 1), 10: ("Q", 8), 11: ("q", 8), 12: ("d", 8),
}  # fmt: skip
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class GgufError(TuirigError):
    """A GGUF that can't be read. at: the byte where it went wrong."""

    def __init__(self, label: str, message: str, *, at: int | None = None, hint: str = "") -> None:
        where = f" (at byte {at:,})" if at is not None else ""
        super().__init__(f"{label}: {message}{where}", hint=hint, exit_code=ExitCode.BAD_FILE)
        self.at = at


class Left(msgspec.Struct, frozen=True):
    """A value that was left in the file: a list of `count`, or one long text (count 1).

    kind: the value type's number of its items. offset, size: where its bytes are, with the length
    in front of every string. sha256: of these bytes; known for the tokens only.
    """

    kind: int
    count: int
    offset: int
    size: int
    sha256: str | None = None


Value: TypeAlias = int | float | bool | str | tuple[int | float | bool, ...] | Left


class Tensor(msgspec.Struct, frozen=True, array_like=True):
    """A tensor's entry. shape: fastest dimension first. offset: from the header's data_start."""

    name: str
    kind: int
    shape: tuple[int, ...]
    offset: int

    @property
    def elements(self) -> int:
        """How many values it has."""
        count = 1
        for dimension in self.shape:
            count *= dimension
        return count

    @property
    def size(self) -> int | None:
        """Its bytes; None for a type that is not known."""
        kind = TENSOR_TYPES.get(self.kind)
        return self.elements // kind.block * kind.size if kind else None

    @property
    def type_name(self) -> str:
        """The encoding's name."""
        kind = TENSOR_TYPES.get(self.kind)
        return kind.name if kind else f"type {self.kind}"


class Header(msgspec.Struct, frozen=True):
    """What stands in front of the weights. data_start, file_size: bytes.

    The keys' own bytes go from KEYS_START to keys_end.
    """

    version: int
    keys: dict[str, Value]
    tensors: tuple[Tensor, ...]
    keys_end: int
    data_start: int
    file_size: int
    alignment: int = ALIGNMENT

    @property
    def missing_bytes(self) -> int:
        """How much is missing at the file's end; 0 for a whole one."""
        ends = [tensor.offset + (tensor.size or 0) for tensor in self.tensors]
        return max(0, self.data_start + max(ends) - self.file_size) if ends else 0


def read_header(reference: str | Path) -> Header:
    """The header of a file or of an http(s) URL. Blocks.

    Raises GgufError for what is no sound GGUF header, MissingError or TuirigError where it can't
    be read.
    """
    with opened(reference) as source:
        return parse_header(source)


def parse_header(source: Source) -> Header:
    """The header in a source. Raises GgufError."""
    return _Parser(_Cursor(source)).header()


class _Cursor:
    """Goes forward through a source with a window of bounded size."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._window = b""
        self._start = 0  # where the window stands in the source
        self._at = 0  # in the window
        self._read = source.first_read
        self._strings = 0

    @property
    def label(self) -> str:
        return self._source.label

    @property
    def size(self) -> int:
        return self._source.size

    @property
    def position(self) -> int:
        return self._start + self._at

    @property
    def left(self) -> int:
        return self._source.size - self.position

    def error(self, message: str, *, at: int | None = None, hint: str = "") -> GgufError:
        return GgufError(self.label, message, at=self.position if at is None else at, hint=hint)

    def require(self, count: int, what: str) -> None:
        """Make sure that the file can hold `count` more bytes."""
        if count > self.left:
            raise self.error(
                f"it ends inside its header: {what} needs {count:,} bytes, {max(0, self.left):,}"
                " are left",
                hint="it is cut short or damaged: download it again",
            )

    def take(self, count: int, what: str) -> bytes:
        if len(self._window) - self._at < count:
            self._fill(count, what)
        self._at += count
        return self._window[self._at - count : self._at]

    def number(self, unpacker: struct.Struct, what: str) -> int:
        value: int = unpacker.unpack(self.take(unpacker.size, what))[0]
        return value

    def skip(self, count: int, what: str, digest: _Hash | None = None) -> None:
        """Go `count` bytes on; they are read only for a digest."""
        self.require(count, what)
        while digest is not None and count:
            part = self.take(min(count, _MOST_READ), what)
            digest.update(part)
            count -= len(part)
        self._at += count

    def skip_strings(self, count: int, what: str, digest: _Hash | None = None) -> None:
        """Go over `count` strings, each with its length in front."""
        self.require(8 * count, what)
        self._strings += count
        if self._strings > _MOST_STRINGS:
            raise self.error(f"{what} has {count:,} strings; no model has that many")
        length_at = _U64.unpack_from
        while count:
            if len(self._window) - self._at < 8:
                self._fill(8, what)
            window, at = self._window, self._at
            # One exception per window is cheaper than one comparison per string.
            try:
                for left in range(count - 1, -1, -1):  # noqa: B007 (used after the loop)
                    at += 8 + length_at(window, at)[0]
                count = 0
            except (struct.error, OverflowError):
                count = left + 1
            step = at - self._at
            self.require(step, what)
            if step <= len(window) - self._at:
                if digest is not None:
                    digest.update(memoryview(window)[self._at : at])
                self._at = at
            else:
                self.skip(step, what, digest)

    def _fill(self, count: int, what: str) -> None:
        """Have at least `count` bytes in the window."""
        self.require(count, what)
        self._start, self._at, kept = self.position, 0, self._window[self._at :]
        more = self._source.read(self._start + len(kept), max(count - len(kept), self._read))
        self._window = kept + more
        self._read = min(2 * self._read, _MOST_READ)
        if len(self._window) < count:
            raise self.error(f"it became shorter while {what} was read", hint="try again")


class _Parser:
    def __init__(self, cursor: _Cursor) -> None:
        self._cursor = cursor
        self._kept = 0

    def header(self) -> Header:
        cursor = self._cursor
        version = self._version()
        tensor_count = self._count(24, _MOST_TENSORS, "tensors")
        key_count = self._count(13, _MOST_KEYS, "keys")
        keys: dict[str, Value] = {}
        for _ in range(key_count):
            at = cursor.position
            name = self._text("a key's name", _LONGEST_NAME)
            if name in keys:
                raise cursor.error(f"the key {_shown(name)} stands twice", at=at)
            keys[name] = self._value(name)
        keys_end = cursor.position
        alignment = self._alignment(keys)
        tensors = tuple(self._tensor(alignment) for _ in range(tensor_count))
        if len({tensor.name for tensor in tensors}) < tensor_count:
            raise cursor.error("two tensors have the same name")
        end = cursor.position
        return Header(
            version=version,
            keys=keys,
            tensors=tensors,
            keys_end=keys_end,
            data_start=end + -end % alignment,
            file_size=cursor.size,
            alignment=alignment,
        )

    def _version(self) -> int:
        cursor = self._cursor
        start = cursor.take(min(4, cursor.left), "the magic")
        if start != MAGIC:
            raise cursor.error(f"not a GGUF file (it starts with {start!r})", at=0)
        version = cursor.number(_U32, "the version")
        if version in _VERSIONS:
            return version
        if version and not version & 0xFFFF:
            raise cursor.error(
                "a big-endian GGUF, which llama.cpp reads on big-endian machines only",
                at=4,
                hint="convert the model again on this kind of machine",
            )
        if version in (0, 1):
            raise cursor.error(
                f"GGUF version {version}, which llama.cpp reads no more",
                at=4,
                hint="convert the model again",
            )
        raise cursor.error(f"GGUF version {version:,}; known are 2 and 3", at=4)

    def _count(self, smallest: int, most: int, what: str) -> int:
        """A number of entries that take at least `smallest` bytes each."""
        cursor = self._cursor
        at = cursor.position
        count = cursor.number(_U64, f"the number of {what}")
        if count > most or count * smallest > cursor.left:
            raise cursor.error(f"it claims {count:,} {what}, which it can't hold", at=at)
        return count

    def _text(self, what: str, longest: int) -> str:
        cursor = self._cursor
        at = cursor.position
        length = cursor.number(_U64, f"the length of {what}")
        if length > longest:
            raise cursor.error(f"{what} claims {length:,} bytes", at=at)
        self._keep(length)
        return cursor.take(length, what).decode("utf-8", "replace")

    def _keep(self, size: int) -> None:
        self._kept += size
        if self._kept > _MOST_KEPT:
            raise self._cursor.error(f"its keys hold more than {_MOST_KEPT >> 20} MiB of text")

    def _value(self, key: str) -> Value:
        cursor = self._cursor
        at = cursor.position
        kind = cursor.number(_U32, f"the type of {_shown(key)}")
        if kind == _STRING:
            return self._string(key)
        if kind == _ARRAY:
            return self._array(key)
        if kind in _NUMBERS:
            return self._numbers(kind, 1, key)[0]
        raise cursor.error(f"{_shown(key)} has the unknown value type {kind}", at=at)

    def _string(self, key: str) -> Value:
        cursor = self._cursor
        length = _U64.unpack(cursor.take(8, _shown(key)))[0]
        if length > _LONGEST_TEXT:
            offset = cursor.position
            cursor.skip(length, _shown(key))
            return Left(_STRING, 1, offset, length)
        self._keep(length)
        return cursor.take(length, _shown(key)).decode("utf-8", "replace")

    def _array(self, key: str) -> Value:
        cursor = self._cursor
        at = cursor.position
        kind = cursor.number(_U32, f"the item type of {_shown(key)}")
        count = cursor.number(_U64, f"the length of {_shown(key)}")
        offset = cursor.position
        if kind == _STRING:
            digest = _sha256() if key == TOKENS else None
            cursor.skip_strings(count, _shown(key), digest)
            text = digest.hexdigest() if digest is not None else None
            return Left(kind, count, offset, cursor.position - offset, text)
        if kind not in _NUMBERS:
            words = "a list of lists" if kind == _ARRAY else f"the unknown item type {kind}"
            raise cursor.error(f"{_shown(key)} has {words}", at=at)
        if count <= _LONGEST_LIST:
            return self._numbers(kind, count, key)
        size = count * _NUMBERS[kind][1]
        cursor.skip(size, _shown(key))
        return Left(kind, count, offset, size)

    def _numbers(self, kind: int, count: int, key: str) -> tuple[int | float | bool, ...]:
        letter, size = _NUMBERS[kind]
        self._keep(count * size)
        data = self._cursor.take(count * size, _shown(key))
        return struct.unpack(f"<{count}{letter}", data)

    def _alignment(self, keys: dict[str, Value]) -> int:
        value = keys.get("general.alignment", ALIGNMENT)
        if not isinstance(value, int) or not 0 < value < 2**31 or value & (value - 1):
            raise self._cursor.error(f"general.alignment is {value!r}, not a power of two")
        return value

    def _tensor(self, alignment: int) -> Tensor:
        cursor = self._cursor
        name = self._text("a tensor's name", _LONGEST_NAME)
        at = cursor.position
        dimensions = cursor.number(_U32, f"the tensor {_shown(name)}")
        if dimensions > _MOST_DIMENSIONS:
            raise cursor.error(f"the tensor {_shown(name)} has {dimensions:,} dimensions", at=at)
        shape = struct.unpack(
            f"<{dimensions}Q", cursor.take(8 * dimensions, f"the shape of {_shown(name)}")
        )
        kind = cursor.number(_U32, f"the type of {_shown(name)}")
        offset = cursor.number(_U64, f"the offset of {_shown(name)}")
        tensor = Tensor(name, kind, shape, offset)
        if tensor.elements >= 2**63 or offset >= 2**63:
            raise cursor.error(f"the tensor {_shown(name)} is larger than any memory", at=at)
        block = TENSOR_TYPES[kind].block if kind in TENSOR_TYPES else 1
        if (shape[0] if shape else 1) % block:
            raise cursor.error(
                f"the rows of {_shown(name)} are no multiple of {block}, as {tensor.type_name}"
                " needs",
                at=at,
            )
        if offset % alignment:
            raise cursor.error(
                f"the tensor {_shown(name)} does not start at a multiple of {alignment}", at=at
            )
        return tensor


def _sha256() -> _Hash:
    import hashlib

    return hashlib.sha256()


def _shown(name: str) -> str:
    """A name from a file, as a message may show it."""
    text = name if name.isprintable() else ascii(name)[1:-1]
    return text if len(text) <= 80 else f"{text[:79]}…"
