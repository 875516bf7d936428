"""Verbs that lock several rows lock them in one order: whoever waits for the other is never waited for, on PostgreSQL.

The database would end a deadlock by itself, after a second in which the pool stands still.
"""

from collections.abc import Mapping
from time import sleep
from typing import Any

import pytest

from fleetcron.model.control import Wish
from fleetcron.model.outcome import Failed, Fault
from fleetcron.store.written import Ok
from tests.faults.actors import PATIENCE_S
from tests.faults.scene import NOW, WAITING, Act, Scene, Stop, claim, promote, queued
from tests.faults.work_off import to_the_end
from tests.store.engines import change
from tests.worker.inspection import Inspector, Rules
from tests.worker.shop import Job, Shop

ROOM, SPARE = 4, 8
# The second row that a claim of p1 inserts waits for whoever has the lock.
BETWEEN_TWO_ROWS = """
CREATE FUNCTION wait_for_it() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END $$;
CREATE TRIGGER wait_for_it BEFORE INSERT ON leases FOR EACH ROW WHEN (NEW.pool = 'p1' AND NEW.slot = 1)
    EXECUTE FUNCTION wait_for_it()
"""


async def live_first_and_catchup_in_another_pass(shop: Shop) -> Mapping[str, Job]:
    """So many are on hold that the first look finds nothing else of catch-up; and both queues are about to get more."""
    many = Job(1, tenant="t2", overlap="allow", max_running=0)
    few = Job(2, overlap="allow", max_running=0)
    await shop.define(many, few)
    assert isinstance(await shop.store.controls.switch(Wish("tenant", "t2", 0, reason="x"), actor="ann"), Ok)
    await shop.plan(many, *range(NOW - 100, NOW - 100 + ROOM + SPARE), lane="catchup")
    await shop.plan(few, NOW - 50)
    await shop.plan(few, NOW - 40, lane="catchup")
    await shop.promote()
    await change(shop.store.engine, "UPDATE queue SET rank = rank + 100000000 WHERE tenant = 't1' AND lane = 'catchup'")
    await shop.plan(few, NOW - 30)
    await shop.plan(few, NOW - 20, lane="catchup")
    await shop.join("n1", p1=ROOM)
    return {"many": many, "few": few}


@pytest.mark.parametrize("turned", [False, True])
def test_how_far_queues_have_come(scene: Scene, turned: bool) -> None:
    """A claim in several passes, and whoever queues runs, write the same rows."""
    work = live_first_and_catchup_in_another_pass, claim("n1", room=ROOM), promote
    for _ in scene.everywhere(*work, turned=turned):
        held = scene.do(scene.first.rows("SELECT DISTINCT lane FROM leases ORDER BY lane"))
        assert [row["lane"] for row in held] == ["catchup", "live"]


def test_slots_of_a_key_that_two_pools_share(scene: Scene) -> None:
    """Both see two free slots. In p2 the run that was planned last is the first to have one."""

    async def two_slots(shop: Shop) -> Mapping[str, Job]:
        one, other = (Job(n, overlap="allow", max_running=2, key="k", pool=f"p{n}") for n in (1, 2))
        await shop.define(one, other)
        await shop.plan(one, NOW - 10, NOW - 5)
        await shop.plan(other, NOW - 5, NOW - 10)
        await shop.promote()
        await shop.join("n1", p1=5)
        await shop.join("n2", p2=5)
        return {"one": one, "other": other}

    def look(work: Any) -> Any:
        return scene.actors[1].do(work).result(PATIENCE_S)

    def wait_for(number: int) -> None:
        while look(scene.look.fetchval(WAITING)) < number:
            sleep(0.001)

    scene.begin(two_slots)
    look(scene.look.execute(f"SET search_path = fleetcron; {BETWEEN_TWO_ROWS}; SELECT pg_advisory_lock(7)"))
    stops = Stop(scene.actors[0], -1), Stop(scene.actors[1], -1)
    for stop in stops:
        stop.install()
    try:
        one = scene.actors[0].do(claim("n1")(scene.first))
        wait_for(1)
        other = scene.actors[1].do(claim("n2", "p2")(scene.second))
        wait_for(2)
        look(scene.look.execute("SELECT pg_advisory_unlock(7)"))
        one.result(PATIENCE_S)
        other.result(PATIENCE_S)
    finally:
        for stop in stops:
            stop.remove()
    assert [*stops[0].errors, *stops[1].errors] == []
    assert scene.do(scene.first.rows("SELECT pool, slot FROM leases ORDER BY slot")) == [
        {"pool": "p1", "slot": 0},
        {"pool": "p1", "slot": 1},
    ]


async def one_rests_with_a_key(shop: Shop) -> Mapping[str, Job]:
    """Run 1 rests between two attempts, and has its key; a second key is free. Both pools want both."""
    jobs = {
        "1": Job(1, overlap="queue", key="k1"), "2": Job(2, overlap="queue", key="k2"),
        "3": Job(3, overlap="queue", key="k1", pool="p2"), "4": Job(4, overlap="queue", key="k2", pool="p2"),
    }  # fmt: skip
    await queued(shop, {"1": jobs["1"]})
    assert await shop.claimed("n1") == [1]
    await shop.finish("n1", 1, 1, Failed(Fault("broken")))
    await shop.clock.set(NOW + 60_000)
    await shop.define(*(jobs[name] for name in "234"))
    for name in "234":
        await shop.plan(jobs[name], NOW + 60_000)
    await shop.promote()
    return jobs


@pytest.mark.parametrize("turned", [False, True])
def test_the_key_of_a_run_that_rests(scene: Scene, turned: bool) -> None:
    """A claim takes a free key and goes on with a run that rested, while another pool asks for both keys."""
    acts: tuple[Act, Act] = claim("n1"), claim("n2", "p2")
    for _ in scene.everywhere(one_rests_with_a_key, *acts, turned=turned):
        scene.do(to_the_end(Inspector(scene.first, scene.jobs, Rules()), "last", ("p1", "p2")))
