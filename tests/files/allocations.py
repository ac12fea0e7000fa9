"""What a real llama-server allocates, from its own log."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from tuirig.engines.llamacpp.log import memory_parts
from tuirig.hosts.local import LocalHost
from tuirig.records import MemoryParts

_TIMEOUT_S = 60
_QUIET = (
    *("-lv", "4", "--log-colors", "off", "--no-ui", "--cache-ram", "0", "--no-warmup"),
    *("-fit", "off", "--device", "none", "--host", "127.0.0.1"),
)


def allocated(program: Path, args: Sequence[str]) -> MemoryParts:
    """Start the server on the CPU, read its log until it listens, end it.

    AssertionError with the end of the log if it does not start.
    """
    argv = [str(program), *args, *_QUIET, "--port", str(LocalHost().free_port())]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "GGML_NO_BACKTRACE": "1"}
    lines: list[str] = []
    with subprocess.Popen(
        argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stderr is not None
        limit = threading.Timer(_TIMEOUT_S, server.kill)
        limit.start()
        try:
            for line in server.stderr:
                lines.append(line)
                if "listening on http" in line:
                    return memory_parts(lines)
        finally:
            limit.cancel()
            server.kill()
    raise AssertionError("".join(lines[-5:]))
