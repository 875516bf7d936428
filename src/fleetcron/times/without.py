"""A schedule that keeps out of windows: a tick inside one is dropped, or deferred to the window's end.

Ticks deferred from one window are one tick, and one with a tick that is there anyway.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from fleetcron.times.schedule import Schedule
from fleetcron.times.windows import Window, Windows

# A schedule whose ticks fall into this many windows in a row is given up: it yields nothing that anybody waits for.
_MOST_WINDOWS = 20_000
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Without(Schedule):
    inner: Schedule
    windows: Windows

    def deferred(self, window: Window) -> int:
        """How many ticks of a window become the one tick at its end."""
        return sum(self.inner.count_ms(start - 1, end - 1) for start, end in self.windows.deferring(window))

    def next_ms(self, after: int) -> int | None:
        for _ in range(_MOST_WINDOWS):
            inside = self.windows.around(after)
            if inside is not None:
                if self.deferred(inside):
                    return inside[1]
                after = inside[1] - 1
            tick = self.inner.next_ms(after)
            if tick is None:
                return None
            held = self.windows.around(tick)
            if held is None:
                return tick
            if self.deferred(held):
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
            if window[1] < before and self.deferred(window):
                return window[1]
            before = window[0]
        return None

    def ticks_ms(self, after: int, until: int) -> Iterator[int]:
        for low, high, deferred in self._free(after, until):
            yield from self.inner.ticks_ms(low, high)
            if deferred is not None:
                yield deferred

    def count_ms(self, after: int, until: int) -> int:
        total = 0
        for low, high, deferred in self._free(after, until):
            total += self.inner.count_ms(low, high) + (deferred is not None)
        return total

    def _free(self, after: int, until: int) -> Iterator[tuple[int, int, int | None]]:
        """The stretches (low, high] outside the windows, each with the tick that is deferred to what follows it.

        Windows without a tick of the inner schedule are jumped over: the cost follows the rarer of the two.
        """
        window = self.windows.around(after)
        while True:
            if window is not None:
                start, end = window
                deferred = end if after < end <= until and self.deferred(window) else None
                yield after, max(after, min(start - 1, until)), deferred
                after = end if deferred is not None else max(after, end - 1)
            tick = self.inner.next_ms(after)
            if tick is None or tick > until:
                return
            window = self.windows.ending_after(tick)
            if window is None or window[0] > until:
                yield after, until, None
                return

    def day_shape(self, day: int) -> object:
        """The inner shape with what the windows cut out of it."""
        low, high = day * _DAY_MS, (day + 1) * _DAY_MS
        inner = self.inner.day_shape(day)
        cuts = []
        for start, end in self.windows.within(low - 2, high - 1):
            if low <= end < high and self.windows.deferring((start, end)):
                return None  # whether a tick is deferred to this day depends on others
            if end > low:
                cuts.append((max(start, low) - low, min(end, high) - low))
        return None if inner is None else (inner, tuple(cuts))
