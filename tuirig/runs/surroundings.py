"""The circumstances of an open session: what its arms are measured under, and what is stale."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Mapping

from tuirig.errors import TuirigError
from tuirig.events import Emit
from tuirig.files.identities import identity_of
from tuirig.records import FileIdentity
from tuirig.rigs.schema import TARGET
from tuirig.rigs.settings import Setting, parse_setting
from tuirig.runs.circumstances import Circumstances, changes
from tuirig.runs.session import Session


class Surroundings:
    """Program, card and model files as they are now. Made by surroundings_of."""

    def __init__(self, session: Session, mark: str, files: Mapping[str, FileIdentity]) -> None:
        self._session = session
        self._mark = mark
        self._files = files

    def of(self, setting: Setting, slots: int = 1) -> Circumstances:
        """The circumstances of a setting. Raises TuirigError if it can't be run."""
        command = self._session.command(setting, slots)
        return Circumstances(
            argv=command.argv,
            env=command.env,
            server_build=self._session.engine.build,
            program=self._mark,
            card=self._session.card.info,
            target=self._files[TARGET],
            drafter=self._files.get(setting.drafter or ""),
        )

    def changed_since(self, setting: str, then: Circumstances) -> tuple[str, ...]:
        """What makes figures of a setting stale that were measured then; () if nothing does."""
        try:
            return changes(then, self.of(parse_setting(setting), _slots(then)))
        except (TuirigError, ValueError) as error:
            return (f"{setting} can't be run now: {error}",)


async def surroundings_of(
    session: Session, settings: Iterable[Setting], emit: Emit
) -> Surroundings:
    """Look at the program and hash the target and the drafters of these settings.

    Remembered hashes cost nothing. Raises TuirigError if a file can't be read.
    """
    rows = dict.fromkeys([TARGET, *(setting.drafter or "" for setting in settings)])
    files = {
        row: await identity_of(session.files[row], emit) for row in rows if row in session.files
    }
    return Surroundings(session, await asyncio.to_thread(lambda: session.engine.mark), files)


def _slots(circumstances: Circumstances) -> int:
    for flag, value in itertools.pairwise(circumstances.argv):
        if flag == "-np":
            return int(value)
    return 1
