"""`tuirig --web [RIG]`: the screen in a browser on this machine."""

from __future__ import annotations

import argparse
import shlex
import sys
from importlib.util import find_spec

from tuirig.cli import signals
from tuirig.errors import MissingError

PACKAGES = ("aiohttp", "textual_serve")


def run(options: argparse.Namespace) -> int:
    """Serve the screen until a signal comes. Raises TuirigError if it can't be served."""
    if not all(map(find_spec, PACKAGES)):
        raise MissingError(
            "the screen in a browser needs textual-serve, which is not installed",
            hint="install the extra web: pip install 'tuirig[web]'",
        )
    from tuirig.cli.web_site import serve

    return signals.run(serve(_command(options), options.port or 0))


def _command(options: argparse.Namespace) -> str:
    """The shell's line that shows the screen in one page."""
    words = [sys.executable, "-m", "tuirig.cli.web_screen"]
    for name in ("theme", "hz"):
        value = getattr(options, name)
        words += [f"--{name}", str(value)] if value else []
    words += ["--", options.rig] if options.rig else []
    return f"exec {shlex.join(words)}"
