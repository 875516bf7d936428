"""Stretches of time in which nothing may start: blackouts, and the days that a calendar in another zone refuses.

A window is [start, end) in milliseconds. Windows that touch or overlap are one window.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleetcron.errors import ScheduleError
from fleetcron.times.daysets import Complement, DaySet
from fleetcron.times.durations import duration_ms
from fleetcron.times.instants import FIRST_MS, LAST_MS, iso, since_epoch, to_ms
from fleetcron.times.schedule import Schedule
from fleetcron.times.zone import Zone

Window = tuple[int, int]
# So many windows in a row that touch (a daily window of 24 hours, say) never end in practice.
_MOST_MERGED = 2000


class Windows(ABC):
    """An ordered row of windows, possibly endless."""

    @abstractmethod
    def ending_after(self, t: int) -> Window | None:
        """The first window whose end lies after `t`."""

    @abstractmethod
    def starting_before(self, t: int) -> Window | None:
        """The last window whose start lies before `t`."""

    def deferring(self, window: Window) -> list[Window]:  # noqa: ARG002
        """The parts of a window whose ticks are deferred to its end; the rest drops them."""
        return []

    def around(self, t: int) -> Window | None:
        """The window that holds `t`."""
        window = self.ending_after(t)
        return window if window is not None and window[0] <= t else None

    def within(self, after: int, until: int) -> Iterator[Window]:
        """The windows that hold an instant of (after, until]."""
        window = self.ending_after(after + 1)
        while window is not None and window[0] <= until:
            yield window
            window = self.ending_after(window[1])


@dataclass(frozen=True)
class Blackout(Windows):
    """A named set of windows: fixed ones, and ones that begin at the ticks of a schedule and last for a while."""

    name: str
    fixed: tuple[Window, ...] = ()
    repeated: tuple[tuple[Schedule, int], ...] = ()

    def ending_after(self, t: int) -> Window | None:
        found = min(self._ending_after(t), default=None)
        return None if found is None else self._whole(found)

    def starting_before(self, t: int) -> Window | None:
        found = max(self._starting_before(t), default=None)
        return None if found is None else self._whole(found)

    def _ending_after(self, t: int) -> Iterator[Window]:
        yield from (window for window in self.fixed if window[1] > t)
        for starts, length in self.repeated:
            start = starts.next_ms(t - length)
            if start is not None:
                yield start, start + length

    def _starting_before(self, t: int) -> Iterator[Window]:
        yield from (window for window in self.fixed if window[0] < t)
        for starts, length in self.repeated:
            start = starts.prev_ms(t)
            if start is not None:
                yield start, start + length

    def _whole(self, window: Window) -> Window:
        """The window with everything that touches it on either side."""
        start, end = window
        for _ in range(_MOST_MERGED):
            low, high = start, end
            for other in self._starting_before(end + 1):
                if other[1] >= start:
                    low, high = min(low, other[0]), max(high, other[1])
            for other in self._ending_after(start - 1):
                if other[0] <= end:
                    low, high = min(low, other[0]), max(high, other[1])
            if (low, high) == (start, end):
                return start, end
            start, end = low, high
        raise ScheduleError(
            f"blackout {self.name} has windows that never end: more than {_MOST_MERGED} touch each other",
            hint="shorten them, or write one long window",
        )


def blackout(
    name: str,
    windows: Iterable[tuple[datetime, datetime]] = (),
    repeated: Iterable[tuple[Schedule, str | int | timedelta]] = (),
) -> Blackout:
    """`blackout("freeze", [(from, to)], [(Cron("0 2 * * SUN", zone), "2h")])`."""
    fixed = []
    repeated = tuple(repeated)
    for start, end in windows:
        since_epoch(start), since_epoch(end)
        if not start < end:
            raise ScheduleError(f"blackout {name}: {iso(end)} is not after {iso(start)}", hint="a window is [from, to)")
        fixed.append((to_ms(start), to_ms(end)))
    for schedule, _ in repeated:
        if not isinstance(schedule, Schedule):
            raise ScheduleError(f"blackout {name}: {schedule!r} is not a schedule", hint="pass a Cron or an Every")
    lengths = tuple((schedule, duration_ms(length, "for")) for schedule, length in repeated)
    made = Blackout(name, tuple(sorted(fixed)), lengths)
    if not made.fixed and not made.repeated:
        raise ScheduleError(f"blackout {name} has no window")
    made.ending_after(0)  # windows that never end are found out now, not when a tick falls into them
    return made


class DaysAsWindows(Windows):
    """The local dates of a zone that are in a set, as stretches of real time."""

    def __init__(self, refused: DaySet, zone: Zone) -> None:
        self._refused = refused
        self._allowed = Complement(refused)
        self._zone = zone

    def ending_after(self, t: int) -> Window | None:
        day = self._refused.on_or_after(self._date(t))
        while day is not None:
            window = self._run(day)
            if window[1] > t and window[0] < window[1]:
                return window
            # Already over, or without length: a date that the zone skipped, as Samoa did.
            allowed = self._allowed.on_or_after(day)
            day = None if allowed is None else self._refused.on_or_after(allowed)
        return None

    def starting_before(self, t: int) -> Window | None:
        day = self._refused.on_or_before(self._date(t - 1))
        while day is not None:
            window = self._run(day)
            if window[0] < t and window[0] < window[1]:
                return window
            allowed = self._allowed.on_or_before(day)
            day = None if allowed is None else self._refused.on_or_before(allowed)
        return None

    def _date(self, t: int) -> int:
        second = min(max(t, FIRST_MS), LAST_MS) // 1000
        return (second + self._zone.offset_at(second)) // 86400

    def _run(self, day: int) -> Window:
        """The whole stretch of refused dates around one of them."""
        before, after = self._allowed.on_or_before(day), self._allowed.on_or_after(day)
        start = FIRST_MS if before is None else self._zone.day_start(before + 1) * 1000
        end = LAST_MS + 1 if after is None else self._zone.day_start(after) * 1000
        return start, end
