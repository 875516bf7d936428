"""What every schedule can answer. A schedule is a set of ticks; nothing here knows what time it is."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from fleetcron.times.instants import LAST_MS, from_ms, to_ms, to_ms_up


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

    def nth_ms(self, after: int, n: int) -> int | None:
        """The n-th tick later than `after`, found by counting."""
        low, width = after, 86_400_000
        while self.count_ms(after, low + width) < n:
            if low + width > LAST_MS:
                return None
            low, width = low + width, width * 2
        high = low + width  # the answer lies in (low, high]
        while high - low > 1:
            middle = (low + high) // 2
            if self.count_ms(after, middle) < n:
                low = middle
            else:
                high = middle
        return high

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
        return islice(map(from_ms, self.ticks_ms(to_ms(after), to_ms(until))), limit)

    def count(self, after: datetime, until: datetime) -> int:
        """How many ticks `between` would give, without walking them: the cost grows with days, not with ticks."""
        return self.count_ms(to_ms(after), to_ms(until))

    def __contains__(self, t: datetime) -> bool:
        """Whether `t` is a tick."""
        ms = to_ms_up(t)
        return ms == to_ms(t) and self.next_ms(ms - 1) == ms
