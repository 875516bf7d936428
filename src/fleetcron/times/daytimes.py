"""The times of day at which an expression fires, in seconds since local midnight."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache

from fleetcron.times.expression import Expression
from fleetcron.times.fields import listed

# Up to here the times of a day are one flat list: a search is one bisection. Beyond (expressions with many seconds)
# there are two levels, so that `* * * * * *` costs 1,500 numbers and not 86,400.
_FLAT = 4096


class DayTimes:
    """An ordered set of seconds of the day. `flat` lists them all, or is empty when there are too many to list."""

    __slots__ = ("count", "first", "flat", "last", "minutes", "seconds", "steps")

    def __init__(self, minutes: tuple[int, ...], seconds: tuple[int, ...]) -> None:
        self.minutes = minutes  # as seconds of the day
        self.seconds = seconds  # of each of these minutes
        self.count = len(self.minutes) * len(self.seconds)
        self.first = self.minutes[0] + self.seconds[0]
        self.last = self.minutes[-1] + self.seconds[-1]
        self.flat: tuple[int, ...] = ()
        if seconds == (0,):
            self.flat = minutes
        elif self.count <= _FLAT:
            self.flat = tuple(minute + second for minute in self.minutes for second in self.seconds)
        # the flat list, or the seconds of one minute, as something to add to a datetime
        self.steps: tuple[timedelta, ...] = ()

    @classmethod
    def of(cls, expression: Expression) -> "DayTimes":
        """The times of an expression. Expressions with the same times share them: 65 KB for `*/2 * * * *` otherwise."""
        return _day_times(expression.hour.values, expression.minute.values, expression.second.values)

    @classmethod
    def only(cls, second: int) -> "DayTimes":
        """A single time of day."""
        return cls((second - second % 60,), (second % 60,))

    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.minutes, self.seconds

    def after(self, second: int) -> int:
        """The first time later than `second`, or -1."""
        if self.flat:
            at = bisect_right(self.flat, second)
            return self.flat[at] if at < self.count else -1
        minute = second - second % 60
        at = bisect_left(self.minutes, minute)
        if at < len(self.minutes) and self.minutes[at] == minute:
            inner = bisect_right(self.seconds, second - minute)
            if inner < len(self.seconds):
                return minute + self.seconds[inner]
            at += 1
        return self.minutes[at] + self.seconds[0] if at < len(self.minutes) else -1

    def before(self, second: int) -> int:
        """The last time not later than `second`, or -1."""
        at = self.count_to(second)
        if not at:
            return -1
        minute, inner = divmod(at - 1, len(self.seconds))
        return self.minutes[minute] + self.seconds[inner]

    def count_to(self, second: int) -> int:
        """How many times are not later than `second`."""
        if self.flat:
            return bisect_right(self.flat, second)
        if second < 0:
            return 0
        minute = second - second % 60
        at = bisect_left(self.minutes, minute)
        within = 0
        if at < len(self.minutes) and self.minutes[at] == minute:
            within = bisect_right(self.seconds, second - minute)
        return at * len(self.seconds) + within

    def blocks(self, low: int, high: int) -> Iterator[tuple[int, tuple[int, ...], tuple[timedelta, ...]]]:
        """The times in [low, high] as (start, seconds to add, the same as timedeltas), to be mapped over."""
        if not self.steps:
            self.steps = tuple(timedelta(0, second) for second in self.flat or self.seconds)
        if self.flat:
            start, stop = bisect_left(self.flat, low), bisect_right(self.flat, high)
            yield 0, self.flat[start:stop], self.steps[start:stop]
            return
        start, stop = bisect_left(self.minutes, low - low % 60), bisect_right(self.minutes, high)
        for minute in self.minutes[start:stop]:
            if minute >= low and minute + 59 <= high:
                yield minute, self.seconds, self.steps
            else:
                left, right = bisect_left(self.seconds, low - minute), bisect_right(self.seconds, high - minute)
                yield minute, self.seconds[left:right], self.steps[left:right]


@lru_cache(maxsize=4096)
def _day_times(hours: int, minutes: int, seconds: int) -> DayTimes:
    in_hour = [minute * 60 for minute in listed(minutes)]
    return DayTimes(tuple(hour * 3600 + minute for hour in listed(hours) for minute in in_hour), tuple(listed(seconds)))
