"""Rig text -> Rig, with errors that name file, line and key."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tuirig.errors import FileError
from tuirig.rigs.drafting import NeedsFile, needs_file, speculative_types
from tuirig.rigs.schema import INSIDE, TARGET, Drafter, ModelFile, Rig
from tuirig.rigs.settings import is_name
from tuirig.rigs.toml import TomlLines, convert, read_table

#: Flags that tuirig sets itself, and why they may not stand in `args`.
MANAGED_FLAGS: dict[str, str] = {
    **dict.fromkeys(
        ("--port", "--host", "--reuse-port"), "tuirig chooses a free port on 127.0.0.1"
    ),
    **dict.fromkeys(
        ("--api-prefix", "--ssl-key-file", "--ssl-cert-file"),
        "tuirig talks plain HTTP to the server on this machine",
    ),
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
    **dict.fromkeys(
        ("--spec-synth-len", "--spec-synth-rates"),
        "it makes acceptance up: no figure would be real",
    ),
    **dict.fromkeys(("--models-dir", "--models-preset"), "a rig serves one target"),
    **dict.fromkeys(("--metrics", "--slots", "--no-slots"), "tuirig reads both endpoints"),
    **dict.fromkeys(("--api-key", "--api-key-file"), "tuirig makes a random key for each start"),
    **dict.fromkeys(("-fit", "--fit"), "it would give settings different contexts"),
    **dict.fromkeys(
        ("-lv", "--verbosity", "--log-verbosity", "-v", "--verbose", "--log-verbose",
         "--log-disable", "--log-file", "--log-colors", "--log-jsonl", "--no-log-jsonl",
         "--log-prefix", "--no-log-prefix", "--log-timestamps", "--no-log-timestamps"),
        "tuirig reads the server's log",
    ),
    **dict.fromkeys(("--embedding", "--embeddings", "--rerank", "--reranking"),
                    "the server has to generate text"),
    **dict.fromkeys(("-h", "--help", "--usage", "--version", "--list-devices"),
                    "the server would print and end"),
}  # fmt: skip
REQUIRED_FLAGS: dict[str, tuple[str, ...]] = {
    "-c": ("-c", "--ctx-size"),
    "-ngl": ("-ngl", "--gpu-layers", "--n-gpu-layers"),
}
_REQUIRED_VALUES = {
    "-c": (re.compile(r"0*[1-9][0-9]*"), "a number of tokens above 0"),
    "-ngl": (re.compile(r"[0-9]+|all"), "a number of layers, or all"),
}
_MTP_HINT = f'add path = "~/models/….gguf", or format = "{INSIDE}" if the target carries the head'


def parse_rig(text: str, path: str = "rig") -> Rig:
    """Read and check a rig. Raises FileError with path, line and key."""
    data = read_table(text, path)
    lines = TomlLines(text)
    rig = convert(data, Rig, path, lines)
    for key, message, hint in _problems(rig):
        raise FileError(path, message, line=lines.of(key), key=key, hint=hint)
    return rig


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
    yield from _required_problems(rig.server.args)
    for name in rig.server.env:
        if name.startswith("LLAMA_ARG_") or name == "LLAMA_API_KEY":
            yield f"server.env.{name}", "flags belong in server.args", ""
    lengths = rig.tune.lengths
    if list(lengths) != sorted(set(lengths)):
        yield "tune.lengths", "lengths rise, each once, e.g. [0, 1, 2, 3]", ""
    if not any(lengths):
        yield "tune.lengths", "at least one length above 0 is needed", ""


def _required_problems(args: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    hint = 'say it for every setting alike, e.g. args = ["-ngl", "99", "-c", "8192"]'
    for flag, spellings in REQUIRED_FLAGS.items():
        places = [index for index, arg in enumerate(args) if arg in spellings]
        if not places:
            yield (
                "server.args",
                f"{flag} is missing",
                f"{hint} ({flag} left open, the server would choose per setting)",
            )
        pattern, expected = _REQUIRED_VALUES[flag]
        for index in places:
            if not pattern.fullmatch("".join(args[index + 1 : index + 2])):
                yield f"server.args[{index}]", f"{args[index]} needs {expected}", hint


def _drafter_problems(
    drafter: Drafter, key: str, names: set[str]
) -> Iterator[tuple[str, str, str]]:
    name_key = f"{key}.name" if drafter.name else f"{key}.format"
    if not is_name(drafter.row) or drafter.row == TARGET:
        yield (
            name_key,
            f"{drafter.row!r}: use letters, digits, '.', '_' and '-' (not `none` or `{TARGET}`)",
            "",
        )
    if drafter.row in names:
        yield name_key, f"a second drafter {drafter.row!r}", 'give one a name = "..."'
    try:
        types = speculative_types(drafter.type)
    except ValueError as error:
        yield f"{key}.type", str(error), "e.g. draft-mtp, draft-simple, ngram-simple"
        return
    yield from _file_problems(drafter, key, needs_file(types))
    if any(kind.name == "draft-mtp" for kind in types):
        if drafter.has_file and drafter.format == INSIDE:
            yield f"{key}.format", f"{INSIDE!r} is a drafter that the target carries: no file", ""
        if not drafter.has_file and drafter.format != INSIDE:
            yield key, "path is missing", _MTP_HINT
    yield from _args_problems(drafter.args, f"{key}.args")
    for flag, spellings in REQUIRED_FLAGS.items():
        if set(spellings) & set(drafter.args):
            yield f"{key}.args", f"{flag} has to be the same for every setting", "see server.args"


def _file_problems(file: ModelFile, key: str, needed: NeedsFile) -> Iterator[tuple[str, str, str]]:
    if file.path and file.repo:
        yield f"{key}.repo", "path and repo exclude each other", ""
    yield from _url_problems(file, f"{key}.url")
    for name, value in (("repo", file.repo), ("file", file.file), ("revision", file.revision)):
        if value and not _is_plain_path(value):
            yield f"{key}.{name}", f"{value!r} is not a {name} of the Hub", ""
    if file.repo and file.repo.count("/") > 1:
        yield f"{key}.repo", f"{file.repo!r} is not a repo of the Hub", "write organization/name"
    if bool(file.repo) != bool(file.file):
        yield f"{key}.{'repo' if file.repo else 'file'}", "repo and file belong together", ""
    if file.revision and not file.repo:
        yield f"{key}.revision", "revision belongs to repo", ""
    given = bool(file.path or file.repo)
    if file.sha256 and not given:
        yield f"{key}.sha256", "there is no file to compare it with", ""
    if needed is NeedsFile.YES and not given:
        yield key, "path is missing", 'add path = "~/models/….gguf"'
    if needed is NeedsFile.NO and given:
        yield f"{key}.{'path' if file.path else 'repo'}", "this type uses no drafter file", ""


def _url_problems(file: ModelFile, key: str) -> Iterator[tuple[str, str, str]]:
    if file.url is None:
        return
    from urllib.parse import urlsplit  # rarely needed, and rigs are read at every start

    if not file.path:
        hint = 'say where the file is kept: path = "~/models/….gguf"'
        yield key, "url needs a path", hint
    try:
        parts = urlsplit(file.url)
        host, secret = parts.hostname, parts.username is not None or parts.password is not None
    except ValueError:
        host, secret, parts = None, False, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or not file.url.isascii():
        yield key, "expected https://… or http://…, with a host", ""
    if secret:
        yield key, "a user name or password does not belong in a rig file", ""


def _is_plain_path(text: str) -> bool:
    """Whether text is a relative path with `/` that leads nowhere else."""
    parts = text.split("/")
    return text.isprintable() and "\\" not in text and not {"", ".", ".."} & set(parts)


def _args_problems(args: tuple[str, ...], key: str) -> Iterator[tuple[str, str, str]]:
    for arg in args:
        # llama-server reads `--spec_type` as `--spec-type`.
        reason = MANAGED_FLAGS.get(arg.partition("=")[0].replace("_", "-"))
        if reason:
            yield key, f"{arg} is set by tuirig: {reason}", f"take {arg} out of {key}"
