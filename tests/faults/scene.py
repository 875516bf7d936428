"""Two sessions on PostgreSQL that work on the same runs: one of them can be stopped before any of its statements."""

import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import sleep
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]

from fleetcron.model.outcome import Outcome, Succeeded
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim
from fleetcron.store.ends import Ended
from fleetcron.store.written import Ok, Refused
from tests.faults.actors import PATIENCE_S, Actor, two_actors
from tests.store.engines import DatabaseClock
from tests.worker.inspection import Rules
from tests.worker.shop import BEGIN_MS, TTL_MS, Job, Shop, fetcher, settling
from tests.worker.shop import QUICK as RULE

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
NOW = BEGIN_MS
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

    def empty(self) -> None:
        """As it was when it was opened: a new database for every test took as long as the test."""
        self.do(self._emptied())
        self.jobs, self.rules = {}, Rules()

    async def _emptied(self) -> None:
        shop = await Shop.open(self.first.store, self.first.clock)
        self.first.numbers = shop.numbers
        for each in (self.first, self.second):
            each.store.output._sure.clear()  # it remembers whose output fits

    def begin(self, prepare: Act) -> None:
        async def anew() -> Mapping[str, Job]:
            await self._emptied()
            await self.first.join("last", p1=9, p2=9)
            found: Mapping[str, Job] = await prepare(self.first)
            return found

        jobs = self.do(anew())
        self.jobs = {job.job_id: job for job in jobs.values()}

    def everywhere(
        self, prepare: Act, one: Act, other: Act, *, turned: bool = False, stride: int | None = 1
    ) -> Iterator[None]:
        """One is stopped before each of its statements in turn while the other works, or before every so-manieth; None:
        before the first and one in the middle. In any case before its last commit: then the other one is first, unless
        it has to wait. Each time in a scene prepared anew; the caller looks at what has come of it."""
        if turned:
            one, other = other, one
        self.begin(prepare)
        last = self.length(one) - 1
        assert last > 0
        for before in sorted({*range(0, last, stride or (last + 1) // 2), last}):
            self.begin(prepare)
            assert self.interleave(one, other, before)
            yield

    def length(self, one: Act) -> int:
        """How many statements and commits it has when it is left in peace."""
        stop = Stop(self.actors[0], -1)
        stop.install()
        try:
            self.do(one(self.first))
        finally:
            stop.remove()
        return stop.seen

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


async def queued(shop: Shop, jobs: Mapping[str, Job]) -> None:
    await shop.define(*jobs.values())
    for job in jobs.values():
        await shop.plan(job, NOW - 10 + job.number)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)
    await shop.join("n2", p1=5, p2=5)


async def held(shop: Shop, jobs: Mapping[str, Job]) -> Mapping[str, Job]:
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
    assert await shop.hand_back("n1", (1, 1)) == Ok(1)


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
