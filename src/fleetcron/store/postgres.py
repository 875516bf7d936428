"""The PostgreSQL engine. Every call ends within its deadline, whatever the network does.

Before COMMIT is sent a failure means that nothing was written. From then on, unless the server says that it refused,
nobody knows: the answer is Unknown, never a guess.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, NoReturn, TypeVar, cast

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.steps import step
from fleetcron.store.engine import Row, Script
from fleetcron.store.postgres_connections import Connection, Connections, Connector
from fleetcron.store.postgres_errors import (
    READ_ONLY,
    RolledBack,
    is_again,
    is_lost,
    is_refusal,
    meaning,
    sqlstate,
    words,
)
from fleetcron.store.postgres_listen import Ear
from fleetcron.store.postgres_url import PostgresUrl, parse
from fleetcron.store.statements import DDL, NOTIFY, Statements
from fleetcron.store.written import Ok, Refused, Unknown, Written

T = TypeVar("T")

_TRIES: Final = 6  # the first, and five more when the database asks for it
_ROLLBACK_S: Final = 2.0
_MIGRATION_S: Final = 600.0
_NOTIFY: Final = "SELECT pg_notify($1, topic) FROM unnest($2::text[]) AS topic"
_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN"
_ALTER: Final = "; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0"
# A migration that cannot get its lock soon must not hold up everybody who queues behind it.
_DDL: Final = "SET LOCAL lock_timeout = 2000; "


class PostgresEngine:
    name = "postgres"

    def __init__(self, url: PostgresUrl, *, deadline_s: float = 5.0, connections: int = 8) -> None:
        self.url = url
        self._deadline_s = deadline_s
        self._connector = Connector(url, deadline_s=deadline_s)
        self._connections = Connections(self._connector, connections)
        self._statements = Statements.for_engine("postgres")
        self._ear = Ear(self._connector)
        self.statements_run: set[str] = set()

    @classmethod
    async def open(cls, url: str, *, deadline_s: float = 5.0, connections: int = 8) -> "PostgresEngine":
        """Connect. Raises at once if that is not possible."""
        engine = cls(parse(url), deadline_s=deadline_s, connections=connections)
        connection, _ = await engine._connections.take()
        engine._connections.give_back(connection)
        return engine

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        value = await self._transact(script, _WRITE, self._deadline_s)
        return value if isinstance(value, Refused | Unknown) else Ok(value)

    async def read(self, script: Callable[[], Script[T]]) -> T:
        value = await self._transact(script, _READ, self._deadline_s)
        if isinstance(value, Unknown):
            raise StoreUnavailable(f"PostgreSQL at {self.url.shown} was lost while it answered ({value.why})")
        return value

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        """As `write`, for migrations: it waits as long as other migrators need, and DDL is allowed."""
        value = await self._transact(script, _WRITE, _MIGRATION_S, _ALTER)
        return value if isinstance(value, Refused | Unknown) else Ok(value)

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[str]]:
        async with self._ear.listener() as listener:
            yield listener

    async def close(self) -> None:
        """Finish what was asked for, then hang up. May be called twice."""
        await self._ear.close()
        await self._connections.close(self._deadline_s)

    async def _transact(
        self, script: Callable[[], Script[T]], begin: str, deadline_s: float, settings: str = ""
    ) -> T | Unknown:
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline_s
        for left in reversed(range(_TRIES)):
            connection: Connection | None = None
            fresh = sent = False
            try:
                async with asyncio.timeout_at(until):
                    connection, fresh = await self._connections.take()
                    brought = self._connector.settings_of(connection, deadline_s) + settings
                    await connection.execute(begin + brought + self._connector.planning_of(connection, loop.time()))
                    step("store.began")
                    value = await self._run(connection, script, reading=begin.startswith(_READ))
                    step("store.commit")
                    sent = True
                    await self._commit(connection)
            except Exception as error:
                if connection is None:
                    self._raise(error if not isinstance(error, TimeoutError) else self._none_free())
                if sent and not is_refusal(error):
                    self._drop(connection)
                    return Unknown(words(error))
                await self._undo(connection, error)
                died_idle = is_lost(error) and not fresh and not isinstance(error, TimeoutError)
                if not left or not (is_again(error) or died_idle):
                    self._raise(error)
            except BaseException:  # cancelled: nobody waits for the answer any more
                if connection:
                    self._connections.discard(connection)
                raise
            else:
                self._connections.give_back(connection)
                step("store.committed")
                return value
        raise AssertionError("the last try returns or raises")

    async def _commit(self, connection: Connection) -> None:
        if await connection.execute("COMMIT") != "COMMIT":
            raise RolledBack(f"PostgreSQL at {self.url.shown} has rolled back what was to be committed")

    async def _undo(self, connection: Connection, error: Exception) -> None:
        """Roll back and keep the connection if it can do that at once; otherwise hang up, which rolls back too."""
        if is_lost(error) or connection.is_closed():
            self._drop(connection)
            return
        try:
            async with asyncio.timeout(min(_ROLLBACK_S, self._deadline_s)):
                await connection.execute("ROLLBACK")
        except BaseException as failure:
            self._drop(connection)
            if not isinstance(failure, Exception):
                raise
        else:
            self._connections.give_back(connection)

    def _raise(self, error: Exception) -> NoReturn:
        named = meaning(error, self.url.shown)
        if named is error:
            raise error
        raise named from error

    def _none_free(self) -> StoreUnavailable:
        hint = "look at the network, at the server's load, and at how many connections this node may have"
        return StoreUnavailable(
            f"no connection to PostgreSQL at {self.url.shown} was free or opened in time", hint=hint
        )

    def _drop(self, connection: Connection) -> None:
        self._connections.discard(connection)
        self._connections.forget_idle()

    async def _run(self, connection: Connection, script: Callable[[], Script[T]], *, reading: bool) -> T:
        topics: dict[str, None] = {}
        generator = script()
        try:
            name, parameters = next(generator)
            while True:
                if name == NOTIFY:
                    topics[parameters["topic"]] = None
                    rows: list[Row] = []
                else:
                    rows = await self._execute(connection, name, parameters, reading)
                name, parameters = generator.send(rows)
        except StopIteration as done:
            if topics:
                await connection.fetch(_NOTIFY, self._ear.channel, list(topics))
            return cast(T, done.value)
        finally:
            generator.close()

    async def _execute(
        self, connection: Connection, name: str, parameters: Mapping[str, Any], reading: bool
    ) -> list[Row]:
        if name == DDL:
            await connection.execute(_DDL + parameters["text"])
            return []
        statement = self._statements[name]
        statement.check(parameters)
        self.statements_run.add(name)
        try:
            rows: list[Row] = await connection.fetch(statement.sql, *map(parameters.__getitem__, statement.parameters))
        except Exception as error:
            if reading and sqlstate(error) == READ_ONLY:
                raise StoreError(f"the statement {name} writes, but was called in a read") from error
            if is_again(error) or is_lost(error):
                raise  # not for the caller yet: the script may run again
            raise meaning(error, self.url.shown, name) from error
        return rows
