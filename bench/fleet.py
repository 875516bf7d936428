"""Jobs by the hundred thousand, written straight into the tables: what is measured is the scheduler, not the making."""

import asyncpg

from fleetcron.model.rules import CronEntry
from fleetcron.model.timing import Timing

SHARDS = 16
# Five ways to write "every hour", as five groups of tenants would: five timings, all due at the same instant.
HOURLY = ("0 * * * *", "0 0-23 * * *", "0 */1 * * *", "0 0 * * * *", "0 0,1-23 * * *")


async def connect(url: str) -> asyncpg.Connection:
    return await asyncpg.connect(url, server_settings={"search_path": "fleetcron"}, command_timeout=600)


async def fill(connection: asyncpg.Connection, jobs: int, due_ms: int) -> None:
    """`jobs` jobs that are next due at an instant. Their ids are in the order of time, as UUIDv7 are."""
    await connection.execute("INSERT INTO fleet VALUES ('shards', $1) ON CONFLICT DO NOTHING", str(SHARDS))
    timings = [Timing((CronEntry(expression, "UTC", "skip", "both"),)) for expression in HOURLY]
    for timing in timings:
        await connection.execute("INSERT INTO timings VALUES ($1, $2)", timing.timing_id, timing.body())
    await connection.execute(
        """
        INSERT INTO cursors (job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used, next_due_ms)
        SELECT (lpad(to_hex(1700000000000 + i), 12, '0') || '7' || substr(md5(i::text), 1, 3)
                || '8' || substr(md5(i::text), 4, 15))::uuid,
               '*', i % $1::int, 'active', ($2::bigint[])[1 + i % 5], 1, $3::bigint - 60000, 0, $3
        FROM generate_series(1, $4::int) AS i
        """,
        SHARDS,
        [timing.timing_id for timing in timings],
        due_ms,
        jobs,
    )
    await connection.execute(
        """
        INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, revision, definition, created_by,
                          created_ms, updated_ms)
        SELECT job_id, 'tenant-' || shard, 'job-' || row_number() OVER (), 'report', 'default', '*', 'active', 1, '{}',
               'bench', 0, 0
        FROM cursors
        """
    )
    await connection.execute("VACUUM ANALYZE")
    await connection.execute("CHECKPOINT")
