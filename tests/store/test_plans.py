"""PostgreSQL keeps the plan of a statement with its connection: also one that was made while the queue was empty."""

import asyncio

import pytest

from fleetcron.scheduler.desk import Desk
from fleetcron.store import postgres_connections
from fleetcron.store.migrations import Altering
from fleetcron.store.store import Store
from tests.store.engines import admin, change, hand_cranked
from tests.store.floor import NOW, Floor, ok
from tests.store.test_crowds import Crowd

MANY = 5_000
CLAIMS = 10


async def rows_read(url: str, engine: Altering) -> int:
    """Of the queue. A server process tells the others of what it has read when it finds the time, or is asked to."""
    await change(engine, "SELECT pg_stat_force_next_flush()")
    async with admin(url) as connection:
        read = await connection.fetchval("SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'queue'")
    assert isinstance(read, int)
    return read


@pytest.mark.parametrize("is_replanned", [True, False])
def test_a_queue_that_fills_at_once_is_not_read_as_a_whole(
    postgres18_url: str, monkeypatch: pytest.MonkeyPatch, is_replanned: bool
) -> None:
    monkeypatch.setattr(postgres_connections, "_PLANS_S", 0.0 if is_replanned else float("inf"))

    async def main() -> int:
        async with hand_cranked(postgres18_url, NOW) as (engine, clock):
            await change(engine, "ALTER TABLE queue SET (autovacuum_enabled = false)")  # which would analyse it
            store = Store(engine)
            ok(await store.shards.fix(1))
            held = ok(await store.shards.take("*", [0], "scheduler", 36_000_000))
            crowd = Crowd(Floor(store, clock, Desk(store, actor="ann", shards=1), held))
            await crowd.open()
            await crowd.put("other", 0, CLAIMS)
            await crowd.work(lambda: crowd.started["other"] == CLAIMS, most=CLAIMS)  # so often, and a plan is kept
            await crowd.put("other", CLAIMS, MANY)
            await crowd.work(lambda: crowd.started["other"] == 2 * CLAIMS, most=CLAIMS)
            return await rows_read(postgres18_url, engine)

    read = asyncio.run(main())
    if is_replanned:
        assert read < MANY * CLAIMS / 10
    else:  # this is what it is about
        assert read > MANY * CLAIMS / 2
