"""A server that failed, in words: cause, next step, and the lines of its log that say so."""

from __future__ import annotations

from tuirig.events import ServerState
from tuirig.tui.view import View

NOTHING = "no log yet: Enter in the grid starts a server"
NEXT_KEYS = "Enter starts it again · 5 files and memory · y copies the command · Esc back"


def explained(view: View, *, log_is_there: bool) -> tuple[str, tuple[str, ...]]:
    """(what to say above the log, the lines of the log that say why); both empty without a cause.

    log_is_there: whether there is a file at all.
    """
    failure = view.failure
    if failure is None or view.server.state is not ServerState.FAILED:
        return ("" if log_is_there else NOTHING), ()
    said = [f"! {failure.message}"]
    if failure.hint:
        said.append(f"  next: {failure.hint}")
    return "\n".join([*said, f"  {NEXT_KEYS}"]), failure.evidence
