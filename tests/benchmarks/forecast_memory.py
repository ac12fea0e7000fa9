"""The memory forecast against the server's own lines and the process, by format and context.

    python -m tests.benchmarks.forecast_memory RIG [RIG ...] [--contexts 2048,8192,32768]

All in MiB. Before and after: the card's memory in use around each start.
"""

from __future__ import annotations

import argparse
import asyncio

import msgspec

from tuirig.events import ignore
from tuirig.records import MemoryParts
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting
from tuirig.runs.catalog import FoundRig, find_rig
from tuirig.runs.fitting import rig_models, setting_memory
from tuirig.runs.opening import open_session


def with_context(found: FoundRig, context: int) -> FoundRig:
    """The rig with another -c."""
    args = found.rig.server.args
    changed = tuple(
        str(context) if before == "-c" else word
        for before, word in zip(("", *args), args, strict=False)
    )
    server = msgspec.structs.replace(found.rig.server, args=changed)
    return FoundRig(msgspec.structs.replace(found.rig, server=server), found.path)


def settings(rig: Rig) -> list[Setting]:
    """`none`, and every drafter that is a file."""
    return [NONE, *(Setting(drafter.row, 2) for drafter in rig.drafter if drafter.has_file)]


def words(parts: MemoryParts | None) -> str:
    """Target, drafter, cache, buffers."""
    if parts is None:
        return "unknown"
    sizes = (parts.target_mib, parts.drafter_mib, parts.cache_mib, parts.buffers_mib)
    return " ".join("     -" if size is None else f"{size:6.0f}" for size in sizes)


async def look(found: FoundRig) -> None:
    """A line for each setting."""
    async with open_session(found, ignore, rate_hz=0) as session:
        models, _ = rig_models(session.files)
        for setting in settings(found.rig):
            forecast = setting_memory(found.rig, setting, models, None)
            before = (await session.read_card()).memory_used_mib
            await session.restart(setting)
            assert session.server is not None
            parts, reading = session.server.memory_parts, await session.read_card()
            await session.stop()
            after = (await session.read_card()).memory_used_mib
            print(
                f"{setting!s:<8} {words(forecast.card if forecast else None)}"
                f"   {words(parts)}   {reading.process_memory_mib or 0:8.0f}"
                f" {before or 0:9.0f} {after or 0:9.0f}",
                flush=True,
            )


async def measure(options: argparse.Namespace) -> None:
    """A table for each rig and context."""
    for rig in options.rigs:
        for context in map(int, options.contexts.split(",")):
            print(f"\n{rig}, -c {context}")
            print(
                f"{'':8} {'forecast: target drafter cache buffers':<30}   the server's lines"
                "   process    before     after"
            )
            await look(with_context(find_rig(rig), context))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rigs", nargs="+")
    parser.add_argument("--contexts", default="2048,8192,32768")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()
