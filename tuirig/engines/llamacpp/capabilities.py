"""What a llama-server build can do, read from the program itself (`--help`, `--version`).

Never from a version number: third-party builds call themselves build 0 or 1. The layout is that of
llama.cpp's common/arg.cpp: a flag's line starts in column 0; its description begins in column 40
of that line, or on the next one when the head is wider than 37 characters; removed flags are still
listed, with a text that says what replaces them.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from tuirig import __version__
from tuirig.atomic import write_atomically
from tuirig.errors import ServerError
from tuirig.hosts.base import Host, Output
from tuirig.locations import cache_folder

_WIDEST_HEAD = 37
_DESCRIPTION = 40
_SPELLING = re.compile(r"(-{1,2}[A-Za-z][\w.-]*)(,?\s+|$)")
_CHOICES = re.compile(r"[\[{<]([\w.+-]+(?:[|,][\w.+-]+)+)[\]}>]")
_ALLOWED = re.compile(r"allowed values: ([\w.+-]+(?:, [\w.+-]+)*)")
_DEFAULT = re.compile(r"default: '?([^,;)'\s]+)")
_REMOVED = "has been removed"
#: Words that llama.cpp takes for `on`, `off` and `auto` (common/arg.cpp).
SYNONYMS = {
    "on": ("on", "enabled", "true", "1"),
    "off": ("off", "disabled", "false", "0"),
    "auto": ("auto", "-1"),
}


class Flag(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flag as `--help` lists it.

    argument: the hint for its value, empty for a switch. choices: the values it takes, () for
    free ones. default: None where the text names none. removed: what to use instead (never empty
    for a removed flag).
    """

    spellings: tuple[str, ...]
    argument: str = ""
    choices: tuple[str, ...] = ()
    default: str | None = None
    description: str = ""
    removed: str = ""

    @property
    def values(self) -> int:
        """How many values follow it."""
        return len(re.sub(r"<[^>]*>", "<>", self.argument).split())

    def takes(self, value: str) -> bool:
        """Whether value is among the choices (or their synonyms), if there are any."""
        if not self.choices or value in self.choices:
            return True
        return any(word in self.choices and value in same for word, same in SYNONYMS.items())


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a build offers. build: its own label, for people only."""

    build: str
    flags: tuple[Flag, ...]

    def find(self, spelling: str) -> Flag | None:
        """The flag of a spelling, also a removed one. llama.cpp reads `_` in `--flags` as `-`."""
        wanted = spelling.replace("_", "-") if spelling.startswith("--") else spelling
        for flag in self.flags:
            if wanted in flag.spellings:
                return flag
        return None

    def spelling(self, *candidates: str) -> str | None:
        """The first candidate that this build accepts, None if it has none of them."""
        for candidate in candidates:
            flag = self.find(candidate)
            if flag is not None and not flag.removed:
                return candidate
        return None

    @property
    def flash_attention_takes_value(self) -> bool:
        """`-fa on|off|auto`; builds up to 2025-08 have a switch."""
        flag = self.find("-fa")
        return flag is not None and bool(flag.argument)

    @property
    def drafts_without_type(self) -> bool:
        """Whether `-md` alone drafts: builds whose `--spec-type` knows no draft model."""
        flag = self.find("--spec-type")
        listed = flag.choices if flag is not None else ()
        no_models = not any(name.startswith("draft-") for name in listed)
        return no_models and self.spelling("-md") is not None

    @property
    def combines_types(self) -> bool:
        """Whether `--spec-type` takes a comma list."""
        flag = self.find("--spec-type")
        return flag is not None and "|" not in flag.argument

    @property
    def speculative_types(self) -> tuple[str, ...]:
        """The types a drafter may have, `none` apart."""
        flag = self.find("--spec-type")
        listed = flag.choices if flag is not None else ()
        implied = ("draft-simple",) if self.drafts_without_type else ()
        return (*implied, *(name for name in listed if name != "none"))


def parse_help(text: str, build: str = "unknown") -> Capabilities:
    """Read the text of `--help`. Raises ValueError if it lists no `--model`."""
    flags = tuple(_flag(head, " ".join(description)) for head, description in _blocks(text))
    found = Capabilities(build=build, flags=flags)
    if found.find("--model") is None:
        raise ValueError("no --model in the help text")
    return found


def parse_version(output: str) -> str:
    """The build's label from `--version` (stderr; CUDA builds print devices before it)."""
    label = re.search(r"^version: (.+)$", output, re.MULTILINE)
    return label[1].strip() if label else "unknown"


