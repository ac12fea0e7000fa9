"""The search for the best setting as a pure decision procedure.

next_step(plan, state) says what to do next, given all that was measured so far; nothing else is
remembered, so a search that was stopped goes on from its stored results.

With V(k) (cost_model): baseline, V(k), the longest draft length of the first drafter, then the
predicted best length and its better neighbour; if the prediction was off by more than 3 %, on to
both neighbours of the best until they are measured. A neighbour whose whole predicted interval lies
below the best measured speed is left out. Without V(k): lengths 1, 2, ... up to the first drop.
A length that does not fit in memory is a result, and the search goes on below it.
Then one start of every further drafter at the best length, and one more where the model says that
its own best length differs; the p_min axis if asked for; A B B A blocks for finalists whose verdict
is open and would change the choice; last, the first setting again, unless a block repeated it
(drift check).
A start in which replies stood still is repeated at once, a few times in all; its figures are never
used. A cell without any other start is not measured, and the search goes on around it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from tuirig.stats.choice import ALL, Candidate, Choice, Objective, choose, preference
from tuirig.stats.comparison import (
    CONFIDENCE,
    MIN_GAIN,
    Start,
    Variance,
    Verdict,
    mean_log,
    shared_prompts,
)
from tuirig.stats.cost_model import CostModel, DraftedStart, Prediction
from tuirig.stats.stopping import StoppingRule, block_order

# Below so many draft lengths, climbing needs no more starts than measuring V(k) first.
_FEWEST_LENGTHS = {"program": 3, "start": 5}

#: Why a start is repeated.
AGAIN = "again: replies stood still"
#: A drafter without figures is left after so many lengths at which replies stood still.
_STILL_LENGTHS = 2

#: A prediction that is further off than this (3 %) is not trusted for the next step.
SURPRISE = 0.03


@dataclass(frozen=True, order=True)
class Cell:
    """A place in the grid. drafter "": no drafter. length None: it can't be set."""

    drafter: str = ""
    length: int | None = 0
    p_min: float | None = None

    def __str__(self) -> str:
        if not self.drafter:
            return "none"
        text = self.drafter if self.length is None else f"{self.drafter}:{self.length}"
        return text if self.p_min is None else f"{text},p_min={self.p_min:g}"


BASELINE = Cell()
_FINALISTS = StoppingRule(blocks=2)


@dataclass(frozen=True)
class Row:
    """A drafter and the draft lengths to consider (ascending, from 1; empty: can't be set)."""

    drafter: str
    lengths: tuple[int, ...]


class Passes(StrEnum):
    """How V(k) can be measured."""

    PROGRAM = "program"
    START = "start"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True)
class Plan:
    """What to search.

    rows: drafters, the first is searched by length. passes: where V(k) comes from. exhaustive:
    measure every cell. p_min: values of that knob to try, empty for none. rule: looks at one pair
    of finalists. finalist_blocks: A B B A blocks in all. repeats: of starts in which replies stood
    still, in all. history: start variances of earlier runs. kinds: prompt id -> kind, needed for
    objectives other than all.
    """

    rows: tuple[Row, ...]
    passes: Passes = Passes.UNAVAILABLE
    exhaustive: bool = False
    p_min: tuple[float, ...] = ()
    rule: StoppingRule = _FINALISTS
    finalist_blocks: int = 3
    repeats: int = 3
    drift_check: bool = True
    min_gain: float = MIN_GAIN
    objective: Objective = ALL
    kinds: Mapping[str, str] = field(default_factory=dict)
    history: tuple[Variance, ...] = ()


class Outcome(StrEnum):
    """How a start ended. FAILED: for any other reason than memory, or not proven."""

    MEASURED = "measured"
    DOES_NOT_FIT = "does not fit"
    FAILED = "failed"


@dataclass(frozen=True)
class CellResult:
    """One server start of a cell.

    speeds: tok/s by prompt id. accepted: a_1 .. a_n, None where the server does not tell.
    stood_still: replies did, so its figures are not used. again: it repeats such a start.
    """

    cell: Cell
    outcome: Outcome = Outcome.MEASURED
    speeds: Start = field(default_factory=dict)
    accepted: tuple[float, ...] | None = None
    memory_mib: float | None = None
    stood_still: bool = False
    again: bool = False

    @property
    def counts(self) -> bool:
        """Whether its figures are used."""
        return self.outcome is Outcome.MEASURED and not self.stood_still


