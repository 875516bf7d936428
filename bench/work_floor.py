"""The least that a worker on PostgreSQL can do and keep a history and a fence: `python -m bench.work_floor URL NAME`.

Four tables: `floor_runs` (written at creation and once at the end), `floor_ready` (its key is the order of claims),
`floor_leases`, `floor_attempts`. A claim moves 500 rows from ready to leases, the end of a batch is three statements.
No fairness, no exclusivity, no limits, no waiting, no instants, no definitions.
"""

import asyncio
import sys
import time

import asyncpg

from bench.handlers import nothing
from bench.tables import Tables

BATCH = 500
TABLES = """
DROP TABLE IF EXISTS floor_runs, floor_ready, floor_leases, floor_attempts;
CREATE TABLE floor_runs (
    run_id BIGINT PRIMARY KEY, job_id UUID NOT NULL, scheduled_for_ms BIGINT NOT NULL, created_ms BIGINT NOT NULL,
    state TEXT NOT NULL, attempt INTEGER NOT NULL, started_ms BIGINT, finished_ms BIGINT) WITH (fillfactor = 70);
CREATE UNIQUE INDEX ON floor_runs (job_id, scheduled_for_ms);
CREATE TABLE floor_ready (
    pool TEXT NOT NULL, priority INTEGER NOT NULL, run_after_ms BIGINT NOT NULL, run_id BIGINT NOT NULL,
    attempt INTEGER NOT NULL, PRIMARY KEY (pool, priority, run_after_ms, run_id))
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE floor_leases (
    run_id BIGINT PRIMARY KEY, attempt INTEGER NOT NULL, node_id TEXT NOT NULL, claimed_ms BIGINT NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE TABLE floor_attempts (
    run_id BIGINT NOT NULL, attempt INTEGER NOT NULL, node_id TEXT NOT NULL, started_ms BIGINT NOT NULL,
    finished_ms BIGINT NOT NULL, outcome TEXT NOT NULL, PRIMARY KEY (run_id, attempt));
"""
_FILL = """
INSERT INTO floor_runs
SELECT i, (lpad(to_hex(1700000000000 + i), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8'
    || substr(md5(i::text), 4, 15))::uuid, 0, 0, 'planned', 0, NULL, NULL
FROM generate_series(1, {runs}) AS i;
INSERT INTO floor_ready SELECT 'default', 0, 0, run_id, 0 FROM floor_runs;
"""
_CLAIM = """
WITH taken AS (
    DELETE FROM floor_ready AS r USING (
        SELECT pool, priority, run_after_ms, run_id FROM floor_ready
        WHERE pool = 'default' ORDER BY priority, run_after_ms, run_id LIMIT $1 FOR UPDATE SKIP LOCKED
    ) AS d
    WHERE r.pool = d.pool AND r.priority = d.priority AND r.run_after_ms = d.run_after_ms AND r.run_id = d.run_id
    RETURNING r.run_id, r.attempt
)
INSERT INTO floor_leases SELECT run_id, attempt + 1, $2, db_now_ms() FROM taken RETURNING run_id, attempt
"""
_ATTEMPTS = """
INSERT INTO floor_attempts SELECT l.run_id, l.attempt, l.node_id, n.started_ms, n.finished_ms, 'succeeded'
FROM unnest($1::bigint[], $2::int[], $3::bigint[], $4::bigint[]) AS n (run_id, attempt, started_ms, finished_ms)
JOIN floor_leases AS l ON l.run_id = n.run_id AND l.attempt = n.attempt AND l.node_id = $5
RETURNING run_id
"""
_RUNS = """
UPDATE floor_runs AS r SET state = 'succeeded', attempt = n.attempt, started_ms = n.started_ms, finished_ms = $4
FROM unnest($1::bigint[], $2::int[], $3::bigint[]) AS n (run_id, attempt, started_ms) WHERE r.run_id = n.run_id
"""
_LEASES = "DELETE FROM floor_leases WHERE run_id = ANY($1::bigint[])"


async def fill(tables: Tables, runs: int) -> None:
    await tables.run(TABLES)
    await tables.run(_FILL.format(runs=runs))
    await tables.settle()


async def _work(url: str, name: str) -> None:
    connections = [
        await asyncpg.connect(url, server_settings={"search_path": "fleetcron"}, command_timeout=600) for _ in range(2)
    ]
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    claiming, ending = connections
    ended: asyncio.Task[None] | None = None
    while taken := await claiming.fetch(_CLAIM, BATCH, name):
        begun_ms = time.time_ns() // 1_000_000
        await asyncio.gather(*(nothing() for _ in taken))
        if ended is not None:
            await ended
        ended = asyncio.create_task(_end(ending, [row["run_id"] for row in taken], taken[0]["attempt"], name, begun_ms))
    if ended is not None:
        await ended
    await asyncio.to_thread(sys.stdin.read)


async def _end(connection: asyncpg.Connection, ids: list[int], attempt: int, name: str, begun_ms: int) -> None:
    now_ms = time.time_ns() // 1_000_000
    attempts, begun = [attempt] * len(ids), [begun_ms] * len(ids)
    async with connection.transaction():
        found = await connection.fetch(_ATTEMPTS, ids, attempts, begun, [now_ms] * len(ids), name)
        mine = [row["run_id"] for row in found]
        await connection.execute(_RUNS, mine, attempts[: len(mine)], begun[: len(mine)], now_ms)
        await connection.execute(_LEASES, mine)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1], sys.argv[2]))
