"""Which prompts a command measures with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuirig.measure.prompts import Prompt


def prompts_of(options: argparse.Namespace, kinds: Sequence[str] = ()) -> tuple[Prompt, ...]:
    """The prompts of --prompt-file, or the first --prompts built-in ones of these kinds (all if
    none are given). Raises TuirigError with the file and line.
    """
    from tuirig.errors import ExitCode, TuirigError
    from tuirig.files.text import read_text
    from tuirig.measure.prompts import KINDS, choose, read_prompt_file

    path: Path | None = options.prompt_file
    if path is not None:
        return read_prompt_file(read_text(path), str(path))
    try:
        return choose(options.prompts, kinds or KINDS)
    except ValueError as error:
        raise TuirigError(f"--prompts {error}", exit_code=ExitCode.USAGE) from None
