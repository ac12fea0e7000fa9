"""`python -m tuirig` and the command `tuirig`."""

from __future__ import annotations

import gc
import sys


def main() -> None:
    """Run the command line and end with its exit code."""
    # Loading makes many objects and no rubbish; looking for some takes a tenth of the start.
    # Whoever has loaded what it needs calls `gc.enable`.
    gc.disable()
    from tuirig.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
