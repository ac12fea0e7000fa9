"""Errors that reach a user: cause, evidence, next step and exit code."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command; the README's table is this one."""

    OK = 0
    FAILED = 1
    USAGE = 2
    BAD_FILE = 3
    MISSING = 4
    SERVER = 5
    NOT_PROVEN = 6
    IN_USE = 7
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143

    @property
    def meaning(self) -> str:
        """What the code tells a script, in one phrase."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "failed for another reason; the message says which",
    ExitCode.USAGE: "the command line is wrong, or the screen has no terminal",
    ExitCode.BAD_FILE: "a rig, profile or model file has an error (the place in it is named)",
    ExitCode.MISSING: "a file, program, rig, profile, card or Python package is missing",
    ExitCode.SERVER: "the server failed to start, died, hung or answered with an error",
    ExitCode.NOT_PROVEN: "measured, but drafting was not proven: the figures do not count",
    ExitCode.IN_USE: "the card or the port is in use by somebody else",
    ExitCode.HANGUP: "ended by SIGHUP, in order",
    ExitCode.INTERRUPTED: "cancelled by the user (SIGINT)",
    ExitCode.TERMINATED: "ended by SIGTERM, in order",
}


class TuirigError(Exception):
    """A failure that a person can act on.

    message: the cause in one sentence. hint: the next step. evidence: lines (of a log, a file,
    an answer) that show the cause. exit_code: what a command ends with.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        evidence: Sequence[str] = (),
        exit_code: ExitCode = ExitCode.FAILED,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.evidence = tuple(evidence)
        self.exit_code = exit_code

    def text(self) -> str:
        """The whole error as plain lines: message, evidence, hint."""
        lines = [self.message, *(f"  {line}" for line in self.evidence)]
        if self.hint:
            lines.append(f"next: {self.hint}")
        return "\n".join(lines)


class FileError(TuirigError):
    """A rig or profile file that can't be used. place is `file:line: key`."""

    def __init__(
        self, path: str, message: str, *, line: int | None = None, key: str = "", hint: str = ""
    ) -> None:
        place = f"{path}:{line}" if line else path
        where = f"{place}: {key}" if key else place
        super().__init__(f"{where}: {message}", hint=hint, exit_code=ExitCode.BAD_FILE)
        self.path = path
        self.line = line
        self.key = key


class MissingError(TuirigError):
    """Something that has to be there is not."""

    def __init__(self, message: str, *, hint: str = "", evidence: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint, evidence=evidence, exit_code=ExitCode.MISSING)


class InUseError(TuirigError):
    """The card or the port belongs to somebody else."""

    def __init__(self, message: str, *, hint: str = "", evidence: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint, evidence=evidence, exit_code=ExitCode.IN_USE)


class ServerError(TuirigError):
    """The server failed to start, died, hung or answered with an error."""

    def __init__(self, message: str, *, hint: str = "", evidence: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint, evidence=evidence, exit_code=ExitCode.SERVER)


class DoesNotFitError(ServerError):
    """The server failed for want of memory, the card's or the machine's."""


class StoreError(TuirigError):
    """The store of runs can't be read or written; what it holds is left as it is."""


class NotProvenError(TuirigError):
    """Measured or ready, but drafting is not proven: the figures do not count."""

    def __init__(self, message: str, *, hint: str = "", evidence: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint, evidence=evidence, exit_code=ExitCode.NOT_PROVEN)
