"""The published protocol on a real server, short."""

from __future__ import annotations

import msgspec

from tests.runs.running import running
from tuirig.events import StartBegan
from tuirig.measure.prompts import choose
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import parse_setting
from tuirig.runs.board import Board, CellState
from tuirig.runs.speed import SpeedOptions, SpeedResult, speed
from tuirig.runs.store import ArmState

SHORT = SpeedOptions(settings=("none", "q4_0:1", "q4_0:2"), prompts=choose(2), tokens=6)


async def test_every_setting_in_a_server_of_its_own_and_the_first_drafted_again(
    tiny_gemma4_rig: Rig,
) -> None:
    async with running(tiny_gemma4_rig) as ran:
        result = await speed(ran.session, SHORT, ran.store, ran.events.append)
        arms = ran.store.arms(result.run)
        (run,) = ran.store.runs()
    order = ["none", "q4_0:1", "q4_0:2", "q4_0:1"]
    assert [event.setting for event in ran.told(StartBegan)] == order
    assert [arm.setting for arm in arms] == order
    assert run.result is not None and msgspec.json.decode(run.result, type=SpeedResult) == result
    # Three greedy rounds through the prompts, then one sampled; each reply once, in order.
    for arm in arms:
        temperatures = [reply.temperature for reply in arm.replies]
        assert temperatures == [0.0] * 6 + [0.8] * 2
        assert [reply.order for reply in arm.replies] == list(range(8))
        assert arm.arm is not None and arm.arm.replies == arm.replies
    assert [row.setting for row in result.rows] == ["none", "q4_0:1", "q4_0:2"]
    assert all(row.outcome == ArmState.MEASURED and row.sampled_tok_s for row in result.rows)
    none, one, _ = result.rows
    assert none.gain is None and none.kept is None
    assert one.gain is not None and one.tok_s is not None and none.tok_s is not None
    assert one.kept is not None and 0 <= one.kept <= 1
    assert result.drift is not None and result.drift.setting == "q4_0:1"

    # Sampled replies are shown to nobody as the setting's figure.
    board = Board(tiny_gemma4_rig)
    for event in ran.events:
        board.apply(event)
    cell = board.cell(parse_setting("q4_0:2"))
    assert (cell.state, cell.replies) == (CellState.MEASURED, 6)