@dataclass(frozen=True)
class State:
    """What was measured so far, in order.

    results: every start, also the ones that failed. passes_s: seconds of a target pass by
    positions, once measured; passes_failed: it can't be. blocks: A B B A blocks that were run, also
    where some of their starts failed; their starts are among results.
    """

    results: tuple[CellResult, ...] = ()
    passes_s: Mapping[int, float] | None = None
    passes_failed: bool = False
    blocks: tuple[tuple[Cell, Cell], ...] = ()


@dataclass(frozen=True)
class MeasurePasses:
    """Measure V(1) .. V(positions)."""

    positions: int


@dataclass(frozen=True)
class StartCell:
    """Start the server with this cell and measure it. again: for a start that does not count."""

    cell: Cell
    reason: str
    again: bool = False


@dataclass(frozen=True)
class RunBlock:
    """Four starts in this order ("ABBA" or "BAAB")."""

    a: Cell
    b: Cell
    order: str
    reason: str


@dataclass(frozen=True)
class Finished:
    """Nothing is left to do. open: pairs whose verdict the limit of blocks left open."""

    open: tuple[tuple[Cell, Cell], ...] = ()


Step: TypeAlias = MeasurePasses | StartCell | RunBlock | Finished


def next_step(plan: Plan, state: State) -> Step:
    """The next thing to do. Deterministic: the same results give the same step."""
    grid = _Grid(plan, state)
    if repeats_left(plan, state.results):
        for cell in {result.cell: None for result in state.results}:
            last = [result for result in state.results if result.cell == cell][-1]
            if last.stood_still and not last.again:
                return StartCell(cell, AGAIN, again=True)
    explore = _every_cell(grid) if plan.exhaustive else _explore(grid)
    if explore is not None:
        return explore
    pairs = _open_pairs(plan, state)
    if len(state.blocks) < plan.finalist_blocks:
        for a, b in pairs:
            done = _blocks_of(state, a, b)
            if done < plan.rule.blocks:
                return RunBlock(a, b, block_order(done + 1), "finalists whose verdict is open")
    first = state.results[0].cell if state.results else BASELINE
    repeated = sum(one.cell == first and not one.again for one in state.results) > 1
    if plan.drift_check and not repeated and grid.is_measured(first) and len(state.results) > 1:
        return StartCell(first, "the first setting again: drift check")
    return Finished(tuple(pairs))


def repeats_left(plan: Plan, results: Sequence[CellResult]) -> int:
    """How many starts in which replies stood still may still be repeated."""
    return max(0, plan.repeats - sum(result.again for result in results))


def untold(state: State) -> dict[Cell, int]:
    """Cells of which nothing counts because replies stood still: how many times they were started.

    The choice is made without them, so each may be better than what it names.
    """
    measured = {result.cell for result in state.results if result.counts}
    still = [result.cell for result in state.results if result.stood_still]
    return {cell: still.count(cell) for cell in still if cell not in measured}


def verdict(plan: Plan, state: State) -> Choice | None:
    """The choice among everything measured so far, None when nothing was.

    A pair that ran blocks is compared at the confidence of its stopping rule, any other at 95 %.
    """
    cells = {str(result.cell): result.cell for result in state.results}
    return choose(
        candidates(state),
        plan.kinds,
        objective=plan.objective,
        history=plan.history,
        min_gain=plan.min_gain,
        confidence=lambda a, b: _confidence(plan, state, cells[a], cells[b]),
    )


def predictions(plan: Plan, state: State, *, measured_too: bool = False) -> dict[Cell, Prediction]:
    """tok/s of cells that were not tried, from the starts of their drafter.

    measured_too: of measured ones as well, to hold the model against them.
    """
    grid = _Grid(plan, state)
    found = {}
    for row in plan.rows:
        model = grid.model(row)
        for length in row.lengths if model else ():
            cell = Cell(row.drafter, length)
            wanted = cell not in grid.tried or (measured_too and grid.is_measured(cell))
            prediction = model.predict(length) if model and wanted else None
            if prediction:
                found[cell] = prediction
    return found


@dataclass(frozen=True)
class Forecast:
    """Server starts up to the finalists, V(k)'s own start counted."""

    fewest: int
    likely: int
    most: int


