"""The local times at which an expression matches: a set of days times a set of times of day. No zone comes in here."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache

from fleetcron.times import days
from fleetcron.times.daysets import FAR, FIRST_DAY, LAST_DAY, DaySet
from fleetcron.times.daytimes import DayTimes

DAY = 86400
# A start in seconds, and what to add to it: as seconds and as timedeltas, so that a fast loop can map over either.
Block = tuple[int, tuple[int, ...], tuple[timedelta, ...]]
_NO_YEAR = (1, 0, b"")
# Up to so many times a day, a block is a year; beyond, a day is work enough.
_FEW_A_DAY = 8


class LocalTimes:
    """An ordered set of local times, as seconds since 1970 on a clock without a zone."""

    __slots__ = ("_year", "days", "every_day", "flat", "flat_until", "times")

    def __init__(self, chosen: DaySet, times: DayTimes) -> None:
        self.days = chosen
        self.times = times
        # Copies for the hot path of Cron: while the clock is before `flat_until` on a set of all days, `flat` answers.
        self.every_day = chosen.every_day
        self.flat = times.flat
        self.flat_until = times.last if times.flat and chosen.every_day else -1
        # The year of the last question. Time goes on slowly, so the next one is mostly about this year too. It is
        # replaced whole, never changed, so threads may share a schedule.
        self._year: tuple[int, int, bytes] = _NO_YEAR

    def key(self) -> tuple[object, ...]:
        """Equal for equal sets, as far as 40 years can tell: all kinds of year are among them."""
        return self.times.key(), tuple(self.days.mask(year) for year in range(2000, 2040))

    def __contains__(self, local: int) -> bool:
        day, clock = divmod(local, DAY)
        return day in self.days and self.times.before(clock) == clock

    def after(self, local: int) -> int | None:
        """The first one later than `local`."""
        day, clock = divmod(local, DAY)
        start, end, ahead = self._year
        if not start <= day < end:
            start, end, ahead = self._turn_to(day)
        wait = ahead[day - start]
        if wait == 0:
            time = self.times.after(clock)
            if time >= 0:
                return day * DAY + time
            wait = 1 + ahead[day + 1 - start]
        if wait < FAR:
            return (day + wait) * DAY + self.times.first
        later = self.days.on_or_after(day + 1)
        return None if later is None else later * DAY + self.times.first

    def up_to(self, local: int) -> int | None:
        """The last one not later than `local`."""
        day, clock = divmod(local, DAY)
        if day in self.days:
            time = self.times.before(clock)
            if time >= 0:
                return day * DAY + time
        earlier = self.days.on_or_before(day - 1)
        return None if earlier is None else earlier * DAY + self.times.last

    def count(self, first: int, last: int) -> int:
        """How many lie in [first, last]: days times times of day, less what the edges cut off."""
        if last < first:
            return 0
        first_day, first_clock = divmod(first, DAY)
        last_day, last_clock = divmod(last, DAY)
        total = self.days.count(first_day, last_day) * self.times.count
        if total:
            if first_day in self.days:
                total -= self.times.count_to(first_clock - 1)
            if last_day in self.days:
                total -= self.times.count - self.times.count_to(last_clock)
        return total

    def listed(self, first: int, last: int) -> list[int]:
        """Those in [first, last], which is short: no table of a year is made for it."""
        if last < first:
            return []
        return [base + step for base, steps, _ in self._days(first, last) for step in steps]

    def blocks(self, first: int, last: int) -> Iterator[Block]:
        """Those in [first, last], many at a time."""
        if last < first:
            return iter(())
        return self._years(first, last) if self.times.count <= _FEW_A_DAY else self._days(first, last)

    def _days(self, first: int, last: int) -> Iterator[Block]:
        last_day = last // DAY
        day = self.days.on_or_after(first // DAY)
        while day is not None and day <= last_day:
            low, high = max(first - day * DAY, 0), min(last - day * DAY, DAY - 1)
            for base, steps, deltas in self.times.blocks(low, high):
                yield day * DAY + base, steps, deltas
            day = day + 1 if self.every_day and day < LAST_DAY else self.days.on_or_after(day + 1)

    def _years(self, first: int, last: int) -> Iterator[Block]:
        first_day, last_day = max(first // DAY, FIRST_DAY), min(last // DAY, LAST_DAY)
        for year in range(days.year_of(first_day), days.year_of(last_day) + 1):
            base = days.year_start(year) * DAY
            steps, deltas = _year_steps(self.days.mask(year), self.flat)
            start, stop = bisect_left(steps, first - base), bisect_right(steps, last - base)
            yield base, steps[start:stop], deltas[start:stop]

    def _turn_to(self, day: int) -> tuple[int, int, bytes]:
        if not FIRST_DAY <= day <= LAST_DAY:
            return day, day + 1, bytes((FAR, FAR))
        year = days.year_of(day)
        start = days.year_start(year)
        table = self.days.ahead(year)
        self._year = turned = (start, start + len(table) - 1, table)
        return turned


@lru_cache(maxsize=256)
def _year_steps(mask: int, times: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[timedelta, ...]]:
    steps = tuple(day * DAY + time for day in range(mask.bit_length()) if mask >> day & 1 for time in times)
    return steps, tuple(timedelta(0, step) for step in steps)
