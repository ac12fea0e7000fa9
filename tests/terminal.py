"""A program in a real pseudo terminal: type, wait for text, count bytes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

_ESCAPES = re.compile(
    r"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]|\x0f"
)


#: The last word of the main screen: where it stands, the screen has been painted.
PAINTED = "quit"


def plain(text: str) -> str:
    """Terminal output without escape sequences."""
    return _ESCAPES.sub("", text)


class Terminal:
    """Context manager around a child whose stdin, stdout and stderr are a terminal."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.output = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.started_s = time.monotonic()
        self.process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                **{k: v for k, v in os.environ.items() if k not in ("TERM", "COLORTERM", "TMUX")},
                **(env or {}),
            },
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self._master >= 0:
            self.hang_up()

    def hang_up(self) -> None:
        """Close the terminal, as a lost connection does."""
        os.close(self._master)
        self._master = -1

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._master, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Another size, which the program is told of."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def pump(self, seconds: float) -> int:
        """Read what comes within a time; the number of bytes."""
        before = len(self.output)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._read(left):
                break
        return len(self.output) - before

    def _read(self, timeout_s: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], timeout_s)
        if ready:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # Linux: the other side is closed
                return False
            if not data:
                return False
            self.output += data
        return True

    @property
    def text(self) -> str:
        """All output without escape sequences."""
        return plain(self.output.decode("utf-8", "replace"))

    def wait_for(self, pattern: str, *, timeout_s: float = 90, since: int = 0) -> float:
        """Wait until the output from byte `since` on matches; seconds since the start.

        Raises AssertionError with the end of the output.
        """
        deadline = time.monotonic() + timeout_s
        expression = re.compile(pattern)
        while True:
            shown = plain(self.output[since:].decode("utf-8", "replace"))
            if expression.search(shown):
                return time.monotonic() - self.started_s
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(min(left, 0.5)) or self.process.poll() is not None:
                self._read(0.05)
                shown = plain(self.output[since:].decode("utf-8", "replace"))
                if expression.search(shown):
                    return time.monotonic() - self.started_s
                raise AssertionError(
                    f"{pattern!r} did not appear (exit {self.process.poll()}):\n{shown[-2000:]}"
                )

    def wait(self, timeout_s: float = 60) -> int:
        """Read until the child ends; its exit code."""
        deadline = time.monotonic() + timeout_s
        while self.process.poll() is None and time.monotonic() < deadline:
            if not self._read(0.05):
                time.sleep(0.01)
        self.pump(0.05)
        return self.process.wait(timeout=max(0.1, deadline - time.monotonic()))
