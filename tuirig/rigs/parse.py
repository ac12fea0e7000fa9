"""Rig text -> Rig, with errors that name file, line and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import msgspec

from tuirig.errors import FileError
from tuirig.rigs.drafting import NeedsFile, needs_file, speculative_types
from tuirig.rigs.schema import Drafter, ModelFile, Rig
from tuirig.rigs.settings import is_name

#: Flags that tuirig sets itself, and why they may not stand in `args`.
MANAGED_FLAGS: dict[str, str] = {
    **dict.fromkeys(("--port", "--host"), "tuirig chooses a free port on 127.0.0.1"),
    **dict.fromkeys(("-np", "--parallel"), "settings are compared with one slot"),
    **dict.fromkeys(("-m", "--model", "-mu", "--model-url"), "the target stands in [target]"),
    **dict.fromkeys(
        ("-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-dr", "--docker-repo"),
        "the target stands in [target]",
    ),
    **dict.fromkeys(
        ("-md", "--model-draft", "--spec-draft-model", "-hfd", "-hfrd", "--hf-repo-draft",
         "--spec-draft-hf"),
        "a drafter stands in [[drafter]]",
    ),
    **dict.fromkeys(("--spec-type", "--spec-default"), "the type stands in [[drafter]]"),
    **dict.fromkeys(
        ("--spec-draft-n-max", "--draft-max", "--draft", "--draft-n", "--spec-ngram-simple-size-m",
         "--spec-ngram-map-k-size-m", "--spec-ngram-map-k4v-size-m", "--spec-ngram-mod-n-max",
         "--spec-ngram-size-m"),
        "the draft length belongs to the setting (q4_0:2)",
    ),
    **dict.fromkeys(
        ("--spec-draft-p-min", "--draft-p-min", "--spec-draft-n-min", "--draft-min",
         "--draft-n-min"),
        "it is a knob of the setting (q4_0:2,p_min=0.3)",
    ),
    **dict.fromkeys(("--metrics", "--slots", "--no-slots"), "tuirig reads both endpoints"),
    **dict.fromkeys(("--api-key", "--api-key-file"), "tuirig makes a random key for each start"),
    **dict.fromkeys(("-fit", "--fit"), "it would give settings different contexts"),
    **dict.fromkeys(
        ("-lv", "--verbosity", "--log-verbosity", "-v", "--verbose", "--log-disable",
         "--log-file", "--log-colors", "--log-jsonl"),
        "tuirig reads the server's log",
    ),
    **dict.fromkeys(("--embedding", "--embeddings", "--rerank", "--reranking"),
                    "the server has to generate text"),
}  # fmt: skip
REQUIRED_FLAGS: dict[str, tuple[str, ...]] = {
    "-c": ("-c", "--ctx-size"),
    "-ngl": ("-ngl", "--gpu-layers", "--n-gpu-layers"),
}
_HEADER = re.compile(r"^\s*(\[\[?)\s*([A-Za-z0-9_.\"'-]+)\s*\]")
_KEY = re.compile(r"^\s*(?:\"([^\"]+)\"|'([^']+)'|([A-Za-z0-9_-]+))\s*(?:\.|=)")


def parse_rig(text: str, path: str = "rig") -> Rig:
    """Read and check a rig. Raises FileError with path, line and key."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        message = re.sub(r" \(at (line.*|end of document)\)$", "", str(error))
        raise FileError(
            path,
            f"not valid TOML: {message}",
            line=int(line[1]) if line else max(1, len(text.splitlines())),
        ) from None
    lines = TomlLines(text)
    try:
        rig = msgspec.convert(data, Rig, strict=True)
    except msgspec.ValidationError as error:
        raise _schema_error(error, path, lines) from None
    for key, message, hint in _problems(rig):
        raise FileError(path, message, line=lines.of(key), key=key, hint=hint)
    return rig


