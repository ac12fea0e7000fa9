"""Profile files: the shipped ones, and a user's own, which win over a shipped one of that name."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import tuirig
from tuirig import locations
from tuirig.errors import FileError, MissingError, TuirigError
from tuirig.files.text import read_text
from tuirig.records import CardInfo
from tuirig.rigs.matching import same_memory
from tuirig.rigs.profile import ALL_KINDS, Profile, parse_profile, profile_name, to_dict

SUFFIX = ".toml"


@dataclass(frozen=True)
class ProfileFile:
    """A profile and where it stands. name: `<card>/<model>`, without `.toml`."""

    name: str
    path: Path
    shipped: bool
    content: Profile | FileError


def shipped_folder() -> Path:
    """The profiles that tuirig carries: inside the installed package, beside it in a clone."""
    package = Path(tuirig.__file__).parent
    installed = package / "shipped_profiles"
    return installed if installed.is_dir() else package.parent / "profiles"


def all_profiles() -> tuple[ProfileFile, ...]:
    """Every profile by name; a user's own hides a shipped one. A bad file carries its error."""
    files = {
        **_files_of(shipped_folder(), shipped=True),
        **_files_of(locations.profiles_folder(), shipped=False),
    }
    return tuple(files[name] for name in sorted(files))


def find_profile(reference: str) -> Profile:
    """A profile by name (`<card>/<model>`) or path.

    Raises MissingError with the known names, FileError if it is bad.
    """
    files = {file.name: file for file in all_profiles()}
    named = files.get(reference.removesuffix(SUFFIX))
    if named is not None:
        if isinstance(named.content, FileError):
            raise named.content
        return named.content
    path = Path(os.path.expanduser(reference))
    if os.path.exists(path):
        return read_profile(path)
    raise MissingError(
        f"no profile {reference!r}",
        evidence=sorted(files),
        hint="name one of these, or a file",
    )


def saved_profile(card_name: str, model_file: str, objective: str = ALL_KINDS) -> Profile | None:
    """The profile that saving would replace in the user's folder, None if there is none.

    A damaged file counts as none: saving repairs it.
    """
    path = locations.profiles_folder() / profile_name(card_name, model_file, objective)
    if not path.is_file():
        return None
    try:
        return read_profile(path)
    except FileError:
        return None


def read_profile(path: Path) -> Profile:
    """A profile file. Raises FileError with path, line and key."""
    return parse_profile(read_text(path), str(path))


def profile_text(profile: Profile) -> str:
    """What `write_profile` writes. Raises FileError if it would not read back."""
    import tomli_w

    text = tomli_w.dumps(to_dict(profile))
    parse_profile(text, profile.file_name)
    return text


def write_profile(profile: Profile, folder: Path | None = None) -> Path:
    """Write a profile whole or not at all; its path. folder: the user's own unless given.

    Raises FileError for a profile that would not read back, TuirigError if it can't be written.
    """
    from tuirig.atomic import write_atomically

    path = (folder or locations.profiles_folder()) / profile.file_name
    text = profile_text(profile)
    try:
        write_atomically(path, text)
    except OSError as error:
        raise TuirigError(f"{path} can't be written: {error.strerror}") from None
    return path


def fits(profile: Profile, card: CardInfo) -> str:
    """Whether a profile is for a card: "this card", "same card, other memory" or "other card".

    Cards of one name and memory size are alike; a UUID does not matter.
    """
    if profile.card.name.casefold() != card.name.casefold():
        return "other card"
    if not same_memory(profile.card.memory_mib, card.memory_mib):
        return "same card, other memory"
    return "this card"


def _files_of(folder: Path, *, shipped: bool) -> dict[str, ProfileFile]:
    files = {}
    for path in sorted(folder.glob(f"*/*{SUFFIX}")):
        if not path.name.startswith("."):
            name = path.relative_to(folder).as_posix().removesuffix(SUFFIX)
            files[name] = ProfileFile(name, path, shipped, _read_or_error(path))
    return files


def _read_or_error(path: Path) -> Profile | FileError:
    try:
        return read_profile(path)
    except FileError as error:
        return error
