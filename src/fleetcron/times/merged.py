"""Several schedules on one job. Ticks at the same instant are one tick."""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby

from fleetcron.errors import ScheduleError
from fleetcron.times.schedule import Schedule

_DAY_MS = 86_400_000


class Merged(Schedule):
    """The union of several schedules."""

    __slots__ = ("entries",)

    def __init__(self, entries: Iterable[Schedule]) -> None:
        self.entries = tuple(entries)
        if not self.entries:
            raise ScheduleError("a job needs at least one schedule")

    def next_ms(self, after: int) -> int | None:
        return min((tick for entry in self.entries if (tick := entry.next_ms(after)) is not None), default=None)

    def prev_ms(self, before: int) -> int | None:
        return max((tick for entry in self.entries if (tick := entry.prev_ms(before)) is not None), default=None)

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return (tick for tick, _ in groupby(merge(*(entry.ticks_ms(after, until) for entry in self.entries))))

    def count_ms(self, after: int, until: int) -> int:
        """Day by day, because ticks that coincide count once.

        Most days look like another one: the same times at the same offset. Each such shape is counted once.
        """
        if len(self.entries) == 1:
            return self.entries[0].count_ms(after, until)
        busy = [entry for entry in self.entries if entry.count_ms(after, until)]
        if len(busy) < 2:
            return sum(entry.count_ms(after, until) for entry in busy)
        first_day, last_day = -(-(after + 1) // _DAY_MS), (until + 1) // _DAY_MS  # the whole days [first, last)
        if last_day <= first_day:
            return self._walk(after, until)
        total = self._walk(after, first_day * _DAY_MS - 1) + self._walk(last_day * _DAY_MS - 1, until)
        counted: dict[tuple[object, ...], int] = {}
        for day in range(first_day, last_day):
            shape = tuple(entry.day_shape(day) for entry in busy)
            if None in shape:
                total += self._walk(day * _DAY_MS - 1, (day + 1) * _DAY_MS - 1)
                continue
            if shape not in counted:
                counted[shape] = self._walk(day * _DAY_MS - 1, (day + 1) * _DAY_MS - 1)
            total += counted[shape]
        return total

    def _walk(self, after: int, until: int) -> int:
        return sum(1 for _ in self.ticks_ms(after, until))

    def day_shape(self, day: int) -> object:
        shapes = tuple(entry.day_shape(day) for entry in self.entries)
        return None if None in shapes else shapes
