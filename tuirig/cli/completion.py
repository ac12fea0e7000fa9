"""`tuirig completion SHELL`: what a shell completes, from the same parsers as `--help`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tuirig.cli.output import answer
from tuirig.cli.parser import parser_of, subcommands
from tuirig.errors import ExitCode

_RIGS = "tuirig rigs --names 2>/dev/null"
_FILES = ("FILE", "DIR", "SNAPSHOT", "TEMPLATE", "TARGET", "OUT")


@dataclass(frozen=True)
class Value:
    """What may stand in a place of the command line: some words, a rig, a file."""

    words: tuple[str, ...] = ()
    rig: bool = False
    file: bool = False


@dataclass(frozen=True)
class Option:
    """An option, and its value where it has one."""

    name: str
    help: str
    value: Value | None


@dataclass(frozen=True)
class Command:
    """A command (`rig check`; "" for the whole program), what may follow it, and its options."""

    path: str
    help: str
    following: Value
    options: tuple[Option, ...]


def run(options: argparse.Namespace) -> int:
    """Print the script."""
    commands = tuple(_commands(parser_of(), "", ""))
    answer({"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](commands))
    return ExitCode.OK


def _commands(parser: argparse.ArgumentParser, path: str, help: str) -> Iterator[Command]:
    inner = subcommands(parser)
    words, rig, file, options = list(inner), not path, False, []
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            continue
        if action.option_strings:
            value = None if action.nargs == 0 else _value(action)
            text = (action.help or "").replace("%", "")
            options += [Option(name, text, value) for name in action.option_strings]
        else:
            value = _value(action)
            words += value.words
            rig, file = rig or value.rig, file or value.file
    yield Command(path, help, Value(tuple(dict.fromkeys(words)), rig, file), tuple(options))
    helps = {
        choice.dest: choice.help or ""
        for group in parser._actions
        if isinstance(group, argparse._SubParsersAction)
        for choice in group._choices_actions
    }
    for name, child in inner.items():
        yield from _commands(child, f"{path} {name}".strip(), helps[name])


def _value(action: argparse.Action) -> Value:
    if action.metavar == "COMMAND":
        return Value(tuple(subcommands(parser_of())))
    named = isinstance(action.metavar, str) and action.metavar.startswith(_FILES)
    return Value(
        tuple(map(str, action.choices or ())), action.metavar == "RIG", named or action.type is Path
    )


def _bash(commands: tuple[Command, ...]) -> str:
    known = "|".join(f"'{c.path}'" if " " in c.path else f"' {c.path}'" for c in commands[1:])
    lines = [
        "_tuirig() {",
        '  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD-1]}"',
        "  local path='' words='' rig='' file='' word",
        '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
        f'    case "$path $word" in {known}) path="${{path:+$path }}$word";; esac',
        "  done",
        '  case "$path $previous" in',
    ]
    for command in commands:
        for option in command.options:
            if option.value is not None:
                lines.append(f"    '{command.path} {option.name}') {_bash_value(option.value)};;")
    lines += ['    *) case "$path" in']
    for command in commands:
        names = " ".join(option.name for option in command.options)
        lines.append(
            f"      '{command.path}') case \"$current\" in -*) words='{names}';;"
            f" *) {_bash_value(command.following)};; esac;;"
        )
    lines += [
        "    esac;;",
        "  esac",
        f'  [ -n "$rig" ] && words="$words $({_RIGS})"',
        '  COMPREPLY=( $(compgen -W "$words" -- "$current") )',
        '  [ -n "$file" ] && COMPREPLY+=( $(compgen -f -- "$current") )',
        "  return 0",
        "}",
        "complete -F _tuirig tuirig",
    ]
    return "\n".join(lines)


def _bash_value(value: Value) -> str:
    return (
        f"words='{' '.join(value.words)}' rig={'1' if value.rig else ''}"
        f" file={'1' if value.file else ''}"
    )


def _zsh(commands: tuple[Command, ...]) -> str:
    return f"autoload -Uz bashcompinit && bashcompinit\n{_bash(commands)}"


def _fish(commands: tuple[Command, ...]) -> str:
    lines = ["complete -c tuirig -f"]
    for command in commands:
        start = f"complete -c tuirig -n {_quoted(_fish_place(command, commands))}"
        lines += [f"{start}{part}" for part in _fish_value(command.following)]
        for option in command.options:
            name = f"-l {option.name[2:]}" if option.name[:2] == "--" else f"-s {option.name[1:]}"
            value = "" if option.value is None else " -r" + "".join(_fish_value(option.value))
            lines.append(f"{start} {name}{value} -d {_quoted(option.help)}")
    return "\n".join(lines)


def _fish_place(command: Command, commands: tuple[Command, ...]) -> str:
    """The condition that a command, and none within it, stands on the line."""
    if not command.path:
        return "__fish_use_subcommand"
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.path.split()]
    within = [c.path.split()[-1] for c in commands if c.path.startswith(f"{command.path} ")]
    if within:
        seen.append(f"not __fish_seen_subcommand_from {' '.join(within)}")
    return "; and ".join(seen)


def _fish_value(value: Value) -> Iterator[str]:
    if value.words:
        yield f" -a {_quoted(' '.join(value.words))}"
    if value.rig:
        yield f" -a {_quoted(f'({_RIGS})')}"
    if value.file:
        yield " -F"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
