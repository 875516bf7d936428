"""Two sessions that work on the same runs, on PostgreSQL, switched at every statement.

The first one is stopped before each of its statements in turn, and before its commit; the second one does the whole of
its work meanwhile, or waits for a lock; then the first one goes on. Whatever the order: keys and caps hold, nobody is
forgotten behind a gate, and the database never has to end a deadlock.
"""

import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import sleep
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.model.outcome import Failed, Fault, Outcome, Succeeded
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim
from fleetcron.store.ends import Ended
from fleetcron.store.written import Ok, Refused
from tests.faults.actors import PATIENCE_S, Actor, two_actors
from tests.faults.work_off import to_the_end
from tests.services.postgres import Template
from tests.store.engines import DatabaseClock
from tests.worker.inspection import Inspector, Rules
from tests.worker.shop import BEGIN_MS, TTL_MS, Job, Shop, fetcher, settling
from tests.worker.shop import QUICK as RULE

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
BROKEN = Failed(Fault("broken"))
NOW = BEGIN_MS
MANY = 14
Act: TypeAlias = Callable[[Shop], Coroutine[Any, Any, Any]]


class Stop:
    """Stops an actor before its n-th statement; the one after the last is the commit."""

    def __init__(self, actor: Actor, before: int) -> None:
        self.before = before
        self.seen = 0
        self.reached = threading.Event()
        self.errors: list[str] = []
        self._go = threading.Event()
        self._engine: Any = actor.store.engine
        self._execute, self._commit = self._engine._execute, self._engine._commit

    def install(self) -> None:
        self._engine._execute, self._engine._commit = self.execute, self.commit

    def remove(self) -> None:
        del self._engine._execute, self._engine._commit

    async def execute(self, connection: object, name: str, *rest: Any) -> Any:
        self._pass()
        try:
            return await self._execute(connection, name, *rest)
        except asyncpg.PostgresError as error:
            self.errors.append(f"{name}: {error.sqlstate} {error}")
            raise

    async def commit(self, connection: object) -> None:
        self._pass()
        await self._commit(connection)

    def _pass(self) -> None:
        if self.seen == self.before:
            self.reached.set()
            assert self._go.wait(PATIENCE_S)
        self.seen += 1

    def go(self) -> None:
        self._go.set()


@dataclass
class Scene:
    """Two actors on one database, each with a shop of its own, and somebody who looks."""

    first: Shop
    second: Shop
    actors: tuple[Actor, Actor]
    look: Any
    jobs: dict[str, Job] = field(default_factory=dict)
    rules: Rules = field(default_factory=Rules)

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.actors[0].do(work).result(PATIENCE_S)

    def somebody_waits(self) -> bool:
        return bool(self.actors[1].do(self.look.fetchval(WAITING)).result(PATIENCE_S))

    def begin(self, prepare: Act) -> None:
        async def anew() -> Mapping[str, Job]:
            shop = await Shop.open(self.first.store, self.first.clock)
            self.first.numbers = shop.numbers
            await self.first.join("last", p1=9, p2=9)
            found: Mapping[str, Job] = await prepare(self.first)
            return found

        jobs = self.do(anew())
        self.jobs = {job.job_id: job for job in jobs.values()}

    def interleave(self, one: Act, other: Act, before: int) -> bool:
        """False if the first one has no such statement."""
        stops = Stop(self.actors[0], before), Stop(self.actors[1], -1)
        for stop in stops:
            stop.install()
        try:
            ran = self.actors[0].do(one(self.first))
            while not stops[0].reached.wait(0.002):
                if ran.done():
                    ran.result()
                    return False
            then = self.actors[1].do(other(self.second))
            while not then.done() and not self.somebody_waits():
                sleep(0.001)
            stops[0].go()
            ran.result(PATIENCE_S)
            then.result(PATIENCE_S)
        finally:
            stops[0].go()
            for stop in stops:
                stop.remove()
        assert [*stops[0].errors, *stops[1].errors] == []
        return True


@pytest.fixture
def scene(store_template18: Template) -> Iterator[Scene]:
    with store_template18.copy() as url, opened(url) as found:
        yield found


@contextmanager
def opened(url: str) -> Iterator[Scene]:
    clock = DatabaseClock(NOW)
    with two_actors(url, clock.hand) as (first, second):
        first.do(clock.take_over(first.store.engine)).result(PATIENCE_S)
        shop = first.do(Shop.open(first.store, clock)).result(PATIENCE_S)
        beside = Shop(second.store, clock, fetcher(second.store.engine), count(10_000))
        look = second.do(asyncpg.connect(url)).result(PATIENCE_S)
        yield Scene(shop, beside, (first, second), look)
        second.do(look.close()).result(PATIENCE_S)


# -- what there is