def _schema_error(error: msgspec.ValidationError, path: str, lines: TomlLines) -> FileError:
    message, _, where = str(error).partition(" - at `")
    key = where.rstrip("`").removeprefix("$").lstrip(".")
    unknown = re.match(r"Object contains unknown field `(.*)`", message)
    missing = re.match(r"Object missing required field `(.*)`", message)
    if unknown:
        key, message = f"{key}.{unknown[1]}".lstrip("."), "unknown key"
    elif missing:
        line = lines.of(key)
        key, message = f"{key}.{missing[1]}".lstrip("."), "this key is missing"
        return FileError(path, message, line=line, key=key)
    return FileError(path, message[:1].lower() + message[1:], line=lines.of(key), key=key)


def _problems(rig: Rig) -> Iterator[tuple[str, str, str]]:
    """(key, message, hint) of every rule that types can't express."""
    if not is_name(rig.name):
        yield "name", f"{rig.name!r}: use letters, digits, '.', '_' and '-' (not `none`)", ""
    yield from _file_problems(rig.target, "target", NeedsFile.YES)
    names: set[str] = set()
    for index, drafter in enumerate(rig.drafter):
        yield from _drafter_problems(drafter, f"drafter[{index}]", names)
        names.add(drafter.row)
    yield from _args_problems(rig.server.args, "server.args")
    for flag, spellings in REQUIRED_FLAGS.items():
        if not set(spellings) & set(rig.server.args):
            yield (
                "server.args",
                f"{flag} is missing",
                f'say it for every setting alike, e.g. args = ["-ngl", "99", "-c", "8192"]'
                f" ({flag} left open, the server would choose per setting)",
            )
    for name in rig.server.env:
        if name.startswith("LLAMA_ARG_") or name == "LLAMA_API_KEY":
            yield f"server.env.{name}", "flags belong in server.args", ""
    lengths = rig.tune.lengths
    if list(lengths) != sorted(set(lengths)):
        yield "tune.lengths", "lengths rise, each once, e.g. [0, 1, 2, 3]", ""
    if not any(lengths):
        yield "tune.lengths", "at least one length above 0 is needed", ""


def _drafter_problems(
    drafter: Drafter, key: str, names: set[str]
) -> Iterator[tuple[str, str, str]]:
    name_key = f"{key}.name" if drafter.name else f"{key}.format"
    if not is_name(drafter.row):
        yield name_key, f"{drafter.row!r}: use letters, digits, '.', '_' and '-' (not `none`)", ""
    if drafter.row in names:
        yield name_key, f"a second drafter {drafter.row!r}", 'give one a name = "..."'
    try:
        types = speculative_types(drafter.type)
    except ValueError as error:
        yield f"{key}.type", str(error), "e.g. draft-mtp, draft-simple, ngram-simple"
        return
    yield from _file_problems(drafter, key, needs_file(types))
    yield from _args_problems(drafter.args, f"{key}.args")


def _file_problems(file: ModelFile, key: str, needed: NeedsFile) -> Iterator[tuple[str, str, str]]:
    if file.path and file.repo:
        yield f"{key}.repo", "path and repo exclude each other", ""
    if bool(file.repo) != bool(file.file):
        yield f"{key}.{'repo' if file.repo else 'file'}", "repo and file belong together", ""
    if file.revision and not file.repo:
        yield f"{key}.revision", "revision belongs to repo", ""
    given = bool(file.path or file.repo)
    if needed is NeedsFile.YES and not given:
        yield key, "path is missing", 'add path = "~/models/….gguf"'
    if needed is NeedsFile.NO and given:
        yield f"{key}.{'path' if file.path else 'repo'}", "this type uses no drafter file", ""


def _args_problems(args: tuple[str, ...], key: str) -> Iterator[tuple[str, str, str]]:
    for arg in args:
        reason = MANAGED_FLAGS.get(arg.partition("=")[0])
        if reason:
            yield key, f"{arg} is set by tuirig: {reason}", f"take {arg} out of {key}"


class TomlLines:
    """Where keys stand in a TOML text, for messages; tomllib does not say."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, int] = {}
        self._first: dict[str, int] = {}
        counts: dict[str, int] = {}
        table = ""
        for number, line in enumerate(text.splitlines(), 1):
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
