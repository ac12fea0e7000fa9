"""Runs on a real server, watched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tuirig.events import Event
from tuirig.hosts.remembered import remembered_servers
from tuirig.rigs.schema import Rig
from tuirig.runs.catalog import FoundRig
from tuirig.runs.opening import open_session
from tuirig.runs.session import Session
from tuirig.runs.store import Store

T = TypeVar("T")


@dataclass
class Running:
    """An open session with a store, and everything that was told."""

    session: Session
    store: Store
    events: list[Event]

    def told(self, kind: type[T]) -> list[T]:
        """The events of one kind, oldest first."""
        return [event for event in self.events if isinstance(event, kind)]


@asynccontextmanager
async def running(rig: Rig) -> AsyncIterator[Running]:
    """No server may be left at the end."""
    events: list[Event] = []
    found = FoundRig(rig, Path(f"{rig.name}.toml"))
    with Store() as store:
        async with open_session(found, events.append, rate_hz=0) as session:
            yield Running(session, store, events)
    assert remembered_servers() == ()
