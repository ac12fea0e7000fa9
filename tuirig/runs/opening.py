"""Rig -> session: finds the files, the program and the card."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tuirig.cards.detect import open_card
from tuirig.engines.base import Engine
from tuirig.events import Emit
from tuirig.hosts.base import Host
from tuirig.hosts.local import LocalHost
from tuirig.rigs.schema import Rig
from tuirig.runs.catalog import FoundRig, prepare
from tuirig.runs.session import Session


def host_of(rig: Rig) -> Host:
    """Where a rig's server runs."""
    return LocalHost()


async def engine_of(rig: Rig, host: Host) -> Engine:
    """The server program of a rig. Raises MissingError if it is not found."""
    from tuirig.engines.llamacpp.engine import LlamaCpp

    return await LlamaCpp.load(host, rig.server.program, rig.server.env)


@asynccontextmanager
async def open_session(
    found: FoundRig,
    emit: Emit,
    *,
    rate_hz: float = 2.0,
    port: int | None = None,
    api_key: str = "",
) -> AsyncIterator[Session]:
    """Everything that a rig needs, opened; the server stops and the card is let go at the end.

    rate_hz, port, api_key: see Session.
    Raises MissingError (target, program, card) or FileError.
    """
    rig = found.rig
    files = await prepare(found, emit)
    host = host_of(rig)
    engine = await engine_of(rig, host)
    card = await asyncio.to_thread(open_card, rig.card, rig.card_memory_mib)
    session = Session(
        rig,
        files=files.usable,
        missing=files.missing,
        card=card,
        host=host,
        engine=engine,
        emit=emit,
        rate_hz=rate_hz,
        port=port,
        api_key=api_key,
    )
    async with session.opened():
        yield session


async def look_again(session: Session, found: FoundRig, emit: Emit) -> None:
    """Look once more for a rig's files while its session is open. Raises MissingError."""
    files = await prepare(found, emit)
    session.files, session.missing = files.usable, files.missing
