from __future__ import annotations

import pytest

from tuirig.engines.builds import same_build

VERSION = "0.1.0-dev (build 1, commit 7e4c0a9)"


@pytest.mark.parametrize(
    "other", [VERSION, "b1-7e4c0a9", "1 (7e4c0a9)", "7e4c0a9", "7e4c0a9f00d", "b1-7e4c0a9f00d"]
)
def test_one_build_by_several_names(other: str) -> None:
    assert same_build(VERSION, other)
    assert same_build(other, VERSION)


@pytest.mark.parametrize(
    "other", ["0.6.0-dev (build 0, commit unknown)", "b2-7e4c0a9", "77c4540ce", "unknown", ""]
)
def test_another_build(other: str) -> None:
    assert not same_build(VERSION, other)


def test_names_that_are_not_understood_are_compared_as_they_are() -> None:
    assert same_build("my own", "my own")
    assert not same_build("my own", "your own")
