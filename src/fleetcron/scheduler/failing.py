"""Pause a job after so many dead runs in a row, if its definition says so. S1-44: what fails persistently is seen.

The event log is the memory: whoever looks after a crash finds the same events. A pause or an edit begins the count
anew, so a job that was mended and resumed is not paused again because of its past.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from fleetcron.errors import RefusedError, SchemaError, StoreError
from fleetcron.scheduler.desk import Desk
from fleetcron.store.store import Store

log = logging.getLogger(__name__)

_EVERY_S: Final = 2.0
_BACK_MS: Final = 24 * 3_600_000  # how far a node that starts looks back


class FailureWatch:
    def __init__(self, store: Store, desk: Desk) -> None:
        self._store = store
        self._desk = desk
        self._after_id = 0

    async def step(self, since_ms: int) -> list[str]:
        """One look. The names of the jobs that were paused."""
        found = await self._store.failing.since(self._after_id, since_ms)
        paused = []
        for job in found.jobs:
            if job.in_a_row >= job.allowed:
                with suppress(RefusedError, SchemaError):  # it is gone, or for a newer release to pause
                    done = await self._desk.pause(job.tenant, job.name, only_if=lambda each: each.state == "active")
                    if done.done != "paused":
                        continue  # somebody else was faster
                    paused.append(job.name)
                    log.error("%s/%s was paused: its last %d runs are dead", job.tenant, job.name, job.in_a_row)
        self._after_id = found.last_id
        return paused

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`."""
        while not stop.is_set():
            with suppress(StoreError):
                now_ms = (await self._store.queue.next_look([])).now_ms
                await self.step(now_ms - _BACK_MS)
            with suppress(TimeoutError):
                async with asyncio.timeout(_EVERY_S):
                    await stop.wait()
