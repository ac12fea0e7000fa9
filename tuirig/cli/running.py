"""What the commands that make runs share: events as lines, the question before the start."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from tuirig.cli.narration import Narrator
from tuirig.cli.output import answer, say
from tuirig.errors import ExitCode, TuirigError
from tuirig.events import (
    ArmsStale,
    ComparisonMoved,
    CoolingDown,
    Emit,
    Event,
    Failed,
    PassesMeasured,
    PlanMade,
    PredictionsMade,
    ReplyDone,
    ServerChanged,
    StartBegan,
    StartEnded,
    StartFlagged,
)
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import Setting, parse_setting
from tuirig.runs.catalog import FoundRig
from tuirig.runs.lifecycle import Agree, always
from tuirig.runs.session import Session
from tuirig.runs.store import Store
from tuirig.tui.figures import rate, share

#: Verdicts in a sentence.
THAN = {"faster": "faster than", "slower": "slower than", "level": "level with"}


@dataclass(frozen=True)
class Opened:
    """What a run needs."""

    session: Session
    store: Store
    emit: Emit
    agree: Agree


@asynccontextmanager
async def opened(options: argparse.Namespace, found: FoundRig) -> AsyncIterator[Opened]:
    """Store and session of a command with --json and --yes, open."""
    from tuirig.cli.company import tell_of_others
    from tuirig.runs.opening import open_session

    narrator = RunNarrator()
    emit: Emit = tell_as_json if options.json else narrator
    asks = not (options.yes or options.json) and sys.stdin.isatty() and sys.stderr.isatty()
    try:
        with Store() as store:
            # A GPU is looked at by the run itself, a CPU only between replies.
            async with open_session(found, emit, rate_hz=0) as session:
                await tell_of_others(session.card)
                yield Opened(session, store, emit, ask if asks else always)
    finally:
        narrator.close()


def tell_as_json(event: Event) -> None:
    """An Emit that writes each event as one line of JSON."""
    answer(msgspec.json.encode(event).decode())


def settings_of(texts: Iterable[str], rig: Rig) -> list[Setting]:
    """Settings as they stand on the command line. Raises TuirigError if the rig has no such one."""
    settings = []
    for text in texts:
        try:
            setting = parse_setting(text)
            rig.drafter_of(setting)
        except ValueError as error:
            raise TuirigError(str(error), exit_code=ExitCode.USAGE) from None
        settings.append(setting)
    return settings


async def ask(plan: PlanMade) -> bool:
    """Ask on the terminal whether to start; Enter means yes. A signal ends the waiting, too."""
    say("start? [Y/n] ", end="")
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[str] = loop.create_future()
    loop.add_reader(sys.stdin, lambda: answered.set_result(sys.stdin.readline()))
    try:
        line = await answered
    finally:
        loop.remove_reader(sys.stdin)
    return line.strip().casefold() in ("y", "yes") or line == "\n"


def interval(low: float | None, high: float | None) -> str:
    """`[1.69, 1.75]`, a dash where unknown."""
    return "–" if low is None or high is None else f"[{low:.3f}, {high:.3f}]"


def time(seconds: float) -> str:
    """`45 s` or `12 min`."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


class RunNarrator(Narrator):
    """Tells of a run: a line for each start, a status line for what goes on in it."""

    def __call__(self, event: Event) -> None:
        """Tell of one event, or say nothing."""
        match event:
            case ServerChanged() | ReplyDone():
                pass  # a start tells of itself when it ends
            case Failed():
                pass  # the reason comes with the end of the start
            case StartBegan():
                left = time(event.seconds_left)
                place = f"start {event.number} of {event.expected}"
                self._status(f"{place}: {event.setting} ({event.reason}), about {left} left")
            case CoolingDown():
                self._status(
                    f"cooling down: {event.temperature_c:.0f} °C, {event.target_c:.0f} °C wanted"
                )
            case StartEnded():
                self._line(_ended(event))
            case StartFlagged():
                for reason in event.reasons:
                    self._line(f"    note: {reason}")
            case ComparisonMoved():
                if event.ratio is not None:
                    self._line(_compared(event))
            case _:
                for line in _lines(event):
                    self._line(line)
                if not isinstance(event, PlanMade | PredictionsMade | PassesMeasured | ArmsStale):
                    super().__call__(event)


def _ended(event: StartEnded) -> str:
    head = f"{event.number:>3}  {event.setting:<16}"
    if event.tok_s is None or event.outcome != "measured":
        return f"{head}  {event.outcome}: {event.reason}"
    kept = f"  kept {share(event.kept)}" if event.kept is not None else ""
    return f"{head}{rate(event.tok_s):>8} tok/s{kept}  ({time(event.seconds)})"


def _compared(event: ComparisonMoved) -> str:
    starts = f"{event.starts_a} + {event.starts_b} starts"
    between = interval(event.low, event.high)
    return f"     {event.b} / {event.a}: {event.ratio:.3f} {between}  {event.verdict}  ({starts})"


def _lines(event: Event) -> Iterable[str]:
    match event:
        case PlanMade():
            yield from event.steps
            starts = f"{event.fewest} to {event.most}" if event.fewest < event.most else event.most
            likely = f", likely {event.likely}" if event.fewest < event.likely < event.most else ""
            yield f"server starts: {starts}{likely}; about {time(event.seconds)} ({event.basis})"
            yield from (f"not measured here: {reason}" for reason in event.cannot)
        case ArmsStale():
            yield f"{event.arms} stored starts are stale and are measured again:"
            yield from (f"  {change}" for change in event.changes)
        case PassesMeasured():
            passes = ", ".join(f"{k}: {s * 1000:.1f}" for k, s in event.passes_s.items())
            yield f"     ms per target pass by positions: {passes}"
        case PredictionsMade():
            if event.predictions:
                cells = (f"{one.setting} ~{rate(one.tok_s)}" for one in event.predictions)
                yield f"     predicted: {', '.join(cells)}"
