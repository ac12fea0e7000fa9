"""The terminal driver, made to outlive its terminal: a lost line ends the program in order.

Textual's own writes in a thread that ends with the first error, and then waits for it for ever.
"""

from __future__ import annotations

import contextlib
from time import monotonic
from typing import Any, cast

from textual.app import ScreenStackError
from textual.drivers.linux_driver import LinuxDriver

from tuirig.errors import ExitCode
from tuirig.tui.shorter import shorter

#: Characters of a frame that is worth comparing.
LARGE = 2000
#: What stands around each frame (synchronised output).
AROUND = ("\x1b[?2026h", "\x1b[?2026l")
#: After this time a repaint is meant.
AGAIN_S = 0.2


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
        self._frame, self._frame_s = "", 0.0

    def write(self, data: str) -> None:
        """A frame in fewer bytes. The one just painted is not painted again: Textual does that."""
        if len(data) >= LARGE:
            again = data == self._frame and monotonic() - self._frame_s < AGAIN_S
            self._frame, self._frame_s = data, monotonic()
            if again:
                return
        elif data not in AROUND:
            self._frame = ""
        super().write(shorter(data))

    def _get_terminal_size(self) -> tuple[int, int]:
        """Asked when the size has changed: what was painted may be lost then."""
        self._paint_again()
        return super()._get_terminal_size()

    def _paint_again(self) -> None:
        """All of it, though the size may be the same as before."""
        self._frame = ""
        self._loop.call_soon_threadsafe(self._refresh)

    def _refresh(self) -> None:
        with contextlib.suppress(ScreenStackError):  # before the first screen there is nothing
            self._app.screen.refresh()

    def _sigcont_application(self, *_: object) -> None:
        # After SIGSTOP, unlike SIGTSTP, nothing was put away: a second thread would read the keys.
        if not self._must_signal_resume:
            self.suspend_application_mode()
        super()._sigcont_application()
        self._paint_again()

    def _run_input_thread(self) -> None:
        try:
            self.run_input_thread()
        except OSError:
            self._app.call_later(self._app.end, ExitCode.HANGUP)  # type: ignore[attr-defined]
