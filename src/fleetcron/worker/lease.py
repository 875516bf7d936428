"""The one lease under which a worker holds all its runs. One step (`beat`), one loop (`keep`).

It counts from the moment at which a renewal was SENT: the database counts from a later one. A worker that cannot renew
stops its work a margin before that time is over, so that nobody else can have taken a run whose handler still works.
Whoever watches over the handlers is told too until when they may go on: a worker that stands still stops nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from fleetcron.clock import Clock
from fleetcron.errors import StoreError
from fleetcron.executors.assignment import Key
from fleetcron.store.workers import Renewed, Workers
from fleetcron.store.written import Ok, Refused, Unknown

log = logging.getLogger(__name__)

_SOONEST_MS = 200  # between two renewals that somebody asked for


class WorkerLease:
    """`lost` is called when the work has to stop: with the reason, once for each time. `allow` is told with each
    renewal until when the work may go on at the very most, on the steady clock."""

    def __init__(
        self,
        workers: Workers,
        node_id: str,
        *,
        process: str,
        pools: Mapping[str, int],
        refuses: Mapping[str, str],
        ttl_ms: int,
        renew_ms: int,
        clock: Clock,
        renewed: Callable[[Renewed, float, float], Awaitable[None]],
        lost: Callable[[str], None],
        allow: Callable[[int], None],
    ) -> None:
        self._workers = workers
        self._node_id = node_id
        self._process = process
        self._pools = pools
        self._refuses = refuses
        self._ttl_ms = ttl_ms
        self._renew_ms = renew_ms
        self._clock = clock
        self._renewed = renewed
        self._lost = lost
        self._allow = allow
        self._until_ms: int | None = None
        self._is_lost = True
        self.started_ms: int | None = None  # of the life that was last renewed, by the database's clock
        self.lives = 0  # how often it was lost: what was claimed in an earlier life is not ours
        self._last_ms = 0
        self._asked = asyncio.Event()
        self.margin_ms = ttl_ms // 5
        self.trouble: str | None = None

    @property
    def is_held(self) -> bool:
        return self._until_ms is not None and self._clock.monotonic_ms() < self._until_ms

    def notice(self) -> None:
        """Give up if the time is over. Whoever finds that it is not held must not begin anew before this."""
        if self._until_ms is not None and self._clock.monotonic_ms() >= self._until_ms:
            self._give_up("the lease could not be renewed in time")

    def ask(self) -> None:
        """Somebody may have asked an attempt to stop: renew soon, and hear of it."""
        self._asked.set()

    async def join(self) -> bool:
        """Begin, or begin again after everything was lost and has stopped."""
        sent_ms = self._clock.monotonic_ms()
        written = await self._workers.join(self._node_id, self._process, self._pools, self._ttl_ms, self._refuses)
        if isinstance(written, Ok) and await self.beat(joining=True):
            return True
        self._until_ms = None
        self.trouble = f"the worker could not join (asked at {sent_ms})"
        return False

    async def leave(self) -> None:
        """End, with nothing in our hands. Renewals go on until then, and the one that comes too late is told that there
        is no such worker: that is no loss, and stops nothing."""
        self._until_ms = None
        self._is_lost = True
        await self._workers.leave(self._node_id)

    async def beat(self, *, joining: bool = False) -> bool:
        """Renew. Whoever was declared lost is told so; an unknown reply did not renew anything.

        A renewal after the lease was lost only keeps others from what is still being stopped: it takes `join` to go on.
        """
        loop = asyncio.get_running_loop()
        sent_ms, sent_s = self._clock.monotonic_ms(), loop.time()
        match await self._workers.renew(self._node_id, self._ttl_ms):
            case Ok(done):
                self._last_ms = sent_ms
                if self._is_lost and not joining:
                    return False
                self._is_lost = False
                self.started_ms = done.started_ms
                self._until_ms = max(self._until_ms or 0, sent_ms + self._ttl_ms - self.margin_ms)
                self._allow(self._until_ms + self.margin_ms * 3 // 4)
                self.trouble = None
                await self._renewed(done, sent_s, loop.time())
                return True
            case Refused(reason):
                self._give_up(reason)
            case Unknown(why):
                self.trouble = why
        return False

    async def cancels(self) -> Mapping[Key, str] | None:
        """Which attempts somebody has asked to stop, and why; None if the reply was lost. Only the answer counts: the
        life that asked may be over when it comes, so `beat` alone says what is held, and until when."""
        match await self._workers.renew(self._node_id, self._ttl_ms):
            case Ok(done):
                return done.cancels
            case Refused():
                self.ask()
            case Unknown():
                pass
        return None

    async def keep(self, stop: asyncio.Event) -> None:
        """Until `stop`."""
        watching = asyncio.create_task(self._watch())
        try:
            while not stop.is_set():
                try:
                    await self.beat()
                except StoreError as error:
                    if self.trouble != str(error):
                        log.warning("the lease could not be renewed: %s", error)
                    self.trouble = str(error)
                await self._rest(stop)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _rest(self, stop: asyncio.Event) -> None:
        rest_ms = self._renew_ms if self.trouble is None else max(20, self._renew_ms // 10)
        waiting = {asyncio.create_task(stop.wait()), asyncio.create_task(self._asked.wait())}
        done, _ = await asyncio.wait(waiting, timeout=rest_ms / 1000, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        if done and not stop.is_set():
            self._asked.clear()
            soonest = self._last_ms + min(_SOONEST_MS, self._renew_ms) - self._clock.monotonic_ms()
            if soonest > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(soonest / 1000):
                        await stop.wait()

    async def _watch(self) -> None:
        """A renewal that hangs must not keep us from noticing that its time is over."""
        while True:
            self.notice()
            until_ms = self._until_ms
            left_ms = self._renew_ms if until_ms is None else max(1, until_ms - self._clock.monotonic_ms())
            await asyncio.sleep(min(left_ms, self._renew_ms) / 1000)

    def _give_up(self, why: str) -> None:
        if self._until_ms is not None:
            self._until_ms = None
            self._is_lost = True
            self.lives += 1
            self._lost(why)
