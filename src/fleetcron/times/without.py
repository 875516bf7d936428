"""A schedule that keeps out of windows: a tick inside one is skipped, or deferred to the window's end.

Ticks deferred from one window are one tick, and one with a tick that is there anyway.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetcron.times.schedule import Schedule
from fleetcron.times.windows import Windows

# A schedule whose ticks fall into this many windows in a row is given up: it yields nothing that anybody waits for.
_MOST_WINDOWS = 5000
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Without(Schedule):
    inner: Schedule
    windows: Windows
    defer: bool = False

    def next_ms(self, after: int) -> int | None:
        for _ in range(_MOST_WINDOWS):
            inside = self.windows.around(after)
            if inside is not None:
                if self.defer and self.inner.count_ms(inside[0] - 1, inside[1] - 1):
                    return inside[1]
                after = inside[1] - 1
            tick = self.inner.next_ms(after)
            if tick is None:
                return None
            held = self.windows.around(tick)
            if held is None:
                return tick
            if self.defer:
                return held[1]
            after = held[1] - 1
        return None

    def prev_ms(self, before: int) -> int | None:
        for _ in range(_MOST_WINDOWS):
            tick = self.inner.prev_ms(before)
            if tick is None:
                return None
            window = self.windows.around(tick)
            if window is None:
                return tick
            if self.defer and window[1] < before:
                return window[1]
            before = window[0]
        return None

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        at = after
        for start, end in self.windows.within(after - 1, until):
            yield from self.inner.ticks_ms(at, min(start - 1, until))
            if self.defer and after < end <= until and self.inner.count_ms(start - 1, end - 1):
                yield end
                at = end
            else:
                at = max(at, end - 1)
        yield from self.inner.ticks_ms(at, until)

    def count_ms(self, after: int, until: int) -> int:
        if until <= after:
            return 0
        total, at = 0, after
        for start, end in self.windows.within(after - 1, until):
            total += self.inner.count_ms(at, max(at, min(start - 1, until)))
            if self.defer and after < end <= until and self.inner.count_ms(start - 1, end - 1):
                total += 1
                at = end
            else:
                at = max(at, end - 1)
        return total + self.inner.count_ms(at, max(at, until))

    def day_shape(self, day: int) -> object:
        """The inner shape with what the windows cut out of it."""
        low, high = day * _DAY_MS, (day + 1) * _DAY_MS
        inner = self.inner.day_shape(day)
        cuts = []
        for start, end in self.windows.within(low - 2, high - 1):
            if self.defer and low <= end < high:
                return None  # whether a tick is deferred to this day depends on others
            if end > low:
                cuts.append((max(start, low) - low, min(end, high) - low))
        return None if inner is None else (inner, tuple(cuts))
