"""Jobs that are all due in the same second, until every run has its durable row; next to the floor.

The floor is the least that any scheduler on this database can do: one statement that moves all cursors and inserts all
runs, with the next tick joined from a small map. It has no fence, no ledger, no history of revisions and no queue.
"""

import asyncio
from statistics import median
from time import perf_counter

import asyncpg

from bench import fleet
from bench.measure import Goal, Result, progress, table
from bench.server import database
from fleetcron.clock import SystemClock
from fleetcron.config import SchedulerConfig, StoreConfig
from fleetcron.scheduler.loop import LANES, Scheduler
from fleetcron.store.migrations import migrate
from fleetcron.store.store import Store
from fleetcron.store.written import Ok

GOAL = 0.7
HOUR_MS = 3_600_000

_FLOOR_TABLES = """
CREATE TABLE floor_jobs (job_id UUID PRIMARY KEY, expression INTEGER NOT NULL, next_ms BIGINT NOT NULL);
CREATE INDEX ON floor_jobs (next_ms);
CREATE TABLE floor_runs (
    run_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, job_id UUID NOT NULL, scheduled_for_ms BIGINT NOT NULL,
    state TEXT NOT NULL, created_ms BIGINT NOT NULL);
CREATE UNIQUE INDEX ON floor_runs (job_id, scheduled_for_ms);
INSERT INTO floor_jobs SELECT job_id, row_number() OVER () % 5, next_due_ms FROM cursors;
"""
_FLOOR = """
WITH following (expression, next_ms) AS (SELECT * FROM unnest($1::int[], $2::bigint[])),
due AS (
    SELECT j.job_id, j.next_ms, f.next_ms AS after_ms FROM floor_jobs AS j JOIN following AS f USING (expression)
    WHERE j.next_ms <= $3 FOR UPDATE OF j
),
moved AS (UPDATE floor_jobs AS j SET next_ms = d.after_ms FROM due AS d WHERE j.job_id = d.job_id)
INSERT INTO floor_runs (job_id, scheduled_for_ms, state, created_ms) SELECT job_id, next_ms, 'planned', $3 FROM due
ON CONFLICT DO NOTHING
"""


def run(quick: bool) -> Result:
    jobs, rounds = (10_000, 2) if quick else (100_000, 5)
    with database("fleetcron_bench_burst") as url:
        return asyncio.run(_run(url, jobs, rounds))


async def _run(url: str, jobs: int, rounds: int) -> Result:
    store = await Store.open(StoreConfig(url=url, deadline_s=10), SystemClock())
    await migrate(store.engine)
    connection = await fleet.connect(url)
    try:
        now_ms = await connection.fetchval("SELECT db_now_ms()")
        due_ms = now_ms - now_ms % HOUR_MS + HOUR_MS
        progress(f"burst: {jobs:,} jobs")
        await fleet.fill(connection, jobs, due_ms)
        await connection.execute(_FLOOR_TABLES)
        await connection.execute("VACUUM ANALYZE")
        floor, ours = [], []
        for number in range(rounds):
            progress(f"burst: round {number + 1} of {rounds}")
            floor.append(jobs / await _floor(connection, due_ms + number * HOUR_MS))
            ours.append(jobs / await _ours(connection, store, jobs, due_ms + number * HOUR_MS))
        conflicts = await connection.fetchval("SELECT count(*) FROM events WHERE kind = 'run_conflict'")
        assert conflicts == 0, f"{conflicts} runs existed already"
    finally:
        await connection.close()
        await store.close()
    ratio = median(ours) / median(floor)
    return Result(
        figures={
            "jobs": jobs,
            "rounds": rounds,
            "lanes": LANES,
            "floor_per_s": floor,
            "ours_per_s": ours,
            "ratio": ratio,
        },
        lines=table(
            [f"{jobs:,} jobs due at once, runs/s", "median", "best"],
            [
                ["floor: one statement", f"{median(floor):,.0f}", f"{max(floor):,.0f}"],
                ["fleetcron", f"{median(ours):,.0f}", f"{max(ours):,.0f}"],
            ],
        ),
        goals=[Goal(f"burst >= {GOAL} of the floor", f"{ratio:.2f}", ratio >= GOAL)],
    )


async def _floor(connection: asyncpg.Connection, due_ms: int) -> float:
    await _settle(connection, "floor_jobs", "floor_runs")
    begin = perf_counter()
    await connection.execute(_FLOOR, list(range(5)), [due_ms + HOUR_MS] * 5, due_ms)
    return perf_counter() - begin


async def _ours(connection: asyncpg.Connection, store: Store, jobs: int, due_ms: int) -> float:
    """The scheduler's own steps, from the first look to the last commit."""
    await _settle(connection, "cursors", "runs", "upcoming")
    taken = await store.shards.take("*", list(range(fleet.SHARDS)), "bench", 3_600_000)
    assert isinstance(taken, Ok)
    before = await connection.fetchval("SELECT count(*) FROM runs")
    now_ms = await connection.fetchval("SELECT db_now_ms()")
    config = SchedulerConfig(lookahead_s=(due_ms - now_ms) / 1000 + 1)
    scheduler = Scheduler(store, lambda: taken.value, config, clock=SystemClock())
    begin = perf_counter()
    while await scheduler.step() == 0:
        pass
    spent = perf_counter() - begin
    made = await connection.fetchval("SELECT count(*) FROM runs") - before
    assert made == jobs, f"{made} runs for {jobs} jobs"
    return spent


async def _settle(connection: asyncpg.Connection, *tables: str) -> None:
    for name in tables:
        await connection.execute(f"VACUUM ANALYZE {name}")
    await connection.execute("CHECKPOINT")
