"""The commands that make runs: their arguments and their help. Imports nothing of the core."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tuirig.cli.arguments import RIG_HELP, add_command, json_flag, whole

_LONGEST = 64
SETTINGS_HELP = "a setting: none, q4_0:2, inside:3,p_min=0.3, ..."


def add_tune(commands: Any) -> None:
    """`tuirig tune`."""
    parser = add_command(
        commands,
        "tune",
        "find the best setting, prove it and save it",
        """Find the best drafter and draft length with few server starts. The plan is shown first:
which starts, how long, and what can't be measured here and why.

The search measures no drafter, then how long the target takes to verify several tokens at
once (a start of its own), then the longest draft length, whose acceptance tells all shorter
ones; it predicts every length, measures the best one and its better neighbour, tries the
other drafters there, and settles finalists in A B B A blocks. Where a prediction is not
possible it climbs from length 1. --exhaustive measures every setting.

The outcome is saved as the profile of this card and model, with its evidence. A setting
that fails or does not fit in memory is a result, and the search goes on. Everything is
stored as it comes: a search that was ended goes on with the same command and --resume.

With --json every event is one line of JSON on stdout and the result is the last line, with
verdict, interval, setting, starts and seconds.

examples:
  tuirig tune demo-gemma4
  tuirig tune my-card --lengths 0-4 --formats q4_0,q8_0
  tuirig tune my-card --objective code --p-min
  tuirig tune my-card --objective mix:code=3,story=1 --budget 20 --yes --json
""",
        "tune",
    )
    parser.add_argument("rig", metavar="RIG", help=RIG_HELP)
    parser.add_argument(
        "--lengths",
        metavar="L",
        type=_lengths,
        default=(),
        help="draft lengths, 0-4 or 0,1,2 (default: those of the rig)",
    )
    parser.add_argument(
        "--formats",
        metavar="F",
        type=_names,
        default=(),
        help="drafters of the rig, the one to be searched first (default: all, in its order)",
    )
    parser.add_argument(
        "--objective",
        metavar="O",
        default="all",
        help="what is to be best: all kinds of work (default), one kind (code, advice, story,"
        " explanation, list, summary), mix:code=3,story=1, or energy (tokens per joule)",
    )
    _prompts(parser, None)
    _tokens(parser, 128)
    _min_gain(parser)
    parser.add_argument(
        "--p-min",
        metavar="P",
        nargs="?",
        type=_p_min,
        const=(0.3, 0.5, 0.7),
        default=(),
        help="also try this least probability of a drafted token, e.g. 0.3,0.6; the word alone"
        " means 0.3,0.5,0.7",
    )
    parser.add_argument(
        "--exhaustive", action="store_true", help="measure every setting instead of searching"
    )
    parser.add_argument(
        "--budget", metavar="MINUTES", type=_minutes, help="begin no start that would end later"
    )
    _run_options(parser)


def add_ab(commands: Any) -> None:
    """`tuirig ab`."""
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
fit in two minutes, 1 to 3 (on a slow rig with fewer prompts), and says what more would tell.

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
    _prompts(parser, 12)
    _tokens(parser, 48)
    _min_gain(parser)
    parser.add_argument(
        "--blocks",
        metavar="N",
        type=whole(1, 20),
        help="at most so many blocks of four starts (default: what fits in two minutes, 1 to 3)",
    )
    _run_options(parser)


def add_speed(commands: Any) -> None:
    """`tuirig speed`."""
    parser = add_command(
        commands,
        "speed",
        "measure the table of draft lengths, one server each",
        """\
Measure a table of draft lengths by the protocol of the published tables: six prompts (code,
advice, a story, an explanation, a list, a summary), 256 tokens each, three greedy repeats
and one sampled pass at temperature 0.8, prompt cache off. Every setting gets its own server,
the card cools down before each, and the first drafted setting runs again at the end to show
the drift. Without --formats the rig's first drafter is measured.

Use `tuirig tune` to find a setting and `tuirig ab` to compare two; this table is for
comparing cards.

