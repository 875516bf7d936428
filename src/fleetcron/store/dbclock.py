"""What time it is at the database, read as exactly as it can be.

The bounds are those of one statement, not of the transaction around it: the instants are taken while the script runs.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from fleetcron.store.engine import Engine, Script


class Reading(NamedTuple):
    """The database's clock showed `now_us` at some moment between the two instants of the event loop."""

    now_us: int
    sent_s: float
    received_s: float


def read_clock(loop_s: Callable[[], float]) -> Script[Reading]:
    """Part of a script. `loop_s` is the clock of the event loop that asks."""
    sent_s = loop_s()
    [row] = yield "clock_read", {}
    return Reading(row["now_us"], sent_s, loop_s())


class DatabaseClock:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def read(self) -> Reading:
        loop_s = asyncio.get_running_loop().time
        return await self._engine.read(lambda: read_clock(loop_s))
