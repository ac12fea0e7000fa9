"""What the rest of the program knows of a card."""

from __future__ import annotations

from typing import Protocol

from tuirig.records import CardInfo, CardProcess, Reading


class Card(Protocol):
    """One card (or the CPU). Calls block for up to hundreds of ms: use a thread; none raises."""

    @property
    def info(self) -> CardInfo:
        """What it is."""

    def read(self, pid: int | None = None) -> Reading:
        """One reading; pid is the server's process, whose memory is asked for too."""

    def remember_floor(self) -> None:
        """Remember the memory used now, with no server of ours running.

        Where the driver gives no figure per process, a server's memory is counted from it.
        """

    def processes(self) -> tuple[CardProcess, ...]:
        """Who holds memory of this card (nvidia: every process; cpu: running llama-servers)."""

    def close(self) -> None:
        """Let go of the driver. Further reads give empty readings."""
