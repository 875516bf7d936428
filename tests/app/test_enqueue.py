"""Runs that an application asks for in its own transaction, on PostgreSQL and with every driver that is known."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from fleetcron import Fleetcron
from fleetcron.app.running import fitted, settings
from fleetcron.errors import DefinitionError, RefusedError, SchemaError, StoreError
from fleetcron.node import Node
from fleetcron.scheduler.desk import Desk
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.app import orders
from tests.faults.fleet import until
from tests.store.engines import admin, opened

DOCS = Path(__file__).parents[2] / "docs/operate/databases.md"


class Undo(Exception):
    """The application changes its mind."""


def shop(url: str | None) -> Fleetcron:
    app = Fleetcron(url, name="shop")
    app.job(on_demand=True, retry={"max_attempts": 1})(orders.ship)
    return app


@asynccontextmanager
async def stocked(url: str) -> AsyncIterator[tuple[Fleetcron, Store, asyncpg.Connection]]:
    """The app with its job in the store, the store, and a look from outside."""
    async with opened(url) as engine, admin(url) as outside:
        store, app = Store(engine), shop(url)
        await app.sync(store)
        await outside.execute(orders.TABLES)
        yield app, store, outside


# -- a transaction of each driver: what is inserted and enqueued in it is one thing

Work = Callable[[Callable[..., Awaitable[Any]], Any], Awaitable[Any]]


@asynccontextmanager
async def by_asyncpg(url: str) -> AsyncIterator[tuple[Any, Any]]:
    connection = await asyncpg.connect(url)
    try:  # as many applications do; our texts must not be taken for JSON values
        await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
        async with connection.transaction():
            yield connection, connection.execute
    finally:
        await connection.close()


@asynccontextmanager
async def by_psycopg(url: str) -> AsyncIterator[tuple[Any, Any]]:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        yield connection, connection.execute


@asynccontextmanager
async def by_psycopg_autocommit(url: str) -> AsyncIterator[tuple[Any, Any]]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection, connection.transaction():
        yield connection, connection.execute


@asynccontextmanager
async def by_session(url: str) -> AsyncIterator[tuple[Any, Any]]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session, (await session.connection()).exec_driver_sql
    finally:
        await engine.dispose()


@asynccontextmanager
async def by_sqlalchemy_on_psycopg(url: str) -> AsyncIterator[tuple[Any, Any]]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.begin() as connection:
            yield connection, connection.exec_driver_sql
    finally:
        await engine.dispose()


@contextmanager
def by_plain_psycopg(url: str) -> Iterator[tuple[Any, Any]]:
    with psycopg.connect(url) as connection:
        yield connection, connection.execute


@contextmanager
def by_plain_session(url: str) -> Iterator[tuple[Any, Any]]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with Session(engine) as session, session.begin():
            yield session, session.connection().exec_driver_sql
    finally:
        engine.dispose()


ASYNC = [by_asyncpg, by_psycopg, by_psycopg_autocommit, by_session, by_sqlalchemy_on_psycopg]
PLAIN = [by_plain_psycopg, by_plain_session]


async def facts(outside: asyncpg.Connection) -> tuple[int, int, int, int]:
    """Orders, runs, runs on their way, and what the log says about them."""
    counts = [
        await outside.fetchval(f"SELECT count(*) FROM {what}")
        for what in ("orders", "fleetcron.runs", "fleetcron.upcoming", "fleetcron.events WHERE kind = 'run_triggered'")
    ]
    return counts[0], counts[1], counts[2], counts[3]


def test_it_is_there_if_the_transaction_commits_and_not_otherwise(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with stocked(postgres18_url) as (app, _, outside):
            heard: list[str] = []
            await outside.add_listener("fleetcron:fleetcron", lambda *word: heard.append(word[-1]))

            async def check(number: int, name: str, work: Callable[[bool], Awaitable[Any]]) -> None:
                with pytest.raises(Undo):
                    await work(True)
                assert await facts(outside) == (number - 1,) * 4, name
                assert heard == [], name
                made = await work(False)
                assert made.created, name
                assert await facts(outside) == (number,) * 4, name
                await until(lambda: heard == ["work"])  # workers are told at the commit
                heard.clear()

            for number, by in enumerate(ASYNC, 1):

                async def work(undo: bool, by: Any = by, number: int = number) -> Any:
                    async with by(postgres18_url) as (connection, execute):
                        await execute(f"INSERT INTO orders VALUES ({number})")
                        made = await app.enqueue_in(connection, "ship", {"order": number}, key=f"order-{number}")
                        await execute("SELECT id FROM orders")  # in the schema that it was before
                        assert (await facts(outside))[0] == number - 1
                        if undo:
                            raise Undo
                        return made

                await check(number, by.__name__, work)

            def plain(by: Any, number: int, undo: bool) -> Any:
                with by(postgres18_url) as (connection, execute):
                    execute(f"INSERT INTO orders VALUES ({number})")
                    made = app.enqueue_in_sync(connection, orders.ship, {"order": number}, key=f"order-{number}")
                    execute("SELECT id FROM orders")
                    if undo:
                        raise Undo
                    return made

            for number, by in enumerate(PLAIN, len(ASYNC) + 1):
                await check(number, by.__name__, lambda undo, by=by, n=number: asyncio.to_thread(plain, by, n, undo))
            kept = await outside.fetchrow("SELECT * FROM fleetcron.runs ORDER BY run_id LIMIT 1")
            assert (kept["kind"], kept["asked_by"], kept["asked_key"]) == ("manual", "app:shop", "order-1")
            assert kept["payload"] == '{"order":1}'

    asyncio.run(scenario())


def test_what_is_refused_leaves_the_transaction_as_it_was(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with stocked(postgres18_url) as (app, store, outside):
            desk = Desk(store, actor="ann", shards=64)
            assert isinstance(await store.limits.put_tenant("default", {"max_payload": 1024}, actor="ann"), Ok)

            async def refused(error: type[Exception], match: str, **asked: Any) -> None:
                with pytest.raises(error, match=match):
                    await app.enqueue_in(connection, **{"job": "ship", "payload": {"order": 1}, **asked})

            connection = await asyncpg.connect(postgres18_url)
            try:
                async with connection.transaction():
                    await connection.execute("INSERT INTO orders VALUES (1)")
                    await refused(RefusedError, "there is no job shp of tenant default", job="shp")
                    await refused(RefusedError, "there is no job ship of tenant acme", tenant="acme")
                    await refused(DefinitionError, "larger than 1 KiB", payload={"order": "x" * 2000})
                    await refused(DefinitionError, "must have 1 to 200 characters", key="")
                    await app.enqueue_in(connection, "ship", {"order": 1}, key="once")
                    await refused(RefusedError, "used before, with another payload", payload={"order": 2}, key="once")
                    await connection.execute("INSERT INTO orders VALUES (2)")
                assert await facts(outside) == (2, 1, 1, 1)
                await desk.pause("default", "ship")
                async with connection.transaction():
                    await refused(RefusedError, "default/ship is paused, so nothing was enqueued; resume it")
                    again = await app.enqueue_in(connection, "ship", {"order": 1}, key="once")
                    assert not again.created  # it was asked for before the pause
                with pytest.raises(RefusedError, match="is paused"):
                    await app.enqueue("ship", {"order": 3})
                await desk.cancel("default", "ship")
                async with connection.transaction():
                    await refused(RefusedError, "is cancelled: it never runs again")
                await refused(RefusedError, "not in a transaction")
            finally:
                await connection.close()
            assert await facts(outside) == (2, 1, 1, 1)

    asyncio.run(scenario())


def test_two_transactions_with_the_same_key_are_one_run(postgres18_url: str) -> None:
    """The second one waits for the first: if that commits it is told the same run, otherwise the run is its own."""

    async def scenario() -> None:
        async with stocked(postgres18_url) as (app, _, outside):

            async def is_waiting() -> bool:
                return bool(await outside.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"))

            for key, commits in (("kept", True), ("undone", False)):
                async with admin(postgres18_url) as one, admin(postgres18_url) as two:
                    first = one.transaction()
                    await first.start()
                    mine = await app.enqueue_in(one, "ship", {"order": 1}, key=key)

                    async def second(two: Any = two, key: str = key) -> Any:
                        async with two.transaction():
                            return await app.enqueue_in(two, "ship", {"order": 1}, key=key)

                    waits = asyncio.create_task(second())
                    await until(is_waiting)
                    await (first.commit() if commits else first.rollback())
                    theirs = await waits
                    assert (theirs.run_id == mine.run_id, theirs.created) == (commits, not commits)
            assert await outside.fetchval("SELECT count(*) FROM fleetcron.runs") == 2

    asyncio.run(scenario())


def test_it_runs_once_and_of_a_connection_that_was_killed_nothing_is_left(
    postgres18_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_URL", postgres18_url)

    async def scenario() -> None:
        async with stocked(postgres18_url) as (app, _, outside):
            node = await Node.start(fitted(settings(app), app.definitions()))
            stop = asyncio.Event()
            running = asyncio.create_task(node.run(stop))
            try:
                victim = await asyncpg.connect(postgres18_url)
                await victim.execute("BEGIN")
                await victim.execute("INSERT INTO orders VALUES (1)")
                await app.enqueue_in(victim, "ship", {"order": 1}, key="killed")
                await outside.execute(f"SELECT pg_terminate_backend({victim.get_server_pid()})")
                await until(victim.is_closed)
                for number in range(2, 7):
                    async with admin(postgres18_url) as connection, connection.transaction():
                        await connection.execute("INSERT INTO orders VALUES ($1)", number)
                        await app.enqueue_in(connection, "ship", {"order": number}, key=f"order-{number}")

                async def shipped() -> bool:
                    done = "SELECT count(*) FROM fleetcron.runs WHERE state = 'succeeded'"
                    return bool(await outside.fetchval(done) == 5)

                await until(shipped)
            finally:
                stop.set()
                await running
                await node.close()
            rows = await outside.fetch("SELECT order_id, attempt, key FROM shipments ORDER BY order_id")
            assert [(row["order_id"], row["attempt"]) for row in rows] == [(number, 1) for number in range(2, 7)]
            assert len({row["key"] for row in rows}) == 5
            assert await facts(outside) == (5, 5, 0, 5)

    asyncio.run(scenario())


def test_where_it_cannot_be(postgres18_url: str, postgres18_database: str) -> None:
    async def scenario() -> None:
        app = shop(postgres18_url)
        async with admin(postgres18_database) as elsewhere, elsewhere.transaction():
            with pytest.raises(SchemaError, match="no tables of this fleetcron in the schema fleetcron there"):
                await app.enqueue_in(elsewhere, "ship")
            await elsewhere.execute("SELECT 1")  # it can go on
            with pytest.raises(StoreError, match="call the form without _sync"):
                app.enqueue_in_sync(elsewhere, "ship")
            with pytest.raises(RefusedError, match=r"is SQLite, whose connections are not awaited"):
                await shop("sqlite:///fleetcron.db").enqueue_in(elsewhere, "ship")
        awaits = pytest.raises(StoreError, match="a Connection does not await; call the _sync form")
        with psycopg.connect(postgres18_url) as plain, awaits:
            await app.enqueue_in(plain, "ship")
        file = sqlite3.connect(":memory:")
        with pytest.raises(StoreError, match=r"a sqlite3.Connection is not a connection that can be used here; give"):
            await app.enqueue_in(file, "ship")
        file.close()

    asyncio.run(scenario())


def test_on_sqlite_a_connection_to_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    url = "sqlite:///shop.db"
    app = shop(url)

    async def prepare() -> None:
        async with opened(url) as engine:
            await app.sync(Store(engine))

    async def is_heard(write: Callable[[], object]) -> None:
        """By a node: it looks whether somebody has written."""
        async with opened(url) as engine, engine.hints() as hints:
            listening = asyncio.ensure_future(anext(hints))
            await asyncio.to_thread(write)
            await asyncio.wait_for(listening, 30)

    asyncio.run(prepare())
    connection = sqlite3.connect("shop.db", check_same_thread=False)
    connection.execute("CREATE TABLE orders (id)")

    def facts() -> list[int]:
        other = sqlite3.connect("shop.db")
        sql = "SELECT count(*) FROM"
        found = [other.execute(f"{sql} {table}").fetchone()[0] for table in ("orders", "runs", "upcoming")]
        other.close()
        return found

    def place(number: int) -> Any:
        connection.execute("INSERT INTO orders VALUES (?)", [number])
        return app.enqueue_in_sync(connection, orders.ship, {"order": number}, key=f"order-{number}")

    try:
        assert place(1).created
        connection.rollback()
        assert facts() == [0, 0, 0]
        assert app.enqueue_in_sync(
            connection, "ship", {"order": 0}
        ).created  # it begins the transaction, as a write does
        with pytest.raises(RefusedError, match="there is no job shp"):
            app.enqueue_in_sync(connection, "shp")
        assert place(2).created
        assert not place(2).created
        assert facts() == [0, 0, 0]
        asyncio.run(is_heard(connection.commit))
        assert facts() == [2, 2, 2]
        connection.isolation_level = None
        with pytest.raises(RefusedError, match="not in a transaction"):
            app.enqueue_in_sync(connection, "ship")
    finally:
        connection.close()
    with closing(sqlite3.connect(":memory:")) as memory:
        for other, why in ((memory, "leads to memory"), (object(), "a builtins.object is not")):
            with pytest.raises(StoreError, match=why):
                app.enqueue_in_sync(other, "ship")


def test_a_user_who_may_only_do_that(postgres18_url: str) -> None:
    """The grants of the docs are enough, and each of them is needed."""
    [block] = re.findall(r"```sql\n(.*?GRANT USAGE.*?)```", DOCS.read_text("utf-8"), re.DOTALL)
    grants = [line for line in block.splitlines() if line.startswith("GRANT")]

    async def scenario() -> None:
        async with stocked(postgres18_url) as (app, _, outside):
            role = f"shop_{await outside.fetchval('SELECT oid FROM pg_database WHERE datname = current_database()')}"
            await outside.execute(f"CREATE ROLE {role}")
            try:
                for missing in (*range(len(grants)), None):
                    for at, grant in enumerate(grants):
                        if at != missing:
                            await outside.execute(grant.replace(" shop", f" {role}"))
                    async with admin(postgres18_url) as connection, connection.transaction():
                        await connection.execute(f"SET LOCAL ROLE {role}")
                        if missing is None:
                            assert (await app.enqueue_in(connection, "ship", {"order": 1})).created
                        elif "leases" not in grants[missing]:
                            with pytest.raises(StoreError, match=r"may not write into the schema|no tables"):
                                await app.enqueue_in(connection, "ship", {"order": 1})
                    await outside.execute(f"DROP OWNED BY {role}")
            finally:
                await outside.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")

    asyncio.run(scenario())
