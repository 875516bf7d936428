"""Handlers that write into PostgreSQL: once without a guard, once guarded by the lease, once by a fence.

The first attempt waits in the middle of its guarded transaction, until the test lets go of a lock.
"""

from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg

from fleetcron import LeaseLost, fenced, guarded
from tests.faults.work_handlers import say, told

TABLES = (
    "CREATE TABLE posted (job TEXT, how TEXT, attempt INT);"
    "CREATE TABLE fleetcron_fences (run_key TEXT PRIMARY KEY, fence BIGINT NOT NULL)"
)
GATE = 7
WAIT = f"SELECT pg_advisory_lock_shared({GATE})"
HOLD = f"SELECT pg_advisory_lock_shared({GATE + 1})"


def _insert(ctx: Any, how: str) -> str:
    return f"INSERT INTO posted VALUES ('{ctx.job}', '{how}', {ctx.attempt})"


async def posts(ctx: Any) -> None:
    connection = await asyncpg.connect(ctx.payload["url"])
    try:
        with told(ctx.run_id, ctx.attempt, ctx.job):
            for how, guard in (("guarded", guarded(ctx, connection)), ("fenced", fenced(ctx, connection))):
                try:
                    async with guard:
                        await connection.execute(_insert(ctx, how))
                        if ctx.attempt == 1 and how == "guarded":
                            say(say="open", job=ctx.job)
                            await connection.fetch(WAIT)
                except LeaseLost as lost:
                    say(say="refused", how=how, job=ctx.job, attempt=ctx.attempt, why=str(lost))
            await connection.execute(_insert(ctx, "plain"))
            say(say="posted", job=ctx.job, attempt=ctx.attempt)
            if ctx.attempt == 2:  # it holds the run while the zombie wakes; the run of the plain one is over by then
                await connection.fetch(HOLD)
    finally:
        await connection.close()


def posts_plainly(ctx: Any) -> None:
    with psycopg.connect(ctx.payload["url"], autocommit=True) as connection, told(ctx.run_id, ctx.attempt, ctx.job):
        for how, guard in (("guarded", guarded(ctx, connection)), ("fenced", fenced(ctx, connection))):
            try:
                with guard:
                    connection.execute(_insert(ctx, how))  # type: ignore[arg-type]
                    if ctx.attempt == 1 and how == "guarded":
                        say(say="open", job=ctx.job)
                        connection.execute(WAIT)  # type: ignore[arg-type]
            except LeaseLost as lost:
                say(say="refused", how=how, job=ctx.job, attempt=ctx.attempt, why=str(lost))
        connection.execute(_insert(ctx, "plain"))  # type: ignore[arg-type]
        say(say="posted", job=ctx.job, attempt=ctx.attempt)
