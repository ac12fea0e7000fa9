"""Two settings side by side: how the interval of B against A narrows, and where texts part."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from tuirig.events import ComparisonMoved
from tuirig.measure import summary
from tuirig.measure.prompts import PROMPTS
from tuirig.records import Reply
from tuirig.rigs.settings import Setting, parse_setting
from tuirig.stats.ratio import paired_gain
from tuirig.tui import figures
from tuirig.tui.panels import grid
from tuirig.tui.spans import Line, Span, cut, line, spread, width, wrap
from tuirig.tui.view import View

HOW = (
    "Nothing to compare: {lacks}.",
    "1 goes back to the grid; there choose a cell and press a: it becomes A.",
    "Choose another one and press b: it becomes B.",
    "c starts servers in the order A B B A, until the answer is settled.",
)


def pair(view: View) -> tuple[Setting, Setting] | None:
    """A and B: the marked settings, else those of the comparison that runs or ran last."""
    if set(view.marked) == {"a", "b"}:
        return view.marked["a"], view.marked["b"]
    found = view.comparison
    if not view.marked and found is not None:
        return parse_setting(found.a), parse_setting(found.b)
    return None


def answer(view: View, cells: int, height: int) -> list[Line]:
    """What is known of B against A, and how it came to be known; what to do without a pair."""
    both = pair(view)
    if both is None:
        marked = [f"{letter.upper()} is {setting}" for letter, setting in view.marked.items()]
        lacks = f"{marked[0]}, the other one is not marked" if marked else "no cell is marked"
        return [line(row) for step in HOW for row in wrap(step.format(lacks=lacks), cells)]
    found = view.comparison
    if found is None or (found.a, found.b) != (str(both[0]), str(both[1])):
        return _not_yet(view, *both, cells)
    said = grid.comparison(view, cells)
    moves = view.moves[-max(0, height - len(said)) :] if height > len(said) else ()
    return [*said, *narrowing(moves, cells)]


def _not_yet(view: View, a: Setting, b: Setting, cells: int) -> list[Line]:
    """The cells of the grid tell a ratio too, but not how sure it is."""
    by_prompt = [summary.tok_s_by_prompt(view.board.replies(setting)) for setting in (a, b)]
    both = by_prompt[0].keys() & by_prompt[1].keys()
    ratio = paired_gain(*by_prompt)
    lines = [line(f"A {a}   B {b}   ", Span("not compared yet: c compares", "warn"))]
    if ratio is not None:
        prompts = "prompt" if len(both) == 1 else "prompts"
        words = f"B/A {ratio:.3f} on {len(both)} shared {prompts} in the grid, no interval"
        lines.append(line(Span(words, "dim")))
    return [cut(one, cells) for one in lines]


def narrowing(moves: Sequence[ComparisonMoved], cells: int) -> list[Line]:
    """A line per server start: starts of A and B so far, ratio, interval, drawn on one scale."""
    known = [move for move in moves if move.low is not None and move.high is not None]
    low = min([1.0, *(move.low or 1.0 for move in known)])
    high = max([1.0, *(move.high or 1.0 for move in known)])
    lines = []
    for move in moves:
        words = f"{move.starts_a:>3}+{move.starts_b:<3}{_number(move.ratio)}"
        if move.low is not None and move.high is not None:
            words += f"  [{move.low:.3f}, {move.high:.3f}]"
        words = f"{words:<32}"
        drawn = _scale(move, low, high, cells - len(words))
        lines.append(line(Span(words, "dim"), *drawn))
    return lines


def _number(ratio: float | None) -> str:
    return f"{figures.DASH if ratio is None else f'{ratio:.3f}':>7}"


def _scale(move: ComparisonMoved, low: float, high: float, cells: int) -> Line:
    """The interval as a bar, the ratio in it, and where both are equal; ratios go by factors."""
    if cells < 10 or high <= low or move.low is None or move.high is None or move.ratio is None:
        return ()

    def at(ratio: float) -> int:
        return round(log(ratio / low) / log(high / low) * (cells - 1))

    drawn = ["·"] * cells
    drawn[at(1.0)] = "│"
    first, last = at(move.low), at(move.high)
    drawn[first : last + 1] = "━" * (last + 1 - first)
    drawn[at(move.ratio)] = "●"
    text = "".join(drawn)
    return line(
        Span(text[:first], "dim"),
        Span(text[first : last + 1], "bar"),
        Span(text[last + 1 :], "dim"),
    )


def shared_prompts(view: View) -> tuple[str, ...]:
    """Prompts that both have a text for, in the order of the prompts."""
    both = pair(view)
    if both is None:
        return ()
    known = [{reply.prompt_id for reply in view.board.replies(setting)} for setting in both]
    ids = known[0] & known[1]
    listed = [prompt.id for prompt in PROMPTS if prompt.id in ids]
    return (*listed, *sorted(ids.difference(listed)))


def replies(view: View, prompt: str) -> tuple[Reply, Reply] | None:
    """The last reply of A and of B to a prompt."""
    both = pair(view)
    if both is None:
        return None
    last = [
        {reply.prompt_id: reply for reply in view.board.replies(setting)}.get(prompt)
        for setting in both
    ]
    return (last[0], last[1]) if last[0] is not None and last[1] is not None else None


def difference(a: str, b: str) -> int | None:
    """The first character that differs, None between equal texts."""
    if a == b:
        return None
    least = min(len(a), len(b))
    return next((index for index in range(least) if a[index] != b[index]), least)


def head(view: View, prompt: str, number: int, count: int, cells: int) -> list[Line]:
    """Which prompt, whether the texts part, and whose text stands where."""
    both, last = pair(view), replies(view, prompt)
    if both is None or last is None:
        return []
    titles = {one.id: f"{one.kind} · {one.title}" for one in PROMPTS}
    left = line(
        Span(titles.get(prompt, prompt), "title"), Span(f"  {number} of {count}, p next", "dim")
    )
    at = difference(last[0].text, last[1].text)
    said = (
        Span("the same text", "good")
        if at is None
        else Span(f"differ at character {at + 1}", "warn")
    )
    names = [
        line(
            Span(f"{letter} {setting}", "title"),
            Span(f"  {reply.predicted_n} tokens, {figures.rate(reply.tok_s)} tok/s", "dim"),
        )
        for letter, setting, reply in zip("AB", both, last, strict=True)
    ]
    return [spread(left, line(said), cells), _beside(names[0], names[1], cells)]


def texts(a: str, b: str, cells: int) -> tuple[list[Line], int]:
    """(both texts beside each other, the row where they part); from there on they are coloured."""
    a, b = a.expandtabs(4), b.expandtabs(4)
    at = difference(a, b)
    column = (cells - 3) // 2
    (left, row_a), (right, row_b) = _marked(a, at, column), _marked(b, at, column)
    height = max(len(left), len(right))
    left += [()] * (height - len(left))
    right += [()] * (height - len(right))
    rows = [_beside(one, other, cells) for one, other in zip(left, right, strict=True)]
    return rows, min(row_a, row_b)


def _beside(left: Line, right: Line, cells: int) -> Line:
    column = (cells - 3) // 2
    left = cut(left, column)
    gap = " " * (column - width(left))
    return line(*left, gap, Span(" │ ", "dim"), *cut(right, column))


def _marked(text: str, at: int | None, cells: int) -> tuple[list[Line], int]:
    """(rows of a text, the row of its character number `at`, which is marked)."""
    lines: list[Line] = []
    marked: int | None = None
    position = 0
    for row in wrap(text, cells):
        hit = None
        for index, character in enumerate(row):
            while text[position] != character:  # wrapping leaves out blanks and line ends
                position += 1
            if at is not None and marked is None and position >= at:
                marked, hit = len(lines), index
            position += 1
        if hit is not None:
            lines.append(line(row[:hit], Span(row[hit], "cursor"), Span(row[hit + 1 :], "warn")))
        else:
            lines.append(line(Span(row, "warn" if marked is not None else "")))
    if at is not None and marked is None:  # it ends where the other goes on
        marked = max(0, len(lines) - 1)
        lines[marked:] = [line(*(lines[marked] if lines else ()), Span(" ", "cursor"))]
    return lines, marked or 0