async def a_key_is_held(shop: Shop) -> Mapping[str, Job]:
    """Run 1 is held, run 2 waits in the queue for the same key, run 3 in another pool."""
    jobs = {"one": Job(1, overlap="queue", key="k"), "two": Job(2, overlap="queue", key="k", pool="p2")}
    return await _held(shop, jobs)


async def a_tick_is_due_when_the_one_before_ends(shop: Shop) -> Mapping[str, Job]:
    """Run 1 is held; run 2 was parked until it is due, which is now over."""
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW, NOW + 1_000)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)
    await shop.join("n2", p1=5, p2=5)
    assert await shop.claimed("n1") == [1]
    await shop.clock.set(NOW + 1_001)
    return {"job": job}


async def many_keys_are_held(shop: Shop) -> Mapping[str, Job]:
    """More than one look at the queue finds; the next ticks of the jobs wait in the opposite order of the leases."""
    jobs = {str(number): Job(number, overlap="queue") for number in range(1, MANY + 1)}
    await shop.define(*jobs.values())
    for job in jobs.values():
        await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=MANY)
    await shop.join("n2", p1=5)
    assert sorted(await shop.claimed("n1", room=MANY)) == list(range(1, MANY + 1))
    for job in jobs.values():
        await shop.plan(job, NOW + MANY - job.number + 1)
    await shop.promote()
    return jobs


async def two_want_the_same_keys(shop: Shop) -> Mapping[str, Job]:
    """Nobody holds anything; two keys are wanted in both pools, in opposite orders."""
    jobs = {
        "1": Job(1, overlap="queue", key="k1"), "2": Job(2, overlap="queue", key="k2"),
        "3": Job(3, overlap="queue", key="k2", pool="p2"), "4": Job(4, overlap="queue", key="k1", pool="p2"),
    }  # fmt: skip
    await _queued(shop, jobs)
    return jobs


async def a_tenant_has_a_cap(shop: Shop) -> Mapping[str, Job]:
    """One of three runs may be in flight; they are in two pools, and run 1 is held."""
    jobs = {str(n): Job(n, overlap="allow", max_running=0, pool=("p1", "p1", "p2")[n - 1]) for n in (1, 2, 3)}
    await shop.limit("t1", 1)
    return await _held(shop, jobs)


async def two_are_held_of_a_tenant_with_a_cap(shop: Shop) -> Mapping[str, Job]:
    jobs = {str(n): Job(n, overlap="allow", max_running=0) for n in (1, 2, 3, 4)}
    await shop.limit("t1", 2)
    await _queued(shop, jobs)
    assert await shop.claimed("n1") == [1, 2]
    return jobs


async def a_forecast_is_on_its_way(shop: Shop) -> Mapping[str, Job]:
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW + 500)
    await shop.join("n1", p1=5, p2=5)
    return {"job": job}


async def nobody_has_the_handler(shop: Shop) -> Mapping[str, Job]:
    jobs = {"1": Job(1, handler="mail")}
    await _queued(shop, jobs)
    for node_id in ("n1", "n2", "last"):
        await shop.store.workers.lack(node_id, {"mail": "it is not here"})
    return jobs


async def _queued(shop: Shop, jobs: Mapping[str, Job]) -> None:
    await shop.define(*jobs.values())
    for job in jobs.values():
        await shop.plan(job, NOW - 10 + job.number)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)
    await shop.join("n2", p1=5, p2=5)


async def _held(shop: Shop, jobs: Mapping[str, Job]) -> Mapping[str, Job]:
    """The first one is held; the others, and one more of the first job, are queued."""
    first = jobs[next(iter(jobs))]
    await shop.define(*jobs.values())
    await shop.plan(first, NOW - 20)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)
    await shop.join("n2", p1=5, p2=5)
    assert await shop.claimed("n1") == [1]
    for job in jobs.values():
        await shop.plan(job, NOW - 10 + job.number)
    await shop.promote()
    return jobs


# -- what they do


def claim(node_id: str, pool: str = "p1", room: int = 5, **wish: Any) -> Act:
    """Of somebody who may have been declared lost, or left."""

    async def act(shop: Shop) -> None:
        asked = Claim(node_id, str(next(shop.batches)), pool, room, room, **wish)
        assert isinstance(await shop.store.claims.claim(asked, choose), Ok | Refused)

    return act


def finish(*run_ids: int, outcome: Outcome | None = None) -> Act:
    async def act(shop: Shop) -> None:
        for run_id in run_ids:
            await shop.finish("n1", run_id, 1, outcome or Succeeded())

    return act


def finish_together(*run_ids: int) -> Act:
    async def act(shop: Shop) -> None:
        ended = [Ended(run_id, 1, Succeeded(), NOW, NOW) for run_id in run_ids]
        assert isinstance(await shop.store.attempts.finish("n1", ended, settling(RULE)), Ok)

    return act


async def hand_back(shop: Shop) -> None:
    assert await shop.store.attempts.hand_back("n1", [(1, 1)]) == Ok(1)


