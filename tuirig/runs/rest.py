"""What a server holds on a card beside its buffers: the driver's own, as it was seen here."""

from __future__ import annotations

from tuirig.cards.detect import CPU
from tuirig.files.forecast import total
from tuirig.records import CardInfo
from tuirig.runs.store import Store


def rest_on(card: CardInfo) -> float | None:
    """MiB beside the buffers in the latest measured start on such a card; None if none tells.

    It belongs to the card and the backend: an H200 took 112 MiB with Vulkan and 660 with CUDA. So
    a start of another program may have had another. Blocks.
    """
    if card.kind == CPU:
        return None
    with Store() as store:
        arm = store.latest_on(card.name)
    if arm is None or arm.memory_mib is None or arm.memory_parts is None:
        return None
    rest_mib = arm.memory_mib - total(arm.memory_parts)
    return round(rest_mib, 2) if rest_mib > 0 else None  # all layers on the CPU, say
