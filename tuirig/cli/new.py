"""`tuirig rig new NAME`."""

from __future__ import annotations

import argparse

from tuirig.cards.detect import CPU, list_cards
from tuirig.cli.output import answer, say
from tuirig.cli.program import starting_program, tell_of
from tuirig.errors import ExitCode
from tuirig.files.rigs import write_starter


def run(options: argparse.Namespace) -> int:
    """Write the file, with this machine's first card in it, and print its path."""
    program = starting_program()
    card = list_cards()[0]
    path = write_starter(options.name, CPU if card.kind == CPU else card.name, program)
    answer(str(path))
    tell_of(program)
    say(f"next: fill in the paths, then: tuirig rig check {options.name}")
    return ExitCode.OK
