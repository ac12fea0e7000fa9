"""Owns the open session of the chosen rig in one task, so that it is closed where it was opened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tuirig.errors import TuirigError
from tuirig.events import Emit
from tuirig.runs.catalog import FoundRig

if TYPE_CHECKING:
    from tuirig.runs.session import Session


class SessionHolder:
    """Opens a rig's session when it is first needed. Belongs to one event loop."""

    def __init__(self, found: FoundRig, emit: Emit) -> None:
        self.found = found
        self.opened: Session | None = None
        self._emit = emit
        self._close = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[Session] | None = None

    async def session(self) -> Session:
        """The session, opened now if it is not. Raises TuirigError as opening does."""
        if self.opened is not None:
            return self.opened
        if self._owner is None or self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._owner = asyncio.create_task(self._own(self._ready), name="session")
        owner, ready = self._owner, self._ready
        try:
            await asyncio.wait((owner, ready), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            if not ready.done():
                await self.close()
            raise
        if ready.done():
            return ready.result()
        self._owner = self._ready = None
        await owner
        raise TuirigError("the rig was closed while it was opened")

    async def _own(self, ready: asyncio.Future[Session]) -> None:
        from tuirig.runs.opening import open_session

        async with open_session(self.found, self._emit) as session:
            self.opened = session
            ready.set_result(session)
            try:
                await self._close.wait()
            finally:
                self.opened = None

    async def close(self) -> None:
        """Stop the server and let the card go; returns when both are done."""
        owner, self._owner, self._ready = self._owner, None, None
        if owner is None:
            return
        if self.opened is None:
            owner.cancel()
        self._close.set()
        await asyncio.wait((owner,))
        self._close = asyncio.Event()
        if not owner.cancelled() and isinstance(owner.exception(), TuirigError):
            return  # it failed to open; whoever asked for it was told
