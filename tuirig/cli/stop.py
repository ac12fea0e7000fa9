"""`tuirig stop [RIG]`: end servers that tuirig started and that outlived it."""

from __future__ import annotations

import argparse

from tuirig.cli import signals
from tuirig.cli.output import answer, say
from tuirig.errors import ExitCode, MissingError


def run(options: argparse.Namespace) -> int:
    """End them one after the other, gently at first."""
    return signals.run(_stop(options.rig))


async def _stop(rig: str | None) -> int:
    from tuirig.hosts.remembered import remembered_servers
    from tuirig.runs.catalog import list_rigs
    from tuirig.runs.serving import end, leftovers

    labels = {server.label for server in remembered_servers()}
    known = labels | {listing.name for listing in list_rigs()}
    if rig is not None and rig not in known:
        raise MissingError(
            f"no rig and no server is called {rig}",
            hint=f"servers of tuirig: {', '.join(sorted(labels)) or 'none'}; tuirig rigs",
        )
    ended = 0
    for server in leftovers(rig):
        say(f"ending {server.label}: process {server.pid}, port {server.port}")
        await end(server)
        ended += 1
    for server in remembered_servers():
        if rig in (None, server.label):
            say(f"left alone: {server.label}, used by tuirig, process {server.owner_pid}")
    answer(f"{ended} server(s) ended" if ended else "no server of tuirig was left running")
    return ExitCode.OK
