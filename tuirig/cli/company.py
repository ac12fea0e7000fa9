"""Who else runs on the card, told before a server starts."""

from __future__ import annotations

import asyncio

from tuirig.cards.base import Card
from tuirig.cli.output import say
from tuirig.runs.holders import others_on
from tuirig.runs.serving import leftovers


async def tell_of_others(card: Card) -> None:
    """Name other people's processes, which are left alone, and servers that outlived tuirig."""
    for other in await asyncio.to_thread(others_on, card):
        say(f"note: also on this card: {other}")
    for server in await asyncio.to_thread(leftovers):
        place = f"process {server.pid}, port {server.port}"
        say(f"note: {server.label} still runs, {place}; end it: tuirig stop {server.label}")
