"""Which cards there are, and which one a rig means."""

from __future__ import annotations

import sys

from tuirig.cards.base import Card
from tuirig.errors import MissingError, TuirigError
from tuirig.records import CardInfo
from tuirig.rigs.matching import matching_cards

CPU = "cpu"


def has_nvidia_driver() -> bool:
    """Whether the driver's library can be loaded; a container may show a driver without one."""
    import ctypes

    try:
        ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    except OSError:
        return False
    return True


def list_cards() -> tuple[CardInfo, ...]:
    """Every card of this machine, the CPU last."""
    return (*_nvidia_cards()[0], _cpu())


def driver_problem() -> str:
    """Why an installed NVIDIA driver does not answer; "" when it does, or there is none."""
    error = _nvidia_cards()[1]
    return error.text() if error else ""


def open_card(wanted: str, memory_mib: float | None = None) -> Card:
    """The card that a rig means; blocks up to a second.

    wanted is "cpu" or what `matching_cards` takes. Raises MissingError with the cards that exist,
    also when several fit.
    """
    from tuirig.cards.cpu import CpuCard
    from tuirig.cards.nvml import NvidiaCard

    if wanted.strip().casefold() == CPU:
        return CpuCard()
    cards, error = _nvidia_cards()
    found = matching_cards(cards, wanted, memory_mib)
    if len(found) == 1:
        return NvidiaCard(found[0])
    lines = [describe(card) for card in found or (*cards, _cpu())]
    if found:
        raise MissingError(
            f"{len(found)} cards fit {wanted!r}",
            evidence=lines,
            hint="name one by its UUID or PCI address",
        )
    size = f" with {memory_mib:,.0f} MiB" if memory_mib is not None else ""
    raise MissingError(
        f"no card {wanted!r}{size} on this machine",
        evidence=[error.message, *lines] if error else lines,
        hint=error.hint if error else f'name one of these, or card = "{CPU}"',
    )


def describe(card: CardInfo) -> str:
    """A card in one line: name, memory, UUID, PCI address."""
    parts = [
        f'"{CPU}": {card.name}' if card.kind == CPU else card.name,
        f"{card.memory_mib:,.0f} MiB" if card.memory_mib is not None else "",
        card.uuid or "",
        card.pci_address or "",
    ]
    return ", ".join(part for part in parts if part)


def _cpu() -> CardInfo:
    from tuirig.cards.cpu import cpu_info

    return cpu_info()


def _nvidia_cards() -> tuple[tuple[CardInfo, ...], TuirigError | None]:
    """The NVIDIA cards, or none and the reason where a driver is but does not answer."""
    if not has_nvidia_driver():
        return (), None
    from tuirig.cards.nvml import nvidia_cards

    try:
        return nvidia_cards(), None
    except MissingError as error:
        return (), error
