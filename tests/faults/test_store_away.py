"""The store goes away under a node: it says so once, waits, and goes on by itself; no tick is lost."""

import asyncio
import logging
import resource
import sqlite3
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import replace
from itertools import count, pairwise
from time import monotonic
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.node import Node
from fleetcron.store.sqlite import SqliteEngine
from fleetcron.store.sqlite_session import SqliteSession
from tests.faults import truth
from tests.faults.fleet import until
from tests.faults.inside import JOBS, running
from tests.faults.node import TTL_S, quick
from tests.services.own_postgres import OwnPostgres
from tests.services.proxy import Proxy, proxy_to

RED_S = 10.0  # how soon the health of a node must say that the store is away
BACK_S = 5.0  # how soon it plans again when the store is back
OUTAGE_S = TTL_S + 0.5  # longer than a lease, so that the node holds nothing any more


class Outage:
    """What a node did about an outage, in seconds."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.red_s = self.back_s = 0.0

    async def begins(self) -> None:
        await until(lambda: self.node.health.counts["runs"])

    async def turns_red(self) -> None:
        began = monotonic()
        await until(lambda: self.node.health.trouble)
        self.red_s = monotonic() - began
        assert self.red_s < RED_S

    async def stays_red(self, seconds: float = OUTAGE_S) -> None:
        """Also when the leases have run out: who holds nothing must not believe that all is well."""
        until_s = monotonic() + seconds
        while monotonic() < until_s:
            await asyncio.sleep(0.05)
            assert self.node.health.trouble is not None

    async def recovers(self) -> None:
        """Plans again, by itself."""
        began, runs = monotonic(), self.node.health.counts["runs"]
        await until(lambda: self.node.health.ok and self.node.health.counts["runs"] > runs)
        self.back_s = monotonic() - began
        assert self.back_s < BACK_S

    async def settles(self) -> None:
        """One more second of ordinary work, with the past decided."""
        runs = self.node.health.counts["runs"]
        await until(lambda: self.node.health.counts["runs"] > runs + len(JOBS))


def check_log(caplog: pytest.LogCaptureFixture) -> None:
    """A line when planning stops, one more only if the cause is another one, and a line when it goes on."""
    lines = [record.getMessage() for record in caplog.records if record.name == "fleetcron.scheduler.loop"]
    waits = [line for line in lines if line.startswith("planning waits")]
    assert 1 <= len(waits) <= 3
    assert all(one != other for one, other in pairwise(waits))
    assert lines.count("planning goes on") == 1
    assert lines.index(waits[0]) < lines.index("planning goes on")


async def through(outage: Outage, end: Callable[[], Awaitable[Any]]) -> None:
    """The store is away; `end` brings it back."""
    await outage.turns_red()
    await outage.stays_red()
    await end()
    await outage.recovers()
    await outage.settles()
    print(f"\nred after {outage.red_s:.2f} s, planned again {outage.back_s:.2f} s after it was back")


async def database_ms(url: str) -> int:
    connection = await asyncpg.connect(url)
    try:
        return int(await connection.fetchval("SELECT fleetcron.db_now_ms()"))
    finally:
        await connection.close()


def check_ticks(url: str, now_ms: int) -> None:
    verdict = truth.judge(truth.read(url), now_ms)
    print(verdict)
    assert verdict.wrong == []
    assert verdict.undecided == 0
    assert verdict.events["run_conflict"] == 0


def test_postgres_is_killed_and_comes_back(own_postgres: OwnPostgres, caplog: pytest.LogCaptureFixture) -> None:
    """S3-15, S3-48: as `pg_ctl -m immediate restart` under load; nobody needs a human."""
    caplog.set_level(logging.INFO)

    async def scenario() -> int:
        async with running(quick(own_postgres.url, "a")) as node:
            outage = Outage(node)
            await outage.begins()
            own_postgres.kill()
            await through(outage, lambda: asyncio.to_thread(own_postgres.start))
            return await database_ms(own_postgres.url)

    check_ticks(own_postgres.url, asyncio.run(scenario()))
    check_log(caplog)


@pytest.mark.parametrize("fails", [Proxy.hole, Proxy.cut], ids=["hole", "cut"])
def test_the_network_fails(
    postgres18_url: str, fails: Callable[[Proxy], None], caplog: pytest.LogCaptureFixture
) -> None:
    """No call hangs, also not the one of somebody who wants to change a job just then."""
    caplog.set_level(logging.INFO)

    async def scenario() -> int:
        async with proxy_to(postgres18_url) as proxy, running(quick(proxy.url, "a")) as node:
            outage = Outage(node)
            await outage.begins()
            fails(proxy)

            async def end() -> None:
                began = monotonic()
                with pytest.raises(StoreUnavailable):
                    await node.desk.pause("default", JOBS[0].name)
                assert monotonic() - began < 10
                proxy.heal()

            await through(outage, end)
            return await database_ms(postgres18_url)

    check_ticks(postgres18_url, asyncio.run(scenario()))
    check_log(caplog)


def test_a_node_stops_although_nobody_answers(postgres18_url: str) -> None:
    """In a black hole it cannot give its shards back; it leaves all the same, and soon."""

    async def scenario() -> None:
        async with proxy_to(postgres18_url) as proxy:
            async with running(quick(proxy.url, "a")) as node:
                await Outage(node).begins()
                proxy.hole()
                began = monotonic()
            assert monotonic() - began < 10

    asyncio.run(scenario())


def test_sessions_that_are_ended_go_unnoticed(postgres18_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """A fail-over of a pooler, or an administrator: new connections are there, so nothing has happened."""

    async def scenario() -> int:
        async with running(quick(postgres18_url, "a")) as node:
            outage = Outage(node)
            await outage.begins()
            admin = await asyncpg.connect(postgres18_url)
            for _ in range(2):
                await admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'fleetcron' AND datname = current_database() AND state = 'idle'"
                )
                await outage.settles()
            await admin.close()
            assert node.health.ok
            return await database_ms(postgres18_url)

    check_ticks(postgres18_url, asyncio.run(scenario()))
    assert not [record for record in caplog.records if "planning waits" in record.getMessage()]


class File:
    """A SQLite file with a node on it, and ways to spoil it."""

    def __init__(self, url: str, node: Node) -> None:
        self.path = url.removeprefix("sqlite:///")
        engine = node.store.engine
        assert isinstance(engine, SqliteEngine)
        self._writer = engine._writer

    async def pragma(self, text: str) -> Any:
        """On the connection that writes."""
        return await self._writer.call(lambda session: session._open().execute(f"PRAGMA {text}").fetchone())

    async def fill(self) -> None:
        """Write until SQLite refuses."""

        def work(session: SqliteSession) -> None:
            connection = session._open()
            connection.execute("CREATE TABLE filler (stuff BLOB)")
            row = "INSERT INTO filler VALUES (zeroblob(500))"
            with pytest.raises(sqlite3.OperationalError, match="full"):
                deque((connection.execute(row) for _ in count()), maxlen=0)

        await self._writer.call(work)


@asynccontextmanager
async def a_full_file(file: File) -> AsyncIterator[None]:
    """No page more: SQLite says what it says when the disk is full."""
    [pages] = await file.pragma("page_count")
    await file.pragma(f"max_page_count = {pages + 2}")
    await file.fill()
    yield
    await file.pragma("max_page_count = 1000000")


@asynccontextmanager
async def a_limit_on_files(file: File) -> AsyncIterator[None]:
    """The system refuses to let any file of this process grow: as a quota does, or a broken disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@asynccontextmanager
