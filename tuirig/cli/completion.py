"""`tuirig completion SHELL`: a script made from the parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from tuirig.cli.output import answer
from tuirig.cli.parser import COMMANDS, parser_of, parsers_below
from tuirig.errors import ExitCode

_RIGS = "tuirig rigs --names 2>/dev/null"

_BASH = """\
_tuirig() {
    local word="${COMP_WORDS[COMP_CWORD]}" path="" words=""
    local -a before=("${COMP_WORDS[@]:1:$((COMP_CWORD-1))}")
    case "${before[*]:0:2}" in
%(long)s
    *) path="${before[0]}" ;;
    esac
    case "$path" in
%(cases)s
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
    [[ ${#COMPREPLY[@]} -gt 0 || "$word" == -* ]] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -o filenames -F _tuirig tuirig"""

_ZSH = """\
#compdef tuirig
autoload -U +X bashcompinit && bashcompinit
%(bash)s"""


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    scripts = {"bash": bash, "zsh": lambda: _ZSH % {"bash": bash()}, "fish": fish}
    answer(scripts[options.shell]())
    return ExitCode.OK


def bash() -> str:
    """For bash; zsh runs the same."""
    paths = dict(_paths())
    long = [f'    "{path}") path="{path}" ;;' for path in paths if " " in path]
    cases = []
    for path, (words, takes_rig) in paths.items():
        rigs = f" $({_RIGS})" if takes_rig else ""
        cases.append(f'    "{path}") words="{" ".join(words)}{rigs}" ;;')
    return _BASH % {"long": "\n".join(long), "cases": "\n".join(cases)}


def fish() -> str:
    """For fish: a line for each word of each command."""
    lines = ["complete -c tuirig -f"]
    for path, (words, takes_rig) in _paths():
        seen = " ".join(f"; and __fish_seen_subcommand_from {name}" for name in path.split())
        when = seen.removeprefix("; and ") or "__fish_use_subcommand"
        for word in words:
            given = f"-l {word[2:]}" if word.startswith("--") else f"-a {word}"
            lines.append(f"complete -c tuirig -n '{when}' {given}")
        if takes_rig:
            lines.append(f"complete -c tuirig -n '{when}' -F -a '({_RIGS})'")
    return "\n".join(lines)


def _paths() -> Iterator[tuple[str, tuple[list[str], bool]]]:
    """Each command: its words (commands below it, long options) and whether it takes a rig."""
    yield from _below("", parser_of(()))


def _below(
    path: str, parser: argparse.ArgumentParser
) -> Iterator[tuple[str, tuple[list[str], bool]]]:
    below = parsers_below(parser)
    options = [word for word in parser._option_string_actions if word.startswith("--")]
    takes_rig = not path or any(action.metavar == "RIG" for action in parser._actions)
    choices = [
        str(word)
        for action in parser._actions
        if not action.option_strings and not below
        for word in action.choices or ()
    ]
    if path == "help":
        choices = list(COMMANDS)
    yield path, ([*below, *choices, *options], takes_rig)
    for name, one in below.items():
        yield from _below(f"{path} {name}".strip(), one)
