"""What time it is at the database, as far as replies tell. Pure: instants of the event loop are arguments.

A reply that said `now` was sent out after the question left and before the answer came, so it bounds the difference of
the two clocks from both sides. A run starts when even the lower bound has reached its instant: never early. Many
replies make the bounds narrow (well below a millisecond); a reply that contradicts them says that the database's clock
was set, and begins anew.
"""

from typing import Final

from fleetcron.store.dbclock import Reading

_DRIFT: Final = 0.0002  # two clocks differ by less than this, in seconds per second


class DatabaseTime:
    def __init__(self) -> None:
        self._low_ms = float("-inf")  # the database's clock minus the loop's, at least
        self._high_ms = float("inf")
        self._at_s = 0.0

    @property
    def is_known(self) -> bool:
        return self._high_ms != float("inf")

    def heard(self, now_ms: int, sent_s: float, received_s: float) -> None:
        """`now_ms` is whole milliseconds, rounded down."""
        self._learn(now_ms - received_s * 1000, now_ms + 1 - sent_s * 1000, received_s)

    def read(self, reading: Reading) -> None:
        low_us, high_us = reading.now_us - reading.received_s * 1e6, reading.now_us + 1 - reading.sent_s * 1e6
        self._learn(low_us / 1000, high_us / 1000, reading.received_s)

    def _learn(self, low: float, high: float, received_s: float) -> None:
        spread_ms = (received_s - self._at_s) * _DRIFT * 1000
        self._at_s = received_s
        self._low_ms, self._high_ms = self._low_ms - spread_ms, self._high_ms + spread_ms
        if low > self._high_ms or high < self._low_ms:
            self._low_ms, self._high_ms = low, high
            return
        self._low_ms, self._high_ms = max(self._low_ms, low), min(self._high_ms, high)

    def surely_ms(self, at_s: float) -> float:
        """It is at least this late there, also if its clock has gone slower than ours since it was last heard."""
        return self._low_ms + at_s * 1000 - max(0.0, at_s - self._at_s) * _DRIFT * 1000

    def at_most_ms(self, at_s: float) -> float:
        return self._high_ms + at_s * 1000 + max(0.0, at_s - self._at_s) * _DRIFT * 1000

    def slack_ms(self, at_s: float) -> float:
        """How much a start at this moment would come later than it could, at most."""
        return self._high_ms - self._low_ms + (at_s - self._at_s) * 2 * _DRIFT * 1000

    def guess_ms(self, at_s: float) -> int:
        return round((self.surely_ms(at_s) + self.at_most_ms(at_s)) / 2)

    def when_s(self, instant_ms: int) -> float:
        """From this moment of the loop on, the instant has come there."""
        when_s = (instant_ms - self._low_ms) / 1000
        return when_s if when_s <= self._at_s else self._at_s + (when_s - self._at_s) / (1 - _DRIFT)
