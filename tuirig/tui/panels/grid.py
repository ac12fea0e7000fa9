"""The grid of settings: rows are drafters, columns draft lengths."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

from tuirig.measure import summary
from tuirig.rigs.settings import NONE
from tuirig.runs.board import Cell, CellState
from tuirig.tui import figures
from tuirig.tui.figures import DASH
from tuirig.tui.spans import Line, Span, cut, line, wrap
from tuirig.tui.view import View

#: Cell widths to choose from, the first where all columns fit.
CELLS = (8, 7)
LEGEND = (
    "* best",
    "= level with it",
    "● running",
    "! failed",
    "~ predicted",
    "v selected",
    "+ waits",
    "p saved",
    "? stale",
)


@dataclass(frozen=True)
class Frame:
    """Which part of the grid is shown. first_row, first_column: scrolled so far."""

    label: int
    cell: int
    first_row: int
    rows: int
    first_column: int
    columns: int
    tall: bool


def frame(view: View, cells: int, height: int) -> Frame:
    """What fits into a size: two lines a row where there is room, the cursor always visible."""
    names = [name or "none" for name in view.rows]
    label = min(16, max(len(name) for name in names) + 1)
    total = len(view.columns)
    cell = next((size for size in CELLS if label + size * total <= cells), CELLS[-1])
    columns = max(1, min(total, (cells - label) // cell))
    tall = height >= 1 + 2 * len(names)
    rows = max(1, min(len(names), (height - 1) // (2 if tall else 1)))
    row, column = view.place(view.cursor)
    return Frame(
        label,
        cell,
        _scroll(row, rows, len(names)),
        rows,
        _scroll(column, columns, total),
        columns,
        tall,
    )


def _scroll(position: int, shown: int, total: int) -> int:
    return max(0, min(position - shown + 1 if position >= shown else 0, total - shown))


def grid(view: View, cells: int, height: int) -> list[Line]:
    """Head line, then one or two lines a row."""
    part = frame(view, cells, height)
    board = view.board.cells()
    columns = range(part.first_column, part.first_column + part.columns)
    heads = [view.columns[column] for column in columns]
    lines = [
        line(
            " " * part.label,
            *(Span(f"{_head(head):>{part.cell - 1}} ", "dim") for head in heads),
        )
    ]
    for row in range(part.first_row, part.first_row + part.rows):
        name = view.rows[row] or "none"
        top: list[Span | str] = [Span(f"{name[: part.label - 1]:<{part.label}}", "title")]
        low: list[Span | str] = [" " * part.label]
        for column in columns:
            setting = view.at(row, column)
            cell = board.get(setting) if setting is not None else None
            chosen = setting is not None and setting == view.cursor
            letter = view.mark(setting) if setting is not None else ""
            look = Look(view.running == setting, chosen, letter, view.predicted.get(str(setting)))
            first, second = draw(cell, look, part.cell)
            top.append(first)
            low.append(second)
        lines.append(line(*top))
        if part.tall:
            lines.append(line(*low))
    return lines


def _head(length: int | None) -> str:
    return "fixed" if length is None else str(length)


@dataclass(frozen=True)
class Look:
    """What a cell shows beside its own figures. letter: its mark. predicted: tok/s."""

    running: bool = False
    chosen: bool = False
    letter: str = ""
    predicted: float | None = None


def draw(cell: Cell | None, look: Look, size: int) -> tuple[Span, Span]:
    """The two lines of a cell, each so many cells wide."""
    if cell is None:
        return Span(" " * size), Span(" " * size)
    extra = " cursor" if look.chosen else ""
    mark = "●" if look.running else ""
    low = ""
    if cell.state is CellState.FAILED:
        top, low, role = f"{mark}! ", "failed ", "bad"
    elif cell.state is CellState.EMPTY and look.predicted is not None:
        top, role = f"~{figures.rate(look.predicted)} ", "dim"
    elif cell.state is CellState.EMPTY:
        top, role = f"{mark}· ", "dim"
    else:
        number = figures.rate(cell.tok_s)
        top = f"*{number}*" if cell.best else f"={number} " if cell.level else f"{mark}{number} "
        low = "" if cell.setting == NONE else f"{figures.gain(cell.gain)} "
        low = f"{mark}{low}" if cell.best or cell.level else low
        role = "dim" if cell.stale else "best" if cell.best else tone(cell)
    # A mark stands at the left of the second line, or below the dot where that line is empty.
    if look.letter and len(look.letter + low) > size:
        low = low.rstrip()
    low = f"{look.letter}{low:>{size - len(look.letter)}}" if low else f"{look.letter} "
    return _pad(top, role + extra, size), _pad(low, (role or "dim") + extra, size)


def tone(cell: Cell) -> str:
    """Role by gain against `none`."""
    if cell.gain is None or cell.setting == NONE:
        return ""
    return "good" if cell.gain >= 1.01 else "bad" if cell.gain < 0.99 else ""


def _pad(text: str, roles: str, size: int) -> Span:
    return Span(f"{text:>{size}}", roles.strip())


def comparison(view: View, cells: int) -> list[Line]:
    """What the comparison of A and B says so far."""
    found = view.comparison
    if found is None:
        return []
    said = [f"B/A {DASH if found.ratio is None else f'{found.ratio:.3f}'}"]
    if found.low is not None and found.high is not None:
        said.append(f"[{found.low:.3f}, {found.high:.3f}]")
    names = f"A {found.a}   B {found.b}   "
    role = {"faster": "good", "slower": "bad"}.get(found.verdict, "")
    told = "no difference seen" if found.verdict == "level" else f"B is {found.verdict}"
    first = line(names, Span(" ".join(said), "title"), "  ", Span(told, role))
    more = f"{found.starts_a}+{found.starts_b} starts"
    if found.detectable is not None:
        more += f" · less than {100 * found.detectable:.1f} % could stay unseen"
    if found.settled:
        more += f" · {found.settled}"
    return [cut(first, cells), cut(line(Span(more, "dim")), cells)]


def details(view: View, refusal: str, cells: int) -> list[Line]:
    """What is known of the chosen cell, in words; the first line says the most."""
    return [
        *comparison(view, cells),
        *_cell_details(view, refusal, cells),
        *_saved_details(view, cells),
    ]


def _saved_details(view: View, cells: int) -> list[Line]:
    """What the saved profile says, at its cell; what has changed since, if anything has."""
    saved = view.saved
    if saved is None or saved.setting != view.cursor:
        return []
    evidence = saved.profile.evidence
    words = [f"saved profile ({saved.profile.source}): {figures.rate(evidence.tok_s)} tok/s"]
    if evidence.gain is not None:
        words.append(f"{figures.gain(evidence.gain)} of none")
    if evidence.when:
        words.append(evidence.when[:10])
    lines = [line(Span("p ", "accent"), Span(" · ".join(words), "dim"))]
    if saved.changes:
        changed = f"stale: {'; '.join(saved.changes)} · t tunes again"
        lines += _stale(changed, cells)
    return [cut(one, cells) for one in lines]


def _interval(view: View, cell: Cell) -> str:
    """The interval of the gain, unless a comparison tells it better, or what it stands on."""
    found = view.comparison
    if found is not None and {found.a, found.b} == {str(NONE), str(cell.setting)}:
        return ""
    shared = len(
        summary.tok_s_by_prompt(view.board.replies(NONE)).keys()
        & summary.tok_s_by_prompt(view.board.replies(cell.setting)).keys()
    )
    if shared < cell.prompts:
        return f" on {shared} shared prompt{'' if shared == 1 else 's'}: measure none, too"
    return "" if cell.low is None or cell.high is None else f" [{cell.low:.2f}, {cell.high:.2f}]"


def _circumstances(view: View) -> list[Line]:
    """Acceptance by position, memory and the card's temperature of the chosen cell."""
    replies = view.board.replies(view.cursor)
    shares = summary.accepted_per_position(replies)
    words = []
    if shares:
        words.append("kept by position " + " ".join(figures.share(share, 2) for share in shares))
    before, after = replies[0].reading_before, replies[-1].reading_after
    if after is not None and after.process_memory_mib is not None:
        words.append(f"memory {figures.memory(after.process_memory_mib)}")
    if before is not None and before.temperature_c is not None:
        words.append(f"began at {before.temperature_c:.0f} °C")
    return [line(Span(f"  {' · '.join(words)}", "dim"))] if words else []


