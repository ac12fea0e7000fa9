"""Who else is on a card: named, never touched."""

from __future__ import annotations

import msgspec

from tuirig.cards.base import Card
from tuirig.hosts.remembered import remembered_servers


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody else's process on a card. ports: where it listens."""

    pid: int
    name: str
    memory_mib: float | None = None
    ports: tuple[int, ...] = ()

    def __str__(self) -> str:
        ports = f", port {', '.join(map(str, self.ports))}" if self.ports else ""
        memory = f", {self.memory_mib:,.0f} MiB" if self.memory_mib is not None else ""
        return f"{self.name}, process {self.pid}{ports}{memory}"


def others_on(card: Card) -> tuple[Holder, ...]:
    """The processes on a card that are not servers of tuirig. Blocks for up to 100s of ms."""
    own = {server.pid for server in remembered_servers()}
    return tuple(
        Holder(
            pid=process.pid,
            name=process.name,
            memory_mib=process.memory_mib,
            ports=_ports(process.pid),
        )
        for process in card.processes()
        if process.pid not in own
    )


def _ports(pid: int) -> tuple[int, ...]:
    """Where a process listens, as far as the system tells."""
    import psutil

    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return ()
    listening = (c.laddr.port for c in connections if c.status == psutil.CONN_LISTEN)
    return tuple(sorted(set(listening)))
