"""Whole stories of work, drawn from seeds: jobs with every overlap policy, shared keys, limits, lanes and priorities;
workers that claim, end, vanish and hand back. After each step an inspector looks who knows nothing of the policies."""

import asyncio
import random
from dataclasses import dataclass, field

import pytest

from fleetcron.model.control import Wish
from fleetcron.model.outcome import Cancelled, Failed, Fault, Outcome, Snoozed, Succeeded, TimedOut
from fleetcron.model.rules import OverlapPolicy
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused
from tests.store.engines import hand_cranked
from tests.worker.inspection import Inspector, Rules, Tables
from tests.worker.shop import BEGIN_MS, TTL_MS, Job, Shop, ok

POLICIES: tuple[OverlapPolicy, ...] = ("skip", "queue", "collapse", "allow", "cancel_previous")
POOLS, TENANTS, TYPES = ("p1", "p2"), ("t1", "t2"), ("x", "y")
BROKEN = Fault("broken", "no")
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(), Succeeded(), Succeeded(), Failed(BROKEN), TimedOut(BROKEN), Snoozed(0.7), Cancelled("asked"),
)  # fmt: skip


@dataclass
class Worker:
    node_id: str
    slots: dict[str, int]
    held: dict[int, tuple[int, str, str, int]] = field(default_factory=dict)  # run: attempt, pool, lane, due

    def room(self, pool: str) -> int:
        return self.slots[pool] - sum(each[1] == pool for each in self.held.values())

    def catchup_room(self, pool: str) -> int:
        lent = sum(each[1:3] == (pool, "catchup") for each in self.held.values())
        return max(0, min(self.room(pool), max(1, self.slots[pool] - 1) - lent))


