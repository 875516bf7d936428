"""The worker: claims runs a moment early, holds each until its exact instant, hands it to an executor, writes its end.

One turn of the loop (`step`) queues what is due soon, claims for each pool what its slots allow, and says how long to
sleep. Everything else happens beside it: `lease.py` keeps the one lease of all runs, `hands.py` starts what was held
and hears how it ends, `acks.py` writes the ends. User code runs in processes of its own, so nothing that a handler does
can stop a renewal.

When the lease is lost everything is stopped at once, and the worker begins anew when nothing of it runs any more.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.config import WorkerConfig
from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.model.outcome import Fault, Lost
from fleetcron.policy.fairness import Wanted, ranks
from fleetcron.policy.late import late
from fleetcron.store.ends import Ended, Ends
from fleetcron.store.queue import Coming, Place, Shares
from fleetcron.store.store import Store
from fleetcron.store.workers import NO_REFUSALS, Renewed
from fleetcron.store.written import Ok, Refused, Unknown
from fleetcron.worker.acks import Acks
from fleetcron.worker.dbtime import DatabaseTime
from fleetcron.worker.hands import Hands, Health, MakeExecutor
from fleetcron.worker.intake import NOTHING, Intake
from fleetcron.worker.lease import WorkerLease
from fleetcron.worker.output import Output
from fleetcron.worker.settling import settling

log = logging.getLogger(__name__)

_PROMOTED: Final = 2000  # runs in one transaction
_PROMOTE_EVERY_MS: Final = 100  # while there is so much to claim that nobody looks when the next run is due
_CALM: Final = 3  # times as long as a part of a burst took to be queued, its rest waits while all slots are taken
_LONGEST_CALM_S: Final = 0.3  # and no longer: others may have come meanwhile
_LOOK_EVERY_S: Final = 0.05
_LONGEST_BACKOFF_MS: Final = 2_000


class Worker:
    def __init__(
        self,
        store: Store,
        node_id: str,
        config: WorkerConfig,
        make_executor: MakeExecutor,
        *,
        process: str,
        clock: Clock,
        chance: Callable[[], float],
        allow: Callable[[int], None] = lambda _: None,
        refuses: Mapping[str, str] = NO_REFUSALS,
    ) -> None:
        """`allow` is told until when the work may go on, on the steady clock (`Programs.allow_until`); the store is
        told what it `refuses`."""
        self.wake = asyncio.Event()  # set by whoever knows that there may be something to do
        self.time = DatabaseTime()
        self._store = store
        self._node_id = node_id
        self._config = config
        self._chance = chance
        self._loop = asyncio.get_running_loop()
        self._ahead_ms = round(config.ahead_s * 1000)
        self._promote_at_ms = 0.0  # when something is to be queued, by the database's time
        self._calm_until_s = 0.0  # until then the rest of a burst may wait, on the clock of the loop
        self._promote_again_s = 0.0  # until then it is not tried again, after it has failed
        self._promote_failures = 0
        self._promote_trouble: str | None = None
        self._failures = 0
        self._has_news = True  # since the store was asked what comes next
        self._looked_s = self._next_s = 0.0  # when it was asked, and when that is
        self._must_begin_anew = False
        self._fault: BaseException | None = None
        self._forgotten: set[tuple[int, int, str]] = set()  # held by us, says the store, and we know nothing of it
        self._output = Output(store, node_id)
        self._acks = Acks(
            store.attempts,
            node_id,
            chance=chance,
            before=self._output.flush,
            heard=self.time.heard,
            written=self._written,
            still=lambda: self._hands.still(),
        )
        self.lease = WorkerLease(
            store.workers,
            node_id,
            process=process,
            pools=config.slots(),
            refuses=refuses,
            ttl_ms=round(config.lease_ttl_s * 1000),
            renew_ms=round(config.renew_s * 1000),
            clock=clock,
            renewed=self._renewed,
            lost=self._lose,
            allow=allow,
        )
        self._hands = Hands(
            config.slots(),
            make_executor,
            acks=self._acks,
            output=self._output,
            time=self.time,
            clock=clock,
            is_ours=lambda: self.lease.is_held,
            idle=self.wake.set,
            look=self._look_at_the_clock,
            back=lambda attempts: self._intake.give_back(attempts),
            declined=lambda pool, attempt, why: self._intake.decline(pool, attempt, why),
        )
        self._intake = Intake(store, node_id, self._hands, self.lease, clock, refuses, self.wake.set)

    @property
    def health(self) -> Health:
        return self._hands.health

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then what runs may end within the drain time, and the rest goes back."""
        quiet = asyncio.Event()  # the lease is kept until everything has ended and is written
        beside = [self._beside(self._acks.run()), self._beside(self._output.run()), self._beside(self._stopped(stop))]
        try:
            async with self._store.engine.hints() as hints:
                beside.append(self._beside(self._listen(hints)))
                if await self._joined(stop):
                    beside.append(self._beside(self.lease.keep(quiet)))
                    await self._turns(stop)
                    await self._drain()
        finally:
            quiet.set()
            await self._hands.close(0)
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def step(self) -> float:
        """One turn. Answers for how many seconds there is nothing to do: 0 if there is more."""
        if not self.lease.is_held or self._must_begin_anew:  # it may be held, and the rest of a beginning have failed
            return await self._begin_anew()
        await self._hands.still()
        more = await self._promoted() if self._may_promote() else False
        for pool in self._hands.pools:
            more |= await self._intake.claim(pool)
        return 0 if more else await self._rest()

    async def _rest(self) -> float:
        """How long until there is something to do, unless somebody says so before. The store is not asked after every
        small claim: while nobody has said anything, what it said a moment ago still holds."""
        now_s = self._loop.time()
        if self._has_news or self._intake.has_parked or now_s >= min(self._next_s, self._looked_s + _LOOK_EVERY_S):
            self._has_news = self._intake.has_parked = False
            self._looked_s = now_s
            self._next_s = await self._next_look()
        return max(0.001, self._next_s - self._loop.time())

    async def _next_look(self) -> float:
        """When a run is to be queued, or a parked one looked at, on the clock of the loop."""
        found = await self._store.queue.next_look([pool.name for pool in self._hands.pools])
        self.time.read(found.clock)
        poll_ms = found.now_ms + self._config.poll_s * 1000
        coming_ms = poll_ms if found.upcoming_ms is None else found.upcoming_ms - self._ahead_ms
        self._promote_at_ms = min(poll_ms, coming_ms)
        look_ms = poll_ms if found.look_ms is None else found.look_ms
        promote_s = (self._promote_at_ms - found.now_ms) / 1000 + found.clock.received_s
        promote_s = max(promote_s, self._promote_again_s)
        if self._has_no_room:
            promote_s = max(promote_s, self._calm_until_s)
        return min(promote_s, found.clock.received_s + (min(poll_ms, look_ms) - found.now_ms) / 1000)

    @property
    def _has_no_room(self) -> bool:
        return all(pool.hungry for pool in self._hands.pools)

    def _may_promote(self) -> bool:
        now_s = self._loop.time()
        is_calm = now_s < self._calm_until_s and self._has_no_room
        is_held_off = now_s < self._promote_again_s
        return not is_calm and not is_held_off and self.time.guess_ms(now_s) >= self._promote_at_ms

    async def _promoted(self) -> bool:
        """If that fails, and the database answers all the same, what is queued already is claimed meanwhile."""
        try:
            more = await self._promote()
        except StoreError as error:
            self._tell("queueing", str(error))
            self.time.read(await self._store.clock.read())
            self._promote_trouble = str(error)
            self._promote_failures += 1
            self._promote_again_s = self._loop.time() + _backoff_s(self._promote_failures)
            return False
        self._promote_failures, self._promote_trouble = 0, None
        return more

    async def _promote(self) -> bool:
        """Whether more is to be queued at once: not while all slots are taken and everybody's first runs are queued.
        Then it would only keep the database from those that start and end."""
        asked_s = self._loop.time()
        match await self._store.queue.promote(self._ahead_ms, _PROMOTED, ranked, late):
            case Ok(done):
                now_s = self._loop.time()
                calm_s = min(_CALM * (now_s - asked_s), _LONGEST_CALM_S)
                self._calm_until_s = now_s + calm_s if done.in_turn else 0.0
                self._promote_at_ms = 0.0 if done.more else self.time.guess_ms(now_s) + _PROMOTE_EVERY_MS
                return done.more and not (done.in_turn and self._has_no_room)
            case Refused() | Unknown():
                return True

    async def _look_at_the_clock(self) -> None:
        with suppress(StoreError):  # then it starts a little later than it could
            self.time.read(await self._store.clock.read())

    def _beside(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """What goes on beside the loop. A fault of our own in it ends the worker: it must not go on without it."""

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and (error := task.exception()) is not None:
                self._fault = error
                self.wake.set()

        task = asyncio.create_task(work)
        task.add_done_callback(ended)
        return task

    async def _turns(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            if self._fault is not None:
                raise self._fault
            self.wake.clear()
            rest_s = await self._turn()
            if rest_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(rest_s):
                        await self.wake.wait()
            else:
                await asyncio.sleep(0)  # renewals come first

    async def _turn(self) -> float:
        try:
            rest_s = await self.step()
        except StoreError as error:
            self._failures += 1
            self._tell("claiming", str(error))
            return _backoff_s(self._failures)
        if not self.lease.is_held:
            return rest_s  # it has asked for nothing yet
        # who can claim may still be unable to write how it ended (a disk that is full), or to queue what is due
        trouble = self._acks.trouble or self._promote_trouble
        if self.health.trouble is not None and trouble is None:
            log.info("claiming goes on")
        self._failures, self.health.trouble = 0, trouble
        return rest_s

    def _tell(self, what: str, why: str) -> None:
        if self.health.trouble != why:
            log.error("%s waits: %s", what, why)
        self.health.trouble = why

    async def _joined(self, stop: asyncio.Event) -> bool:
        while not stop.is_set():
            with suppress(StoreError):
                if await self.lease.join():
                    return True
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await stop.wait()
        return False

    async def _listen(self, hints: AsyncIterator[str]) -> None:
        async for topic in hints:
            if topic in ("work", "lost"):
                self._has_news = True
                self._promote_at_ms = 0.0
                self.wake.set()
            if topic in ("cancels", "lost") and not self._hands.is_empty:
                self.lease.ask()  # a renewal tells which attempts were asked to stop

    async def _stopped(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self.wake.set()

    def _written(self, done: Ends) -> None:
        self.health.counts["late"] = self._acks.late
        if done.due_ms is not None:
            self._has_news = True
            self._promote_at_ms = min(self._promote_at_ms, done.due_ms - self._ahead_ms)
            self.wake.set()
        elif any(pool.hungry for pool in self._hands.pools):
            self.wake.set()

    # -- the lease

    async def _renewed(self, done: Renewed, sent_s: float, received_s: float) -> None:
        self.time.heard(done.now_ms, sent_s, received_s)
        for key, reason in done.cancels.items():
            self._hands.cancel(key, reason)
        await self._remember()
        await self._intake.look_again()

    async def _remember(self) -> None:
        """The safety net: what the store says twice in a row that we hold, and we know nothing of, is given up. What
        may be the fruit of a claim that is still unanswered is not forgotten: that answer would start it. A run that
        was handed back and claimed again has the same number of attempt: only the claim says that it is another."""
        held = await self._store.workers.held(self._node_id)
        known = self._intake.on_the_way | self._acks.keys() | self._hands.keys()
        unknown = {each for each in held if each[:2] not in known and each[2] != self._intake.asking}
        lost = sorted(unknown & self._forgotten)
        self._forgotten = unknown
        if lost and self.lease.is_held:
            log.error("%d runs are held and were forgotten; they are given up", len(lost))
            now_ms = self.time.guess_ms(self._loop.time())
            why = Lost(Fault("lost", "the worker had forgotten it"))
            errands = await self._store.definitions.held_by(self._node_id)
            for run_id, attempt, _ in lost:
                self._acks.put(Ended(run_id, attempt, why, now_ms, now_ms), errands.get(run_id, NOTHING))

    def _lose(self, why: str) -> None:
        log.error("everything is stopped: %s", why)
        self._must_begin_anew = True
        self._hands.drop(why, self.lease.margin_ms / 2000)
        self.wake.set()

    async def _begin_anew(self) -> float:
        self.lease.notice()
        if not self._hands.is_empty:
            return 0.05
        if self._must_begin_anew:
            # what ended in time may still be written; what others hold now is not changed by it
            with suppress(TimeoutError):
                async with asyncio.timeout(self._config.lease_ttl_s):
                    await self._acks.empty()
            self._acks.drop()
            self._intake.on_the_way.clear()
            errands = await self._store.definitions.held_by(self._node_id)
            written = await self._store.workers.forsake(
                self._node_id, settling(errands, self._chance), started_ms=self.lease.started_ms
            )
            if isinstance(written, Unknown):
                raise StoreUnavailable("it is not known whether the old leases were given up")
        if not await self.lease.join():
            raise StoreUnavailable(self.lease.trouble or "the worker could not join")
        if self._must_begin_anew:
            log.info("the worker has begun anew")
            self._must_begin_anew = False
            self._hands.begin_anew()
        return 0

    async def _drain(self) -> None:
        """Stop claiming; finish or hand back within the drain time; then everything has ended and is written."""
        with suppress(StoreError):
            await self._store.workers.close_pools(self._node_id)
        self._intake.close()
        await self._intake.given_back(self._hands.take_held())
        left = sum(len(pool.running) for pool in self._hands.pools)
        if left:
            of = "attempt" if left == 1 else "attempts"
            log.info("waiting up to %g s for %d %s", self._config.drain_s, left, of)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.drain_s):
                await self._intake.settled()
                self._intake.give_back(self._hands.take_held())  # what was imported a moment ago; beside: it must end
                while not self._hands.is_empty:
                    await asyncio.sleep(0.01)
        await self._hands.close(self.lease.margin_ms / 1000)
        await self._intake.settled()
        await self._intake.given_back(self._hands.take_held())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._config.lease_ttl_s):
                await self._acks.empty()
        with suppress(StoreError):
            await self.lease.leave()


def _backoff_s(failures: int) -> float:
    return min(_LONGEST_BACKOFF_MS, 50 << min(failures, 6)) / 1000


def ranked(coming: Sequence[Coming], shares: Shares) -> tuple[list[int], dict[Place, int]]:
    return ranks([Wanted(c.pool, c.lane, c.priority, c.tenant, c.weight) for c in coming], shares)
