"""The built-in rigs: what they are, what is missing, and making it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from string import Template

from tuirig import locations
from tuirig.demo.program import server_environment, server_program
from tuirig.demo.versions import is_current
from tuirig.errors import MissingError
from tuirig.events import Emit
from tuirig.rigs.parse import parse_rig
from tuirig.rigs.schema import Rig

BUILT_IN = ("demo-gemma4", "demo-qwen35", "demo-smollm2")

#: Room that making needs.
_MIB = {"demo-gemma4": 140, "demo-qwen35": 95, "demo-smollm2": 240}
_PACKAGES = ("numpy", "gguf")


def built_in_text(name: str) -> str:
    """The rig file, with this machine's folder and program in it."""
    text = Path(__file__).with_name("rigs").joinpath(f"{name}.toml").read_text("utf-8")
    program = server_program()
    variables = server_environment(program)
    inline = ", ".join(f'{key} = "{_escaped(value)}"' for key, value in variables.items())
    return Template(text).substitute(
        folder=_escaped(str(_folder(name))),
        program=_escaped(str(program or "llama-server")),
        environment=f"{{ {inline} }}" if inline else "{}",
    )


def built_in_rig(name: str) -> Rig:
    """The rig itself."""
    return parse_rig(built_in_text(name), name)


def missing_files(name: str) -> tuple[Path, ...]:
    """Its model files that have to be made: all of them where an older tuirig made them."""
    rig = built_in_rig(name)
    paths = [Path(file.path) for file in (rig.target, *rig.drafter) if file.path]
    current = is_current(name, _folder(name))
    return tuple(path for path in paths if not (current and path.is_file()))


async def ensure(name: str, emit: Emit) -> None:
    """Make what is missing, with Progress events; done at once when nothing is.

    Whole or not at all; two programs at once make it once. Cancelling ends the work. Raises
    MissingError for packages or SmolLM2, TuirigError for a full or unwritable disk.
    """
    if not missing_files(name):
        return
    _require_packages()
    from tuirig.demo import making

    await making.make_folder(
        name,
        _folder(name),
        mib=_MIB[name],
        is_there=lambda: not missing_files(name),
        emit=emit,
    )


def _require_packages() -> None:
    absent = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if absent:
        raise MissingError(
            f"making the built-in rigs needs the Python package(s) {', '.join(absent)}",
            hint="in a clone: uv run tuirig demo; installed: pip install 'tuirig[demo]'",
        )


def _folder(name: str) -> Path:
    return locations.demo_folder() / name


def _escaped(text: str) -> str:
    """Text for the inside of a TOML basic string; JSON's escapes are TOML's."""
    return json.dumps(text, ensure_ascii=False)[1:-1]
