"""The header line, and the live figures: a column when wide, a band of two lines when narrow."""

from __future__ import annotations

from tuirig.events import ServerState
from tuirig.records import MemoryParts
from tuirig.rigs.settings import NONE
from tuirig.tui import figures
from tuirig.tui.spans import Line, Span, line, spread, width, wrap
from tuirig.tui.view import View

MARKS = {
    ServerState.STOPPED: ("○", "dim"),
    ServerState.STARTING: ("◐", "warn"),
    ServerState.READY: ("●", "good"),
    ServerState.RUNNING: ("▶", "accent"),
    ServerState.STOPPING: ("◌", "warn"),
    ServerState.FAILED: ("!", "bad"),
}
MIB_PARTS = (
    ("target", "target_mib", "█", "bar"),
    ("drafter", "drafter_mib", "▓", "bar3"),
    ("cache", "cache_mib", "▒", "bar2"),
    ("buffers", "buffers_mib", "░", "accent"),
)
#: What a server uses beyond the known parts.
REST = "▪"


def state_spans(view: View) -> Line:
    """The server's state as mark and word, with what it runs."""
    server = view.server
    mark, role = MARKS[server.state]
    parts: list[Span | str] = [Span(f"{mark} {server.state}", role)]
    if server.setting and server.state is not ServerState.STOPPED:
        parts += [" ", Span(server.setting, "title")]
    if server.state is ServerState.STARTING:
        parts.append(Span(f" {server.seconds:.1f} s", "dim"))
    if view.streaming:
        parts.append(Span(f" {view.predicted_n}/{view.streaming.token_limit}", "dim"))
    return line(*parts)


def header(view: View, cells: int) -> Line:
    """Rig, state, target and address at the left, the card at the right."""
    url = view.server.url.removeprefix("http://") if view.running else ""
    left = line(
        Span(f" {view.rig.name}", "title"),
        "  ",
        *state_spans(view),
        Span(f"  {url}" if url and cells >= 100 else "", "dim"),
        Span(f"  {view.rig.target.label}", "dim"),
    )
    card = view.card.name if view.card else view.rig.card
    return spread(left, line(Span(f"{card} ", "dim")), cells)


def busy(view: View) -> Line:
    """What takes time now, empty when nothing does."""
    progress = view.progress
    start, cooling = view.start, view.cooling
    if start is not None:
        doing = f"{start.number}/{start.expected} {start.setting}"
        if cooling is not None:
            doing += f" cooling {cooling.temperature_c:.0f} to {cooling.target_c:.0f} °C"
        left = f" {start.seconds_left:.0f} s left" if start.seconds_left else ""
        return line(Span(f"◐ {doing}{left}", "warn"), Span("  Esc cancels", "dim"))
    if progress is not None:
        amount = ""
        if progress.total:
            amount = f" {100 * progress.done / progress.total:.0f} %"
        if progress.left_s is not None:
            amount += f"  {figures.clock(progress.left_s)} left"
        if view.waiting:
            amount += f"  +{len(view.waiting)} waiting"
            if view.waiting_s is not None:
                amount += f" {figures.clock(view.waiting_s)}"
        return line(Span(f"◐ {progress.what}{amount}", "warn"), Span("  Esc cancels", "dim"))
    if view.server.state is ServerState.STARTING:
        return line(Span(view.server.line or "loading", "dim"))
    return ()


def speed(view: View, cells: int) -> Line:
    """tok/s now and the gain over `none`."""
    live = Span(f"{figures.rate(view.tok_s)} tok/s", "title")
    if view.running in (None, NONE):
        return (live,)
    gain = view.live_gain
    role = "" if gain is None else "good" if gain >= 1 else "bad"
    return spread((live,), line(Span(figures.gain(gain), role)), cells)


def kept(view: View) -> Line:
    """Acceptance of the last reply."""
    reply = view.last_reply
    if reply is None or view.running in (None, NONE):
        return line(Span("kept –", "dim"))
    if reply.drafted is None:
        return line(Span("no drafts", "warn"))
    length = reply.mean_accepted_length
    step = f"   {length:.2f} a step" if length is not None else ""
    return line(f"kept {figures.share(reply.kept)}{step}")


def positions(view: View, cells: int, rows: int) -> list[Line]:
    """One bar per drafted position."""
    reply = view.last_reply
    shares = reply.accepted_per_position if reply and view.running not in (None, NONE) else None
    lines = []
    for index, value in enumerate((shares or ())[:rows], 1):
        room = cells - 9
        drawn = figures.bar(value, room)
        gap = " " * (room - len(drawn))
        lines.append(
            line(Span(f"{index:2} ", "dim"), Span(drawn, "bar"), f"{gap} ", figures.share(value, 2))
        )
    return lines


def memory_amount(view: View) -> tuple[str, float | None, float | None]:
    """(label, used MiB, total MiB): the server's process first, else the card."""
    reading = view.reading
    if reading is None:
        return ("memory", None, None)
    label = "VRAM" if view.card and view.card.kind == "nvidia" else "RAM"
    if reading.process_memory_mib is not None:
        return (label, reading.process_memory_mib, reading.memory_total_mib)
    return (label, reading.memory_used_mib, reading.memory_total_mib)


