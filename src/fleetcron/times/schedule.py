"""What every schedule can answer. A schedule is a set of ticks; nothing here knows what time it is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from fleetcron.errors import ScheduleError
from fleetcron.times.instants import LAST_MS, from_ms, to_ms, to_ms_up

_WALKED = 500


class Schedule(ABC):
    """A set of instants with an order.

    The four methods on milliseconds are the whole contract; the public ones on datetimes follow from them.
    """

    __slots__ = ()

    @abstractmethod
    def next_ms(self, after: int) -> int | None:
        """The first tick later than `after`."""

    @abstractmethod
    def prev_ms(self, before: int) -> int | None:
        """The last tick earlier than `before`."""

    @abstractmethod
    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        """The ticks in (after, until], in order."""

    @abstractmethod
    def count_ms(self, after: int, until: int) -> int:
        """How many ticks lie in (after, until], without walking them."""

    def day_shape(self, day: int) -> object:  # noqa: ARG002
        """What the ticks of a UTC day look like, or None. Days with equal shapes tick at the same times of day."""
        return None

    def nth_ms(self, after: int, n: int, until: int = LAST_MS) -> int | None:
        """The n-th tick in (after, until], found by counting ever larger stretches and walking the last few."""
        width = 86_400_000
        while n > _WALKED:
            first = self.next_ms(after)
            if first is None or first > until:
                return None
            after = first - 1
            high = min(after + width, until)
            here = self.count_ms(after, high)
            if here < n:
                n, after, width = n - here, high, width * 2
            else:
                until, width = high, (high - after + 1) // 2
        return next(islice(self.ticks_ms(after, until), n - 1, None), None)

    def next_after(self, t: datetime) -> datetime | None:
        """The first tick later than `t`, or None if there is none."""
        ms = self.next_ms(to_ms(t))
        return None if ms is None else from_ms(ms)

    def prev_before(self, t: datetime) -> datetime | None:
        """The last tick earlier than `t`, or None if there is none."""
        ms = self.prev_ms(to_ms_up(t))
        return None if ms is None else from_ms(ms)

    def between(self, after: datetime, until: datetime, limit: int | None = None) -> Iterator[datetime]:
        """The ticks with after < tick <= until, at most `limit` of them."""
        return islice(map(from_ms, self.ticks_ms(to_ms(after), to_ms(until))), checked_limit(limit))

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks `between` would give, without walking them: the cost grows with days, not with ticks."""
        return self.count_ms(to_ms(after), to_ms(until))

    def __contains__(self, t: datetime) -> bool:
        """Whether `t` is a tick."""
        ms = to_ms_up(t)
        return ms == to_ms(t) and self.next_ms(ms - 1) == ms


def checked_limit(limit: int | None) -> int | None:
    if limit is not None and (not isinstance(limit, int) or limit < 0):
        raise ScheduleError(f"limit: {limit!r} is not a count", hint="0 or more, or None for all")
    return limit
