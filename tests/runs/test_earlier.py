"""The latest run's figures, as the grid begins with them."""

from __future__ import annotations

import msgspec

from tests.runs.running import running
from tuirig.measure.prompts import choose
from tuirig.rigs.schema import Rig
from tuirig.runs.ab import AbOptions, ab
from tuirig.runs.board import Board
from tuirig.runs.earlier import earlier_replies

QUICK = AbOptions(a="none", b="q4_0:1", prompts=choose(2), tokens=8, blocks=1)


async def test_the_latest_run_is_what_the_grid_begins_with(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        assert earlier_replies(ran.session) == {}
        await ab(ran.session, QUICK, ran.store, ran.events.append)
        result = await ab(ran.session, QUICK, ran.store, ran.events.append)
        found = earlier_replies(ran.session)
        arms = ran.store.arms(result.run)
    assert list(found) == ["none", "q4_0:1"]
    assert {one.run for one in found.values()} == {result.run}
    assert {one.changes for one in found.values()} == {()}
    assert all(len(one.replies) == 4 for one in found.values())
    assert found["none"].day == arms[0].started_at[:10]
    board = Board(tiny_gemma4_rig)
    board.begin_with(found)
    assert [str(one) for one, cell in board.cells().items() if cell.replies] == list(found)


async def test_what_has_changed_since_is_told(tiny_gemma4_rig: Rig) -> None:
    async with running(tiny_gemma4_rig) as ran:
        await ab(ran.session, QUICK, ran.store, ran.events.append)
    args = [word if word != "2048" else "1024" for word in tiny_gemma4_rig.server.args]
    server = msgspec.structs.replace(tiny_gemma4_rig.server, args=tuple(args))
    kept = tiny_gemma4_rig.drafter[:1]  # the other rows are gone from the rig
    rig = msgspec.structs.replace(tiny_gemma4_rig, server=server, drafter=kept)
    async with running(rig) as ran:
        found = earlier_replies(ran.session)
    assert list(found) == ["none"]
    assert "2048" in found["none"].changes[0] and "1024" in found["none"].changes[0]
