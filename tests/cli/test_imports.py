"""What a command loads, seen in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "textual", "rich", "httpx2", "pynvml", "huggingface_hub", "numpy", "gguf", "plotext", "psutil",
    "tomli_w", "asyncio", "subprocess", "logging",
)  # fmt: skip
SHOW = (
    "import sys, contextlib\n"
    "from tuirig.cli.main import main\n"
    "with contextlib.suppress(SystemExit):\n"
    "    main(sys.argv[1:])\n"
    "print(*sys.modules, file=sys.stderr)\n"
)


def loaded(*words: str) -> set[str]:
    ran = subprocess.run(
        [sys.executable, "-c", SHOW, *words], capture_output=True, text=True, check=True, timeout=30
    )
    assert ran.stdout
    return set(ran.stderr.split())


@pytest.mark.parametrize("words", [("rigs", "--json"), ("rigs",)], ids=" ".join)
def test_listing_rigs_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    modules = loaded(*words)
    assert "tuirig.runs.catalog" in modules
    assert not modules.intersection(HEAVY)


@pytest.mark.parametrize(
    ("words", "modules"),
    [
        (("--help",), {"commands", "run_commands"}),
        (("measure", "--help"), {"commands"}),
        (("tune", "--help"), {"run_commands"}),
    ],
    ids=" ".join,
)
def test_help_loads_no_core(words: tuple[str, ...], modules: set[str]) -> None:
    found = loaded(*words)
    assert not found.intersection((*HEAVY, "msgspec", "tomllib", "platformdirs"))
    assert {name for name in found if name.startswith("tuirig.")} == {
        "tuirig.cli",
        *(f"tuirig.cli.{name}" for name in ("arguments", "main", "output", "parser", *modules)),
        "tuirig.errors",
    }
