"""V(k) on a real server with several slots."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tuirig.errors import DoesNotFitError, ServerError
from tuirig.events import Event, Progress, ignore
from tuirig.measure.passes import measure_passes
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE
from tuirig.runs.catalog import FoundRig
from tuirig.runs.opening import open_session


async def test_each_number_of_positions_is_timed(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    events: list[Event] = []
    found = FoundRig(tiny_gemma4_rig, tmp_path / "rig.toml")
    async with open_session(found, ignore, rate_hz=0) as session:
        await session.restart(NONE, slots=3)
        assert session.server is not None
        argv = session.server.command.argv
        passes_s = await measure_passes(session.server, 3, emit=events.append)
        counters = await session.server.counters()
    assert argv[argv.index("-np") + 1] == "3" and "-kvu" in argv
    assert list(passes_s) == [1, 2, 3]
    assert all(0 < seconds < 1 for seconds in passes_s.values())
    # Up and down: 2 (1 + 2 + 3) requests of at least 16 tokens each.
    assert counters is not None and counters.predicted >= 2 * 6 * 16
    steps = [event for event in events if isinstance(event, Progress)]
    assert [(step.done, step.total) for step in steps] == [(done, 6) for done in range(7)]


async def test_requests_that_wait_for_each_other_are_no_passes(
    tiny_gemma4_rig: Rig, tmp_path: Path
) -> None:
    found = FoundRig(tiny_gemma4_rig, tmp_path / "rig.toml")
    async with open_session(found, ignore, rate_hz=0) as session:
        await session.restart(NONE)  # one slot
        assert session.server is not None
        with pytest.raises(ServerError, match="2 requests did not run side by side"):
            await measure_passes(session.server, 2, emit=ignore)


async def test_a_server_that_dies_meanwhile(tiny_gemma4_rig: Rig, tmp_path: Path) -> None:
    found = FoundRig(tiny_gemma4_rig, tmp_path / "rig.toml")
    async with open_session(found, ignore, rate_hz=0) as session:
        await session.restart(NONE, slots=2)
        server = session.server
        assert server is not None

        def kill_in_the_second_round(event: Event) -> None:
            if isinstance(event, Progress) and event.done == 1:
                os.kill(server.pid, signal.SIGKILL)

        with pytest.raises(DoesNotFitError, match=r"the server died.*SIGKILL"):
            await measure_passes(server, 2, emit=kill_in_the_second_round)
