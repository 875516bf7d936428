"""Verbs that lock several rows lock them in one order: whoever waits for the other is never waited for, on PostgreSQL.

The database would end a deadlock by itself, after a second in which the pool stands still.
"""

from collections.abc import Iterator, Mapping

import pytest

from fleetcron.model.control import Wish
from fleetcron.store.written import Ok
from tests.faults.scene import NOW, Scene, claim, opened, promote
from tests.services.postgres import Template
from tests.store.engines import change
from tests.worker.shop import Job, Shop

ROOM, SPARE = 4, 8


@pytest.fixture
def scene(store_template18: Template) -> Iterator[Scene]:
    with store_template18.copy() as url, opened(url) as found:
        yield found


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
