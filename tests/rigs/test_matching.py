from __future__ import annotations

import pytest

from tuirig.records import CardInfo
from tuirig.rigs.matching import matching_cards, same_memory


def card(
    name: str, uuid: str, pci_address: str | None = None, memory_mib: float | None = None
) -> CardInfo:
    return CardInfo(
        kind="nvidia", name=name, uuid=uuid, pci_address=pci_address, memory_mib=memory_mib
    )


PLAIN = card("NVIDIA GeForce RTX 3050", "GPU-aaaa-1", "00000000:01:00.0", 6144)
OEM = card("NVIDIA GeForce RTX 3050 OEM", "GPU-aaab-2", "00000000:02:00.0", 8192)
FAR = card("NVIDIA H200", "GPU-cccc-3", "0000000A:02:00.0", 143771)
TWIN = card("NVIDIA H200", "GPU-dddd-4", None, None)
CARDS = (PLAIN, OEM, FAR, TWIN)


@pytest.mark.parametrize(
    ("wanted", "memory_mib", "found"),
    [
        # a whole name before part of one
        ("NVIDIA GeForce RTX 3050", None, [PLAIN]),
        ("nvidia geforce rtx 3050", None, [PLAIN]),
        ("rtx 3050", None, [PLAIN, OEM]),
        ("3050 OEM", None, [OEM]),
        (" oem ", None, [OEM]),
        # UUID and PCI address
        ("gpu-AAAB-2", None, [OEM]),
        ("GPU-aaab", None, [OEM]),
        ("GPU-aaa", None, [PLAIN, OEM]),
        ("aaab", None, []),
        ("01:00.0", None, [PLAIN]),
        ("0000:01:00.0", None, [PLAIN]),
        ("00000000:01:00.0", None, [PLAIN]),
        ("02:00.0", None, [OEM]),
        ("000A:02:00.0", None, [FAR]),
        ("0000000a:02:00.0", None, [FAR]),
        ("03:00.0", None, []),
        # memory
        ("rtx 3050", 8188, [OEM]),
        ("rtx 3050", 6144, [PLAIN]),
        ("NVIDIA GeForce RTX 3050", 8192, [OEM]),
        ("rtx 3050", 4096, []),
        ("H200", None, [FAR, TWIN]),
        ("H200", 143771, [FAR, TWIN]),
        ("RTX 5090", None, []),
    ],
)
def test_which_card_is_meant(wanted: str, memory_mib: float | None, found: list[CardInfo]) -> None:
    assert matching_cards(CARDS, wanted, memory_mib) == found


def test_memory_sizes() -> None:
    assert same_memory(8192, 8188)
    assert same_memory(None, 1) and same_memory(1, None)
    assert not same_memory(8192, 6144)
    assert same_memory(6144, 8192) == same_memory(8192, 6144)
