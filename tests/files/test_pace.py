from __future__ import annotations

from tuirig.events import Event, Progress
from tuirig.files.pace import Pace


class Watch:
    """A pace under a clock of one's own."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.told: list[Progress] = []
        self.pace = Pace("fetching x", self._tell, clock=lambda: self.now_s)

    def _tell(self, event: Event) -> None:
        assert isinstance(event, Progress)
        self.told.append(event)

    def at(self, now_s: float, done: int, total: int | None = 1000) -> None:
        self.now_s = now_s
        self.pace(done, total)


def test_rate_and_time_left() -> None:
    watch = Watch()
    watch.at(0.0, 500)  # what an earlier run left is no speed
    watch.at(2.0, 700)
    first, second = watch.told
    assert (first.per_s, first.left_s) == (None, None)
    assert (second.done, second.total, second.unit) == (700, 1000, "B")
    assert (second.per_s, second.left_s) == (100.0, 3.0)


def test_the_rate_is_that_of_the_last_seconds() -> None:
    watch = Watch()
    for second in range(20):
        watch.at(second, second * (10 if second < 10 else 50))
    assert watch.told[-1].per_s == 50.0


def test_it_tells_no_oftener_than_ten_times_a_second_but_always_the_end() -> None:
    watch = Watch()
    for step in range(1001):
        watch.at(step * 0.001, step)
    assert len(watch.told) in (11, 12)
    assert watch.told[-1].done == 1000


def test_an_unknown_size_and_a_new_beginning() -> None:
    watch = Watch()
    watch.at(0.0, 0, None)
    watch.at(1.0, 100, None)
    assert (watch.told[-1].per_s, watch.told[-1].left_s) == (100.0, None)
    watch.at(2.0, 10, None)
    assert watch.told[-1].per_s is None


def test_nothing_moves() -> None:
    watch = Watch()
    watch.at(0.0, 10)
    watch.at(1.0, 10)
    assert (watch.told[-1].per_s, watch.told[-1].left_s) == (0.0, None)
