"""A fixed interval in real time: anchor + k × every, so restarts and clock changes do not move it."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from fleetcron.errors import ScheduleError
from fleetcron.times.durations import duration_ms, duration_text
from fleetcron.times.instants import EPOCH, FIRST_MS, LAST_MS, from_ms, iso, parse_instant, to_ms
from fleetcron.times.schedule import Schedule

if TYPE_CHECKING:
    from fleetcron.times.explain import Explanation


class Every(Schedule):
    """`Every("15m", anchor=created)`. The anchor is a tick; the others lie whole intervals before and after it.

    Where nobody gives an anchor it is 1970-01-01T00:00Z; a job stores the time of its creation instead.
    """

    __slots__ = ("anchor", "anchor_ms", "every", "every_ms")

    def __init__(self, duration: str | int | float | timedelta, anchor: datetime | str | None = None) -> None:
        self.every_ms = duration_ms(duration, "every")
        if self.every_ms < 1000:
            raise ScheduleError(f"every: {duration} is too short", hint="the shortest interval is 1s")
        if isinstance(anchor, str):
            anchor = parse_instant(anchor)
        self.anchor_ms = to_ms(EPOCH if anchor is None else anchor)
        if not FIRST_MS <= self.anchor_ms <= LAST_MS:
            raise ScheduleError(f"anchor: {anchor} is outside the years 1 to 9999 of UTC")
        self.every = timedelta(milliseconds=self.every_ms)
        self.anchor = from_ms(self.anchor_ms)

    def next_ms(self, after: int) -> int | None:
        after = max(after, FIRST_MS - 1)
        tick = after + self.every_ms - (after - self.anchor_ms) % self.every_ms
        return tick if tick <= LAST_MS else None

    def prev_ms(self, before: int) -> int | None:
        last = min(before - 1, LAST_MS)
        tick = last - (last - self.anchor_ms) % self.every_ms
        return tick if tick >= FIRST_MS else None

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        first = self.next_ms(after)
        return iter(()) if first is None else iter(range(first, min(until, LAST_MS) + 1, self.every_ms))

    def count_ms(self, after: int, until: int) -> int:
        after, until = max(after, FIRST_MS - 1), min(until, LAST_MS)
        if until <= after:
            return 0
        return (until - self.anchor_ms) // self.every_ms - (after - self.anchor_ms) // self.every_ms

    def day_shape(self, day: int) -> object:
        return "every", self.every_ms, (day * 86_400_000 - self.anchor_ms) % self.every_ms

    def explain(self, after: datetime | None = None) -> "Explanation":
        from fleetcron.times.explain import explain

        return explain(self, after)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Every) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int]:
        return self.every_ms, self.anchor_ms % self.every_ms

    def __repr__(self) -> str:
        return f"Every({duration_text(self.every_ms)!r}, {iso(self.anchor)!r})"
