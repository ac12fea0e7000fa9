"""`python -m tuirig` and the command `tuirig`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and end with its exit code."""
    from tuirig.cli.main import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
