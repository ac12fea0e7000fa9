"""Counts of drafts from the log, for builds whose `/metrics` has none (before b10434).

At `-lv 4` llama-server prints after each reply that was not cancelled (b10068):

    print_timing:   eval time =    96.47 ms /    40 tokens (    2.41 ms per token,   414.62 ...)
    print_timing: draft acceptance = 0.19444 (   14 accepted /    72 generated), mean len =  1.56
    print_timing:      acc per pos = (0.520, 0.040, 0.000)
    statistics draft-mtp: #calls(b,g,a) = 2 47 47, #gen drafts = 47, ..., #gen tokens = 136, ...
    release: id  0 | task 26 | stop processing: n_tokens = 82, truncated = 0

The statistics are totals since the start, a line for each method. The shares per position are those
of the reply; their three digits give exact counts for up to 1,000 drafts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import zip_longest

from tuirig.engines.base import Counters

_PREDICTED = re.compile(r" \| +eval time =.* / +(\d+) tokens")
_ACCEPTANCE = re.compile(r"draft acceptance .*\( *(\d+) accepted / +(\d+) generated\)")
_PER_POSITION = re.compile(r"(?:acc per pos|acceptance rate per position) = \(([\d., ]*)\)")
_STATISTICS = re.compile(r"statistics +([\w-]+): .*#gen drafts = +(\d+),.*#gen tokens = +(\d+),")
_RELEASED = re.compile(r"slot +release: .*stop processing")


class DraftLog:
    """Adds up what a server logs of its drafts.

    counters: of the replies that have ended; drafts is None until a line of statistics came.
    """

    def __init__(self) -> None:
        self.counters = Counters()
        self._reply = Counters()
        self._shares: list[float] = []
        self._methods: dict[str, tuple[int, int]] = {}
        self._before = (0, 0)

    def take(self, lines: Iterable[str]) -> None:
        """Read the next lines; every line once, in order."""
        for line in lines:
            if found := _PREDICTED.search(line):
                self._reply = Counters(predicted=int(found[1]))
                self._shares = []
            elif found := _STATISTICS.search(line):
                self._methods[found[1]] = (int(found[2]), int(found[3]))
            elif _RELEASED.search(line):
                self._end()
            else:
                if found := _ACCEPTANCE.search(line):
                    self._reply = Counters(
                        predicted=self._reply.predicted,
                        accepted=int(found[1]),
                        drafted=int(found[2]),
                    )
                if found := _PER_POSITION.search(line):
                    self._shares = [float(share) for share in found[1].split(",") if share.strip()]

    def _end(self) -> None:
        reply, self._reply = self._reply, Counters()
        if not reply.predicted:  # cancelled
            return
        old = self.counters
        if not self._methods:
            self.counters = Counters(predicted=old.predicted + reply.predicted)
            return
        drafts = self._drafts(reply)
        counts = [round(share * drafts) for share in self._shares]
        while counts and not counts[-1]:  # some builds list as many as any method may draft
            del counts[-1]
        self.counters = Counters(
            predicted=old.predicted + reply.predicted,
            drafts=(old.drafts or 0) + drafts,
            drafted=(old.drafted or 0) + (reply.drafted or 0),
            accepted=(old.accepted or 0) + (reply.accepted or 0),
            per_position=tuple(map(sum, zip_longest(old.per_position, counts, fillvalue=0))),
        )

    def _drafts(self, reply: Counters) -> int:
        """How many drafts the reply had.

        The statistics count those of cancelled replies before it as well; then their number
        follows from the shares: accepted / drafts is their sum.
        """
        totals = tuple(map(sum, zip(*self._methods.values(), strict=True)))
        drafts, tokens = totals[0] - self._before[0], totals[1] - self._before[1]
        self._before = (totals[0], totals[1])
        if not reply.drafted:
            return 0
        if tokens == reply.drafted or not reply.accepted:
            return round(drafts * reply.drafted / tokens) if tokens else 0
        return round(reply.accepted / sum(self._shares))
