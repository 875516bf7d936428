"""A job is edited in one session while another works on its runs, on PostgreSQL, switched at every statement.

Whatever the order: no run is left in a queue that its job has left, none overlaps another of its job, all of them are
worked off, and the database never has to end a deadlock.
"""

from collections.abc import Mapping

import pytest

from fleetcron.model.outcome import Succeeded
from fleetcron.store.following import Followed, follow
from fleetcron.store.written import Ok
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
