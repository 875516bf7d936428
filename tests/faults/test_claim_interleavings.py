"""Two sessions that work on the same runs, on PostgreSQL, switched at every statement.

The first one is stopped before each of its statements in turn, and before its commit; the second one does the whole of
its work meanwhile, or waits for a lock; then the first one goes on. Whatever the order: keys and caps hold, nobody is
forgotten behind a gate, and the database never has to end a deadlock.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from fleetcron.model.outcome import Failed, Fault
from fleetcron.store.written import Ok
from tests.faults.scene import (
    NOW,
    Act,
    Scene,
    bury,
    claim,
    finish,
    finish_together,
    hand_back,
    held,
    join,
    leave,
    promote,
    queued,
    renew,
)  # fmt: skip
from tests.faults.work_off import to_the_end
from tests.worker.inspection import Inspector, Rules
from tests.worker.shop import Job, Shop

BROKEN = Failed(Fault("broken"))
MANY = 14


# -- what there is


async def a_key_is_held(shop: Shop) -> Mapping[str, Job]:
    """Run 1 is held, run 2 waits in the queue for the same key, run 3 in another pool."""
    jobs = {"one": Job(1, overlap="queue", key="k"), "two": Job(2, overlap="queue", key="k", pool="p2")}
    return await held(shop, jobs)


async def a_key_was_given_back(shop: Shop) -> Mapping[str, Job]:
    """It is the turn of run 2, in another pool than run 3; nobody has looked yet."""
    jobs = {
        "1": Job(1, overlap="queue", key="k"), "2": Job(2, overlap="queue", key="k", pool="p2"),
        "3": Job(3, overlap="queue", key="k"),
    }  # fmt: skip
    await held(shop, jobs)
    await shop.claimed("n2")
    await shop.claimed("n2", "p2")
    await shop.finish("n1", 1, 1)
    return jobs


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
    await queued(shop, jobs)
    return jobs


async def a_tenant_has_a_cap(shop: Shop) -> Mapping[str, Job]:
    """One of three runs may be in flight; they are in two pools, and run 1 is held."""
    jobs = {str(n): Job(n, overlap="allow", max_running=0, pool=("p1", "p1", "p2")[n - 1]) for n in (1, 2, 3)}
    await shop.limit("t1", 1)
    return await held(shop, jobs)


async def two_are_held_of_a_tenant_with_a_cap(shop: Shop) -> Mapping[str, Job]:
    jobs = {str(n): Job(n, overlap="allow", max_running=0) for n in (1, 2, 3, 4)}
    await shop.limit("t1", 2)
    await queued(shop, jobs)
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
    await queued(shop, jobs)
    for node_id in ("n1", "n2", "last"):
        await shop.store.workers.lack(node_id, {"mail": "it is not here"})
    return jobs


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
    "claims in two pools when a shared key was given back": (a_key_was_given_back, claim("n1"), claim("n2", "p2")),
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


# In `make test` these are stopped at each statement, and turned at every second one; the others at three, either way.
CHIEF = (
    "claim and the end of the holder", "claim of a tick that is due and the end of the one before", "end and bury",
    "claims in two pools under a cap", "hand back and claim", "claim and leave of the same worker",
)  # fmt: skip


def _both_ways() -> Iterator[Any]:
    for pair in PAIRS:
        strides = {False: 1, True: 2} if pair in CHIEF else {False: None, True: None}
        for turned in (False, True):
            name = f"{pair}, turned" if turned else pair
            yield pytest.param(pair, turned, strides[turned], id=name)
            if strides[turned] != 1:
                yield pytest.param(pair, turned, 1, id=f"{name}, everywhere", marks=pytest.mark.soak)


async def some_want_a_key_alone(shop: Shop) -> Mapping[str, Job]:
    """Two runs that bear each other, and in another pool one that wants the same key for itself."""
    together = Job(1, overlap="allow", max_running=2, key="k")
    alone = Job(2, overlap="queue", key="k", pool="p2")
    await shop.define(together, alone)
    await shop.plan(together, NOW - 10, NOW - 9)
    await shop.plan(alone, NOW - 8)
    await shop.promote()
    for node_id in ("n1", "n2"):
        await shop.join(node_id, p1=5, p2=5)
    return {"together": together, "alone": alone}


def test_who_wants_a_shared_key_alone_starts_beside_nobody(scene: Scene) -> None:
    """S2-45: it was free when that was looked at. Then two came to hold it, and the first of them ended: a low slot was
    free again, so the unique key of slots let a third one in beside the second."""

    async def two_come_and_one_ends(shop: Shop) -> None:
        await claim("n1")(shop)
        await finish(1)(shop)

    for _ in scene.everywhere(some_want_a_key_alone, claim("n2", "p2"), two_come_and_one_ends):
        held = {row["run_id"] for row in scene.do(scene.first.rows("SELECT run_id FROM leases"))}
        assert held != {2, 3}
        scene.do(to_the_end(Inspector(scene.first, scene.jobs, scene.rules), "last", ("p1", "p2")))


@pytest.mark.parametrize(("pair", "turned", "stride"), list(_both_ways()))
def test_two_sessions(scene: Scene, pair: str, turned: bool, stride: int | None) -> None:
    """S2-42, S3-88, S4-38: each verb stopped at its statements and before its commit while the other one works."""
    prepare, one, other = PAIRS[pair]
    scene.rules = Rules(caps={"t1": 2 if "two ends" in pair else 1} if "cap" in pair or "two ends" in pair else {})
    by = "n3" if prepare is nobody_has_the_handler else "last"
    for _ in scene.everywhere(prepare, one, other, turned=turned, stride=stride):
        scene.do(to_the_end(Inspector(scene.first, scene.jobs, scene.rules), by, ("p1", "p2")))
