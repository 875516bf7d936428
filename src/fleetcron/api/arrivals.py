"""Whoever waits for work waits together: one look at a pool serves all that wait for it on this node."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from fleetcron.errors import StoreError
from fleetcron.policy.late import late
from fleetcron.store.store import Store
from fleetcron.worker.loop import ranked

log = logging.getLogger(__name__)

_PROMOTED: Final = 2_000
LOOK_EVERY_S: Final = 0.25


class Arrivals:
    """`closing` is set when the process is about to end: nobody waits any longer then."""

    def __init__(self, store: Store, closing: asyncio.Event) -> None:
        self._store = store
        self._closing = closing
        self._looks: dict[str, asyncio.Task[bool]] = {}
        self._trouble: str | None = None  # why nothing can be queued

    async def come(self, pool: str, until_s: float) -> bool:
        """Wait until there may be something to claim; false when the time of the loop's clock is over."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set() and (left_s := until_s - loop.time()) > 0:
            look = self._look(pool)
            await asyncio.wait([look], timeout=left_s)  # it goes on without whoever leaves: others wait for it too
            if look.done() and look.result():
                return True
        return False

    async def queue_due(self) -> None:
        """Queue what is due. If that fails, there may be something in the queue all the same: whoever asks for it next
        hears whether the database is away."""
        trouble = None
        try:
            await self._store.queue.promote(0, _PROMOTED, ranked, late)
        except StoreError as error:
            trouble = str(error)
            if self._trouble != trouble:
                log.error("queueing waits: %s", trouble)
        self._trouble = trouble

    def _look(self, pool: str) -> "asyncio.Task[bool]":
        if pool not in self._looks:
            self._looks[pool] = look = asyncio.create_task(self._in_a_moment(pool))
            look.add_done_callback(lambda done: self._ended(pool, done))
        return self._looks[pool]

    def _ended(self, pool: str, look: "asyncio.Task[bool]") -> None:
        del self._looks[pool]
        if not look.cancelled():
            look.exception()  # those who wait hear of it; if nobody does, nobody needs to

    async def _in_a_moment(self, pool: str) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._closing.wait()
        await self.queue_due()
        return await self._store.queue.has_work(pool)
