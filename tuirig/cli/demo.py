"""`tuirig demo [RIG]`: the screen on a built-in rig, or just its files."""

from __future__ import annotations

import argparse

from tuirig.cli import signals
from tuirig.cli.output import answer
from tuirig.demo.catalog import BUILT_IN, ensure
from tuirig.errors import ExitCode, TuirigError


def run(options: argparse.Namespace) -> int:
    """Open the screen, or make the files and end."""
    if options.rig not in (None, *BUILT_IN):
        raise TuirigError(
            f"{options.rig!r} is not built in: {', '.join(BUILT_IN)}",
            hint=f"tuirig {options.rig} opens a rig of your own",
            exit_code=ExitCode.USAGE,
        )
    if options.make:
        return signals.run(_make((options.rig,) if options.rig else BUILT_IN))
    from tuirig.cli.screen import open_screen

    return open_screen(options.rig or BUILT_IN[0], options.theme, options.hz)


async def _make(names: tuple[str, ...]) -> int:
    from tuirig.cli.narration import Narrator
    from tuirig.locations import demo_folder

    narrator = Narrator()
    try:
        for name in names:
            await ensure(name, narrator)
            answer(str(demo_folder() / name))
    finally:
        narrator.close()
    return ExitCode.OK
