"""A limit is a limit, whatever plan PostgreSQL makes.

A subquery with LIMIT and FOR UPDATE SKIP LOCKED that stands on the inner side of a nested loop is read again for every
outer row, passes over what it has updated already, and so takes more than its limit: all there is. That plan is made
when the statistics say that the table is almost empty, as they do when autovacuum looked at it before a flood. So such
a subquery must be materialised.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from fleetcron.store.engine import Script
from fleetcron.store.rows import ids, rows, texts
from fleetcron.store.statements import Statements
from fleetcron.store.store import Store
from tests.store.engines import change, hand_cranked
from tests.worker.shop import BEGIN_MS, Job, Shop, ok

RUNS = 12
KEYED = Job(1, overlap="allow", max_running=1, key="k")


@asynccontextmanager
async def flooded(url: str, table: str) -> AsyncIterator[Shop]:
    """The statistics are from when the table was almost empty; now it has many rows. Those in the queue wait."""
    async with hand_cranked(url, BEGIN_MS) as (engine, clock):
        shop = await Shop.open(Store(engine), clock)
        await shop.define(KEYED)
        await shop.join("n1", p1=99)
        await come(shop, range(2))
        await change(engine, f"ANALYZE {table}; ANALYZE shares")
        if table == "queue":
            await come(shop, range(2, RUNS))
        else:
            await shop.plan(KEYED, *(shop.now + n for n in range(2, RUNS)))
        yield shop


async def come(shop: Shop, ticks: range) -> None:
    """Into the queue; one of them gets the key."""
    await shop.plan(KEYED, *(shop.now + n for n in ticks))
    await shop.promote()
    await shop.claimed("n1", room=99)


async def asked(shop: Shop, statement: str, call: dict[str, Any]) -> list[int]:
    def script() -> Script[list[int]]:
        return [row["run_id"] for row in (yield statement, call)]

    found: list[int] = ok(await shop.store.engine.write(script))
    return found


@pytest.mark.parametrize("most", [1, 3])
def test_as_many_are_released_as_asked_for(postgres18_url: str, most: int) -> None:
    """What frees a key lets one run go on; otherwise every end of a run would wake a whole backlog."""

    async def scenario() -> None:
        async with flooded(postgres18_url, "queue") as shop:
            waited = rows([{"gate": "key", "key": "k:t1:k"}])
            call = {"rows": waited, "most": most, "pool": None, "lane": None, "due_ms": None}
            assert sorted(await asked(shop, "queue_release", call)) == list(range(2, 2 + most))

    asyncio.run(scenario())


@pytest.mark.parametrize("most", [1, 3])
def test_as_many_are_called_as_asked_for(postgres18_url: str, most: int) -> None:
    async def scenario() -> None:
        async with flooded(postgres18_url, "queue") as shop:
            call = {"keys": texts(["k:t1:k"]), "most": most, "now_ms": shop.now}
            assert sorted(await asked(shop, "queue_call", call)) == list(range(2, 2 + most))

    asyncio.run(scenario())


def test_the_next_one_is_one(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with flooded(postgres18_url, "queue") as shop:
            after = {"key": "k:t1:k", "pool": "p1", "lane": "live", "priority": 0, "held": 0, "after_ms": 0,
                "after_id": 0}  # fmt: skip
            assert await asked(shop, "queue_release_next", {"rows": rows([after]), "parked": "[]"}) == [2]

    asyncio.run(scenario())


def test_as_many_are_queued_as_fit(postgres18_url: str) -> None:
    """Otherwise a backlog of 100,000 would be queued in one transaction."""

    async def scenario() -> None:
        async with flooded(postgres18_url, "upcoming") as shop:
            done = await shop.promote(most=4)
            assert (done.runs, done.more) == (4, True)

    asyncio.run(scenario())


LEFT_OUT = 200
PASSED_BY = {
    "cursors_due": ("cursors", "cursors_due", {"horizon_ms": BEGIN_MS, "per_shard": 10}),
    "cursors_next": ("cursors", "cursors_due", {}),
    "queue_next": ("upcoming", "upcoming_pkey", {"pools": texts(["p1"])}),
    "upcoming_take": ("upcoming", "upcoming_pkey", {"until_ms": BEGIN_MS, "most": 10, "first": 10, "last": 10}),
}


async def fill(engine: Any) -> None:
    """3,000 rows of each kind, of jobs that there are not."""
    series = "generate_series(1, 3000) AS n"
    job_id = "CAST(lpad(to_hex(n), 32, '0') AS UUID)"
    await change(
        engine,
        "SET LOCAL session_replication_role = replica;"
        "INSERT INTO cursors (job_id, region, shard, timing_id, cursor_ms, ticks_used, next_due_ms, revision, state)"
        f" SELECT {job_id}, '*', 0, n, 0, 0, n, 1, 'active' FROM {series};"
        f"INSERT INTO upcoming SELECT n, n, {job_id}, 'live' FROM {series};"
        "ANALYZE cursors; ANALYZE upcoming",
    )


@pytest.mark.parametrize("name", PASSED_BY)
def test_what_is_left_out_is_passed_by_in_the_order_of_the_index(postgres18_url: str, name: str) -> None:
    """With the whole table read first, a round would cost what there is, not what is due."""
    table, index, limits = PASSED_BY[name]
    jobs = [str(UUID(int=n)) for n in range(LEFT_OUT)]
    without = texts(jobs) if table == "upcoming" else ids(range(LEFT_OUT))
    call = {"held": rows([{"region": "*", "shard": 0, "term": 1}]), "without": without, **limits}

    async def scenario() -> None:
        async with hand_cranked(postgres18_url, BEGIN_MS) as (engine, _):
            await fill(engine)
            statement = Statements.for_engine("postgres")[name]
            connection = await asyncpg.connect(postgres18_url, server_settings={"search_path": "fleetcron"})
            lines = await connection.fetch(f"EXPLAIN {statement.sql}", *(call[each] for each in statement.parameters))
            await connection.close()
            plan = "\n".join(line[0] for line in lines)
            assert re.search(rf"Index (Only )?Scan (Backward )?using {index} on {table}", plan), plan
            assert not re.search(r"Seq Scan .*\n +Filter: .*SubPlan", plan), plan

    asyncio.run(scenario())
