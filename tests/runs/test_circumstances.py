from __future__ import annotations

import msgspec
import pytest

from tests.runs.stored import CARD, DRAFTER, TARGET, circumstances
from tuirig.records import FileIdentity
from tuirig.runs.circumstances import changes

OLD = circumstances("q4_0:2")


def test_the_same_circumstances_on_another_port_and_path() -> None:
    argv = ("/other/llama-server", "-m", "/n/target.gguf", "-c", "4096", "--port", "9")
    assert changes(OLD, msgspec.structs.replace(OLD, argv=argv)) == ()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"server_build": "build 2"}, "server build 0.1.0 (build 1, commit 7e4c0a9) -> build 2"),
        ({"program": "other"}, "the program's files (its build still calls itself 0.1.0"),
        (
            {"card": msgspec.structs.replace(CARD, driver="616.1")},
            "driver 615.78.08 -> 616.1",
        ),
        (
            {"card": msgspec.structs.replace(CARD, uuid="GPU-2")},
            "card NVIDIA GeForce RTX 3050 (GPU-1) -> NVIDIA GeForce RTX 3050 (GPU-2)",
        ),
        (
            {"target": msgspec.structs.replace(TARGET, sha256="c" * 64)},
            "target target.gguf: sha256 aaaaaaaaaaaa -> cccccccccccc",
        ),
        (
            {"drafter": FileIdentity(file="drafter.gguf", size=101)},
            "drafter drafter.gguf: 100 -> 101 bytes",
        ),
        (
            {"argv": ("s", "-m", "/m/target.gguf", "-c", "8192", "--port", "4321")},
            "command line 4096 -> 8192",
        ),
        ({"env": {}}, "variable LD_LIBRARY_PATH '/opt' -> None"),
    ],
)
def test_each_change_is_told(change: dict[str, object], told: str) -> None:
    (found,) = changes(OLD, msgspec.structs.replace(OLD, **change))
    assert found.startswith(told)


def test_an_unknown_hash_is_no_change() -> None:
    unhashed = FileIdentity(file=DRAFTER.file, size=DRAFTER.size)
    assert changes(OLD, msgspec.structs.replace(OLD, drafter=unhashed)) == ()