async def bury(shop: Shop) -> None:
    """Declared lost as it was seen, unless it is gone or has moved."""
    for worker in (await shop.store.workers.list()).workers:
        if worker.node_id == "n1":
            await shop.store.workers.bury(worker, settling(RULE), gone=True, by="n2")


async def renew(shop: Shop) -> None:
    assert isinstance(await shop.store.workers.renew("n1", TTL_MS), Ok | Refused)


async def leave(shop: Shop) -> None:
    assert isinstance(await shop.store.workers.leave("n2"), Ok | Refused)


async def join(shop: Shop) -> None:
    await shop.join("n3", p1=5)


async def promote(shop: Shop) -> None:
    await shop.promote()


async def withdraw(shop: Shop) -> None:
    """What an edit does to forecasts."""
    job_id = Job(1).job_id

    def script() -> Any:
        yield "runs_withdraw", {"rows": f'[{{"job_id": "{job_id}", "at_ms": {NOW}}}]'}

    assert isinstance(await shop.store.engine.write(script), Ok)


PAIRS: dict[str, tuple[Act, Act, Act]] = {
    "claim and the end of the holder": (a_key_is_held, claim("n2"), finish(1)),
    "claim and a retry of the holder": (a_key_is_held, claim("n2"), finish(1, outcome=BROKEN)),
    "claim in another pool and the end of the holder": (a_key_is_held, claim("n2", "p2"), finish(1)),
    "claim of a tick that is due and the end of the one before": (
        a_tick_is_due_when_the_one_before_ends, claim("n2"), finish(1),
    ),
    "claim behind many keys and the end of them all": (
        many_keys_are_held, claim("n2", room=1), finish_together(*range(1, MANY + 1)),
    ),
    "claims in two pools with shared keys": (two_want_the_same_keys, claim("n1"), claim("n2", "p2")),
    "claims in one pool": (two_want_the_same_keys, claim("n1"), claim("n2")),
    "claim and bury": (a_key_is_held, claim("n2"), bury),
    "claim of the buried and bury": (two_want_the_same_keys, claim("n1"), bury),
    "renew and bury": (a_key_is_held, renew, bury),
    "end and bury": (a_key_is_held, finish(1), bury),
    "claims in two pools under a cap": (a_tenant_has_a_cap, claim("n1"), claim("n2", "p2")),
    "claim under a cap and the end of who has the place": (a_tenant_has_a_cap, claim("n2"), finish(1)),
    "two ends of one tenant": (two_are_held_of_a_tenant_with_a_cap, finish(1), finish(2)),
    "promote and withdraw": (a_forecast_is_on_its_way, promote, withdraw),
    "hand back and claim": (a_key_is_held, hand_back, claim("n2")),
    "hand back and claim under a cap": (a_tenant_has_a_cap, hand_back, claim("n2", "p2")),
    "claim and leave of the same worker": (two_want_the_same_keys, claim("n2"), leave),
    "claim without a handler and join": (nobody_has_the_handler, claim("n1", lacks=("mail",)), join),
    "claim and cancel": (a_key_is_held, claim("n2"), lambda shop: shop.store.steering.cancel([2], None, actor="ann")),
}  # fmt: skip


# In `make test` these are stopped at each statement, and turned at every second one; the others at every fourth.
CHIEF = (
    "claim and the end of the holder", "claim of a tick that is due and the end of the one before", "end and bury",
    "claims in two pools under a cap", "hand back and claim", "claim and leave of the same worker",
)  # fmt: skip


def _both_ways() -> Iterator[Any]:
    for pair in PAIRS:
        strides = {False: 1, True: 2} if pair in CHIEF else {False: 4}
        for turned in (False, True):
            name = f"{pair}, turned" if turned else pair
            if turned in strides:
                yield pytest.param(pair, turned, strides[turned], id=name)
            if strides.get(turned) != 1:
                yield pytest.param(pair, turned, 1, id=f"{name}, everywhere", marks=pytest.mark.soak)


@pytest.mark.parametrize(("pair", "turned", "stride"), list(_both_ways()))
def test_two_sessions(scene: Scene, pair: str, turned: bool, stride: int) -> None:
    """S2-42, S3-88, S4-38: each verb stopped at each of its statements while the other one works."""
    prepare, one, other = PAIRS[pair]
    if turned:
        one, other = other, one
    for before in count(step=stride):
        scene.rules = Rules(caps={"t1": 2 if "two ends" in pair else 1} if "cap" in pair or "two ends" in pair else {})
        scene.begin(prepare)
        if not scene.interleave(one, other, before):
            assert before > 1
            return
        by = "n3" if prepare is nobody_has_the_handler else "last"
        scene.do(to_the_end(Inspector(scene.first, scene.jobs, scene.rules), by, ("p1", "p2")))
