"""A job is edited in one session while another works on its runs, on PostgreSQL, switched at every statement.

Whatever the order: no run is left in a queue that its job has left, none overlaps another of its job, all of them are
worked off, and the database never has to end a deadlock.
"""

from collections.abc import Mapping
from itertools import count
from threading import Event
from time import sleep
from typing import Any

import pytest

from fleetcron.model.outcome import Succeeded
from fleetcron.model.rules import OverlapPolicy
from fleetcron.store.following import Followed, follow
from fleetcron.store.written import Ok
from tests.faults.actors import PATIENCE_S, Actor
from tests.faults.scene import NOW, Act, Scene, claim, finish, hand_back, promote
from tests.store.engines import change
from tests.worker.shop import Job, Shop

JOB = Job(1, overlap="queue")


async def two_are_queued(shop: Shop) -> Mapping[str, Job]:
    await shop.define(JOB)
    await shop.plan(JOB, NOW - 20, NOW - 10)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)
    await shop.join("n2", p1=5, p2=5)
    return {"job": JOB}


async def one_is_held(shop: Shop) -> Mapping[str, Job]:
    await two_are_queued(shop)
    assert await shop.claimed("n1") == [1]
    return {"job": JOB}


async def one_is_on_its_way(shop: Shop) -> Mapping[str, Job]:
    await one_is_held(shop)
    await shop.plan(JOB, NOW)
    return {"job": JOB}


def edit(what: str) -> Act:
    """As the desk does it: the job is written, then the queue follows."""

    async def act(shop: Shop) -> None:
        await change(shop.store.engine, f"UPDATE jobs SET {what}")
        await follow(shop.store.engine, [JOB.job_id])

    return act


POOL, KEY = "pool = 'p2'", "claim_key = 'k:t1:db'"
PAIRS: dict[str, tuple[Act, Act, Act]] = {
    "a claim in the pool that it leaves": (two_are_queued, edit(POOL), claim("n2")),
    "a claim in the pool that it enters": (two_are_queued, edit(POOL), claim("n2", "p2")),
    "runs become due": (one_is_on_its_way, edit(POOL), promote),
    "the run before ends": (one_is_held, edit(KEY), finish(1)),
    "a claim, and the key is another one": (one_is_held, edit(KEY), claim("n2")),
    "the run before is handed back": (one_is_held, edit(KEY), hand_back),
}


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
def test_an_edit_and(scene: Scene, pair: str, turned: bool) -> None:
    for _ in scene.everywhere(*PAIRS[pair], turned=turned):
        left = scene.do(scene.first.store.following.sweep(0))
        if pair != "the run before is handed back":  # who has read the job before the edit: upkeep finds it
            assert left == Ok(Followed(0, 0))
        scene.do(worked_off(scene.first))


def one_is_queued(policy: OverlapPolicy) -> Act:
    async def prepare(shop: Shop) -> Mapping[str, Job]:
        job = Job(1, overlap=policy)
        await shop.define(job)
        await shop.plan(job, NOW - 20)
        await shop.promote()
        await shop.join("n1", p1=5, p2=5)
        await shop.join("n2", p1=5, p2=5)
        return {"job": job}

    return prepare


def the_next_one_comes(policy: OverlapPolicy, what: str) -> Act:
    """The job is edited, and nothing has followed yet: its next tick is in another pool."""

    async def act(shop: Shop) -> None:
        await change(shop.store.engine, f"UPDATE jobs SET {what}")
        await shop.plan(Job(1, overlap=policy), NOW - 10)
        await shop.promote()

    return act


@pytest.mark.parametrize("what", [POOL, f"{POOL}, {KEY}"], ids=["pool", "pool and key"])
@pytest.mark.parametrize("policy", ["queue", "collapse", "cancel_previous"])
def test_a_claim_and_the_next_tick_in_another_pool(scene: Scene, policy: OverlapPolicy, what: str) -> None:
    """The locks of two pools and two keys: what is left is that a run is locked before it is closed or held, and that
    a job has one lease. Both runs were held, or one was closed that the other claim had just taken."""
    comes, takes = the_next_one_comes(policy, what), claim("n2", "p2")
    scene.second.numbers = count(100)

    async def both(shop: Shop) -> None:
        await comes(shop)
        await takes(shop)

    for _ in scene.everywhere(one_is_queued(policy), claim("n1"), both):
        scene.do(conserved(scene.first))