def forecast(plan: Plan) -> Forecast:
    """How many starts the search will need, before it began; repeats apart."""
    knob = len(plan.p_min) + 1 if plan.p_min else 0
    cells = sum(max(1, len(row.lengths)) for row in plan.rows)
    with_lengths = [row for row in plan.rows if row.lengths]
    if plan.exhaustive or not with_lengths:
        starts = 1 + cells + knob
        return Forecast(starts, starts, starts)
    first, *others = with_lengths
    fixed = 1 + knob + len(plan.rows) - len(with_lengths) + len(others)
    lengths = len(first.lengths)
    more = sum(len(row.lengths) > 1 for row in others)
    if uses_passes(plan, first):
        own = plan.passes is Passes.START
        return Forecast(
            fixed + own + 1, fixed + own + min(3, lengths), fixed + own + lengths + more
        )
    return Forecast(fixed + min(2, lengths), fixed + min(4, lengths), fixed + lengths + more)


def uses_passes(plan: Plan, row: Row) -> bool:
    """Whether measuring V(k) is possible and worth it for this drafter."""
    if plan.passes is Passes.UNAVAILABLE:
        return False
    return len(row.lengths) >= _FEWEST_LENGTHS[plan.passes]


class _Grid:
    """What the results say about each cell: means over starts, on shared prompts."""

    def __init__(self, plan: Plan, state: State) -> None:
        self.plan = plan
        self.state = state
        self.tried = {result.cell for result in state.results}
        measured = [result for result in state.results if result.counts]
        weighting = plan.objective.weighting(plan.kinds)
        prompts = shared_prompts([result.speeds for result in measured], weighting)
        logs: dict[Cell, list[float]] = {}
        self._accepted: dict[Cell, tuple[float, ...]] = {}
        for result in measured if prompts else ():
            logs.setdefault(result.cell, []).append(mean_log(result.speeds, prompts, weighting))
            if result.accepted:
                self._accepted.setdefault(result.cell, result.accepted)
        self.tok_s = {cell: math.exp(math.fsum(v) / len(v)) for cell, v in logs.items()}

    def is_measured(self, cell: Cell) -> bool:
        return cell in self.tok_s

    def measured_lengths(self, row: Row) -> list[int]:
        return [n for n in row.lengths if self.is_measured(Cell(row.drafter, n))]

    def lengths_in_order(self, row: Row) -> list[int]:
        """Measured lengths in the order of their first start."""
        cells = list(dict.fromkeys(result.cell for result in self.state.results))
        return sorted(self.measured_lengths(row), key=lambda n: cells.index(Cell(row.drafter, n)))

    def fitting_lengths(self, row: Row) -> list[int]:
        """Lengths that were measured, or did not fail and are below all that did not fit."""
        own = [r for r in self.state.results if r.cell.drafter == row.drafter]
        too_long = [r.cell.length or 0 for r in own if r.outcome is Outcome.DOES_NOT_FIT]
        failed = {r.cell.length for r in own if r.outcome is Outcome.FAILED or r.stood_still}
        limit = min(too_long, default=math.inf)
        return [
            n
            for n in row.lengths
            if self.is_measured(Cell(row.drafter, n)) or (n < limit and n not in failed)
        ]

    def is_abandoned(self, row: Row) -> bool:
        """Whether the drafter failed, other than for memory, before anything of it was measured.

        Where replies stood still at one length, the next one is tried.
        """
        own = [result for result in self.state.results if result.cell.drafter == row.drafter]
        return not self.measured_lengths(row) and (
            any(result.outcome is Outcome.FAILED for result in own)
            or (not self.plan.exhaustive and self.still_lengths(row) >= _STILL_LENGTHS)
        )

    def still_lengths(self, row: Row) -> int:
        """Lengths of which nothing counts because replies stood still."""
        return sum(cell.drafter == row.drafter for cell in untold(self.state))

    def speed(self, row: Row, length: int) -> float:
        return self.tok_s[BASELINE if length == 0 else Cell(row.drafter, length)]

    def model(self, row: Row, only: Sequence[int] | None = None) -> CostModel | None:
        """The cost model from this drafter's starts, or from only these lengths."""
        lengths = self.measured_lengths(row) if only is None else only
        starts = [
            DraftedStart(n, self.tok_s[cell], self._accepted[cell])
            for n in lengths
            if (cell := Cell(row.drafter, n)) in self._accepted
        ]
        if not starts or BASELINE not in self.tok_s:
            return None
        return CostModel(self.tok_s[BASELINE], starts, self.state.passes_s)

    def best(self) -> Cell:
        return max(self.tok_s, key=lambda cell: self.tok_s[cell])


