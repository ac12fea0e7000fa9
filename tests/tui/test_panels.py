"""Panels: what they say, and that they keep to their size."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from tests.tui import example
from tuirig.events import Failed, Progress, ServerState
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs.board import Cell, CellState
from tuirig.tui.panels import grid, reply, status
from tuirig.tui.spans import Line, width
from tuirig.tui.view import View


def words(lines: list[Line]) -> str:
    return "\n".join("".join(span.text for span in line).rstrip() for line in lines)


def test_grid_shows_numbers_gains_and_the_best() -> None:
    shown = words(grid.grid(example.measured(), 70, 20))
    assert "*100.0*" in shown
    assert "1.72x" in shown
    assert "58.3" in shown
    assert "fixed" in shown


@pytest.mark.parametrize("height", [3, 5, 9, 20])
@pytest.mark.parametrize("cells", [24, 40, 78])
def test_grid_fits_and_shows_the_cursor(cells: int, height: int) -> None:
    view = example.measured()
    for setting in view.rig.settings():
        view.cursor = setting
        lines = grid.grid(view, cells, height)
        assert len(lines) <= height
        assert all(width(line) <= cells for line in lines)
        assert any("cursor" in span.roles for line in lines for span in line)


def test_a_failed_cell_is_told_apart_without_colour_and_says_why() -> None:
    view = example.measured()
    view.apply(Failed(message="out of memory", hint="smaller -c", setting="bf16:2"), 0)
    view.cursor = Setting("bf16", 2)
    assert "!" in words(grid.grid(view, 70, 20))
    said = words(grid.details(view, "", 70))
    assert "out of memory" in said
    assert "smaller -c" in said


def test_details_tell_what_is_missing_for_a_gain() -> None:
    view = View(example.rig())
    view.board.apply(_reply_done())
    view.cursor = Setting("q4_0", 2)
    assert "gain unknown without none" in words(grid.details(view, "", 70))


def _reply_done():
    from tuirig.events import ReplyDone

    return ReplyDone(setting="q4_0:2", reply=example.reply(90, shares=(0.6, 0.3)))


def test_a_refused_cell_says_why_before_it_is_started() -> None:
    view = View(example.rig())
    view.cursor = Setting("q4_0", 2)
    assert "no draft-mtp" in words(grid.details(view, "this build has no draft-mtp", 70))


@pytest.mark.parametrize("cells", [60, 80, 120, 200])
def test_header_is_one_full_line_with_state_in_words(cells: int) -> None:
    header = status.header(example.measured(), cells)
    assert width(header) == cells
    assert "● ready" in words([header])


@pytest.mark.parametrize("height", [12, 17, 24])
def test_now_fits(height: int) -> None:
    lines = status.now(example.measured(), 28, height)
    assert all(width(line) <= 28 for line in lines)
    said = words(lines)
    for expected in ("100.0 tok/s", "1.72x", "kept .480", "4.39 of 8.00 GiB", "no throttling"):
        assert expected in said


def test_band_is_two_lines_of_the_whole_width() -> None:
    lines = status.band(example.measured(), 80)
    assert [width(line) for line in lines] == [80, 80]
    assert "(.62 .34)" in words(lines)


def test_progress_tells_the_time_left() -> None:
    view = example.measured()
    view.apply(Progress(what="fetching x", done=1, total=4, unit="B", left_s=75), 0)
    assert "fetching x 25 %  1:15 left" in words(status.band(view, 80))


def test_progress_takes_the_place_of_memory_and_can_be_cancelled() -> None:
    view = example.measured()
    view.apply(Progress(what="making demo-gemma4", done=45, total=100), 0)
    said = words(status.band(view, 80))
    assert "making demo-gemma4 45 %" in said
    assert "Esc" in said


def test_unknown_readings_are_dashes() -> None:
    view = View(example.rig())
    said = words([*status.band(view, 80), *status.now(view, 28, 17)])
    assert "–" in said
    assert " 0 " not in said


def test_text_shows_its_end_and_first_steps_before() -> None:
    view = View(example.rig())
    assert "Arrows choose a cell" in words(list(reply.text(view, 78, 6)))
    view.text = "\n".join(f"row {number}" for number in range(50))
    assert words(list(reply.text(view, 78, 4))) == "row 46\nrow 47\nrow 48\nrow 49"


def test_details_end_with_the_command_line_and_an_ellipsis_where_it_is_cut() -> None:
    view = View(example.rig())
    view.cursor = NONE
    lines = list(reply.details(view, "", "llama-server " + "--flag value " * 40, 60, 4))
    assert len(lines) == 4
    assert all(width(line) <= 60 for line in lines)
    assert words(lines).endswith("…")


@pytest.mark.parametrize("state", list(ServerState))
def test_every_state_is_a_word_beside_a_mark(state: ServerState) -> None:
    view = View(example.rig())
    view.apply(example.server(state, "q4_0:2"), 0)
    assert str(state) in words([status.state_spans(view)])


def test_a_brief_command_line_keeps_its_flags_and_file_names() -> None:
    command = "LD_LIBRARY_PATH=/opt/a/long/folder/of/bin /opt/a/long/folder/llama-server -ngl 99"
    assert reply.brief(command) == "LD_LIBRARY_PATH=…/bin …/llama-server -ngl 99"


@pytest.mark.parametrize("height", range(8))
@pytest.mark.parametrize("setting", ["none", "q4_0:2", "bf16:2"])
def test_details_have_the_command_line_as_far_as_there_is_room(setting: str, height: int) -> None:
    view = example.measured()
    view.cursor = parse_setting(setting)
    view.apply(
        Failed(
            message="the server did not start: no memory " * 4,
            hint="use a smaller -c",
            evidence=("E one", "E two"),
            setting="bf16:2",
        ),
        0.0,
    )
    lines = reply.details(view, "", "llama-server " + "--flag value " * 40, 60, height)
    assert str(view.cursor) in words(list(lines)[:1])
    assert ("$ llama-server" in words(list(lines)[:height])) == (
        len(grid.details(view, "", 60)) < height
    )


@pytest.mark.parametrize("size", grid.CELLS)
@pytest.mark.parametrize("letter", ["", "A", "v", "?"])
@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize(
    "cell",
    [
        Cell(Setting("q4_0", 2)),
        Cell(Setting("q4_0", 2), CellState.FAILED),
        Cell(Setting("q4_0", 2), CellState.MEASURED, tok_s=1234.5, gain=1.64, best=True),
        Cell(Setting("q4_0", 2), CellState.MEASURED, tok_s=109.7, gain=10.25, level=True),
        Cell(Setting("q4_0", 2), CellState.MEASURED, tok_s=9.7, gain=0.94),
    ],
)
def test_a_cell_keeps_to_its_width(cell: Cell, running: bool, letter: str, size: int) -> None:
    for span in grid.draw(cell, grid.Look(running=running, letter=letter, predicted=12345.6), size):
        assert cell_len(span.text) == size
