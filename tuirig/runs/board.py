"""What was measured per setting: the cells of the grid, made from the stream of events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tuirig.events import ArmDone, Event, Failed, ReplyDone, ServerChanged, ServerState
from tuirig.measure import summary
from tuirig.records import Reply
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting
from tuirig.stats.comparison import Comparison, Verdict, compare


class CellState(StrEnum):
    """What a cell holds."""

    EMPTY = "empty"
    MEASURED = "measured"
    FAILED = "failed"


@dataclass(frozen=True)
class Earlier:
    """Replies of one setting in an earlier run. changes: what has made them stale since."""

    run: int
    day: str
    replies: tuple[Reply, ...]
    changes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """One setting of the grid. gain is against `none` on the prompts that both have replies for.

    low, high: the 95 % interval of the gain, as far as one start of each tells. earlier: where
    its replies are from, None if they are of now.
    level: it can't be told apart from the best one.
    """

    setting: Setting
    state: CellState = CellState.EMPTY
    tok_s: float | None = None
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    kept: float | None = None
    prompts: int = 0
    replies: int = 0
    reason: str = ""
    best: bool = False
    level: bool = False
    earlier: Earlier | None = None

    @property
    def stale(self) -> bool:
        """Whether something has changed since it was measured."""
        return self.earlier is not None and bool(self.earlier.changes)


@dataclass(frozen=True)
class Failure:
    """Why a setting failed."""

    message: str
    hint: str = ""
    evidence: tuple[str, ...] = ()


class Board:
    """Collects replies and failures per setting; newer replies of a setting join older ones.

    Those of an earlier run make way for the first new one.
    """

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._replies: dict[str, tuple[Reply, ...]] = {}
        self._earlier: dict[str, Earlier] = {}
        self._failures: dict[str, Failure] = {}
        self._settings = rig.settings()
        self._cells: dict[Setting, Cell] | None = None
        self._comparisons: dict[
            tuple[Setting, Setting], tuple[tuple[tuple[Reply, ...], ...], Comparison]
        ] = {}

    def apply(self, event: Event) -> bool:
        """Take an event in. True if a cell changed."""
        changed = self._apply(event)
        if changed:
            self._cells = None
        return changed

    def _apply(self, event: Event) -> bool:
        if isinstance(event, ReplyDone):
            if event.reply.temperature:
                return False  # sampled: never mixed with what is compared
            old = () if event.setting in self._earlier else self._replies.get(event.setting, ())
            self._earlier.pop(event.setting, None)
            self._replies[event.setting] = (*old, event.reply)
            return True
        if isinstance(event, ArmDone) and not event.arm.proof.proven:
            self._replies.pop(event.arm.setting, None)  # they do not count, later neither
            self._failures[event.arm.setting] = Failure(
                f"drafting is not proven: {event.arm.proof.reason}"
            )
            return True
        if isinstance(event, Failed) and event.setting:
            self._failures[event.setting] = Failure(event.message, event.hint, event.evidence)
            return True
        if isinstance(event, ServerChanged) and event.state is ServerState.STARTING:
            return self._failures.pop(event.setting, None) is not None
        return False

    def begin_with(self, earlier: Mapping[str, Earlier]) -> None:
        """Fill cells that are still empty with what an earlier run has measured."""
        for setting, found in earlier.items():
            if setting not in self._replies and setting not in self._failures:
                self._replies[setting] = found.replies
                self._earlier[setting] = found
        self._cells = None

    def replies(self, setting: Setting) -> tuple[Reply, ...]:
        """The replies of a setting, oldest first."""
        return self._replies.get(str(setting), ())

    def earlier(self, setting: Setting) -> Earlier | None:
        """Where the replies of a setting are from, None if they are of now."""
        return self._earlier.get(str(setting))

    def failure(self, setting: Setting) -> Failure | None:
        """Why a setting failed, None if it did not."""
        return self._failures.get(str(setting))

    def cell(self, setting: Setting) -> Cell:
        """One cell, `best` left open."""
        replies = self.replies(setting)
        failure = self.failure(setting)
        if failure:
            return Cell(setting, CellState.FAILED, reason=failure.message)
        if not replies:
            return Cell(setting)
        by_prompt = summary.tok_s_by_prompt(replies)
        found = self._compared(NONE, setting) if self.has_baseline(setting) else None
        return Cell(
            setting,
            CellState.MEASURED,
            tok_s=summary.tok_s(replies),
            gain=found.ratio if found else None,
            low=found.low if found else None,
            high=found.high if found else None,
            kept=summary.kept(replies),
            prompts=len(by_prompt),
            replies=len(replies),
            earlier=self.earlier(setting),
        )

    def has_baseline(self, setting: Setting) -> bool:
        """Whether the replies of `none` may be compared with those of a setting.

        Not what was measured now with what is stale.
        """
        baseline, own = self.earlier(NONE), self.earlier(setting)
        stale = baseline is not None and bool(baseline.changes)
        return setting != NONE and (not stale or own is not None)

    def _compared(self, a: Setting, b: Setting) -> Comparison:
        """b against a, as if the replies of each came from one start; computed when they change."""
        replies = (self.replies(a), self.replies(b))
        known = self._comparisons.get((a, b))
        if known is None or known[0] != replies:
            starts = [summary.tok_s_by_prompt(one) for one in replies]
            known = (replies, compare([starts[0]], [starts[1]]))
            self._comparisons[a, b] = known
        return known[1]

    def cells(self) -> dict[Setting, Cell]:
        """Every cell of the rig. The best has the highest gain (`none` counts as 1)."""
        if self._cells is None:  # asked at every frame of the screen
            self._cells = self._make_cells()
        return self._cells

    def _make_cells(self) -> dict[Setting, Cell]:
        cells = {setting: self.cell(setting) for setting in self._settings}
        worth = {
            setting: 1.0 if setting == NONE else cell.gain
            for setting, cell in cells.items()
            if cell.state is CellState.MEASURED
        }
        known = {setting: gain for setting, gain in worth.items() if gain is not None}
        if len(known) > 1:
            best = max(known, key=lambda setting: known[setting])
            cells[best] = replace(cells[best], best=True)
            for setting in known:
                if setting != best:
                    level = self._compared(best, setting).verdict is Verdict.LEVEL
                    cells[setting] = replace(cells[setting], level=level)
        return cells
