"""Where a program is on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def find_program(program: str) -> Path | None:
    """The executable behind a name or a path (`~` is expanded), None if there is none."""
    found = shutil.which(os.path.expanduser(program))
    return Path(os.path.abspath(found)) if found else None
