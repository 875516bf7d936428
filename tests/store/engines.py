"""Every engine, real, for tests: a database of its own for each test, with the tables in it.

`opened(url)` is an engine on it. `hand_cranked(url, now_ms)` is an engine whose database clock stands still until the
test moves it, on SQLite and on PostgreSQL alike.
"""

from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import asyncpg  # type: ignore[import-untyped]

from fleetcron.clock import Clock, HandClock, SystemClock
from fleetcron.store.engine import Script
from fleetcron.store.migrations import Altering, migrate
from fleetcron.store.opening import open_engine
from fleetcron.store.statements import DDL
from fleetcron.store.written import Ok

SQLITE: Final = ("sqlite-file", "sqlite-memory")
POSTGRES: Final = ("postgres16", "postgres18")
ALL: Final = (*SQLITE, *POSTGRES)
ENGINES: Final = (*SQLITE, "postgres18")

# Which statements the tests of this session have run, by engine. The conformance suite looks at it last.
STATEMENTS_RUN: Final[defaultdict[str, set[str]]] = defaultdict(set)


@asynccontextmanager
async def opened(
    url: str, clock: Clock | None = None, *, deadline_s: float = 5.0, connections: int = 8
) -> AsyncIterator[Altering]:
    """An engine with all tables. Of `:memory:` every call opens a new database, elsewhere the same one."""
    async with bare(url, clock, deadline_s=deadline_s, connections=connections) as engine:
        if engine.name == "sqlite":  # a PostgreSQL database is the copy of one that was migrated
            await migrate(engine)
        yield engine


@asynccontextmanager
async def bare(
    url: str, clock: Clock | None = None, *, deadline_s: float = 5.0, connections: int = 8
) -> AsyncIterator[Altering]:
    """An engine on the database as it is."""
    engine = await open_engine(url, clock=clock or SystemClock(), deadline_s=deadline_s, connections=connections)
    try:
        yield engine
    finally:
        await engine.close()
        STATEMENTS_RUN[engine.name] |= engine.statements_run


class DatabaseClock:
    """The clock of the database, moved by hand. `hand` is the same clock as a Clock: for nodes that agree with it."""

    def __init__(self, now_ms: int) -> None:
        self.hand = HandClock(now_ms)
        self._engine: Altering | None = None

    def now_ms(self) -> int:
        return self.hand.now_ms()

    async def set(self, now_ms: int) -> None:
        self.hand.set(now_ms)
        if self._engine:
            await change(self._engine, f"UPDATE test_clock SET now_ms = {now_ms}")

    async def advance(self, ms: int) -> None:
        await self.set(self.now_ms() + ms)

    async def take_over(self, engine: Altering) -> None:
        """Make db_now_ms() read this clock. (On SQLite it does: the engine was opened with `hand`.)"""
        if engine.name == "postgres":
            self._engine = engine
            await change(
                engine,
                "CREATE TABLE test_clock (now_ms BIGINT NOT NULL);"
                f"INSERT INTO test_clock VALUES ({self.now_ms()});"
                "CREATE OR REPLACE FUNCTION db_now_us() RETURNS BIGINT LANGUAGE sql VOLATILE"
                " AS $$ SELECT now_ms * 1000 FROM test_clock $$",
            )


@asynccontextmanager
async def hand_cranked(url: str, now_ms: int) -> AsyncIterator[tuple[Altering, DatabaseClock]]:
    """An engine with all tables, and the clock of its database. More engines on it: `opened(url, clock.hand)`."""
    clock = DatabaseClock(now_ms)
    async with opened(url, clock.hand) as engine:
        await clock.take_over(engine)
        yield engine, clock


@asynccontextmanager
async def admin(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection to PostgreSQL that is not ours: past the engine, past a proxy."""
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def change(engine: Altering, text: str) -> None:
    """Run SQL that is not one of ours, as a migration would."""

    def script() -> Script[None]:
        yield DDL, {"text": text}

    assert await engine.alter(script) == Ok(None)
