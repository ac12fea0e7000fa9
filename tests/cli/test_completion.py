"""Completion scripts; bash runs the one that is made for it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import Commands
from tuirig.cli.parser import COMMANDS

PROGRAM = shlex.join([sys.executable, "-m", "tuirig"])


def completed(script: str, *words: str) -> list[str]:
    """What bash offers for the last word."""
    line = (
        f'{script}\ntuirig() {{ {PROGRAM} "$@"; }}\n'
        f"COMP_WORDS=(tuirig {shlex.join(words)}); COMP_CWORD={len(words)}\n"
        '_tuirig; echo "${COMPREPLY[*]}"'
    )
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("m",), ["measure"]),
        (("demo-q",), ["demo-qwen35"]),
        (("measure", "demo-s"), ["demo-smollm2"]),
        (("measure", "demo-smollm2", "--set"), ["--setting"]),
        (("rig", "c"), ["check"]),
        (("rig", "check", "--j"), ["--json"]),
        (("completion", "z"), ["zsh"]),
        (("help", "tu"), ["tune"]),
    ],
    ids=str,
)
def test_bash(run: Commands, words: tuple[str, ...], offered: list[str]) -> None:
    assert completed(run("completion", "bash").stdout, *words) == offered


def test_bash_offers_files_where_no_word_fits(run: Commands, tmp_path: Path) -> None:
    rig = tmp_path / "my-rig.toml"
    rig.touch()
    offered = completed(run("completion", "bash").stdout, "measure", f"{tmp_path}/my")
    assert offered == [str(rig)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_is_in_every_script(run: Commands, shell: str) -> None:
    script = run("completion", shell).stdout
    for name in COMMANDS:
        assert name in script
    program = shutil.which(shell)
    if program:
        subprocess.run([program, "-n", "-c", script], check=True, capture_output=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("tuirig m", ["measure"]),
        ("tuirig demo-q", ["demo-qwen35"]),
        ("tuirig measure demo-smollm2 --set", ["--setting"]),
        ("tuirig rig c", ["check"]),
    ],
)
def test_fish(run: Commands, line: str, offered: list[str]) -> None:
    script = run("completion", "fish").stdout
    program = f"function tuirig; {PROGRAM} $argv; end"
    asked = f"{script}\n{program}\ncomplete -C {shlex.quote(line)}"
    ran = subprocess.run(["fish", "-N", "-c", asked], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == offered
