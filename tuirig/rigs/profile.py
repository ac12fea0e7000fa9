"""The profile: the chosen setting of one card and model, with its evidence and command line.

A TOML file that the program writes. Its place below a folder of profiles is
`<card>/<model>.toml`, see `profile_name`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec

from tuirig.errors import FileError
from tuirig.rigs.schema import NonEmpty, Sha256
from tuirig.rigs.settings import Setting, parse_setting
from tuirig.rigs.shards import model_name
from tuirig.rigs.toml import TomlLines, convert, read_table

SCHEMA: Final = 1
#: The objective of a profile whose file name carries none.
ALL_KINDS = "all"

Positive = Annotated[float, msgspec.Meta(gt=0)]
Bytes = Annotated[int, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class ProfileCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The card that the figures come from."""

    name: NonEmpty
    uuid: NonEmpty | None = None
    memory_mib: Positive | None = None
    driver: NonEmpty | None = None


class ProfileModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The target. file: its file name. size in bytes; of all its shards."""

    name: NonEmpty
    file: NonEmpty
    size: Bytes | None = None
    sha256: Sha256 | None = None
    format: NonEmpty | None = None


class ProfileDrafter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The drafter of the setting. file is None for one inside the target and for an n-gram."""

    format: NonEmpty
    type: NonEmpty
    file: NonEmpty | None = None
    size: Bytes | None = None
    sha256: Sha256 | None = None


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was measured. Units and meanings are those of `records.Reply`.

    none_tok_s: the same prompts without a drafter; gain: tok_s against it. verdict, interval: of
    the gain. starts: server starts of the setting. prompts, tokens: how many prompts, and the token
    limit of each reply. when: ISO 8601, UTC. reference: where a published figure stands.
    """

    tok_s: Positive
    none_tok_s: Positive | None = None
    gain: Positive | None = None
    kept: Share | None = None
    accepted_per_position: tuple[Share, ...] | None = None
    mean_accepted_length: Annotated[float, msgspec.Meta(ge=1)] | None = None
    ttft_ms: Positive | None = None
    memory_mib: Positive | None = None
    memory_source: NonEmpty | None = None
    verdict: NonEmpty | None = None
    interval: tuple[Positive, Positive] | None = None
    starts: Count | None = None
    prompts: Count
    tokens: Count
    server_build: NonEmpty | None = None
    when: NonEmpty | None = None
    tuirig: NonEmpty | None = None
    note: NonEmpty | None = None
    reference: NonEmpty | None = None


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A profile file's content. argv and env: the server's exact command line, no secrets."""

    schema: Literal[1] = SCHEMA
    source: Literal["measured", "published", "simulated"]
    objective: NonEmpty = ALL_KINDS
    setting: NonEmpty
    argv: Annotated[tuple[NonEmpty, ...], msgspec.Meta(min_length=1)]
    env: dict[str, str] = {}
    card: ProfileCard
    model: ProfileModel
    drafter: ProfileDrafter | None = None
    evidence: Evidence

    @property
    def parsed_setting(self) -> Setting:
        """The setting. ValueError can't happen in a profile that was read."""
        return parse_setting(self.setting)

    @property
    def file_name(self) -> str:
        """Its place below a folder of profiles."""
        return profile_name(self.card.name, self.model.file, self.objective)


class Change(NamedTuple):
    """One key that saving changes. None: not there."""

    key: str
    old: str | None
    new: str | None


def parse_profile(text: str, path: str = "profile") -> Profile:
    """Read and check a profile. Raises FileError with path, line and key."""
    data = read_table(text, path)
    lines = TomlLines(text)
    schema = data.get("schema")
    if schema is None:
        raise FileError(path, "this key is missing", key="schema", hint=f"schema = {SCHEMA}")
    if schema != SCHEMA:
        raise FileError(
            path,
            f"this tuirig reads schema {SCHEMA}, not {schema!r}",
            line=lines.of("schema"),
            key="schema",
            hint="a newer tuirig wrote it",
        )
    profile = convert(data, Profile, path, lines)
    for key, message in _problems(profile):
        raise FileError(path, message, line=lines.of(key), key=key)
    return profile


def _problems(profile: Profile) -> Iterator[tuple[str, str]]:
    """(key, message) of every rule that types can't express."""
    try:
        setting = profile.parsed_setting
    except ValueError as error:
        yield "setting", str(error)
        return
    if (setting.drafter is None) != (profile.drafter is None):
        needs = "needs no" if setting.drafter is None else "needs a"
        yield "setting", f"{setting} {needs} [drafter]"
    evidence = profile.evidence
    if profile.source == "published" and evidence.reference is None:
        yield "evidence.reference", "a published profile says where it was published"
    if profile.source == "measured" and (evidence.when is None or evidence.server_build is None):
        yield "evidence", "a measured profile has `when` and `server_build`"


def to_dict(profile: Profile) -> dict[str, Any]:
    """A profile as a table for TOML: no None, no empty table; single values before tables."""
    return _without_unknown(msgspec.to_builtins(profile))


def _without_unknown(table: dict[str, Any]) -> dict[str, Any]:
    known = {
        key: _without_unknown(value) if isinstance(value, dict) else value
        for key, value in table.items()
    }
    return {key: value for key, value in known.items() if value is not None and value != {}}


def slug(text: str) -> str:
    """A name for a folder or file, by one rule.

    Lower case; every run of other characters than a-z and 0-9 becomes one "-"; none at the ends;
    "unnamed" if nothing is left. `NVIDIA GeForce RTX 3050 OEM` is `nvidia-geforce-rtx-3050-oem`.
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def profile_name(card_name: str, model_file: str, objective: str = ALL_KINDS) -> str:
    """`<card>/<model>.toml`, both by `slug`.

    The model is named by its file, so another quantization has a profile of its own; so has
    another objective than "all": `<card>/<model>--<objective>.toml`.
    """
    suffix = "" if objective == ALL_KINDS else f"--{slug(objective)}"
    return f"{slug(card_name)}/{slug(model_name(model_file))}{suffix}.toml"


def difference(old: Profile | None, new: Profile) -> tuple[Change, ...]:
    """Every key that saving `new` over `old` changes, in the order of the file."""
    before = dict(_flat(to_dict(old), "")) if old else {}
    after = dict(_flat(to_dict(new), ""))
    return tuple(
        Change(key, before.get(key), after.get(key))
        for key in (*after, *(key for key in before if key not in after))
        if before.get(key) != after.get(key)
    )


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _flat(value, f"{key}.")
        elif key == "argv":
            yield key, shlex.join(value)
        elif isinstance(value, list | tuple):
            yield key, ", ".join(str(item) for item in value)
        else:
            yield key, str(value)
