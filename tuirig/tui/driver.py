"""The terminal driver, made to outlive its terminal: a lost line ends the program in order.

Textual's own writes in a thread that ends with the first error, and then waits for it for ever.
"""

from __future__ import annotations

import contextlib
from typing import Any, cast

from textual.drivers.linux_driver import LinuxDriver

from tuirig.errors import ExitCode


class _Forgiving:
    """A file whose terminal may be gone."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class TerminalDriver(LinuxDriver):
    """Textual's driver for Unix, deaf to errors of a terminal that is gone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._file = cast(Any, _Forgiving(self._file))

    def _sigcont_application(self, *_: object) -> None:
        # After SIGSTOP, unlike SIGTSTP, nothing was put away: a second thread would read the keys.
        if not self._must_signal_resume:
            self.suspend_application_mode()
        super()._sigcont_application()

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except OSError:
            self._app.call_later(self._app.end, ExitCode.HANGUP)  # type: ignore[attr-defined]
