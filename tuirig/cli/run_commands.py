"""The commands that make runs: their arguments and their help. Imports nothing of the core."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tuirig.cli.parser import RIG_HELP, add_command, whole

SETTINGS_HELP = "a setting: none, q4_0:2, inside:3,p_min=0.3, ..."


def add_to(commands: Any) -> None:
    """Add every command of this module."""
    _ab(commands)


def _ab(commands: Any) -> None:
    parser = add_command(
        commands,
        "ab",
        "compare two settings",
        """\
Compare setting B with setting A. Each server start measures the same prompts; the starts
come in the order A B B A (then its mirror), so that a slow drift cancels, with a cool-down
before each where there is a GPU. The result is the ratio of tok/s on the same prompts,
with an interval that counts the noise between prompts and the noise between starts.

After each block the comparison stops if the answer is settled; looking several times does
not raise the error rate (the looks share 5 %). Without --blocks it takes as many blocks as
fit in two minutes, 1 to 3, and says what more would tell.

The verdict is faster, slower, level (no difference of at least --min-gain is shown) or not
measured. Everything is stored as it comes: a comparison that was ended goes on with the
same command and --resume.

examples:
  tuirig ab demo-gemma4 none q4_0:2
  tuirig ab my-card q4_0:1 q4_0:2 --prompts 36 --blocks 3
  tuirig ab my-card none q4_0:2 --json | tail -n 1
""",
        "ab",
    )
    parser.add_argument("rig", metavar="RIG", help=RIG_HELP)
    parser.add_argument("a", metavar="A", help=SETTINGS_HELP)
    parser.add_argument("b", metavar="B", help=SETTINGS_HELP)
    _prompts(parser)
    _tokens(parser, 64)
    _min_gain(parser)
    parser.add_argument(
        "--blocks",
        metavar="N",
        type=whole(1, 20),
        help="at most so many blocks of four starts (default: what fits in two minutes, 1 to 3)",
    )
    _run_options(parser)


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--resume", action="store_true", help="go on with the run of this command that was ended"
    )
    parser.add_argument("--yes", action="store_true", help="start without asking")
    parser.add_argument(
        "--json",
        action="store_true",
        help="every event as a line of JSON on stdout, the result as the last line",
    )


def _prompts(parser: argparse.ArgumentParser) -> None:
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument(
        "--prompts",
        metavar="N",
        type=whole(2, 36),
        default=12,
        help="how many built-in prompts, 2 to 36; 12 are two of each kind (default 12)",
    )
    prompts.add_argument(
        "--prompt-file",
        metavar="FILE",
        type=Path,
        help='your own prompts: paragraphs of text, or one {"prompt": "...", "kind": "..."} a line',
    )


def _tokens(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument(
        "--tokens",
        metavar="N",
        type=whole(2, 1_000_000),
        default=default,
        help=f"tokens per reply (default {default})",
    )


def _min_gain(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--min-gain",
        metavar="P",
        type=_percent,
        default=0.01,
        help="the smallest difference that matters, in percent (default 1)",
    )


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = -1.0
    if not 0 < value <= 50:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage above 0, up to 50")
    return value / 100
