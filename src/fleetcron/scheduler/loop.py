"""The scheduler's loop: it sleeps until the next job is due or a hint comes, and calls the steps. Nothing else.

When the store is away it says so, waits a little longer each time, and goes on by itself when the store is back: what
was due meanwhile is late, and the misfire policies decide about it.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import add

from fleetcron.clock import Clock
from fleetcron.config import SchedulerConfig
from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.model.shard import Held
from fleetcron.scheduler.gaps import GapRound, fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import Round, tick
from fleetcron.store.gaps import Beside
from fleetcron.store.hints import LOST
from fleetcron.store.store import Store

log = logging.getLogger(__name__)

_FULL_MS = 100  # so often it is asked whether there is room again for what is caught up
_BESIDE_MS = 1_000  # and so often who has nothing on its way meanwhile: that looks at all who wait
_BESIDE = 10  # jobs that get something then: live jobs tick in this process
_LONGEST_BACKOFF_MS = 2_000  # a store that is back is to be noticed within 5 s, a round included
# In a burst the shards are planned on two connections: 100,000 runs in 1.0 s instead of 1.6 s on two cores.
LANES = 2


@dataclass(slots=True)
class Health:
    """How the scheduler is: `trouble` is what is wrong now, None if nothing is."""

    trouble: str | None = None
    since_ms: int | None = None  # by the node's own clock
    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter)  # jobs, runs, conflicts, answered, refused, unknown

    @property
    def ok(self) -> bool:
        return self.trouble is None


class Scheduler:
    """`held` says which shards are ours at this moment; it is asked again before every round.

    `trouble` says why none can be held, if that is so: a store that can be read and not written has no other sign.
    """

    def __init__(
        self,
        store: Store,
        held: Callable[[], Sequence[Held]],
        config: SchedulerConfig,
        *,
        clock: Clock,
        trouble: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._store = store
        self._held = held
        self._trouble = trouble
        self._config = config
        self._clock = clock
        self._tables = Tables(store.almanac)
        self._lookahead_ms = round(config.lookahead_s * 1000)
        self._idle_ms = round(min(config.idle_poll_s, config.lookahead_s / 2) * 1000)
        self._failures = 0
        self._told: set[str] = set()  # why planning waits, as far as it was said
        self._unknown: str | None = None  # why the last round does not know what became of its plan
        self._busy = False
        self._beside_ms = 0  # when jobs last got runs beside the room, by the database's clock
        self._beside_id = 0  # the gap of the last one
        self.health = Health()
        self.wake = asyncio.Event()  # set by whoever knows that there may be something to do

    async def step(self) -> int:
        """One round of ticks and one of gaps. Answers how many milliseconds to sleep: 0 if there is more to do."""
        held = self._held()
        self._unknown = None
        self.health.rounds += 1
        if not held:
            if (why := self._trouble()) is not None:
                raise StoreUnavailable(why)
            if not self.health.ok:
                await self._store.shards.number()  # whoever holds nothing asks nothing: look whether the store is back
            return self._idle_ms
        done = await self._tick(held)
        self._count(done)  # before the gaps: a store that goes away now takes nothing back
        filled = await self._fill(held, done.now_ms)
        self._count(filled)
        self._unknown = done.unknown or filled.unknown
        if done.more or filled.more or done.refused or filled.refused:
            return 0 if not (done.refused or filled.refused) else 50  # we shall hear soon what is no longer ours
        rest_ms = min(self._idle_ms, _FULL_MS) if filled.is_full else self._idle_ms
        if done.next_due_ms is None:
            return rest_ms
        return max(1, min(rest_ms, done.next_due_ms - self._lookahead_ms - done.now_ms))

    async def _fill(self, held: Sequence[Held], now_ms: int) -> GapRound:
        is_time = not 0 <= now_ms - self._beside_ms < _BESIDE_MS
        if is_time:
            self._beside_ms = now_ms  # also if the store does not answer: the next round goes without
        room, rows = self._config.catch_up_room, self._config.batch_rows
        beside = Beside(_BESIDE, self._beside_id) if is_time else None
        filled = await fill_gaps(self._store.gaps, self._tables, held, room=room, rows=rows, beside=beside)
        if is_time and filled.is_full and filled.last_id is not None:
            self._beside_id = filled.last_id
        return filled

    async def _tick(self, held: Sequence[Held]) -> Round:
        lanes = LANES if self._busy and self._store.engine.name == "postgres" else 1
        rounds = await asyncio.gather(
            *(
                tick(
                    self._store.cursors,
                    self._tables,
                    part,
                    lookahead_ms=self._lookahead_ms,
                    rows=self._config.batch_rows,
                )
                for part in (held[lane::lanes] for lane in range(lanes))
                if part
            )
        )
        done = reduce(add, rounds)
        self._busy = done.more
        return done

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`."""
        async with self._store.engine.hints() as hints:
            ears = [asyncio.create_task(self._listen(hints)), asyncio.create_task(self._stopped(stop))]
            try:
                while not stop.is_set():
                    self.wake.clear()
                    rest_ms = await self._turn()
                    if rest_ms:
                        with suppress(TimeoutError):
                            async with asyncio.timeout(rest_ms / 1000):
                                await self.wake.wait()
                    else:
                        await asyncio.sleep(0)  # heartbeats come first
            finally:
                for ear in ears:
                    ear.cancel()
                await asyncio.gather(*ears, return_exceptions=True)

    async def _turn(self) -> int:
        try:
            rest_ms = await self.step()
            if self._unknown is not None:  # not once and at once again: a disk that is full answers so every time
                raise StoreUnavailable(
                    f"it is not known whether a plan was written, the next round finds out: {self._unknown}"
                )
        except StoreError as error:
            self._failures += 1
            rest_ms = min(_LONGEST_BACKOFF_MS, 100 << min(self._failures, 6))
            self.health.trouble = str(error)
            self.health.since_ms = self.health.since_ms or self._clock.now_ms()
            if self.health.trouble not in self._told:  # two causes may take turns for as long as it lasts
                log.error("planning waits: %s", error)
                self._told.add(self.health.trouble)
            return rest_ms
        if self.health.trouble is not None:
            log.info("planning goes on")
        self._failures, self.health.trouble, self.health.since_ms = 0, None, None
        self._told.clear()
        return rest_ms

    def _count(self, done: Round | GapRound) -> None:
        counts = self.health.counts
        counts.update(runs=done.runs, answered=done.answered, conflicts=done.conflicts)
        if done.refused is not None:
            counts["refused"] += 1
            log.warning("a plan was refused: %s", done.refused)
        counts["unknown"] += done.unknown is not None
        if isinstance(done, GapRound):
            counts["gaps"] += done.gaps
            if done.gaps:
                log.debug("%d gaps decided, %d runs", done.gaps, done.runs)
            return
        counts["jobs"] += done.jobs
        for why in done.stuck:
            log.error("a job cannot be planned: %s", why)
        if done.jobs:
            log.debug("%d jobs planned, %d runs", done.jobs, done.runs)

    async def _listen(self, hints: AsyncIterator[str]) -> None:
        async for topic in hints:
            if topic in ("jobs", LOST):  # what workers do is no news: what is planned does not hang on it
                self.wake.set()

    async def _stopped(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.wake.set()
