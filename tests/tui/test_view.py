"""The reducer: what the screen knows after which events."""

from __future__ import annotations

import pytest

from tests.tui import example
from tuirig.events import Failed, Progress, ReplyStarted, ServerState, TextArrived
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs.board import CellState
from tuirig.tui.view import View


def test_columns_and_rows_hold_every_setting_once() -> None:
    view = View(example.rig())
    cells = [
        view.at(row, column) for row in range(len(view.rows)) for column in range(len(view.columns))
    ]
    found = [cell for cell in cells if cell is not None]
    assert sorted(map(str, found)) == sorted(map(str, view.rig.settings()))


def test_every_cell_can_be_reached_by_moving() -> None:
    view = View(example.rig())
    seen = {view.cursor}
    frontier = [view.cursor]
    while frontier:
        start = frontier.pop()
        for step in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            view.cursor = start
            view.move(*step)
            if view.cursor not in seen:
                seen.add(view.cursor)
                frontier.append(view.cursor)
    assert seen == set(view.rig.settings())


def test_moving_off_the_edge_changes_nothing() -> None:
    view = View(example.rig())
    assert not view.move(-1, 0)
    assert not view.move(0, -1)
    assert view.cursor == NONE


def test_gain_and_best_come_from_common_prompts() -> None:
    view = example.measured()
    cells = view.board.cells()
    best = cells[Setting("q4_0", 2)]
    assert best.best
    assert best.gain == pytest.approx(100.0 / 58.3)
    assert view.live_gain == pytest.approx(100.0 / 58.3)
    assert [cell.setting for cell in cells.values() if cell.best] == [Setting("q4_0", 2)]


def test_gain_is_unknown_without_a_common_prompt() -> None:
    view = View(example.rig())
    view.board.apply(_done("none", "code-1"))
    view.board.apply(_done("q4_0:2", "story-1"))
    assert view.board.cell(Setting("q4_0", 2)).gain is None


def _done(setting: str, prompt: str):
    from tuirig.events import ReplyDone

    return ReplyDone(setting=setting, reply=example.reply(50, prompt=prompt))


def test_a_failed_setting_keeps_its_reason_until_it_is_started_again() -> None:
    view = View(example.rig())
    view.apply(Failed(message="exit code 1", setting="bf16:2"), 0)
    cell = view.board.cell(Setting("bf16", 2))
    assert (cell.state, cell.reason) == (CellState.FAILED, "exit code 1")
    view.apply(example.server(ServerState.STARTING, "bf16:2"), 0)
    assert view.board.cell(Setting("bf16", 2)).state is CellState.EMPTY


def test_the_trend_is_taken_over_half_seconds() -> None:
    view = View(example.rig())
    view.apply(ReplyStarted(setting="none", prompt_id="p", kind="code", token_limit=64), 10.0)
    for step in range(21):  # 10 tokens every 0.1 s, in bursts
        view.apply(TextArrived(text="x", predicted_n=step * 10), 10.0 + step * 0.1)
    assert view.trend == pytest.approx([100.0] * len(view.trend))
    assert len(view.trend) == 3 or len(view.trend) == 4


def test_a_new_start_forgets_the_live_figures_but_not_the_board() -> None:
    view = example.measured()
    view.apply(example.server(ServerState.STARTING, "bf16:2"), 0)
    assert view.tok_s is None
    assert view.last_reply is None
    assert view.board.cell(Setting("q4_0", 2)).state is CellState.MEASURED


def test_finished_progress_is_gone() -> None:
    view = View(example.rig())
    view.apply(Progress(what="making", done=1, total=2), 0)
    assert view.progress is not None
    view.apply(Progress(what="making", done=2, total=2), 0)
    assert view.progress is None


def test_the_running_setting_is_known_only_while_it_is_up() -> None:
    view = example.measured()
    assert view.running == parse_setting("q4_0:2")
    view.apply(example.server(ServerState.STOPPING, "q4_0:2"), 0)
    assert view.running is None
