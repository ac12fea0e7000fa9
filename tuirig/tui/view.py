"""What the screen knows: a pure reducer over the stream of events. No widget, no clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuirig.events import (
    ArmDone,
    ComparisonMoved,
    CoolingDown,
    Event,
    Failed,
    PlanMade,
    PredictionsMade,
    Progress,
    ReadingTaken,
    ReplyDone,
    ReplyStarted,
    RunEnded,
    ServerChanged,
    ServerState,
    StartBegan,
    TextArrived,
)
from tuirig.measure.prompts import PROMPTS, Prompt
from tuirig.records import CardInfo, MemoryParts, Reading, Reply
from tuirig.rigs.schema import Rig
from tuirig.rigs.settings import NONE, Setting, parse_setting
from tuirig.runs.board import Board
from tuirig.stats.ratio import paired_gain

if TYPE_CHECKING:
    from tuirig.runs.fitting import SettingMemory
    from tuirig.runs.serving import Saved

TREND_STEP_S = 0.5
TREND_VALUES = 120
TEXT_LIMIT = 20_000


class View:
    """State of the main screen for one rig."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.board = Board(rig)
        self.server = ServerChanged(state=ServerState.STOPPED)
        self.cursor: Setting = NONE
        self.prompt_index = 0
        self.card: CardInfo | None = None
        self.reading: Reading | None = None
        self.streaming: ReplyStarted | None = None
        self.last_reply: Reply | None = None
        self.text = ""
        self.predicted_n = 0
        self.tok_s: float | None = None
        self.trend: list[float] = []
        self.progress: Progress | None = None
        self.failure: Failed | None = None
        self.marked: dict[str, Setting] = {}
        self.measuring: Setting | None = None
        self.waiting: list[Setting] = []
        #: How long the last measured setting took, its server's start included.
        self.measure_s: float | None = None
        #: Where a selection began; it goes on to the cursor.
        self.anchor: Setting | None = None
        self.saved: Saved | None = None
        self.plan: PlanMade | None = None
        self.start: StartBegan | None = None
        self.cooling: CoolingDown | None = None
        self.comparison: ComparisonMoved | None = None
        #: The comparison after each start of this run: how its interval became narrow.
        self.moves: tuple[ComparisonMoved, ...] = ()
        self.predicted: dict[str, float] = {}
        self.forecasts: dict[str, SettingMemory | None] = {}
        self._mark: tuple[float, int] | None = None
        self._settings = rig.settings()
        lengths = {setting.length for setting in self._settings if setting.length is not None}
        fixed = any(setting.drafter and setting.length is None for setting in self._settings)
        #: Draft lengths: 0 first; None at the end for methods without one.
        self.columns: tuple[int | None, ...] = (0, *sorted(lengths), *((None,) if fixed else ()))
        #: Drafter names; None is `none`.
        self.rows: tuple[str | None, ...] = (None, *(drafter.row for drafter in rig.drafter))

    @property
    def prompt(self) -> Prompt:
        """The test prompt that Space streams."""
        return PROMPTS[self.prompt_index % len(PROMPTS)]

    @property
    def running(self) -> Setting | None:
        """The setting of the server that is up, None if none is."""
        if self.server.state in (ServerState.READY, ServerState.RUNNING):
            return parse_setting(self.server.setting)
        return None

    def mark(self, setting: Setting) -> str:
        """One letter of a cell.

        A, B: of a comparison; v: selected; +: waits; p: the saved profile; ?: it, or what an
        earlier run has measured, is stale.
        """
        for letter, marked in self.marked.items():
            if marked == setting:
                return letter.upper()
        if setting in self.selection:
            return "v"
        if setting in self.waiting:
            return "+"
        if self.saved is not None and self.saved.setting == setting:
            return "?" if self.saved.changes else "p"
        earlier = self.board.earlier(setting)
        return "?" if earlier is not None and earlier.changes else ""

    @property
    def selection(self) -> tuple[Setting, ...]:
        """The settings between the anchor and the cursor, row by row; none without an anchor."""
        if self.anchor is None:
            return ()
        (row, column), (to_row, to_column) = self.place(self.anchor), self.place(self.cursor)
        rows = range(min(row, to_row), max(row, to_row) + 1)
        columns = range(min(column, to_column), max(column, to_column) + 1)
        cells = (self.at(one, other) for one in rows for other in columns)
        return tuple(setting for setting in cells if setting is not None)

    @property
    def waiting_s(self) -> float | None:
        """How long those that wait will take, if they take as long as the last one."""
        return None if self.measure_s is None else self.measure_s * len(self.waiting)

    @property
    def memory_parts(self) -> MemoryParts | None:
        """The server's memory by purpose, while it is up."""
        return self.server.memory_parts if self.running else None

    def apply(self, event: Event, now_s: float) -> None:
        """Take an event in. now_s: any monotonic clock; only the trend uses it."""
        self.board.apply(event)
        match event:
            case ServerChanged():
                self._server(event)
            case ReplyStarted():
                self.streaming = event
                self.text = ""
                self.predicted_n = 0
                self._mark = None
            case TextArrived():
                self.text = (self.text + event.text)[-TEXT_LIMIT:]
                self.predicted_n = event.predicted_n
                self.tok_s = event.tok_s if event.tok_s is not None else self.tok_s
                self._extend_trend(now_s, event.predicted_n)
            case ReplyDone():
                self.last_reply = event.reply
                self.predicted_n = event.reply.predicted_n
                self.tok_s = event.reply.tok_s
                self.streaming = None
            case ReadingTaken():
                self.reading = event.reading
            case Progress():
                done = event.total is not None and event.done >= event.total
                self.progress = None if done else event
            case Failed():
                self.failure = event
                self.streaming = None
                self.progress = None
            case ArmDone():
                self.progress = None
            case PlanMade():
                self.plan = event
                self.comparison = None
                self.moves = ()
                self.predicted = {}
            case StartBegan():
                self.start = event
                self.cooling = None
            case CoolingDown():
                self.cooling = event
            case ComparisonMoved():
                self.comparison = event
                self.moves = (*self.moves, event)
            case PredictionsMade():
                self.predicted = {item.setting: item.tok_s for item in event.predictions}
            case RunEnded():
                self.start = self.cooling = None

    def _server(self, event: ServerChanged) -> None:
        if event.state is ServerState.STARTING and self.server.state is not ServerState.STARTING:
            self.failure = None
            self.last_reply = None
            self.tok_s = None
            self.trend = []
        if event.state is not ServerState.RUNNING:
            self.streaming = None
            self.progress = None
        if event.state in (ServerState.READY, ServerState.RUNNING):
            self.cooling = None
        if event.state in (ServerState.STOPPED, ServerState.FAILED):
            self.tok_s = None
        self.server = event

    def _extend_trend(self, now_s: float, predicted_n: int) -> None:
        """Tokens of one accepted batch arrive together, so the rate is taken over half seconds."""
        if self._mark is None:
            self._mark = (now_s, predicted_n)
            return
        since_s, count = self._mark
        if now_s - since_s >= TREND_STEP_S:
            self.trend = [*self.trend, (predicted_n - count) / (now_s - since_s)][-TREND_VALUES:]
            self._mark = (now_s, predicted_n)

    def idle_again(self) -> None:
        """What was running ended: nothing streams, nothing progresses."""
        self.streaming = None
        self.progress = None
        self.start = self.cooling = None

    @property
    def live_gain(self) -> float | None:
        """tok/s of the last reply against `none` on the same prompt."""
        reply, running = self.last_reply, self.running
        if reply is None or reply.tok_s is None or running is None:
            return None
        if not self.board.has_baseline(running):
            return None
        from tuirig.measure.summary import tok_s_by_prompt

        return paired_gain(
            tok_s_by_prompt(self.board.replies(NONE)), {reply.prompt_id: reply.tok_s}
        )

    def at(self, row: int, column: int) -> Setting | None:
        """The setting of a cell, None where the grid has no cell."""
        name, length = self.rows[row], self.columns[column]
        if name is None:
            return NONE if length == 0 else None
        setting = Setting(name, length)
        return setting if setting in self._settings else None

    def place(self, setting: Setting) -> tuple[int, int]:
        """Row and column of a setting."""
        row = self.rows.index(setting.drafter)
        length = 0 if setting.drafter is None else setting.length
        return row, self.columns.index(length)

    def move(self, rows: int, columns: int) -> bool:
        """Move the cursor to the next cell in a direction. True if it moved.

        Where the neighbour has no cell, the nearest cell of the next row is taken.
        """
        row, column = self.place(self.cursor)
        if columns:
            step = 1 if columns > 0 else -1
            column += step
            while 0 <= column < len(self.columns):
                setting = self.at(row, column)
                if setting is not None:
                    self.cursor = setting
                    return True
                column += step
            return False
        row += rows
        if not 0 <= row < len(self.rows):
            return False
        cells = [index for index in range(len(self.columns)) if self.at(row, index) is not None]
        nearest = min(cells, key=lambda index: (abs(index - column), index))
        setting = self.at(row, nearest)
        if setting is None:
            return False
        self.cursor = setting
        return True