class Story:
    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop = shop
        self.random = random.Random(seed)
        self.rules = Rules()
        self.jobs = [self._job(number) for number in range(1, self.random.randint(3, 7))]
        self.periods = {job.number: self.random.choice((1_000, 2_000, 3_000, 5_000, 9_000)) for job in self.jobs}
        self.planned = {job.number: BEGIN_MS for job in self.jobs}
        self.inspector = Inspector(shop, {job.job_id: job for job in self.jobs}, self.rules)
        self.workers: list[Worker] = []
        self.lost = 0

    def _job(self, number: int) -> Job:
        draw = self.random
        policy = draw.choice(POLICIES)
        tenant = draw.choice(TENANTS)
        return Job(
            number,
            tenant=tenant,
            pool=draw.choice(POOLS),
            type=draw.choice(TYPES),
            overlap=policy,
            max_running=draw.choice((0, 1, 2, 3)) if policy == "allow" else 1,
            key=draw.choice((None, None, "a", "b")),
            priority=draw.choice((0, 0, 1, 5)),
            deadline_ms=draw.choice((None, None, None, 2_500, 6_000)),
        )

    async def begin(self) -> None:
        draw, shop = self.random, self.shop
        await shop.define(*self.jobs)
        for tenant in TENANTS:
            cap = draw.choice((None, None, 1, 2, 4))
            rate = draw.choice((None, None, (0.5, 1), (2.0, 3), (1.0, 2)))
            if cap or rate:
                await shop.limit(tenant, cap, *(rate or (None, 1)))
            if cap:
                self.rules.caps[tenant] = cap
            if rate:
                self.rules.rates[tenant] = rate
        for pool in POOLS:
            if draw.random() < 0.3:
                slots, each, of_x = draw.choice((None, 2, 3)), draw.choice((None, 1, 2)), draw.choice((None, 1, 2))
                await shop.limit_pool(pool, slots, each, {} if of_x is None else {"x": of_x})
                self.rules.slots |= {pool: slots} if slots else {}
                self.rules.per_tenant |= {pool: each} if each else {}
                self.rules.per_type |= {(pool, "x"): of_x} if of_x else {}
        for number in range(draw.randint(2, 3)):
            await self._join(f"n{number}")

    async def _join(self, node_id: str) -> None:
        slots = {pool: self.random.randint(1, 4) for pool in POOLS}
        await self.shop.join(node_id, **slots)
        self.workers.append(Worker(node_id, slots))

    async def go(self, steps: int) -> None:
        await self.begin()
        acts = [self.plan] * 3 + [self.pass_time] * 6 + [self.claim] * 8 + [self.end] * 7
        acts += [self.hand_back, self.lose, self.trigger, self.catch_up, self.pause, self.renew]
        for _ in range(steps):
            await self.random.choice(acts)()
            await self.inspector.look()
        await self.bring_to_an_end()

    # -- what happens

    async def pass_time(self) -> None:
        await self.shop.clock.advance(self.random.choice((1, 100, 400, 1_000, 1_000, 2_700)))

    async def plan(self) -> None:
        """The next ticks of a job, a little ahead."""
        job = self.random.choice(self.jobs)
        until = self.shop.now + 5_000
        period = self.periods[job.number]
        ticks = list(range(self.planned[job.number] + period, until, period))
        if ticks:
            self.planned[job.number] = ticks[-1]
            await self.shop.plan(job, *ticks)

    async def catch_up(self) -> None:
        """Older ticks, late."""
        job = self.random.choice(self.jobs)
        first = BEGIN_MS - self.random.randint(1, 10**6) * 10
        if job.overlap != "cancel_previous":
            await self.shop.plan(job, *range(first, first + self.random.randint(1, 4)), lane="catchup")

    async def trigger(self) -> None:
        await self.shop.plan(self.random.choice(self.jobs), self.shop.now, kind="manual")

    async def claim(self) -> None:
        worker, pool = self.random.choice(self.workers), self.random.choice(POOLS)
        await self._promote()
        await self._claim(worker, pool)

    async def _promote(self) -> None:
        await self.shop.promote(self.random.choice((0, 1_000, 1_500)))

    async def _claim(self, worker: Worker, pool: str) -> int:
        count = 0
        after = await Tables.read(self.shop)
        while True:
            room, catchup_room = worker.room(pool), worker.catchup_room(pool)
            before = after
            taken = await self.shop.claim(worker.node_id, pool, room, catchup_room=catchup_room)
            after = await self.inspector.look()
            assert len(taken.runs) <= room
            for run in taken.runs:
                self.inspector.started(before, after, run.run_id, catchup_room)
                worker.held[run.run_id] = (run.attempt, pool, run.lane, run.due_ms)
            count += len(taken.runs)
            if not taken.more:
                break
            moved = {run: row["gate"] for run, row in before.queue.items()} != {
                run: row["gate"] for run, row in after.queue.items()
            }
            assert taken.runs or taken.parked or taken.closed or moved, "it says more for ever"
        self.inspector.nothing_idle(after, pool, worker.room(pool), worker.catchup_room(pool))
        return count

    async def end(self) -> None:
        worker = self.random.choice(self.workers)
        running = [run_id for run_id, each in worker.held.items() if each[3] <= self.shop.now]
        if running:
            await self._end(worker, self.random.choice(running), self.random.choice(OUTCOMES))

    async def _end(self, worker: Worker, run_id: int, outcome: Outcome) -> None:
        attempt, *_ = worker.held.pop(run_id)
        done = await self.shop.finish(worker.node_id, run_id, attempt, outcome)
        assert list(done.transitions) == [run_id]
        again = await self.shop.finish(worker.node_id, run_id, attempt, outcome)  # the reply was lost, say
        assert (again.transitions, again.late) == ({}, (run_id,))

    async def hand_back(self) -> None:
        """A run whose deadline passed while somebody held it is not given back as if it had been in the queue."""
        worker = self.random.choice(self.workers)
        held = [run_id for run_id, each in worker.held.items() if each[3] + 1_000 > self.shop.now]
        if held:
            run_id = self.random.choice(held)
            attempt, *_ = worker.held.pop(run_id)
            assert await self.shop.hand_back(worker.node_id, (run_id, attempt)) == Ok(1)

    async def lose(self) -> None:
        worker = self.workers.pop(self.random.randrange(len(self.workers)))
        seen = (await self.shop.store.workers.list()).now_ms
        assert seen == self.shop.now
        ok(await self.shop.bury(worker.node_id))
        for run_id, (attempt, *_) in worker.held.items():
            assert (await self.shop.finish(worker.node_id, run_id, attempt)).late == (run_id,)
        assert isinstance(await self.shop.store.workers.renew(worker.node_id, TTL_MS), Refused)
        self.lost += 1
        await self._join(f"again{self.lost}")

    async def renew(self) -> None:
        """What a worker is asked to stop it stops, sometimes."""
        worker = self.random.choice(self.workers)
        for run_id, attempt in ok(await self.shop.store.workers.renew(worker.node_id, TTL_MS)).cancels:
            assert worker.held[run_id][0] == attempt
            if worker.held[run_id][3] <= self.shop.now and self.random.random() < 0.7:
                await self._end(worker, run_id, Cancelled("asked to stop"))

    async def pause(self) -> None:
        tenant = self.random.choice(TENANTS)
        if tenant in self.inspector.paused:
            await self._resume(tenant)
        elif self.random.random() < 0.5:
            ok(await self.shop.store.controls.switch(Wish("tenant", tenant, percent=0, reason="test"), actor="ann"))
            self.inspector.paused.add(tenant)

    async def _resume(self, tenant: str) -> None:
        ok(await self.shop.store.controls.release("tenant", tenant, actor="ann"))
        self.inspector.paused.discard(tenant)

    async def bring_to_an_end(self) -> None:
        """Nothing new comes; everybody does his work, and looks again only when the store says so."""
        for tenant in sorted(self.inspector.paused):
            await self._resume(tenant)
        for _ in range(3_000):
            done = 0
            await self.shop.promote()
            for worker in self.workers:
                for pool in POOLS:
                    done += await self._claim(worker, pool)
                for run_id, each in list(worker.held.items()):
                    if each[3] <= self.shop.now:
                        await self._end(worker, run_id, Succeeded())
                        done += 1
            await self.inspector.look()
            if not done and not await self._wait():
                break
        tables = await self.inspector.look()
        assert (tables.queue, tables.leases, tables.upcoming) == ({}, {}, {})
        self.inspector.judge_the_past(tables)

    async def _wait(self) -> bool:
        """Until the instant at which there is something to do; False if there never will be."""
        found = await self.shop.store.queue.next_look(POOLS)
        held = [each[3] for worker in self.workers for each in worker.held.values()]
        whens = [when for when in (found.upcoming_ms, found.look_ms, *held) if when is not None]
        if not whens:
            return False
        await self.shop.clock.set(max(self.shop.now + 1, min(whens)))
        return True


