from __future__ import annotations

import pytest

from tests.cli.support import Commands


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Commands:
    """Runs a command in this process."""
    return Commands(capsys)
