"""What the arguments of several commands share."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any

RIG_HELP = "a rig's name, or the path of a rig file"
SETTING_HELP = "drafter:length and knobs, e.g. q4_0:2, inside:3,p_min=0.3, ngram:8; or none"
WIDTH = 80


class Help(argparse.RawDescriptionHelpFormatter):
    """Help at most 80 columns wide: paragraphs are filled, lists and examples stay as written."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=WIDTH, max_help_position=26)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n\n".join(
            paragraph
            if any(line.startswith(" ") for line in paragraph.split("\n"))
            else textwrap.fill(paragraph, WIDTH)
            for paragraph in text.strip("\n").split("\n\n")
        )


def add_command(
    commands: Any, name: str, help: str, about: str, module: str
) -> argparse.ArgumentParser:
    """A command whose module's `run(options)` does it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=about,
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.set_defaults(module=f"tuirig.cli.{module}")
    return parser


def json_flag(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def whole(low: int, high: int) -> Any:
    """The type of an argument that is a whole number in this range."""

    def number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return value

    return number