examples:
  tuirig speed my-card
  tuirig speed my-card --formats q4_0,q8_0,bf16 --lengths 0,2
""",
        "speed",
    )
    parser.add_argument("rig", metavar="RIG", help=RIG_HELP)
    parser.add_argument(
        "--lengths",
        metavar="L",
        type=_lengths,
        default=(0, 1, 2, 3),
        help="draft lengths, 0-3 or 0,1,2 (default 0-3); 0 is always measured",
    )
    parser.add_argument(
        "--formats", metavar="F", type=_names, default=(), help="drafters of the rig"
    )
    _tokens(parser, 256)
    _run_options(parser)


def add_runs(commands: Any) -> None:
    """`tuirig runs`."""
    parser = add_command(
        commands,
        "runs",
        "list the runs that were made",
        """\
List every stored tune, comparison and speed table, newest first, with what it found. A run
that was interrupted or cancelled goes on with its own command and --resume.
""",
        "runs",
    )
    parser.add_argument("rig", metavar="RIG", nargs="?", help="only the runs of this rig")
    json_flag(parser)


def add_report(commands: Any) -> None:
    """`tuirig report`."""
    parser = add_command(
        commands,
        "report",
        "print a stored run",
        """\
Print a stored run, finished or not: its settings with gain, interval, kept and memory,
drafters side by side at the same draft length (with the share of identical greedy replies),
and memory by purpose. json holds every arm with its replies and readings; csv is the table
of settings.

examples:
  tuirig report 12
  tuirig report 12 --format csv > run-12.csv
""",
        "report",
    )
    parser.add_argument("run", metavar="RUN", type=_number, help="its number, see `tuirig runs`")
    parser.add_argument(
        "--format",
        choices=("markdown", "json", "csv"),
        default="markdown",
        help="default markdown",
    )


def add_compare(commands: Any) -> None:
    """`tuirig compare`."""
    parser = add_command(
        commands,
        "compare",
        "compare two stored runs, or two cards",
        """\
Print two stored runs side by side: tok/s, gain and kept of every setting, the ratio on the
prompts of both, and what is different about program, card, driver and files. Two runs of
one rig show what an update did; runs of two cards show which setting fits which.

To compare two settings, use `tuirig ab`.

example:
  tuirig compare 8 12
""",
        "compare",
    )
    parser.add_argument("a", metavar="RUN", type=_number, help="its number, see `tuirig runs`")
    parser.add_argument("b", metavar="RUN", type=_number, help="the run to compare with it")
    json_flag(parser)


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


def _prompts(parser: argparse.ArgumentParser, default: int | None) -> None:
    prompts = parser.add_mutually_exclusive_group()
    prompts.add_argument(
        "--prompts",
        metavar="N",
        type=whole(2, 36),
        default=default,
        help="how many built-in prompts, 2 to 36; 12 are two of each kind (default 12"
        f"{'' if default else ', or the six of each kind of the objective'})",
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


def _number(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a run: tuirig runs")
    return int(text)


def _lengths(text: str) -> tuple[int, ...]:
    try:
        first, dash, last = text.partition("-")
        numbers = range(int(first), int(last) + 1) if dash else map(int, text.split(","))
        lengths = tuple(sorted(set(numbers)))
    except ValueError:
        lengths = ()
    if not lengths or lengths[0] < 0 or lengths[-1] > _LONGEST:
        raise argparse.ArgumentTypeError(
            f"{text!r}: expected lengths from 0 to {_LONGEST}, as 0-4 or 0,1,2"
        )
    return lengths


def _names(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names of drafters, as q4_0,q8_0")
    return names


def _p_min(text: str) -> tuple[float, ...]:
    try:
        values = tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        values = ()
    if not values or not all(0 < value <= 1 for value in values):
        raise argparse.ArgumentTypeError(f"{text!r}: expected numbers above 0, up to 1, as 0.3,0.6")
    return values


def _minutes(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes above 0")
    return value
