"""One timer for the earliest of many moments."""

import asyncio
from collections.abc import Callable

from fleetcron.clock import Clock

_NEVER = 1 << 62


class Alarm:
    """Rings once; whoever wants more sets it again."""

    def __init__(self, clock: Clock, ring: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._ring = ring
        self._handle: asyncio.TimerHandle | None = None
        self._moment_ms = _NEVER

    def at(self, moment_ms: int) -> None:
        """Ring at this moment, if not before."""
        if moment_ms < self._moment_ms:
            self.cancel()
            self._moment_ms = moment_ms
            wait_ms = max(0, moment_ms - self._clock.monotonic_ms())
            self._handle = self._loop.call_later(wait_ms / 1000, self._rings)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._moment_ms = None, _NEVER

    def _rings(self) -> None:
        self._handle, self._moment_ms = None, _NEVER
        self._ring()
