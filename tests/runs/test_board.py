from __future__ import annotations

import pytest

from tuirig.events import ArmDone, Event, Failed, ReplyDone, ServerChanged, ServerState, TextArrived
from tuirig.records import Arm, CardInfo, Proof, Reply
from tuirig.rigs.schema import Drafter, ModelFile, Rig, Server, Tune
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs.board import Board, CellState, Earlier

Q1, Q2 = parse_setting("q4_0:1"), parse_setting("q4_0:2")


@pytest.fixture
def board() -> Board:
    return Board(
        Rig(
            name="board",
            card="cpu",
            target=ModelFile(path="target.gguf"),
            drafter=(Drafter(format="q4_0", type="draft-mtp", path="drafter.gguf"),),
            server=Server(args=("-c", "2048", "-ngl", "0")),
            tune=Tune(lengths=(0, 1, 2)),
        )
    )


def done(setting: Setting, prompt_id: str, tok_s: float, **more: int) -> Event:
    reply = Reply(prompt_id=prompt_id, kind="code", tok_s=tok_s, **more)
    return ReplyDone(setting=str(setting), reply=reply)


def test_every_setting_of_the_rig_has_a_cell(board: Board) -> None:
    cells = board.cells()
    assert [str(setting) for setting in cells] == ["none", "q4_0:1", "q4_0:2"]
    assert {cell.state for cell in cells.values()} == {CellState.EMPTY}


def test_the_gain_is_paired_over_the_prompts_that_both_have(board: Board) -> None:
    for event in (
        done(NONE, "code-1", 100.0),
        done(NONE, "code-2", 50.0),
        done(Q1, "code-1", 150.0, drafted=10, accepted=6),
        done(Q1, "code-3", 999.0, drafted=10, accepted=2),
    ):
        assert board.apply(event)
    cell = board.cell(Q1)
    assert cell.gain == pytest.approx(1.5)
    assert cell.kept == pytest.approx(8 / 20)
    assert (cell.prompts, cell.replies) == (2, 2)
    assert board.cell(NONE).gain is None


def test_replies_of_one_prompt_are_one_prompt(board: Board) -> None:
    for speed in (100.0, 400.0):
        board.apply(done(Q1, "code-1", speed))
    assert board.cell(Q1).tok_s == pytest.approx(200.0)
    assert (board.cell(Q1).prompts, board.cell(Q1).replies) == (1, 2)


def test_the_best_is_the_highest_gain_and_none_counts_as_one(board: Board) -> None:
    board.apply(done(NONE, "code-1", 100.0))
    board.apply(done(Q1, "code-1", 90.0))
    assert [str(s) for s, cell in board.cells().items() if cell.best] == ["none"]
    board.apply(done(Q2, "code-1", 120.0))
    assert [str(s) for s, cell in board.cells().items() if cell.best] == ["q4_0:2"]


def test_one_measured_setting_is_not_the_best_of_anything(board: Board) -> None:
    board.apply(done(Q1, "code-1", 90.0))
    assert not any(cell.best for cell in board.cells().values())


def test_a_failure_stays_until_the_setting_starts_again(board: Board) -> None:
    failed = Failed(message="out of memory", hint="-c", evidence=("E ...",), setting="q4_0:2")
    assert board.apply(failed)
    cell, failure = board.cell(Q2), board.failure(Q2)
    assert (cell.state, cell.reason) == (CellState.FAILED, "out of memory")
    assert failure is not None and failure.evidence == ("E ...",)
    starting = ServerChanged(state=ServerState.STARTING, setting="q4_0:2")
    assert board.apply(starting)
    assert not board.apply(starting)
    assert board.cell(Q2).state is CellState.EMPTY


def test_replies_of_an_arm_that_is_not_proven_never_count(board: Board) -> None:
    board.apply(done(Q1, "code-1", 150.0))
    (reply,) = board.replies(Q1)
    proof = Proof(asked=True, speculative=False, drafted=None, proven=False, reason="ignored")
    arm = Arm(
        rig="board", setting="q4_0:1", argv=(), server_build="b1", started_at="", ready_s=None,
        card=CardInfo(kind="cpu", name="a CPU"), replies=(reply,), proof=proof,
    )  # fmt: skip
    assert board.apply(ArmDone(arm=arm))
    assert board.cell(Q1).state is CellState.FAILED
    assert "ignored" in board.cell(Q1).reason
    board.apply(ServerChanged(state=ServerState.STARTING, setting="q4_0:1"))
    assert board.cell(Q1).state is CellState.EMPTY


def test_events_that_concern_no_cell_change_nothing(board: Board) -> None:
    assert not board.apply(TextArrived(text="a", predicted_n=1))
    assert not board.apply(Failed(message="the card is gone"))
    assert not board.apply(ServerChanged(state=ServerState.READY, setting="none"))


def before(setting: Setting, tok_s: float, *changes: str) -> dict[str, Earlier]:
    reply = Reply(prompt_id="code-1", kind="code", tok_s=tok_s)
    return {str(setting): Earlier(7, "2026-11-30", (reply,), changes)}


def test_an_earlier_run_fills_empty_cells_and_makes_way_for_new_replies(board: Board) -> None:
    board.apply(done(Q2, "code-1", 180.0))
    board.begin_with({**before(NONE, 100.0), **before(Q1, 150.0), **before(Q2, 999.0)})
    assert board.cell(Q1).gain == pytest.approx(1.5)
    assert board.cell(Q1).earlier is not None
    assert board.cell(Q2).gain == pytest.approx(1.8)
    assert board.cell(Q2).earlier is None
    assert board.apply(done(Q1, "code-1", 120.0))
    assert board.cell(Q1).tok_s == pytest.approx(120.0)
    assert board.earlier(Q1) is None
    board.begin_with(before(Q1, 999.0))
    assert board.cell(Q1).tok_s == pytest.approx(120.0)


def test_what_is_new_is_not_compared_with_what_is_stale(board: Board) -> None:
    board.begin_with({**before(NONE, 100.0, "driver"), **before(Q1, 150.0, "driver")})
    assert board.cell(Q1).stale
    assert board.cell(Q1).gain == pytest.approx(1.5)
    board.apply(done(Q2, "code-1", 180.0))
    assert (board.cell(Q2).tok_s, board.cell(Q2).gain) == (180.0, None)
    board.apply(done(NONE, "code-1", 90.0))
    assert board.cell(Q2).gain == pytest.approx(2.0)
