"""Numbers as people read them. Unknown is a dash, never 0."""

from __future__ import annotations

DASH = "–"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_BLOCKS = "▁▂▃▄▅▆▇█"


def rate(tok_s: float | None) -> str:
    """Tokens per second: 8.42, 58.3, 1243."""
    if tok_s is None:
        return DASH
    if tok_s < 10:
        return f"{tok_s:.2f}"
    return f"{tok_s:.1f}" if tok_s < 1000 else f"{tok_s:.0f}"


def gain(ratio: float | None) -> str:
    """A ratio: 1.72x, 17.2x."""
    return DASH if ratio is None else f"{ratio:.{2 if ratio < 9.995 else 1}f}x"


def share(value: float | None, digits: int = 3) -> str:
    """A share from 0 to 1: .481, 1.00."""
    if value is None:
        return DASH
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if value < 1 else f"{value:.{digits - 1}f}"


def gib(mib: float | None) -> str:
    """Memory given in MiB, shown in GiB: 4.39."""
    return DASH if mib is None else f"{mib / 1024:.2f}"


def memory(mib: float | None) -> str:
    """Memory with its unit: 119 MiB, 4.39 GiB."""
    if mib is None:
        return DASH
    return f"{mib:.0f} MiB" if mib < 1000 else f"{mib / 1024:.2f} GiB"


def clock(seconds: float) -> str:
    """A duration: 0:07, 12:30, 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def whole(value: float | None, unit: str) -> str:
    """A whole number with a unit: 62 °C."""
    return f"{DASH} {unit}" if value is None else f"{value:.0f} {unit}"


def bar(value: float | None, cells: int) -> str:
    """A horizontal bar for a share from 0 to 1, in eighths of a cell, not padded."""
    if value is None or cells <= 0:
        return ""
    eighths = round(min(1.0, max(0.0, value)) * cells * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def trend(values: list[float], cells: int) -> str:
    """The last values as blocks, scaled from 0 to the largest shown; not padded."""
    shown = values[-cells:] if cells > 0 else []
    top = max(shown, default=0.0)
    if top <= 0:
        return _BLOCKS[0] * len(shown)
    return "".join(_BLOCKS[min(7, round(value / top * 7))] for value in shown)


def stack(parts: list[tuple[float, str]], total: float, cells: int) -> list[tuple[str, str]]:
    """A stacked bar: (amount, fill character) of each part -> (text, fill) that fill the cells.

    What the parts leave of the total is drawn with dots. A part above 0 is at least one cell.
    """
    drawn: list[tuple[str, str]] = []
    left = cells
    for amount, fill in parts:
        size = min(left, max(1 if amount > 0 else 0, round(amount / total * cells))) if total else 0
        drawn.append((fill * size, fill))
        left -= size
    return [*drawn, ("·" * left, "·")]
