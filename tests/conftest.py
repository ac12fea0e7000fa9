"""Shared fixtures: the developer's own folders stay hidden."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh home for configuration, data, state and cache."""
    folder = tmp_path / "tuirig-home"
    monkeypatch.setenv("TUIRIG_HOME", str(folder))
    for name in ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "NO_COLOR", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    return folder
