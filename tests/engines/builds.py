"""Help texts and logs of real and older builds."""

from __future__ import annotations

from pathlib import Path

from tuirig.engines.llamacpp.capabilities import Capabilities, parse_help

DATA = Path(__file__).with_name("data")
#: b10434 and b11434 are real texts, shortened; the older two are made after the flag history.
BUILDS = ("2025-05", "2026-03", "b10434", "b11434")


def capabilities(build: str) -> Capabilities:
    return parse_help((DATA / f"help-{build}.txt").read_text("utf-8"), build)


def log_lines(name: str) -> list[str]:
    return (DATA / f"log-{name}.txt").read_text("utf-8").splitlines()