async def another_process(file: File) -> AsyncIterator[None]:
    """It has begun to write, and thinks about it."""
    script = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('BEGIN IMMEDIATE'); print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, file.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout
            assert await asyncio.to_thread(process.stdout.readline) == b"locked\n"
            yield
        finally:
            process.kill()


@asynccontextmanager
async def read_only(file: File) -> AsyncIterator[None]:
    """Every connection is refused to write, also a new one: as on a file system that was remounted."""
    connected = SqliteSession._connected

    def spoiled(session: SqliteSession) -> sqlite3.Connection:
        connection = connected(session)
        connection.execute("PRAGMA query_only = ON")
        return connection

    SqliteSession._connected = spoiled  # type: ignore[assignment,method-assign]
    try:
        await file.pragma("query_only = ON")
        yield
    finally:
        SqliteSession._connected = connected  # type: ignore[method-assign]


MANY = [replace(job, name=f"{job.name}-{number}") for job in JOBS for number in range(10)]  # to fill pages soon
SPOILED = {
    "cannot grow": a_full_file,
    "cannot be read or written": a_limit_on_files,
    "is held by another process": another_process,
    "cannot be written": read_only,
}


@pytest.mark.parametrize("says", SPOILED)
def test_a_sqlite_file_is_spoiled_for_a_while(
    sqlite_file_url: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The health says what it is; when the cause is gone it goes on, and no tick is lost."""
    caplog.set_level(logging.INFO)

    async def scenario() -> int:
        async with running(quick(sqlite_file_url, "a"), jobs=MANY) as node:
            outage = Outage(node)
            await outage.begins()
            async with AsyncExitStack() as spoiling:
                await spoiling.enter_async_context(SPOILED[says](File(sqlite_file_url, node)))
                await outage.turns_red()
                assert says in (node.health.trouble or "")
                await outage.stays_red()
            await outage.recovers()
            await outage.settles()
            print(f"\nred after {outage.red_s:.2f} s, planned again {outage.back_s:.2f} s after it was back")
            return node.clock.now_ms()

    now_ms = asyncio.run(scenario())
    check_ticks(sqlite_file_url, now_ms)
    check_log(caplog)
    with closing(sqlite3.connect(sqlite_file_url.removeprefix("sqlite:///"))) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