def memory_bar(view: View, cells: int) -> Line:
    """The server's memory by purpose; the rest of the card is dots."""
    _, used, total = memory_amount(view)
    if used is None or not total:
        return ()
    return stacked(view.memory_parts, used, total, cells)


def stacked(parts: MemoryParts | None, used: float, total: float, cells: int) -> Line:
    """What a server uses (MiB) as a bar: the known parts, the rest of it, dots up to the total."""
    known = amounts(parts)
    rest = used - sum(amount for _, amount, _, _ in known)
    drawn = [(amount, fill) for _, amount, fill, _ in known]
    if not drawn or rest > 0:
        drawn.append((max(0.0, rest), REST))
    roles = {fill: role for _, _, fill, role in MIB_PARTS}
    return line(
        *(Span(text, roles.get(fill, "dim")) for text, fill in figures.stack(drawn, total, cells))
    )


def amounts(parts: MemoryParts | None) -> list[tuple[str, float, str, str]]:
    """(label, MiB, fill, role) of what is known."""
    found = []
    for label, name, fill, role in MIB_PARTS:
        amount = getattr(parts, name) if parts else None
        if amount:
            found.append((label, amount, fill, role))
    return found


def memory_words(view: View) -> list[Line]:
    """target 4.05  drafter 0.06 …, two to a line, in GiB or MiB."""
    spans = [
        (Span(f"{fill} ", role), Span(f"{label} {figures.memory(amount)}"))
        for label, amount, fill, role in amounts(view.memory_parts)
    ]
    return [line(*pair) for pair in spans]


def forecast_words(view: View) -> list[Line]:
    """What was forecast for the running setting, and how far the server's own lines are off."""
    parts, needed = view.memory_parts, view.forecasts.get(view.server.setting)
    if parts is None or needed is None:
        return []
    guess = sum(amount for _, amount, _, _ in amounts(needed.card))
    real = sum(amount for _, amount, _, _ in amounts(parts))
    off = f"{real - guess:+.0f} MiB" if round(real - guess) else "right"
    return [line(Span(f"forecast {figures.memory(guess)}, {off}", "dim"))]


def climate(view: View) -> list[Line]:
    """Temperature, power, clock, throttle reasons; load where there is no such thing."""
    reading = view.reading
    if reading is None:
        return [line(Span("no reading yet", "dim"))]
    if view.card and view.card.kind == "cpu":
        load = figures.DASH if reading.load is None else f"{reading.load:.1f}"
        heat = "" if reading.temperature_c is None else f"   {reading.temperature_c:.0f} °C"
        return [line(f"load {load}{heat}")]
    first = line(
        f"{figures.whole(reading.temperature_c, '°C')}   {figures.whole(reading.power_w, 'W')}"
        f"   {figures.whole(reading.sm_clock_mhz, 'MHz')}"
    )
    if reading.throttle is None:
        second = line(Span("throttling –", "dim"))
    elif reading.throttle:
        second = line(Span(f"throttled: {', '.join(reading.throttle)}", "warn"))
    else:
        second = line(Span("no throttling", "dim"))
    return [first, second]


def now(view: View, cells: int, height: int) -> list[Line]:
    """The live panel of the wide screen."""
    label, used, total = memory_amount(view)
    lines: list[Line] = [speed(view, cells), line(Span(figures.trend(view.trend, cells), "bar"))]
    lines += [kept(view)]
    tail: list[Line] = [
        (),
        line(f"{label}  {figures.gib(used)} of {figures.gib(total)} GiB"),
        memory_bar(view, cells),
        *memory_words(view),
        *forecast_words(view),
        (),
        *climate(view),
    ]
    shown = positions(view, cells, max(0, height - len(lines) - len(tail)))
    lines += shown + tail
    words = "".join(span.text for span in busy(view))
    doing = [line(Span(row, "warn")) for row in wrap(words, cells)] if words else []
    room = height - len(lines)
    return [*lines, *[()] * (room - len(doing)), *doing[:room]] if room > 0 else lines


def band(view: View, cells: int) -> list[Line]:
    """The live figures of the narrow screen, in two lines."""
    label, used, total = memory_amount(view)
    gain = view.live_gain
    parts: list[Span | str] = [Span(f" {figures.rate(view.tok_s)} tok/s", "title")]
    if gain is not None:
        parts += [" ", Span(figures.gain(gain), "good" if gain >= 1 else "bad")]
    parts += ["  ", *kept(view)]
    reply = view.last_reply
    if reply and reply.accepted_per_position and view.running not in (None, NONE):
        shares = " ".join(figures.share(value, 2) for value in reply.accepted_per_position[:4])
        parts.append(f" ({shares})")
    first = spread(line(*parts), line(Span(figures.trend(view.trend, 16), "bar"), " "), cells)
    doing = busy(view)
    climate_words = climate(view)
    right = line(*(climate_words[0] if climate_words else ()), " ")
    amount = f" {label} {figures.gib(used)}/{figures.gib(total)} GiB "
    bar = memory_bar(view, max(8, min(24, cells - len(amount) - width(right) - 2)))
    second = spread(line(" ", *doing) if doing else line(amount, *bar), right, cells)
    return [first, second]
