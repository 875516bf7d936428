"""The only place that reads a clock. Everybody else takes time as an argument, or a Clock if it passes meanwhile."""

import time
from datetime import UTC, datetime
from typing import Protocol

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Two clocks: one that says what time it is, one that only measures how long something takes."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC. It may jump in both directions."""
        ...

    def now_us(self) -> int:
        """The same in microseconds, for those who compare two clocks."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds since some moment. It never goes back; only differences mean something."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def now_us(self) -> int:
        return time.time_ns() // 1_000

    def monotonic_ms(self) -> int:
        # A lease runs out while the machine is suspended; CLOCK_MONOTONIC would stand still and not notice.
        return time.clock_gettime_ns(_STEADY) // 1_000_000


class HandClock:
    """A clock that stands still until somebody moves it. For tests and simulations."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0

    def now_ms(self) -> int:
        return self._now_ms

    def now_us(self) -> int:
        return self._now_ms * 1000

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    def advance(self, ms: int) -> None:
        """Time passes: both clocks move."""
        if ms < 0:
            raise ValueError("time does not pass backwards; use set() for a wall clock that jumps back")
        self._now_ms += ms
        self._monotonic_ms += ms

    def set(self, now_ms: int) -> None:
        """Put the wall clock somewhere. Forward, time has passed; back, somebody has corrected the clock."""
        self._monotonic_ms += max(0, now_ms - self._now_ms)
        self._now_ms = now_ms


def utc_now() -> datetime:
    """The machine's time, to the second: what a person means by "now" at a prompt."""
    return datetime.now(UTC).replace(microsecond=0)
