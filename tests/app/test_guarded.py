"""Guarded writes without a zombie: who holds the run, with every driver, and with no more rights than the docs give."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from fleetcron import Fleetcron, LeaseLost, fenced, guarded
from fleetcron.app.running import settings
from fleetcron.clock import SystemClock
from fleetcron.errors import SchemaError, StoreError
from fleetcron.executors.reports import Progress
from fleetcron.scheduler.desk import Desk
from fleetcron.store.migrations import migrate
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.app import orders
from tests.app.test_enqueue import ASYNC, DOCS, PLAIN, Undo
from tests.faults.fleet import until
from tests.store.engines import admin, hand_cranked
from tests.store.floor import MINUTE, Floor, ok

NOW = 1_800_000_000_000 // MINUTE * MINUTE


@asynccontextmanager
async def held(url: str) -> AsyncIterator[tuple[Floor, Any, Any]]:
    """A run that a worker holds, the context of its attempt, and a table to write into."""
    async with hand_cranked(url, NOW) as (engine, clock), admin(url) as outside:
        store = Store(engine)
        assert await store.shards.fix(2) == Ok(2)
        floor = Floor(
            store, clock, Desk(store, actor="ann", shards=2), ok(await store.shards.take("*", [0, 1], "s", 3_600_000))
        )
        await floor.define("book")
        await floor.next_minute()
        await floor.join("n1")
        [run] = await floor.claim("n1")
        await outside.execute("CREATE TABLE written (what TEXT)")
        await outside.execute("CREATE TABLE fleetcron_fences (run_key TEXT PRIMARY KEY, fence BIGINT NOT NULL)")
        yield floor, run, outside


def context(run: Any, attempt: int | None = None) -> Any:
    number = run.attempt if attempt is None else attempt
    return SimpleNamespace(run_id=run.run_id, attempt=number, fence=number, idempotency_key="k")


def test_it_commits_while_the_run_is_held_with_every_driver(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with held(postgres18_url) as (floor, run, outside):
            ctx = context(run)

            async def written() -> list[str]:
                return [row["what"] for row in await outside.fetch("DELETE FROM written RETURNING what")]

            async def guard(by: Any, ctx: Any) -> None:
                async with by(postgres18_url) as (connection, execute), guarded(ctx, connection):
                    await execute(f"INSERT INTO written VALUES ('{by.__name__}')")

            def guard_plainly(by: Any, ctx: Any) -> None:
                with by(postgres18_url) as (connection, execute), guarded(ctx, connection):
                    execute(f"INSERT INTO written VALUES ('{by.__name__}')")

            async def write(by: Any, ctx: Any) -> None:
                await (guard(by, ctx) if by in ASYNC else asyncio.to_thread(guard_plainly, by, ctx))

            for by in (*ASYNC, *PLAIN):
                await write(by, ctx)
                assert await written() == [by.__name__]
                with pytest.raises(LeaseLost):
                    await write(by, context(run, 2))
                assert await written() == [], by.__name__

            async with admin(postgres18_url) as connection:  # a transaction of its own, which an error rolls back

                async def fail(connection: Any = connection) -> None:
                    async with guarded(ctx, connection):
                        await connection.execute("INSERT INTO written VALUES ('undone')")
                        raise Undo

                with pytest.raises(Undo):
                    await fail()
                async with guarded(ctx, connection):
                    await connection.execute("INSERT INTO written VALUES ('alone')")
                assert await written() == ["alone"]
                with pytest.raises(SchemaError, match="in the schema elsewhere"):
                    async with guarded(ctx, connection, schema="elsewhere"):
                        pass
                async with fenced(context(run, 2), connection), connection.transaction():
                    await connection.execute("INSERT INTO written VALUES ('fenced')")
                async with fenced(context(run, 2), connection):  # the same attempt may write again
                    pass
                with pytest.raises(LeaseLost, match="a later attempt than 1"):
                    async with fenced(ctx, connection):
                        pass
                with pytest.raises(StoreError, match="is not the name of a table"):
                    fenced(ctx, connection, table="a; DROP TABLE b")
                assert await written() == ["fenced"]

                # Between two attempts the lease is there, with the number of the last one; but nobody holds the run.
                await floor.fail("n1", run)
                with pytest.raises(LeaseLost, match=f"attempt 1 of run {run.run_id} does not hold the run any more"):
                    async with guarded(ctx, connection):
                        await connection.execute("INSERT INTO written VALUES ('between')")
                assert await written() == []

    asyncio.run(scenario())


def test_only_whoever_ends_the_attempt_waits_for_a_guard(postgres18_url: str) -> None:
    """A handler has guarded its writes in a transaction that goes on. The next tick of its job is due and wants to know
    who has the key; with it the whole pool would stand still."""

    async def scenario() -> None:
        async with held(postgres18_url) as (floor, run, outside), admin(postgres18_url) as connection:
            await floor.define("other")
            await floor.join("n2")
            await floor.next_minute()
            transaction = connection.transaction()
            await transaction.start()
            async with guarded(context(run), connection):
                await connection.execute("INSERT INTO written VALUES ('guarded')")
            assert [each.name for each in await floor.claim("n2")] == ["other"]
            ok(await floor.store.workers.renew("n1", 3_600_000))
            ok(await floor.store.output.append("n1", [], [Progress(run.run_id, run.attempt, 0.5, "half of it")]))

            async def is_waiting() -> bool:
                return bool(await outside.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

            ending = asyncio.create_task(floor.fail("n1", run))
            await until(is_waiting)
            await transaction.commit()
            await ending
            assert await outside.fetchval("SELECT what FROM written") == "guarded"
            with pytest.raises(LeaseLost):
                async with guarded(context(run), connection):
                    pass

    asyncio.run(scenario())


def test_whoever_ends_the_attempt_first_is_waited_for(postgres18_url: str) -> None:
    """The end is written and not committed when the handler asks: the run rests, and the row is the same."""

    async def scenario() -> None:
        async with held(postgres18_url) as (_, run, outside), admin(postgres18_url) as connection:
            ending = outside.transaction()
            await ending.start()
            await outside.execute(f"SELECT FROM fleetcron.leases WHERE run_id = {run.run_id} FOR UPDATE")  # leases_mine
            await outside.execute(f"UPDATE fleetcron.leases SET node_id = NULL WHERE run_id = {run.run_id}")

            async def write() -> None:
                async with guarded(context(run), connection):
                    await connection.execute("INSERT INTO written VALUES ('late')")

            async def is_waiting() -> bool:
                return bool(await outside.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

            late = asyncio.create_task(write())
            await until(is_waiting)
            await ending.commit()
            with pytest.raises(LeaseLost):
                await late
            assert await outside.fetchval("SELECT count(*) FROM written") == 0

    asyncio.run(scenario())


def test_a_handler_knows_the_schema_of_its_worker(postgres18_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this database the schema `fleetcron` is another fleet's: there the lease of this run is not."""
    monkeypatch.setenv("SHOP_URL", postgres18_url)
    app = Fleetcron(f"{postgres18_url}?schema=shop", name="shop")
    app.job(on_demand=True, retry={"max_attempts": 1})(orders.book)

    async def scenario() -> None:
        store = await Store.open(settings(app).store, SystemClock())
        try:
            await migrate(store.engine)
        finally:
            await store.close()
        async with admin(postgres18_url) as outside:
            await outside.execute(orders.TABLES)
            async with app.lifespan():
                await app.enqueue("book", {"order": 7})

                async def is_over() -> bool:
                    return bool(await outside.fetchval("SELECT count(*) FROM shop.runs WHERE state <> 'planned'"))

                await until(is_over)
            assert [row["outcome"] for row in await outside.fetch("SELECT outcome FROM shop.attempts")] == ["succeeded"]
            assert await outside.fetchval("SELECT id FROM orders") == 7

    asyncio.run(scenario())


def test_a_user_who_may_only_do_that(postgres18_url: str) -> None:
    [block] = re.findall(r"```sql\n(.*?GRANT USAGE.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    grants = [line for line in block.splitlines() if "SCHEMA fleetcron" in line or "leases" in line]
    assert len(grants) == 2

    async def scenario() -> None:
        async with held(postgres18_url) as (_, run, outside), admin(postgres18_url) as connection:
            role = f"shop_{await outside.fetchval('SELECT oid FROM pg_database WHERE datname = current_database()')}"
            await outside.execute(f"CREATE ROLE {role}")
            try:
                await connection.execute(f"SET ROLE {role}")
                with pytest.raises(StoreError):
                    async with guarded(context(run), connection):
                        pass
                for grant in grants:
                    await outside.execute(grant.replace(" shop", f" {role}"))
                async with guarded(context(run), connection):
                    pass
            finally:
                await outside.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")

    asyncio.run(scenario())