async def cancels_the_first(shop: Shop) -> None:
    await shop.store.steering.cancel([1], None, actor="ann")


async def sweeps(shop: Shop) -> None:
    await shop.store.sweeping.sweep(0)


@pytest.mark.parametrize("closes", [cancels_the_first, sweeps])
@pytest.mark.parametrize("policy", ["collapse", "cancel_previous"])
def test_a_claim_in_another_pool_and_who_closes_the_run_before(
    scene: Scene, policy: OverlapPolicy, closes: Act
) -> None:
    """The claim has the place of that run in the queue, and comes for the run; who came for the run first, and then for
    its place, was a deadlock."""

    async def prepare(shop: Shop) -> Mapping[str, Job]:
        jobs = await one_is_queued(policy)(shop)
        await the_next_one_comes(policy, POOL)(shop)
        if closes is sweeps:
            await change(shop.store.engine, f"UPDATE queue SET deadline_ms = {NOW - 5} WHERE run_id = 1")
        return jobs

    scene.first.numbers, scene.second.numbers = count(100), count(200)
    for turned in (False, True):
        for _ in scene.everywhere(prepare, claim("n2", "p2"), closes, turned=turned):
            scene.do(conserved(scene.first))


@pytest.mark.parametrize("policy", ["collapse", "cancel_previous"])
def test_a_run_that_another_pool_closes_is_not_held(scene: Scene, policy: OverlapPolicy) -> None:
    """It is to be held when the other claim, under the new policy, has closed it and has not committed. A lease was
    left of a run that had ended."""
    scene.begin(one_is_queued("queue"))
    closer, holder = scene.actors  # who looks at locks does so in the second one's loop
    before_it_holds, closed = StopAt(holder, "leases_insert"), StopAt(closer, "workers_set_batch")
    with before_it_holds:
        held = holder.do(claim("n1")(scene.second))
        assert before_it_holds.reached.wait(PATIENCE_S)
        scene.do(the_next_one_comes(policy, f"{POOL}, overlap = '{policy}'")(scene.first))
        with closed:
            other = closer.do(claim("n2", "p2", room=0)(scene.first))
            assert closed.reached.wait(PATIENCE_S)
            before_it_holds.go()
            while not held.done() and not scene.somebody_waits():
                sleep(0.001)
    held.result(PATIENCE_S)
    other.result(PATIENCE_S)
    scene.do(conserved(scene.first))
    scene.do(worked_off(scene.first))


class StopAt:
    """Stops an actor before a statement."""

    def __init__(self, actor: Actor, name: str) -> None:
        self.reached, self._go = Event(), Event()
        self._name = name
        self._engine: Any = actor.store.engine

    def __enter__(self) -> None:
        execute = self._engine._execute

        async def stopped(connection: object, name: str, *rest: Any) -> Any:
            if name == self._name and not self.reached.is_set():
                self.reached.set()
                assert self._go.wait(PATIENCE_S)
            return await execute(connection, name, *rest)

        self._engine._execute = stopped

    def __exit__(self, *_: object) -> None:
        self.go()
        del self._engine._execute

    def go(self) -> None:
        self._go.set()


async def conserved(shop: Shop) -> None:
    """Every run that has not ended is queued or held, none that has ended is, and one at a time is held."""
    runs = await shop.rows("SELECT run_id, state, finished_ms FROM runs")
    queued = {row["run_id"] for row in await shop.rows("SELECT run_id FROM queue")}
    leases = {row["run_id"] for row in await shop.rows("SELECT run_id FROM leases")}
    assert len(leases) <= 1
    for run in runs:
        places = (run["run_id"] in queued) + (run["run_id"] in leases)
        assert places == (run["finished_ms"] is None), run


async def worked_off(shop: Shop) -> None:
    """Never two at a time, and in the end none is left."""
    await shop.promote()
    for _ in await shop.rows("SELECT run_id FROM runs WHERE finished_ms IS NULL"):
        for pool in ("p1", "p2"):
            await shop.claimed("n2", pool=pool)
            await shop.claimed("n2", pool=pool)  # after one that had to wait there may be another
        [held] = await shop.rows("SELECT run_id, attempt, node_id FROM leases WHERE node_id IS NOT NULL")
        await shop.finish(held["node_id"], held["run_id"], held["attempt"], Succeeded())
    assert await shop.rows("SELECT run_id FROM runs WHERE finished_ms IS NULL") == []
