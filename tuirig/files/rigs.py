"""A person's rig files. The program reads them and may write a new one; it changes none."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from tuirig import locations
from tuirig.errors import ExitCode, FileError, MissingError, TuirigError
from tuirig.files.text import read_text
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import is_name
from tuirig.rigs.toml import TomlLines

SUFFIX = ".toml"


def rig_paths() -> dict[str, Path]:
    """The files of the rigs folder by name, sorted; a name is the file's without `.toml`."""
    folder = locations.rigs_folder()
    paths = folder.glob(f"*{SUFFIX}") if folder.is_dir() else ()
    return {path.stem: path for path in sorted(paths) if not path.name.startswith(".")}


def rig_path(reference: str) -> Path | None:
    """The file that a name or path means, None if there is none.

    What has a separator or ends with `.toml` is a path; else a name in the rigs folder comes
    before a file of that name here.
    """
    path = Path(os.path.expanduser(reference))
    if _is_path(reference):
        return path if os.path.exists(path) else None
    return rig_paths().get(reference) or (path if os.path.isfile(path) else None)


def load_rig(reference: str) -> Rig:
    """A rig by name or path. Raises MissingError with the known names, FileError if it is bad."""
    path = rig_path(reference)
    if path is None:
        raise unknown_rig(reference)
    return _load(path)


def load_all() -> tuple[tuple[str, Path, Rig | FileError], ...]:
    """Every file of the rigs folder as (name, path, rig or the error in it)."""
    return tuple((name, path, _load_or_error(path)) for name, path in rig_paths().items())


def unknown_rig(reference: str, also: Iterable[str] = ()) -> MissingError:
    """The error for a rig that is not there. also: rigs that exist elsewhere."""
    from difflib import get_close_matches

    if _is_path(reference):
        return MissingError(f"no rig file {reference}", hint="tuirig rigs lists the known rigs")
    known = sorted({*rig_paths(), *also})
    close = get_close_matches(reference, known, n=1)
    return MissingError(
        f"no rig {reference!r}",
        evidence=[f"known: {', '.join(known)}"] if known else (),
        hint=f"did you mean {close[0]}?" if close else f"tuirig rig new {reference} starts one",
    )


def write_starter(name: str, card: str = "cpu", program: str = "llama-server") -> Path:
    """Write a commented rig file to fill in; its path. card: what stands in it for the card.

    Raises what `write_new` raises.
    """
    quoted = json.dumps(program, ensure_ascii=False) + " "
    return write_new(name, _STARTER.format(name=name, card=json.dumps(card), program=quoted))


def write_new(name: str, text: str) -> Path:
    """Write a rig file into the folder of the rigs; its path.

    Raises TuirigError for a bad name or an existing file, which stays as it is.
    """
    from tuirig.atomic import create_atomically

    if not is_name(name):
        raise TuirigError(
            f"{name!r} can't name a rig: use letters, digits, '.', '_' and '-' (not `none`)",
            exit_code=ExitCode.USAGE,
        )
    path = locations.rigs_folder() / f"{name}{SUFFIX}"
    try:
        create_atomically(path, text)
    except FileExistsError:
        raise TuirigError(
            f"{path} is there already", hint="edit it, or choose another name"
        ) from None
    except OSError as error:
        raise TuirigError(f"{path} can't be written: {error.strerror}") from None
    return path


def _is_path(reference: str) -> bool:
    return reference.endswith(SUFFIX) or os.path.basename(reference) != reference


def _load(path: Path) -> Rig:
    text = read_text(path)
    rig = parse_rig(text, str(path))
    if path.parent == locations.rigs_folder() and rig.name != path.stem:
        raise FileError(
            str(path),
            f"the rig is called {rig.name!r}, its file {path.name}",
            line=TomlLines(text).of("name"),
            key="name",
            hint=f'commands find it by its file: name = "{path.stem}", or rename the file',
        )
    return rig


def _load_or_error(path: Path) -> Rig | FileError:
    try:
        return _load(path)
    except FileError as error:
        return error


_STARTER = """\
# A rig: one card, one target model, its drafters, and how its server is started.
# Fill in the paths, then: tuirig rig check {name}

name = "{name}"
card = {card}                           # (part of) the card's name, a UUID, a PCI address, or "cpu"
# card_memory_mib = 8192               # tells cards of one name apart

[target]
path = "~/models/target.gguf"          # a relative path starts at this file's folder
# url = "https://example.org/target.gguf"  # where `tuirig fetch {name}` gets it from
# or a file of the Hub, which `tuirig fetch {name}` puts into the Hub's cache:
# repo = "organization/name-GGUF"
# file = "name-q4_0.gguf"
# revision = "<commit>"
# sha256 = "<64 digits>"               # optional; `tuirig fetch {name}` prints both

# Every [[drafter]] is a row of the grid. Its name is its format, unless name = "..." is given.

[[drafter]]                            # a drafter file of its own (MTP assistant)
format = "q4_0"
type = "draft-mtp"                     # --spec-type: draft-mtp, draft-simple, draft-eagle3, ...
path = "~/models/drafter-q4_0.gguf"
args = ["-ngld", "all"]                # extra arguments for this drafter only

# [[drafter]]                          # the MTP head that some targets carry (Qwen3.x): no file
# format = "inside"
# type = "draft-mtp"

# [[drafter]]                          # no model at all: looks tokens up in the text
# format = "ngram"
# type = "ngram-simple"

[server]
program = {program:<29}# a name on PATH, or a path
# -c and -ngl are needed; tuirig itself sets the port, the models, the drafting and the log.
args = ["-ngl", "99", "-c", "8192", "-ctk", "f16", "-ctv", "f16", "-fa", "on"]

# [server.env]                         # added to a clean environment
# GGML_VK_VISIBLE_DEVICES = "0"

[tune]
lengths = [0, 1, 2, 3, 4, 5, 6, 7]     # draft lengths: the columns of the grid
"""
