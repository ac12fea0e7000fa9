"""The doctor where tuirig itself is not installed."""

from __future__ import annotations

from importlib import metadata

import pytest

from tuirig.runs import doctor


def test_a_bare_source_folder_is_looked_at_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", absent)
    assert doctor._requirements() == []
    assert any(finding.what == "Python packages" for finding in doctor._packages())
