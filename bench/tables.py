"""The tables of either store, past fleetcron: to fill them and to look at them."""

import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import asyncpg

from bench.cpu import database_s
from fleetcron.clock import SystemClock
from fleetcron.config import StoreConfig
from fleetcron.store.migrations import migrate
from fleetcron.store.store import Store

DEADLINE_S = 20.0
_FILLED = (
    "jobs", "job_revisions", "timings", "cursors", "runs", "upcoming", "queue", "shares", "workers", "leases",
    "attempts", "tenants", "rates", "pools", "controls", "gaps", "ledger", "events",
)  # fmt: skip


class Tables(Protocol):
    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None: ...

    async def fetch(self, sql: str) -> list[tuple[Any, ...]]: ...

    async def run(self, sql: str) -> None: ...

    async def now_ms(self) -> int: ...

    async def settle(self) -> None:
        """So that what comes next does not pay for what was before."""
        ...

    def cpu_s(self) -> float | None:
        """What the database has computed; None where it is a part of the worker, or out of sight."""
        ...


class _Postgres:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self._pid = connection.get_server_pid()

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        await self._connection.copy_records_to_table(table, records=rows, columns=columns)

    async def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._connection.fetch(sql)]

    async def run(self, sql: str) -> None:
        await self._connection.execute(sql)

    async def now_ms(self) -> int:
        return int(await self._connection.fetchval("SELECT db_now_ms()"))

    async def settle(self) -> None:
        await self.run("VACUUM ANALYZE")
        await self.run("CHECKPOINT")

    def cpu_s(self) -> float | None:
        return database_s(self._pid)


class _Sqlite:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        marks = ",".join("?" * len(columns))
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(f"INSERT INTO {table} ({','.join(columns)}) VALUES ({marks})", rows)
        self._connection.execute("COMMIT")

    async def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql).fetchall()

    async def run(self, sql: str) -> None:
        self._connection.execute(sql)

    async def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    async def settle(self) -> None:
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def cpu_s(self) -> float | None:
        return None


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Tables]:
    """The database of this URL, with all tables, and nothing in them."""
    store = await Store.open(StoreConfig(url=url, deadline_s=DEADLINE_S), SystemClock())
    await migrate(store.engine)
    await store.close()
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=DEADLINE_S)
        try:
            yield _Sqlite(connection)
        finally:
            connection.close()
        return
    server = await asyncpg.connect(url, server_settings={"search_path": "fleetcron"}, command_timeout=600)
    try:
        await server.execute(f"TRUNCATE {', '.join(_FILLED)}")
        yield _Postgres(server)
    finally:
        await server.close()