async def read_capabilities(host: Host, program: Path, env: Mapping[str, str]) -> Capabilities:
    """Ask a program of this host, or the cache if the program is the one asked before.

    Raises ServerError if it does not answer like a llama-server.
    """
    cache = cache_folder() / "capabilities" / f"{_digest([str(program)])}.json"
    # A newer tuirig may read the text in another way.
    identity = f"{__version__} {await asyncio.to_thread(program_mark, program)}"
    known = await asyncio.to_thread(_read_cache, cache)
    if known is not None and known.identity == identity:
        return known.capabilities
    help_text, version = await asyncio.gather(
        host.run([str(program), "--help"], env), host.run([str(program), "--version"], env)
    )
    try:
        found = parse_help(help_text.stdout, parse_version(version.stderr + version.stdout))
    except ValueError as error:
        raise ServerError(
            f"{program} does not answer like a llama-server (exit code {help_text.returncode})",
            evidence=_last_lines(help_text),
            hint=f"run {program} --help",
        ) from error
    entry = _Cached(identity=identity, capabilities=found)
    with contextlib.suppress(OSError):  # then it is asked again the next time
        await asyncio.to_thread(write_atomically, cache, msgspec.json.encode(entry))
    return found


class _Cached(msgspec.Struct, frozen=True):
    identity: str
    capabilities: Capabilities


def _read_cache(path: Path) -> _Cached | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Cached)
    except (OSError, msgspec.DecodeError):
        return None  # asked again and written anew


def program_mark(program: Path) -> str:
    """Changes with the program and the libraries beside it; a build's label may stay the same.

    The libraries count because recent builds keep flags and kernels in them.
    """
    folder = program.resolve().parent
    libraries = (*folder.glob("libllama*"), *folder.glob("libggml*"))
    facts = []
    for file in (program, *sorted(libraries)):
        stat = file.stat()
        facts.append(f"{file.name} {stat.st_size} {stat.st_mtime_ns}")
    return _digest(facts)


def _digest(facts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:32]


def _blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """(head, description lines) of every flag."""
    block: tuple[str, list[str]] | None = None
    for line in text.splitlines():
        if line.startswith("-") and not line.startswith("---"):
            if block is not None:
                yield block
            beside = line[_WIDEST_HEAD:_DESCRIPTION].isspace()
            head = line[:_WIDEST_HEAD] if beside else line
            block = head.rstrip(), [line[_DESCRIPTION:].strip()] if beside else []
        elif block is not None and line.startswith(" "):
            block[1].append(line.strip())
    if block is not None:
        yield block


def _flag(head: str, description: str) -> Flag:
    spellings = []
    while spelling := _SPELLING.match(head):
        spellings.append(spelling[1])
        head = head[spelling.end() :]
        if not spelling[2].startswith(","):
            break
    description = re.sub(r"\s*\(env: [^)]*\)", "", description).strip()
    default = _DEFAULT.search(description)
    _, removed, instead = description.partition(_REMOVED)
    return Flag(
        spellings=tuple(spellings),
        argument=head.strip(),
        choices=_choices(head.strip(), description),
        default=default[1] if default else None,
        description=description,
        removed=(instead.strip(" .") or "nothing replaces it") if removed else "",
    )


def _choices(argument: str, description: str) -> tuple[str, ...]:
    listed = _CHOICES.fullmatch(argument)
    names = listed[1] if listed else argument
    # `--spec-type none,draft-simple,...` lists its values without brackets.
    if (listed and ".." not in names) or names.startswith("none,"):
        return tuple(re.split(r"[|,]", names))
    allowed = _ALLOWED.search(description)
    return tuple(allowed[1].split(", ")) if allowed else ()


def _last_lines(output: Output) -> tuple[str, ...]:
    return tuple((output.stderr or output.stdout).strip().splitlines()[-3:])
