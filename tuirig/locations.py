"""The only place that knows directories; every one can be moved by TUIRIG_HOME or XDG variables."""

from __future__ import annotations

import os
from pathlib import Path


def _base(kind: str) -> Path:
    home = os.environ.get("TUIRIG_HOME")
    if home:
        return Path(home).expanduser() / kind
    import platformdirs

    return {
        "config": platformdirs.user_config_path,
        "data": platformdirs.user_data_path,
        "state": platformdirs.user_state_path,
        "cache": platformdirs.user_cache_path,
    }[kind]("tuirig", appauthor=False)


def config_folder() -> Path:
    """What a person writes: config.toml and the rigs."""
    return _base("config")


def rigs_folder() -> Path:
    """One TOML file per rig."""
    return config_folder() / "rigs"


def data_folder() -> Path:
    """What the program writes and a person keeps."""
    return _base("data")


def profiles_folder() -> Path:
    """The user's own profiles, `<card>/<model>.toml`; they win over the shipped ones."""
    return data_folder() / "profiles"


def state_folder() -> Path:
    """Logs and pid files."""
    return _base("state")


def log_path(rig: str) -> Path:
    """Where the server of a rig writes its log."""
    return state_folder() / "logs" / f"{rig}.log"


def cache_folder() -> Path:
    """What can be made again: built-in models, capabilities of programs, hashes."""
    return _base("cache")


def demo_folder() -> Path:
    """The files of the built-in rigs."""
    return cache_folder() / "demo"
