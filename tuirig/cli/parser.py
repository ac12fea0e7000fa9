"""The command line as a whole: which commands there are, and their options.

Building the parsers of all commands takes longer than many a command; only what is asked for is
built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from tuirig import __version__
from tuirig.errors import ExitCode, TuirigError

if TYPE_CHECKING:
    import argparse

#: Command and the module whose function `add_COMMAND` makes its parser, in the order of the help.
COMMANDS = {
    "open": "commands",
    "demo": "commands",
    "rigs": "commands",
    "rig": "commands",
    "measure": "commands",
    "tune": "run_commands",
    "ab": "run_commands",
    "speed": "run_commands",
    "runs": "run_commands",
    "report": "run_commands",
    "compare": "run_commands",
    "serve": "commands",
    "stop": "commands",
    "profiles": "commands",
    "inspect": "commands",
    "fetch": "commands",
    "repack": "commands",
    "doctor": "commands",
    "completion": "commands",
    "help": "commands",
}

ABOUT = """\
Find the drafter and draft length with which llama-server is fastest on this card,
prove it, and save it.

Without a command, or with a rig's name, tuirig opens its screen. The commands do the
same work without a screen: the answer on stdout, everything told on the way on stderr,
with --json exactly one JSON document on stdout.

A rig is one card, one target model, its drafters and how the server is started: a TOML
file that you write (`tuirig rig new NAME`). RIG is a rig's name or the path of its file.
Three built-in rigs, demo-gemma4, demo-qwen35 and demo-smollm2, run without a GPU.
A setting is a drafter and a draft length, `q4_0:2`; `none` is no drafter.
"""

EXAMPLES = """\
examples:
  tuirig                                      the screen, with every rig
  tuirig demo                                 the screen, with a built-in rig
  tuirig rigs                                 the rigs and what they miss
  tuirig rig check demo-gemma4                what would run, without running it
  tuirig measure demo-gemma4 --setting q4_0:2 --json
  tuirig serve demo-gemma4 --setting q4_0:2   serve in the foreground
"""


#: Options that may stand before a rig: `tuirig --theme light RIG`.
_OF_THE_SCREEN = ("--theme", "--hz", "--web", "--port")


def opens_screen(words: Sequence[str]) -> bool:
    """Whether the words are none or one rig: the way to the screen that parses nothing."""
    return not words or (len(words) == 1 and _is_rig(words[0]))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The options of one command; `module` names the module whose `run(options)` does it.

    A first word that is no command is a rig to open. SystemExit for help, version and usage errors.
    """
    if not words or _is_rig(words[0]) or words[0].partition("=")[0] in _OF_THE_SCREEN:
        words = ["open", *words]
    wanted = [words[0]] if words[0] in COMMANDS else COMMANDS
    return _parser(wanted).parse_args(words)


def usage() -> str:
    """The usage lines of the whole program."""
    return _parser(()).format_usage().rstrip()


def parser_of(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of a command, of all of them for no words. Raises TuirigError if there is none."""
    parser = _parser(COMMANDS)
    for count, word in enumerate(words, 1):
        found = parsers_below(parser).get(word)
        if found is None:
            raise TuirigError(
                f"there is no command {' '.join(words[:count])!r}",
                hint=f"one of: {', '.join(parsers_below(parser)) or 'none below this one'}",
                exit_code=ExitCode.USAGE,
            )
        parser = found
    return parser


def parsers_below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of a command's own commands, by name."""
    import argparse

    return {
        name: below
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for name, below in action.choices.items()
    }


def _is_rig(word: str) -> bool:
    return not word.startswith("-") and word not in COMMANDS


def _parser(wanted: Iterable[str]) -> argparse.ArgumentParser:
    import argparse

    from tuirig.cli.arguments import Help

    parser = argparse.ArgumentParser(
        prog="tuirig",
        usage="tuirig [--theme NAME] [--hz N] [--web [--port N]] [RIG]\n       tuirig COMMAND ...",
        description=ABOUT,
        epilog=f"{EXAMPLES}\n{_exit_codes()}",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"tuirig {__version__}")
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", prog="tuirig", required=True
    )
    for name in wanted:
        getattr(import_module(f"tuirig.cli.{COMMANDS[name]}"), f"add_{name}")(commands)
    return parser


def _exit_codes() -> str:
    lines = [f"  {code:>3}  {code.meaning}" for code in ExitCode]
    return "\n".join(["exit codes:", *lines])