async def tell(store: Store, clock: object, seed: int, steps: int) -> None:
    story = Story(await Shop.open(store, clock), seed)  # type: ignore[arg-type]
    try:
        await story.go(steps)
    except BaseException as error:
        error.add_note(f"seed {seed}: {story.jobs} {story.rules}")
        raise


def stories(url: str, seeds: range, steps: int) -> None:
    async def run() -> None:
        async with hand_cranked(url, BEGIN_MS) as (engine, clock):
            for seed in seeds:
                await tell(Store(engine), clock, seed, steps)

    asyncio.run(run())


@pytest.mark.parametrize("part", range(4))
def test_stories(part: int) -> None:
    """S3-16, S3-43 … S3-47, S3-54 … S3-58, S3-88: whatever happens, limits and keys hold, and nobody is forgotten."""
    stories(":memory:", range(part * 25, part * 25 + 25), 30)


def test_stories_on_postgres(postgres18_url: str) -> None:
    stories(postgres18_url, range(1_000, 1_006), 30)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_many_stories(part: int) -> None:
    stories(":memory:", range(2_000 + part * 50, 2_050 + part * 50), 80)


@pytest.mark.soak
def test_many_stories_on_postgres(postgres18_url: str) -> None:
    stories(postgres18_url, range(1_100, 1_150), 60)
