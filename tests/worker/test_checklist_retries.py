"""The checklist as far as work goes. Trying again: delays, the end of them, and handlers that may be called twice."""

import asyncio
import sqlite3
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from fleetcron.model.rules import RetryRule
from fleetcron.model.run import RunLine
from fleetcron.times.instants import iso
from tests.worker.crew import PATIENCE_S, WHENEVER, Crew, Function, job
from tests.worker.plays import DEAD, ONCE_ONLY, TICK, at, played


def test_retries_wait_as_the_job_says(sqlite_memory_url: str) -> None:
    """S1-7, S1-22, S3-6, S3-38, S3-39: after a fixed delay, or 30, 120, 600, 1800 and 7200 seconds with a jitter of at
    most 20 % and five minutes; without attempts left the run is dead, and nothing is held or planned for it."""
    delays = (30, 120, 600, 1800, 7200)

    async def handler() -> None:
        raise ValueError

    async def scenario(made: Crew) -> None:
        fixed = RetryRule(max_attempts=4, backoff="fixed", delays_ms=(150,), jitter=0)
        await made.define(
            job("fixed", retry=fixed), job("listed", retry=RetryRule(max_attempts=6)), job("none", retry=ONCE_ONLY)
        )
        made.join()
        runs = [await made.trigger(name) for name in ("fixed", "none")]
        lines = await made.ended(*runs)
        assert [(line.run.state, line.run.attempt) for line in lines] == [(DEAD, 4), (DEAD, 1)]
        attempts = await made.attempts(runs[0])
        for one, following in pairwise(attempts):
            # both are the worker's reading of the database's clock, which is off by a few milliseconds at most
            assert following.started_ms - (one.finished_ms or 0) >= 145

        run_id = await made.trigger("listed")
        for number, delay_s in enumerate(delays, 1):
            [line] = await made.until(partial(rests_after, number), run_id)
            ended = (await made.attempts(run_id))[-1].finished_ms
            assert ended is not None
            assert line.next_ms is not None
            wait_s = (line.next_ms - ended) / 1000
            assert delay_s <= wait_s <= delay_s + min(0.2 * delay_s, 300) + PATIENCE_S
            await made.set_clock(line.next_ms)
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.failures) == (DEAD, 6)
        assert [await made.count(table) for table in ("leases", "upcoming", "queue")] == [0, 0, 0]

    played(sqlite_memory_url, scenario, {"t:f": handler})


def rests_after(failures: int, lines: Sequence[RunLine]) -> bool:
    return lines[0].run.failures == failures and lines[0].next_ms is not None


CREATE = """
CREATE TABLE invoices (invoice_id {id} PRIMARY KEY, tenant_id TEXT NOT NULL, for_tick TEXT NOT NULL);
CREATE TABLE invoice_generation_keys (
    tenant_id TEXT NOT NULL, idempotency_key TEXT NOT NULL, invoice_id BIGINT, created_at {time} NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
)
"""


def test_the_example_of_an_idempotent_handler(tmp_path: Path, sqlite_memory_url: str) -> None:
    """S3-11, S3-41, S3-42: an attempt that fails after its work was committed is repeated; there is one invoice."""
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as shop:
        shop.executescript(CREATE.format(id="INTEGER", time="TEXT"))
    shop.close()

    def invoice(ctx: Any) -> int:
        connection = sqlite3.connect(path, isolation_level="IMMEDIATE")
        try:
            with connection:
                found = connection.execute(
                    "SELECT invoice_id FROM invoice_generation_keys WHERE tenant_id = ? AND idempotency_key = ?",
                    (ctx.tenant, ctx.idempotency_key),
                ).fetchone()
                if found is None:
                    made = connection.execute(
                        "INSERT INTO invoices (tenant_id, for_tick) VALUES (?, ?) RETURNING invoice_id",
                        (ctx.tenant, iso(ctx.scheduled_for)),
                    ).fetchone()
                    connection.execute(
                        "INSERT INTO invoice_generation_keys VALUES (?, ?, ?, ?)",
                        (ctx.tenant, ctx.idempotency_key, made[0], "now"),
                    )
        finally:
            connection.close()
        if found is None:
            raise ConnectionError("after the commit")
        return int(found[0])

    asked = invoiced(sqlite_memory_url, invoice)
    with sqlite3.connect(path) as shop:
        kept = shop.execute("SELECT invoice_id, tenant_id, for_tick FROM invoices").fetchall()
        keys = shop.execute("SELECT tenant_id, idempotency_key, invoice_id FROM invoice_generation_keys").fetchall()
    shop.close()
    assert kept == [(1, "default", TICK)]
    assert keys == [("default", asked, 1)]


def test_the_example_of_an_idempotent_handler_on_postgresql(postgres18_url: str) -> None:
    """S3-42: the same in one transaction of PostgreSQL, where the key decides between two at once."""

    async def ask(text: str, *values: object) -> Any:
        connection = await asyncpg.connect(postgres18_url)
        try:
            return (
                await connection.fetch(text, *values) if values or "SELECT" in text else await connection.execute(text)
            )
        finally:
            await connection.close()

    asyncio.run(ask(CREATE.format(id="BIGINT GENERATED ALWAYS AS IDENTITY", time="TIMESTAMPTZ")))

    async def invoice(ctx: Any) -> int:
        connection = await asyncpg.connect(postgres18_url)
        try:
            async with connection.transaction():
                mine = await connection.fetchval(
                    "INSERT INTO invoice_generation_keys VALUES ($1, $2, NULL, now()) ON CONFLICT DO NOTHING"
                    " RETURNING idempotency_key",
                    ctx.tenant, ctx.idempotency_key,
                )  # fmt: skip
                if mine is not None:
                    number = await connection.fetchval(
                        "INSERT INTO invoices (tenant_id, for_tick) VALUES ($1, $2) RETURNING invoice_id",
                        ctx.tenant, iso(ctx.scheduled_for),
                    )  # fmt: skip
                    await connection.execute(
                        "UPDATE invoice_generation_keys SET invoice_id = $1 WHERE idempotency_key = $2", number, mine
                    )
            if mine is not None:
                raise ConnectionError("after the commit")
            return int(await connection.fetchval("SELECT invoice_id FROM invoice_generation_keys"))
        finally:
            await connection.close()

    asked = invoiced(postgres18_url, invoice)
    rows = asyncio.run(
        ask("SELECT idempotency_key, for_tick FROM invoices JOIN invoice_generation_keys USING (invoice_id)")
    )
    assert [tuple(row) for row in rows] == [(asked, TICK)]


def invoiced(url: str, invoice: Function) -> str:
    """The key under which the work of one tick was done in two attempts."""
    keys: list[str] = []

    async def scenario(made: Crew) -> None:
        await made.define(job(retry=RetryRule(max_attempts=3, delays_ms=(0,), jitter=0), misfire=WHENEVER))
        run_id = await made.tick("a", at(TICK))
        made.join()
        [line] = await made.ended(run_id)
        attempts = await made.attempts(run_id)
        assert [each.outcome for each in attempts] == ["failed", "succeeded"]
        assert attempts[1].result == "1"
        assert line.run.idempotency_key == f"job:{line.run.job_id}:scheduled_for:{TICK}"
        keys.append(line.run.idempotency_key)

    played(url, scenario, {"t:f": invoice})
    return keys[0]
