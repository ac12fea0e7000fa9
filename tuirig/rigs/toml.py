"""TOML text -> a checked struct, with errors that name file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from tuirig.errors import FileError

if TYPE_CHECKING:
    from msgspec import inspect

T = TypeVar("T")

#: TOML's words for what msgspec calls its types.
_KINDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\"'-]+)\s*\]")
_KEY = re.compile(r"^\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+))\s*(?:\.|=)")


def read_table(text: str, path: str) -> dict[str, Any]:
    """TOML text as a table. Raises FileError with path and line for what is not TOML."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        message = re.sub(r" \(at (line.*|end of document)\)$", "", str(error))
        raise FileError(
            path,
            f"not valid TOML: {message}",
            line=int(line[1]) if line else max(1, len(text.splitlines())),
        ) from None
    for key, value in _strings(data, ""):
        if "\0" in key + value:
            key = key.replace("\0", "")
            raise FileError(
                path, "a NUL character can't be used", line=TomlLines(text).of(key), key=key
            )
    return data


def convert(data: dict[str, Any], kind: type[T], path: str, lines: TomlLines) -> T:
    """A table as a struct, strictly. Raises FileError for an unknown, missing or mistyped key."""
    try:
        return msgspec.convert(data, kind, strict=True)
    except msgspec.ValidationError as error:
        raise _schema_error(error, kind, path, lines) from None


def _schema_error(
    error: msgspec.ValidationError, kind: Any, path: str, lines: TomlLines
) -> FileError:
    message, _, where = str(error).partition(" - at `")
    key = where.rstrip("`").removeprefix("$").replace("[...]", "").lstrip(".")
    line = lines.of(key)
    unknown = re.match(r"Object contains unknown field `(.*)`", message)
    missing = re.match(r"Object missing required field `(.*)`", message)
    if unknown:
        message = f"unknown key{_did_you_mean(unknown[1], _keys_in(kind, key))}"
        key = f"{key}.{unknown[1]}".lstrip(".")
        line = lines.of(key)
    elif missing:
        key, message = f"{key}.{missing[1]}".lstrip("."), "this key is missing"
    elif "enum value" in message:
        message = f"{message}; known: {', '.join(_words_of(kind, key))}"
    elif "regex" in message:
        message = "expected 64 hexadecimal digits in lower case"
    message = re.sub(r"`(\w+)(?: \| null)?`", lambda word: _KINDS.get(word[1], word[0]), message)
    return FileError(path, message[:1].lower() + message[1:], line=line, key=key)


def _did_you_mean(word: str, known: list[str]) -> str:
    from difflib import get_close_matches  # rigs are read at every start

    close = get_close_matches(word, known, 1)
    return f"; did you mean {close[0]}?" if close else ""


def _keys_in(kind: Any, key: str) -> list[str]:
    """The keys of the struct that stands at a key, e.g. `drafter[0]`."""
    from msgspec import inspect

    place = _type_at(kind, key)
    fields = place.fields if isinstance(place, inspect.StructType) else ()
    return [field.encode_name for field in fields]


def _words_of(kind: Any, key: str) -> list[str]:
    """The values that a key may have, where they are listed."""
    from msgspec import inspect

    place = _type_at(kind, key)
    return [str(word) for word in place.values] if isinstance(place, inspect.LiteralType) else []


def _type_at(kind: Any, key: str) -> inspect.Type:
    from msgspec import inspect

    place: inspect.Type = inspect.type_info(kind)
    for name in re.findall(r"[^.\[\]]+", re.sub(r"\[[^\]]*\]", "", key)):
        fields = place.fields if isinstance(place, inspect.StructType) else ()
        place = next((field.type for field in fields if field.encode_name == name), place)
        if isinstance(place, inspect.UnionType):
            place = next((one for one in place.types if isinstance(one, inspect.StructType)), place)
        if isinstance(place, inspect.VarTupleType | inspect.ListType):
            place = place.item_type
    return place


def _strings(value: Any, key: str) -> Iterator[tuple[str, str]]:
    """(key, string) of every string below a value; a table's own keys count too."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _strings(item, f"{key}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            yield f"{key}.{name}".lstrip("."), ""
            yield from _strings(item, f"{key}.{name}".lstrip("."))


class TomlLines:
    """Where keys stand in a TOML text, for messages; tomllib does not say."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, int] = {}
        self._first: dict[str, int] = {}
        counts: dict[str, int] = {}
        table = ""
        quotes = ""
        for number, line in enumerate(text.splitlines(), 1):
            if quotes:
                if quotes in line:
                    quotes = ""
                continue
            quotes = _left_open(line)
            header = _HEADER.match(line)
            if header:
                table = header[2].replace('"', "").replace("'", "")
                if header[1] == "[[":
                    counts[table] = counts.get(table, -1) + 1
                    table = f"{table}[{counts[table]}]"
                self._lines.setdefault(table, number)
                continue
            key = _KEY.match(line)
            if key:
                name = key[1] or key[2] or key[3]
                self._lines.setdefault(f"{table}.{name}".lstrip("."), number)
                self._first.setdefault(name, number)

    def of(self, key: str) -> int | None:
        """The line of `server.args[3]`; else of its parents; else the first line with the key."""
        while key:
            if key in self._lines:
                return self._lines[key]
            shorter = re.sub(r"(\[[^\]]*\]|\.?[^.\[\]]+)$", "", key)
            if shorter == key:
                break
            last = re.sub(r"\[.*$", "", key.rpartition(".")[2])
            if shorter not in self._lines and last in self._first:
                return self._first[last]
            key = shorter
        return None


def _left_open(line: str) -> str:
    """The quotes of a multi-line string that a line opens and does not close, else ''."""
    for quotes in ('"""', "'''"):
        if line.count(quotes) % 2:
            return quotes
    return ""
