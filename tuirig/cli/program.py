"""The server program that a new rig starts with."""

from __future__ import annotations

from tuirig.cli.output import say
from tuirig.demo.program import server_program
from tuirig.hosts.programs import find_program

PROGRAM = "llama-server"


def starting_program() -> str:
    """`llama-server` from PATH; where it is not there, the path of the built-in rigs' own."""
    built_in = None if find_program(PROGRAM) else server_program()
    return PROGRAM if built_in is None else str(built_in)


def tell_of(program: str) -> None:
    """Say that a rig got the program of the built-in rigs."""
    if program != PROGRAM:
        say(f"no {PROGRAM} on PATH: the rig uses the one of the built-in rigs, {program}")
