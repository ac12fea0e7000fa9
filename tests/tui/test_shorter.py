"""Fewer bytes, the same picture: both streams drawn by a terminal emulator."""

from __future__ import annotations

import pyte
from hypothesis import given
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.style import Style

from tests.tui.test_look import show_measured, still
from tuirig.tui.shorter import shorter

COLOURS = ("#e0e0e0", "#121212", "red", "bright_blue", "color(99)", None)
WORDS = ("tok/s", " ", "      ", "│", "100.0", "日本", "")

styles = st.builds(
    Style,
    color=st.sampled_from(COLOURS),
    bgcolor=st.sampled_from(COLOURS),
    bold=st.sampled_from((True, None)),
    italic=st.sampled_from((True, None)),
    underline=st.sampled_from((True, None)),
    reverse=st.sampled_from((True, None)),
    strike=st.sampled_from((True, None)),
)
pieces = st.one_of(
    st.tuples(styles, st.sampled_from(WORDS)).map(
        lambda pair: pair[0].render(pair[1], color_system=ColorSystem.TRUECOLOR)
    ),
    st.tuples(st.integers(1, 6), st.integers(1, 30)).map(lambda at: f"\x1b[{at[0]};{at[1]}H"),
    st.sampled_from(
        ("\x1b[22m", "\x1b[7mx\x1b[27my", "\x1b[2J", "\x1b[K", "\x1b[39;49m", "\x1b[m")
    ),
)


def drawn(*frames: str) -> list[list[tuple[object, ...]]]:
    """What is seen of every cell. A blank without line or reversal shows its background alone."""
    screen = pyte.Screen(40, 8)
    stream = pyte.Stream(screen)
    for frame in frames:
        stream.feed(frame)
    cells = []
    for row in range(8):
        line = []
        for column in range(40):
            cell = screen.buffer[row][column]
            marks = (cell.underscore, cell.reverse, cell.strikethrough)
            looks = (cell.fg, cell.bold, cell.italics)
            blank = cell.data == " " and not any(marks)
            line.append((cell.data, cell.bg, *marks, *(() if blank else looks)))
        cells.append(line)
    return cells


@given(st.lists(pieces, max_size=30), st.lists(pieces, max_size=10))
def test_the_picture_stays_the_same(first: list[str], second: list[str]) -> None:
    # Textual ends what it has styled: each frame begins in the plain style.
    frames = ["".join(part) + "\x1b[0m" for part in (first, second)]
    assert drawn(*map(shorter, frames)) == drawn(*frames)


def test_what_is_left_is_less() -> None:
    style = Style(color="#e0e0e0", bgcolor="#121212")
    frame = "".join(
        f"\x1b[{row};1H" + "".join(style.render(word) for word in ("a ", "b ", "c"))
        for row in range(1, 7)
    )
    assert shorter(frame).count("\x1b[38;2") == 1
    assert len(shorter(frame)) * 3 < len(frame)


async def test_a_whole_screen_loses_a_third_even_in_16_colours() -> None:
    async with still("120x36") as driver:
        await show_measured(driver)
        console = driver.app.console
        rows = driver.app.screen._compositor.render_strips()
        frame = "".join(
            f"\x1b[{number};1H{strip.render(console)}" for number, strip in enumerate(rows, 1)
        )
        assert len(shorter(frame)) * 3 < len(frame) * 2
