"""The streaming text with its title, and the details of the chosen cell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tuirig.events import ServerState
from tuirig.measure.prompts import PROMPTS
from tuirig.tui.panels.grid import LEGEND
from tuirig.tui.panels.grid import details as cell_details
from tuirig.tui.spans import Line, Span, line, wrap
from tuirig.tui.view import View

FIRST_STEPS = (
    "Arrows choose a cell: row = drafter, column = draft length.",
    "Enter starts the server with it, Space streams a prompt, m measures 12.",
    "s saves it as this card's profile, t finds the best one. ? shows every key.",
    "2 to 6 are other screens: Compare, History, Profiles, Files, Log.",
    "A rig of your own: tuirig rig new NAME, then tuirig NAME.",
)


def title(view: View) -> str:
    """The prompt that is streamed, the one of the text that is left, or what Space would stream."""
    ours = view.prompt
    last = view.streaming or view.last_reply
    shown = next((one for one in PROMPTS if last and one.id == last.prompt_id), None)
    if shown is None:
        return f"Space streams: {ours.kind} · {ours.title}"
    named = f"{shown.kind} · {shown.title}"
    if view.streaming or shown == ours:
        return named
    return f"{named} (Space streams {ours.kind} · {ours.title})"


def amount(view: View) -> str:
    """How long the reply became; the header counts while it streams (a title repaints a panel)."""
    if view.last_reply and not view.streaming:
        return f"{view.last_reply.predicted_n} tokens"
    return ""


def text(view: View, cells: int, height: int) -> Sequence[Line]:
    """The last rows of the text; before the first reply, what to do."""
    if not view.text:
        if view.server.state is ServerState.STARTING:
            return [line(Span(view.server.line or "starting", "dim"))]
        if view.streaming:
            return [line(Span("reading the prompt", "dim"))]
        words = [row for step in FIRST_STEPS for row in wrap(step, cells)]
        note = wrap(view.rig.note, cells) if view.rig.note else []
        return [line(Span(row, "dim")) for row in (*words, *([""] if note else []), *note)]
    rows = wrap(view.text, cells)
    return [line(row) for row in rows[-height:]]


def details(view: View, refusal: str, command: str, cells: int, height: int) -> Sequence[Line]:
    """The cell in words, its command line, and what the marks mean, as far as the height goes."""
    words = cell_details(view, refusal, cells)
    left = max(0, height - len(words))
    rows = wrap(f"$ {brief(command)}", cells) if command and left > 0 else []
    if len(rows) > left:
        rows = [*rows[: left - 1], f"{rows[left - 1][: cells - 2]} …"]
    lines = [*words, *(line(Span(row, "dim")) for row in rows)]
    legend = _legend(cells)
    if len(lines) + 1 + len(legend) <= height:
        lines += [()] * (height - len(lines) - len(legend)) + legend
    return lines


def _legend(cells: int) -> list[Line]:
    """What the marks mean; a mark and its word stay together."""
    rows = [""]
    for part in LEGEND:
        if rows[-1] and len(rows[-1]) + 2 + len(part) > cells:
            rows.append("")
        rows[-1] += f"  {part}" if rows[-1] else part
    return [line(Span(row, "dim")) for row in rows]


def brief(command: str) -> str:
    """A command line with long folders left out, so that its flags are seen; y copies all of it."""
    return re.sub(r"/[^\s']{16,}", lambda path: f"…/{path[0].rsplit('/', 1)[-1]}", command)
