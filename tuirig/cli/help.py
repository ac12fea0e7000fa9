"""`tuirig help [COMMAND...]`."""

from __future__ import annotations

import argparse

from tuirig.cli.output import answer
from tuirig.cli.parser import parser_of
from tuirig.errors import ExitCode


def run(options: argparse.Namespace) -> int:
    """Print what `--help` of the command prints. Raises TuirigError if there is no such command."""
    answer(parser_of(options.words).format_help().rstrip())
    return ExitCode.OK
