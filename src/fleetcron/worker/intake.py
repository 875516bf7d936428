"""How runs come to a worker, and how they go back: claim, fetch what they need, find out whether they can run here."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.executors.assignment import Key
from fleetcron.ids import uuid7
from fleetcron.model.errand import Errand
from fleetcron.model.outcome import Fault
from fleetcron.model.target import CommandTarget, handler_key
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim, Claimed, Taken
from fleetcron.store.definitions import Version
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Unknown
from fleetcron.worker.hands import Hands
from fleetcron.worker.lease import WorkerLease
from fleetcron.worker.pool import Attempt, Pool

log = logging.getLogger(__name__)
log_of_attempts = logging.getLogger("fleetcron.attempts")  # said of each, however many there are

_MOST_CLAIMED: Final = 500
_KEPT: Final = 20_000  # errands
_PAUSE_S: Final = 0.05
_LOOK_AGAIN_S: Final = 30.0  # for handlers that were not here
# Stands in for a definition that is not stored, or cannot be read: for its rules of trying again.
NOTHING: Final = Errand(CommandTarget(("true",)))


def unreadable(revision: int) -> Fault:
    return Fault("no_definition", f"revision {revision} of the job is not stored, or written by a newer release")


class Intake:
    def __init__(
        self,
        store: Store,
        node_id: str,
        hands: Hands,
        lease: WorkerLease,
        clock: Clock,
        refuses: Mapping[str, str],
        wake: Callable[[], None],
    ) -> None:
        self._store = store
        self._refuses = refuses
        self._wake = wake
        self._node_id = node_id
        self._hands = hands
        self._lease = lease
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._errands: dict[Version, Errand] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_closing = asyncio.Event()
        # A hand-back whose reply was lost is repeated; a claim in between may have taken the same run under the same
        # number of attempt again, and the repetition would give away what runs by then.
        self._one_at_a_time = asyncio.Lock()
        self._told: dict[tuple[str, str], str] = {}  # which handlers are not here, and why
        self._look_again_at_s = 0.0
        self.has_parked = False  # somebody has to be looked at again, maybe soon
        self.on_the_way: set[Key] = set()  # claimed, and neither in our hands nor given back yet
        self.asking: str | None = None  # the claim whose answer is not known: what it got may be ours already

    async def claim(self, pool: Pool) -> bool:
        """Whether there may be more to claim at once."""
        room, early_room, ends = min(pool.room, _MOST_CLAIMED), pool.early_room, pool.ends
        wish = Claim(
            node_id=self._node_id,
            batch=uuid7(self._clock.now_ms()),
            pool=pool.name,
            room=room,
            catchup_room=pool.catchup_room,
            lacks=tuple(pool.lacks),
            learning=tuple(sorted(pool.learning)),
            early_room=early_room,
            catchup_first=pool.catchup_first,
            catchup_turn=pool.catchup_turn,
        )
        life = self._lease.lives
        async with self._one_at_a_time:
            taken = await self._asked_for(wish)
        if taken is None:
            return False
        self.has_parked |= taken.parked > 0
        if taken.runs:
            pool.last_was_catchup = taken.runs[-1].lane == "catchup"
            await self._accept(pool, taken.runs, life)
        is_full = len(taken.runs) >= room
        # Whatever bound it, the end of an attempt makes room: for catch-up, or for what is not due yet, too.
        late = sum(run.lane == "catchup" for run in taken.runs)
        early = sum(run.due_ms > taken.now_ms for run in taken.runs)
        pool.hungry = is_full or late >= wish.catchup_room or early >= early_room
        made_room = pool.hungry and pool.ends != ends  # while we asked
        return taken.more or made_room or (is_full and pool.room > 0 and bool(taken.runs))

    def give_back(self, attempts: Sequence[Attempt]) -> None:
        """They cannot start here now: others may take them. Goes on beside."""
        self._beside(self.given_back(attempts))

    async def given_back(self, attempts: Sequence[Attempt]) -> None:
        if not attempts:
            return
        self._hands.health.counts["handed_back"] += len(attempts)
        keys = {each.key for each in attempts}
        held = [(*each.key, each.run.batch) for each in attempts]
        self.on_the_way |= keys
        async with self._one_at_a_time:
            await self._patiently(lambda: self._store.attempts.hand_back(self._node_id, held))
        self.on_the_way -= keys

    def decline(self, pool: Pool, attempt: Attempt, why: str) -> None:
        """There is no such handler here, as its executor found out."""
        pool.lacks[handler_key(attempt.errand.run)] = why
        self._beside(self._declined(pool, [attempt]))

    async def look_again(self) -> None:
        """Now and then: why a handler was not here may have gone, as when a host died while it was asked."""
        lacking = [pool for pool in self._hands.pools if pool.lacks]
        now_s = self._loop.time()
        if not lacking:
            self._look_again_at_s = now_s + _LOOK_AGAIN_S
        elif now_s >= self._look_again_at_s:
            self._look_again_at_s = now_s + _LOOK_AGAIN_S
            for pool in lacking:
                pool.lacks.clear()
            await self._store.workers.look_again(self._node_id, self._refuses)

    def close(self) -> None:
        """Nobody waits for an import any more: what needs it goes back, and somebody else may have it."""
        self._is_closing.set()

    async def settled(self) -> None:
        """When nothing is on its way any more."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _asked_for(self, wish: Claim) -> Taken | None:
        """A claim whose reply was lost is asked for again under the same id: what it got must not be forgotten."""
        self.asking = wish.batch
        try:
            return await self._answered(wish)
        finally:
            self.asking = None

    async def _answered(self, wish: Claim) -> Taken | None:
        while self._lease.is_held:
            sent_s = self._loop.time()
            try:
                written = await self._store.claims.claim(wish, choose)
            except StoreUnavailable:
                await asyncio.sleep(_PAUSE_S)
                continue
            match written:
                case Ok(taken):
                    self._hands.time.heard(taken.now_ms, sent_s, self._loop.time())
                    return taken
                case Refused(reason):
                    log.warning("a claim was refused: %s", reason)
                    self._lease.ask()
                    return None
                case Unknown():
                    await asyncio.sleep(_PAUSE_S)
        return None

    async def _accept(self, pool: Pool, runs: Sequence[Claimed], life: int) -> None:
        """`life` is the one in which they were claimed: what belongs to an earlier one is somebody else's by now."""
        keys = {(run.run_id, run.attempt) for run in runs}
        self.on_the_way |= keys
        try:
            await self._fetch(runs)
        except StoreError:  # not one that passes while we wait: others may be able to, or we ourselves next time
            self.give_back([Attempt(run, NOTHING) for run in runs])
            raise
        if not self._is_held(life):
            self.on_the_way -= keys
            return
        unknown = []
        for run in runs:
            errand = self._errands.get((run.job_id, run.revision))
            if errand is None:
                self._hands.fail(run, NOTHING, unreadable(run.revision))
            elif pool.executor.knows(errand.run):
                pool.hold(Attempt(run, errand))
            else:
                unknown.append(Attempt(run, errand))
        self.on_the_way -= keys - {each.key for each in unknown}
        if unknown:  # an import may take long; the others do not wait for it
            pool.learning |= {handler_key(each.errand.run) for each in unknown}
            self._beside(self._learn(pool, unknown, life))
        self._hands.start_due()

    def _is_held(self, life: int) -> bool:
        return self._lease.is_held and self._lease.lives == life

    async def _fetch(self, runs: Iterable[Claimed]) -> None:
        missing = {(run.job_id, run.revision) for run in runs} - self._errands.keys()
        if not missing:
            return
        if len(self._errands) > _KEPT:
            self._errands.clear()
            missing = {(run.job_id, run.revision) for run in runs}
        while self._lease.is_held:
            with suppress(StoreUnavailable):
                self._errands |= await self._store.definitions.read(sorted(missing))
                return
            await asyncio.sleep(_PAUSE_S)

    async def _learn(self, pool: Pool, attempts: Sequence[Attempt], life: int) -> None:
        """Each handler for itself: nobody waits for the import of another one. No more of its runs are claimed
        meanwhile: they take no slot yet, and others may have it."""
        by_handler: dict[str, list[Attempt]] = {}
        for each in attempts:
            by_handler.setdefault(handler_key(each.errand.run), []).append(each)
        learning = {
            asyncio.create_task(pool.executor.learn([each.errand.run for each in some])): some
            for some in by_handler.values()
        }
        closing = asyncio.create_task(self._is_closing.wait())
        while learning and not self._is_closing.is_set():
            await asyncio.wait({*learning, closing}, return_when=asyncio.FIRST_COMPLETED)
            over = [task for task in learning if task.done()]
            await self._learned(pool, [each for task in over for each in learning.pop(task)], life)
        for task in (closing, *learning):
            task.cancel()
        await self.given_back([each for some in learning.values() for each in some])

    async def _learned(self, pool: Pool, attempts: Sequence[Attempt], life: int) -> None:
        """Somebody may have asked one to stop while its handler was looked for, and nobody could hear it: that is asked
        for first, and who was asked to stop does not start."""
        found: list[Attempt] = []
        declined: list[Attempt] = []
        for each in attempts:
            (found if pool.executor.knows(each.errand.run) else declined).append(each)
        cancels = await self._cancels(life) if found else {}
        if not self._is_held(life):
            found, declined = [], []  # they are no longer ours
        for each in declined:
            target = each.errand.run
            pool.lacks[handler_key(target)] = pool.executor.why_not(target) or "it is not known here"
        for each in found:
            pool.hold(each)
            if each.key in cancels:
                self._hands.cancel(each.key, cancels[each.key])
            else:
                self._lease.ask()  # somebody may have asked it to stop since
        self.on_the_way -= {each.key for each in attempts} - {each.key for each in declined}
        pool.learning -= {handler_key(each.errand.run) for each in attempts}
        self._hands.start_due()
        self._wake()
        await self._declined(pool, declined)

    async def _cancels(self, life: int) -> Mapping[Key, str]:
        """Nothing starts before they are known; whoever cannot hear of them loses his lease soon."""
        while self._is_held(life):
            with suppress(StoreError):
                if (cancels := await self._lease.cancels()) is not None:
                    return cancels
            await asyncio.sleep(_PAUSE_S)
        return {}

    async def _declined(self, pool: Pool, attempts: Sequence[Attempt]) -> None:
        """That costs no attempt, and somebody else may have the handler."""
        if not attempts:
            return
        for name in sorted({handler_key(each.errand.run) for each in attempts}):
            why = pool.lacks.get(name, "")
            if self._told.get((pool.name, name)) != why:
                self._told[pool.name, name] = why
                log_of_attempts.warning("pool %s: %s is not known here: %s", pool.name, name, why)
        await self._patiently(lambda: self._store.workers.lack(self._node_id, self._lacks()))
        await self.given_back(attempts)

    def _lacks(self) -> dict[str, str]:
        asked = {name: why for each in self._hands.pools for name, why in each.lacks.items()}
        return {**self._refuses, **asked}

    async def _patiently(self, verb: Callable[[], Awaitable[object]]) -> None:
        """A verb that is safe to repeat, until it is done or the lease is over."""
        while self._lease.is_held:
            with suppress(StoreError):
                if not isinstance(await verb(), Unknown):
                    return
            await asyncio.sleep(_PAUSE_S)

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
