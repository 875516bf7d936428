"""Several schedules on one job. Ticks at the same instant are one tick."""

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby

from fleetcron.errors import ScheduleError
from fleetcron.times.schedule import Schedule

_DAY_MS = 86_400_000
_MOST_SHAPES = 4096


class Merged(Schedule):
    """The union of several schedules."""

    __slots__ = ("_counted", "entries")

    def __init__(self, entries: Iterable[Schedule]) -> None:
        self.entries = tuple(entries)
        self._counted: dict[object, int] = {}
        if not self.entries:
            raise ScheduleError("a job needs at least one schedule")

    def __repr__(self) -> str:
        return f"Merged({', '.join(map(repr, self.entries))})"

    def next_ms(self, after: int) -> int | None:
        return min((tick for entry in self.entries if (tick := entry.next_ms(after)) is not None), default=None)

    def prev_ms(self, before: int) -> int | None:
        return max((tick for entry in self.entries if (tick := entry.prev_ms(before)) is not None), default=None)

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        return (tick for tick, _ in groupby(merge(*(entry.ticks_ms(after, until) for entry in self.entries))))

    def count_ms(self, after: int, until: int) -> int:
        """Day by day, because ticks that coincide count once; days without a tick are jumped over.

        Most days look like another one: the same times at the same offset. Each such shape is counted once.
        """
        if len(self.entries) == 1:
            return self.entries[0].count_ms(after, until)
        total, day, last_day = 0, (after + 1) // _DAY_MS, until // _DAY_MS
        while day <= last_day:
            start, end = day * _DAY_MS, (day + 1) * _DAY_MS - 1
            here = self._count_of_day(day, max(after, start - 1), min(until, end))
            total, day = total + here, day + 1
            if not here:
                tick = self.next_ms(end)
                day = last_day + 1 if tick is None else max(day, tick // _DAY_MS)
        return total

    def _count_of_day(self, day: int, after: int, until: int) -> int:
        shape = self.day_shape(day)
        if shape is None:
            return self._walk(after, until)
        key = (shape, after - day * _DAY_MS, until - day * _DAY_MS)
        counted = self._counted.get(key)
        if counted is None:
            if len(self._counted) >= _MOST_SHAPES:
                self._counted.clear()
            counted = self._counted[key] = self._walk(after, until)
        return counted

    def _walk(self, after: int, until: int) -> int:
        return sum(1 for _ in self.ticks_ms(after, until))

    def day_shape(self, day: int) -> object:
        shapes = tuple(entry.day_shape(day) for entry in self.entries)
        return None if None in shapes else shapes
