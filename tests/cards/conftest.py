"""Fixtures of the card tests."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from tests.cards.fake_nvml import FakeCard, FakeNvml
from tuirig.cards import detect

Install = Callable[..., FakeNvml]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a driver with these cards on the machine."""

    def put(*cards: FakeCard) -> FakeNvml:
        nvml = FakeNvml(*cards)
        monkeypatch.setitem(sys.modules, "pynvml", nvml)
        monkeypatch.setattr(detect, "has_nvidia_driver", lambda: True)
        return nvml

    return put