def _earlier(cell: Cell, cells: int) -> list[Line]:
    """Which run a cell's replies are from, and what has changed since."""
    earlier = cell.earlier
    if earlier is None:
        return []
    told = f"run {earlier.run} of {earlier.day}"
    if not earlier.changes:
        return [line(Span(f"  {told} · m measures it anew", "dim"))]
    text = f"stale, {told}: {'; '.join(earlier.changes)} · m measures it anew"
    return _stale(text, cells)


def _stale(text: str, cells: int) -> list[Line]:
    rows = wrap(text, cells - 2)
    marks = ["? ", *["  "] * len(rows)]
    return [line(Span(mark + row, "warn")) for mark, row in zip(marks, rows, strict=False)]


def _bad(name: Span, text: str, cells: int) -> list[Line]:
    """Why a setting is not there, wrapped."""
    indent = cell_len(f"! {name.text}  ")
    first, *others = wrap(" " * indent + text, cells)
    rest = [row for row in wrap(" ".join(others), cells - 2) if row]
    return [
        line(Span("! ", "bad"), name, Span(f"  {first[indent:]}", "bad")),
        *(line(Span(f"  {row}", "bad")) for row in rest),
    ]


def _cell_details(view: View, refusal: str, cells: int) -> list[Line]:
    cell = view.board.cell(view.cursor)
    name = Span(f"{view.cursor}", "title")
    failure = view.board.failure(view.cursor)
    if failure:
        lines = _bad(name, failure.message.removeprefix(f"{view.cursor}: "), cells)
        lines += [line(Span(f"  {text.strip()}", "dim")) for text in failure.evidence[-2:]]
        if failure.hint:
            lines.append(line(f"  next: {failure.hint}"))
        return lines
    if cell.state is CellState.MEASURED:
        words = [f"{figures.rate(cell.tok_s)} tok/s"]
        if cell.setting != NONE:
            words.append(
                f"{figures.gain(cell.gain)} of none{_interval(view, cell)}"
                if cell.gain
                else "gain unknown without none"
            )
            words.append(
                f"kept {figures.share(cell.kept)}" if cell.kept is not None else "no drafts"
            )
        words.append(f"{cell.prompts} prompt{'' if cell.prompts == 1 else 's'}")
        return [
            line(name, f"  {' · '.join(words)}"),
            *_circumstances(view),
            *_earlier(cell, cells),
        ]
    if refusal:
        return _bad(name, refusal.removeprefix(f"{view.cursor.drafter}: "), cells)
    needed = view.forecasts.get(str(view.cursor))
    if needed is not None and needed.fits is False:
        context = needed.largest_context
        most = f"; the largest -c that fits is {context}" if context else ""
        said = f"  needs about {figures.memory(needed.total_mib)}, more than is free{most}"
        return [line(Span("! ", "warn"), name, Span(row, "warn")) for row in wrap(said, cells - 12)]
    memory = f" · needs about {figures.memory(needed.total_mib)}" if needed is not None else ""
    return [
        line(name, Span(f"  not measured{memory} · m measures it", "dim")),
    ]