def _every_cell(grid: _Grid) -> Step | None:
    cells = [BASELINE]
    for row in grid.plan.rows:
        if not row.lengths:
            cells.append(Cell(row.drafter, None))
        elif not grid.is_abandoned(row):
            cells += [Cell(row.drafter, n) for n in grid.fitting_lengths(row)]
    for cell in cells:
        if cell not in grid.tried:
            return StartCell(cell, "every setting")
    return _knob(grid)


def _explore(grid: _Grid) -> Step | None:
    if BASELINE not in grid.tried:
        return StartCell(BASELINE, "baseline without a drafter")
    rows = [row for row in grid.plan.rows if grid.fitting_lengths(row)]
    rows = [row for row in rows if not grid.is_abandoned(row)]
    if rows:
        first, *others = rows
        step = _search_lengths(grid, first)
        for row in others:
            step = step or _check_format(grid, row, first)
        if step:
            return step
    for row in grid.plan.rows:
        cell = Cell(row.drafter, None)
        if not row.lengths and cell not in grid.tried:
            return StartCell(cell, "a method without a length")
    return _knob(grid)


def _search_lengths(grid: _Grid, row: Row) -> Step | None:
    state = grid.state
    if not uses_passes(grid.plan, row) or state.passes_failed:
        return _climb(grid, row)
    if state.passes_s is None:
        return MeasurePasses(row.lengths[-1] + 1)
    lengths = grid.fitting_lengths(row)
    measured = grid.measured_lengths(row)
    if not measured:
        # The longest first; where that does not fit, the middle of what is left below.
        longest = lengths[-1] if lengths == list(row.lengths) else lengths[len(lengths) // 2]
        return StartCell(Cell(row.drafter, longest), "longest length: acceptance at every position")
    anchor = grid.lengths_in_order(row)[0]
    first_model = grid.model(row, only=[anchor])
    model = grid.model(row)
    if first_model is None or model is None:
        return _climb(grid, row)
    guess = _best_length(first_model, lengths)
    expected = first_model.predict(guess)
    if expected is None:
        return _climb(grid, row)
    if guess not in measured:
        return StartCell(Cell(row.drafter, guess), "predicted best length")
    error = abs(math.log(grid.speed(row, guess) / expected.tok_s))
    known = [0, *lengths]
    if error <= SURPRISE:
        two_starts = grid.model(row, only=[anchor, guess]) or first_model
        candidates = [_best_length(two_starts, _neighbours(known, guess))]
        reason = "better neighbour of the predicted best"
    else:
        best = max([0, *measured], key=lambda n: grid.speed(row, n))
        candidates = _neighbours(known, best)
        reason = f"prediction {100 * error:.0f} % off: neighbour of the best"
    # A model that was off by this much may be so again.
    trust = 1.0 + (error if error > SURPRISE else 0.0)
    top = max(grid.speed(row, n) for n in (0, *measured))
    missing = [
        n
        for n in candidates
        if n not in (0, *measured) and (p := model.predict(n)) and p.high * trust > top
    ]
    if not missing:
        return None
    return StartCell(Cell(row.drafter, _best_length(model, missing)), reason)


def _climb(grid: _Grid, row: Row) -> Step | None:
    """Ascending lengths up to the first drop between two drafted ones.

    Length 1 below the baseline is no reason to stop: where a step costs much more with two
    positions than with one, only longer drafts pay.
    """
    before = None
    for n in grid.fitting_lengths(row):
        if not grid.is_measured(Cell(row.drafter, n)):
            return StartCell(Cell(row.drafter, n), "climbing")
        if before is not None and grid.speed(row, n) < grid.speed(row, before):
            return None
        before = n
    return None


def _check_format(grid: _Grid, row: Row, first: Row) -> Step | None:
    """One start at the best length of the first drafter, one more where its own best differs."""
    lengths = grid.fitting_lengths(row)
    found = grid.measured_lengths(first)
    measured = grid.measured_lengths(row)
    if not measured:
        best = max(found, key=lambda n: grid.speed(first, n), default=lengths[-1])
        length = max((n for n in lengths if n <= best), default=lengths[0])
        return StartCell(Cell(row.drafter, length), "other format at the best length")
    model = grid.model(row)
    if model is None or len(measured) + grid.still_lengths(row) > 1:
        return None
    guess = _best_length(model, lengths)
    prediction = model.predict(guess)
    if guess in measured or prediction is None:
        return None
    worthwhile = prediction.tok_s > grid.speed(row, measured[0]) * (1.0 + grid.plan.min_gain)
    if worthwhile and prediction.high > grid.tok_s[grid.best()]:
        return StartCell(Cell(row.drafter, guess), "predicted best length of this format")
    return None


def _knob(grid: _Grid) -> Step | None:
    """p_min at the best drafted cell, and its best value one length deeper."""
    drafted = [c for c in grid.tok_s if c.drafter and c.length and c.p_min is None]
    if not grid.plan.p_min or not drafted:
        return None
    # Finalists' starts may change which is best; the axis stays where it was begun.
    begun = next((r.cell for r in grid.state.results if r.cell.p_min is not None), None)
    best = begun or max(drafted, key=lambda cell: grid.tok_s[cell])
    cells = [Cell(best.drafter, best.length, p_min) for p_min in grid.plan.p_min]
    for cell in cells:
        if cell not in grid.tried:
            return StartCell(cell, "p_min at the best length")
    row = next(row for row in grid.plan.rows if row.drafter == best.drafter)
    deeper = next((n for n in grid.fitting_lengths(row) if n > (best.length or 0)), None)
    measured = [cell for cell in cells if grid.is_measured(cell)]
    if deeper is None or not measured:
        return None
    p_min = max(measured, key=lambda cell: grid.tok_s[cell]).p_min
    cell = Cell(best.drafter, deeper, p_min)
    return None if cell in grid.tried else StartCell(cell, "best p_min at a longer length")


def _predicted(model: CostModel, length: int) -> float:
    prediction = model.predict(length)
    return prediction.tok_s if prediction else 0.0


def _best_length(model: CostModel, lengths: Sequence[int]) -> int:
    return max(lengths, key=lambda n: _predicted(model, n))


def _neighbours(lengths: Sequence[int], length: int) -> list[int]:
    at = lengths.index(length)
    return [*lengths[max(at - 1, 0) : at], *lengths[at + 1 : at + 2]]


def candidates(state: State) -> list[Candidate]:
    """Every measured cell with the starts that count, in the order of their first start."""
    starts: dict[Cell, list[Start]] = {}
    memory: dict[Cell, float | None] = {}
    for result in state.results:
        if result.counts:
            starts.setdefault(result.cell, []).append(result.speeds)
            memory[result.cell] = result.memory_mib or memory.get(result.cell)
    return [
        Candidate(str(cell), cell.length, memory[cell], tuple(found))
        for cell, found in starts.items()
    ]


def _blocks_of(state: State, a: Cell, b: Cell) -> int:
    return sum(set(pair) == {a, b} for pair in state.blocks)


def _confidence(plan: Plan, state: State, a: Cell, b: Cell) -> float:
    done = _blocks_of(state, a, b)
    return plan.rule.confidence(min(done, plan.rule.blocks)) if done else CONFIDENCE


def _open_pairs(plan: Plan, state: State) -> list[tuple[Cell, Cell]]:
    """(best, rival) pairs whose open verdict could change the choice, closest rival first."""
    choice = verdict(plan, state)
    if choice is None:
        return []
    cells = {str(result.cell): result.cell for result in state.results}
    by_name = {candidate.setting: candidate for candidate in candidates(state)}
    band = 1.0 + plan.min_gain
    found = []
    for name, comparison in choice.comparisons:
        if comparison.verdict is not Verdict.LEVEL or comparison.ratio is None:
            continue
        best_stays = preference(by_name[choice.best], None) <= preference(by_name[name], None)
        low, high = comparison.low or 0.0, comparison.high or math.inf
        if (high >= band) if best_stays else (low <= 1.0 / band):
            found.append((comparison.ratio, cells[choice.best], cells[name]))
    found.sort(key=lambda pair: -pair[0])
    return [(a, b) for _, a, b in found]
