"""What an answer other than the file means, and the next step."""

from __future__ import annotations

from dataclasses import dataclass

from tuirig.errors import MissingError, TuirigError

_LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


@dataclass(frozen=True)
class AskedHub:
    """What was asked of the Hub. page: the repository's, for people."""

    repo: str
    file: str
    revision: str
    endpoint: str
    has_token: bool

    @property
    def page(self) -> str:
        """Where a person sees the repository."""
        return f"{self.endpoint}/{self.repo}"

    def refused(self, status: int, code: str) -> TuirigError:
        """The error for a status and the X-Error-Code that the Hub sends with it."""
        if code == "GatedRepo":
            return self._gated()
        if code == "RevisionNotFound":
            return MissingError(
                f"{self.repo} has no revision {self.revision}", hint=f"see {self.page}/commits/main"
            )
        if code == "EntryNotFound":
            return MissingError(
                f"{self.repo} has no file {self.file} at {self.revision}",
                hint=f"see {self.page}/tree/{self.revision}",
            )
        if code == "RepoNotFound" or (status in (401, 404) and not self.has_token):
            return self._no_repo()
        if status == 401:
            return TuirigError(
                f"the Hub does not accept your token (401) for {self.repo}", hint=_LOG_IN
            )
        if status == 403:
            return TuirigError(
                f"your token may not read {self.repo} (403)",
                hint="give it read access to the repository, or use another one",
            )
        if status == 404:
            return MissingError(
                f"{self.page} has no {self.file} at {self.revision} (404)",
                hint="look at the names in the rig",
            )
        return refused(self.page, status)

    def _gated(self) -> TuirigError:
        if not self.has_token:
            return MissingError(
                f"{self.repo} is gated, and no token is set",
                hint=f"accept its conditions at {self.page}, then {_LOG_IN}",
            )
        return MissingError(
            f"{self.repo} is gated, and the account of your token has no access to it",
            hint=f"accept its conditions at {self.page} with that account",
        )

    def _no_repo(self) -> TuirigError:
        if not self.has_token:
            return MissingError(
                f"no repository {self.repo} at {self.endpoint}, or it is private or gated and no"
                " token is set",
                hint=f"look at its name; for a private or gated one, {_LOG_IN}",
            )
        return MissingError(
            f"no repository {self.repo} at {self.endpoint}, or your token may not see it",
            hint="look at its name, and at what the token may read",
        )


def refused(label: str, status: int) -> TuirigError:
    """The error for any server's status."""
    if status == 404:
        return MissingError(f"{label}: no such file (404)", hint="look at the url in the rig")
    if status in (401, 403):
        return TuirigError(
            f"{label}: the server does not allow it ({status})",
            hint="tuirig logs in nowhere but at the Hub: download it by hand",
        )
    if status == 429:
        return TuirigError(f"{label}: too many requests (429)", hint="try again later")
    return TuirigError(f"{label}: the server answers {status}", hint="try again later")
