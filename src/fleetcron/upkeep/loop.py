"""The loop of upkeep: it looks at the workers and at the queue every now and then. Any number of nodes may do it."""

import asyncio
import logging
from contextlib import suppress
from typing import Final

from fleetcron.clock import Clock
from fleetcron.errors import StoreError
from fleetcron.store.looking import Place
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from fleetcron.upkeep.lost import Settling, Watch, bury_lost

log = logging.getLogger(__name__)

_SWEEP_EVERY: Final = 5  # looks


class Upkeep:
    """`ttl_ms` is the lease of workers; `settling` the policy for the ends of attempts."""

    def __init__(self, store: Store, node_id: str, *, ttl_ms: int, settling: Settling, clock: Clock) -> None:
        self._store = store
        self._node_id = node_id
        self._watch = Watch(ttl_ms)
        self._settling = settling
        self._clock = clock
        self._look_s = min(2.0, ttl_ms / 8000)
        self._turn = 0
        self._has_more = False
        self._after_id = 0
        self._after: Place | None = None
        self._follow_id = 0

    async def step(self) -> None:
        await bury_lost(self._store, self._watch, self._settling, clock=self._clock, by=self._node_id)
        if self._turn % _SWEEP_EVERY == 0 or self._has_more:
            self._has_more = False
            match await self._store.sweeping.sweep(self._after_id, self._after):
                case Ok(done):
                    self._after_id, self._after, self._has_more = done.next_id, done.next_place, done.more
                    if done.stuck or done.adrift:
                        log.error("the sweep found %d stuck and %d adrift runs", done.stuck, done.adrift)
            match await self._store.following.sweep(self._follow_id):
                case Ok(followed):
                    self._follow_id = followed.next_id
                    if followed.runs:
                        log.warning("%d runs in the queue did not follow their edited jobs; they do now", followed.runs)
        self._turn += 1

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. A store that is away is somebody else's to complain about."""
        while not stop.is_set():
            with suppress(StoreError):
                await self.step()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await stop.wait()
