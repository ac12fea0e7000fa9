"""A home of its own for what is pictured, so that nobody's paths are in the picture."""

from __future__ import annotations

import getpass
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

SHOWN = "/home/me"
_REAL = "TUIRIG_PICTURES_REAL_HOME"


def at_home(main: Callable[[], None]) -> None:
    """Run main in a fresh HOME: the script starts itself again there, with the same words.

    The path of that home is as long as the one that is shown in its place, so that nothing moves.
    """
    if _REAL in os.environ:
        return main()
    home = Path("/tmp") / secrets.token_hex(4)[: len(SHOWN) - len("/tmp/")]
    home.mkdir()
    taken = ("TUIRIG_HOME", "XDG_", "SSH_", "NO_COLOR", "TMUX", "HF_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(taken)}
    env |= {_REAL: str(Path.home()), "HOME": str(home), "TERM": "xterm-256color"}
    try:
        script = str(Path(sys.argv[0]).absolute())
        ran = subprocess.run([sys.executable, script, *sys.argv[1:]], env=env, check=False)
    finally:
        shutil.rmtree(home)
    sys.exit(ran.returncode)


def tidied(text: str) -> str:
    """The text with other paths of the same length. Raises SystemExit for a name that is left.

    Outside of such a home, the text as it is.
    """
    if _REAL not in os.environ:
        return text
    prefix = sys.prefix
    text = text.replace(os.environ["HOME"], SHOWN)
    text = text.replace(prefix, f"{SHOWN}/tuirig".ljust(len(prefix), "-")[: len(prefix)])
    private = {prefix, str(Path(prefix).parent), os.environ["HOME"], os.environ[_REAL]}
    private |= {socket.gethostname(), f"/{getpass.getuser()}/", f"{getpass.getuser()}@"}
    for name in private:
        if len(name) > 2 and name in text:
            raise SystemExit(f"{name!r} is in the picture")
    return text
