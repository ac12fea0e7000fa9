"""`tuirig help [COMMAND...]`: a manual page, from the same parsers as `--help`."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator

from tuirig.cli.arguments import WIDEST, filled
from tuirig.cli.output import answer
from tuirig.cli.parser import parser_of
from tuirig.errors import ExitCode

_INDENT = "    "


def run(options: argparse.Namespace) -> int:
    """Print the page of a command, or of the whole program."""
    answer(page(parser_of(options.words)))
    return ExitCode.OK


def page(parser: argparse.ArgumentParser) -> str:
    """A manual page in plain text."""
    sections = []
    for title, body in _sections(parser):
        sections.append(f"{title}\n{textwrap.indent(textwrap.dedent(body).rstrip(), _INDENT)}")
    return "\n\n".join(sections)


def _sections(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    about, _, examples = (parser.description or "").partition("\n\nexample")
    yield "SYNOPSIS", parser.format_usage().removeprefix("usage: ")
    yield "DESCRIPTION", filled(about, WIDEST - len(_INDENT))
    for group in parser._action_groups:
        formatter = _formatter(parser)
        formatter.add_arguments(group._group_actions)
        text = formatter.format_help()
        if text:
            yield (group.title or "").upper(), text
    if examples:
        yield "EXAMPLES", examples.partition("\n")[2]
    if parser.epilog:
        for part in parser.epilog.strip().split("\n\n"):
            title, _, body = part.partition("\n")
            yield title.rstrip(":").upper(), body
    else:
        yield "EXIT CODES", "\n".join(f"{code:>3}  {code.meaning}" for code in ExitCode)


def _formatter(parser: argparse.ArgumentParser) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(parser.prog, width=WIDEST - len(_INDENT))
