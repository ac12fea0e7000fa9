"""Which card a rig or a profile means."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tuirig.records import CardInfo

#: Drivers and vendors differ by a few MiB on the same card.
MEMORY_TOLERANCE = 0.03

_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")


def matching_cards(
    cards: Sequence[CardInfo], wanted: str, memory_mib: float | None = None
) -> list[CardInfo]:
    """The cards that `wanted` may mean, several if it does not tell them apart.

    wanted: a whole name, a UUID or a PCI address (`01:00.0`, `00000000:01:00.0`); where none is
    exactly that, part of a name or the beginning of a UUID. Upper and lower case are alike.
    memory_mib leaves cards of another size out.
    """
    sized = [card for card in cards if same_memory(card.memory_mib, memory_mib)]
    text = wanted.strip().casefold()
    exact = [
        card
        for card in sized
        if text in ((card.uuid or "").casefold(), card.name.casefold())
        or (card.pci_address is not None and _same_pci_address(card.pci_address, text))
    ]
    return exact or [
        card
        for card in sized
        if text in card.name.casefold()
        or (text.startswith("gpu-") and (card.uuid or "").casefold().startswith(text))
    ]


def _same_pci_address(one: str, other: str) -> bool:
    addresses = [_PCI.fullmatch(address.casefold()) for address in (one, other)]
    if not all(addresses):
        return False
    first, second = (
        (int(address[1] or "0", 16), address[2], address[3], address[4])
        for address in addresses
        if address
    )
    return first == second


def same_memory(one_mib: float | None, other_mib: float | None) -> bool:
    """Whether two memory sizes are of the same card model; an unknown one fits all."""
    if one_mib is None or other_mib is None:
        return True
    return abs(one_mib - other_mib) <= MEMORY_TOLERANCE * max(one_mib, other_mib)
