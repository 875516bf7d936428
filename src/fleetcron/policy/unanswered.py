"""The ticks of a timetable beside some that have their answer. Pure.

They are few: runs that people cancelled ahead of their time, of a job that was changed before that time came.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from fleetcron.times.schedule import Schedule
from fleetcron.times.timetable import Timetable


class Unanswered(Schedule):
    """`kept` may have instants that are no ticks (of the schedule as it is now): those are left out."""

    def __init__(self, whole: Timetable, kept: Iterable[int]) -> None:
        self.whole = whole
        self.kept = sorted(tick for tick in set(kept) if whole.next_ms(tick - 1) == tick)
        self._known = frozenset(self.kept)

    def next_ms(self, after: int) -> int | None:
        tick = self.whole.next_ms(after)
        while tick in self._known:
            tick = self.whole.next_ms(tick)
        return tick

    def prev_ms(self, before: int) -> int | None:
        tick = self.whole.prev_ms(before)
        while tick in self._known:
            tick = self.whole.prev_ms(tick)
        return tick

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return (tick for tick in self.whole.ticks_ms(after, until) if tick not in self._known)

    def count_ms(self, after: int, until: int) -> int:
        kept = max(0, bisect_right(self.kept, until) - bisect_right(self.kept, after))
        return self.whole.count_ms(after, until) - kept

    def start_ms(self, tick: int) -> int:
        return self.whole.start_ms(tick)
