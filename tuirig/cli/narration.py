"""The stream of events as lines on stderr."""

from __future__ import annotations

import sys

from tuirig.cli.output import is_screen, say
from tuirig.events import Event, Failed, Progress, ReplyDone, ServerChanged, ServerState
from tuirig.records import Reply
from tuirig.tui.figures import clock, rate, share


class Narrator:
    """An Emit that tells people how the work goes.

    A terminal gets a status line that is written over; anything else gets whole lines, one for
    each step that began or ended.
    """

    def __init__(self) -> None:
        self._screen = is_screen(sys.stderr)
        self._status_shown = False
        self._what = ""
        self._state: ServerState | None = None

    def __call__(self, event: Event) -> None:
        """Tell of one event, or say nothing."""
        if isinstance(event, ServerChanged):
            self._server(event)
        elif isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, ReplyDone):
            self._line(_reply(event.reply))
        elif isinstance(event, Failed):
            self._clear()  # the error itself ends the command, and is told then

    def close(self) -> None:
        """Take the status line away."""
        self._clear()

    def _server(self, event: ServerChanged) -> None:
        before, self._state = self._state, event.state
        if event.state is ServerState.STARTING:
            if before is not ServerState.STARTING:
                self._line(f"{event.setting}: starting")
            elif event.line:
                self._status(f"{event.setting}: starting, {event.seconds:.0f} s  {event.line}")
        elif event.state is ServerState.READY and before is ServerState.STARTING:
            build = f" ({event.build})" if event.build else ""
            self._line(f"{event.setting}: ready after {event.seconds:.1f} s at {event.url}{build}")
        elif event.state is ServerState.STOPPED and before is not ServerState.STOPPED:
            self._line(f"{event.setting}: stopped")

    def _progress(self, event: Progress) -> None:
        done = event.total is not None and event.done >= event.total
        new = event.what != self._what
        self._what = "" if done else event.what
        if event.unit == "replies":
            if not done:
                self._status(f"{event.what}: {_amount(event)}")
        elif self._screen and not done:
            self._status(f"{event.what}: {_amount(event)}")
        elif done:
            self._line(event.what if new else f"{event.what}: done")
        elif new:
            self._line(event.what)

    def _line(self, text: str) -> None:
        self._clear()
        say(text)

    def _status(self, text: str) -> None:
        if self._screen:
            import shutil

            width = shutil.get_terminal_size().columns - 1
            say(f"\r\x1b[K{text[:width]}", end="")
            self._status_shown = True

    def _clear(self) -> None:
        if self._status_shown:
            say("\r\x1b[K", end="")
            self._status_shown = False


def _reply(reply: Reply) -> str:
    kept = f"  kept {share(reply.kept)}" if reply.kept is not None else ""
    ended = "  ended by itself" if reply.ended_by_itself else ""
    return f"  {reply.prompt_id:<14}{rate(reply.tok_s):>8} tok/s{kept}{ended}"


def _amount(event: Progress) -> str:
    if event.unit == "B":
        done, total = f"{event.done / 1e6:.0f}", f"{(event.total or 0) / 1e6:.0f} MB"
    else:
        done, total = f"{event.done:g}", f"{event.total or 0:g} {event.unit}".rstrip()
    amount = f"{done} of {total}" if event.total is not None else f"{done}"
    if event.unit == "B" and event.per_s is not None:
        amount += f"  {event.per_s / 1e6:.1f} MB/s"
    if event.left_s is not None:
        amount += f"  {clock(event.left_s)} left"
    return amount
