"""Clocks of a simulated world. All of them follow the time of the loop; each may be wrong in its own way."""

from collections.abc import Callable


class SimulatedClock:
    """`shift_ms` may be changed at any time: the wall clock jumps. `drift` is how much faster it goes than the loop's
    (0.0001: 100 ppm)."""

    def __init__(self, loop_s: Callable[[], float], begin_ms: int, drift: float = 0.0) -> None:
        self._loop_s = loop_s
        self._begin_ms = begin_ms
        self._rate = 1.0 + drift
        self.shift_ms = 0

    def now_us(self) -> int:
        return (self._begin_ms + self.shift_ms) * 1000 + int(self._loop_s() * self._rate * 1e6)

    def now_ms(self) -> int:
        return self._begin_ms + self.shift_ms + int(self._loop_s() * self._rate * 1e6) // 1000

    def monotonic_ms(self) -> int:
        return int(self._loop_s() * self._rate * 1000)

    def loop_s(self, monotonic_ms: float) -> float:
        """When, on the loop's clock, the steady one shows this."""
        return monotonic_ms / 1000 / self._rate
