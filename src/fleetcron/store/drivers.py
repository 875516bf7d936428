"""Connections to PostgreSQL that are not ours: of whichever driver the application uses.

Our statements have $1, $2, …: asyncpg takes them as they are, psycopg 3 with its raw cursors. What SQLAlchemy hands out
is taken off, down to the driver's own connection, in the transaction that SQLAlchemy has begun.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, NoReturn, Protocol

from fleetcron.errors import StoreError
from fleetcron.store.engine import Row

_KNOWN = "a connection of asyncpg or psycopg 3, or a connection or session of SQLAlchemy on one of them"


class Driver(Protocol):
    """One connection, async."""

    @property
    def is_in_transaction(self) -> bool: ...

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """One of its own, or a part of the one that has begun."""

    async def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[Row]: ...


class PlainDriver(Protocol):
    """One connection, for code that does not await."""

    @property
    def is_in_transaction(self) -> bool: ...

    def transaction(self) -> AbstractContextManager[Any]: ...

    def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[Row]: ...


class Asyncpg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_in_transaction(self) -> bool:
        return bool(self._connection.is_in_transaction())

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._connection.transaction()  # type: ignore[no-any-return]

    async def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[Row]:
        found: list[Row] = await self._connection.fetch(sql, *given)
        return found


class Psycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_in_transaction(self) -> bool:
        return _psycopg_is_in_transaction(self._connection)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self._connection.transaction()  # type: ignore[no-any-return]

    async def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[Row]:
        from psycopg import AsyncRawCursor
        from psycopg.rows import dict_row

        async with AsyncRawCursor(self._connection, row_factory=dict_row) as cursor:
            await cursor.execute(sql, given or None)
            return list(await cursor.fetchall()) if cursor.description else []


class PlainPsycopg:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    @property
    def is_in_transaction(self) -> bool:
        return _psycopg_is_in_transaction(self._connection)

    def transaction(self) -> AbstractContextManager[Any]:
        return self._connection.transaction()  # type: ignore[no-any-return]

    def fetch(self, sql: str, given: Sequence[Any] = ()) -> list[Row]:
        from psycopg import RawCursor
        from psycopg.rows import dict_row

        with RawCursor(self._connection, row_factory=dict_row) as cursor:
            cursor.execute(sql, given or None)
            return list(cursor.fetchall()) if cursor.description else []


async def driver_of(connection: Any) -> Driver:
    """A StoreError for what is not known, or is not async."""
    kind, names = _kind(connection)
    if kind == "sqlalchemy":
        if "AsyncSession" in names or "async_scoped_session" in names:
            connection = await connection.connection()
        elif "AsyncConnection" not in names:
            _refuse_colour(connection, "does not await", "the _sync form")
        await connection.exec_driver_sql("SELECT 1")  # only now it begins the transaction at the driver
        return await driver_of((await connection.get_raw_connection()).driver_connection)
    if kind == "asyncpg":
        return Asyncpg(connection)
    if "AsyncConnection" not in names:
        _refuse_colour(connection, "does not await", "the _sync form")
    return Psycopg(connection)


def plain_driver_of(connection: Any) -> PlainDriver:
    """A StoreError for what is not known, or has to be awaited."""
    kind, names = _kind(connection)
    if kind == "asyncpg" or any(name.lower().startswith("async") for name in names):
        _refuse_colour(connection, "has to be awaited", "the form without _sync")
    if kind == "sqlalchemy":
        if "Session" in names or "scoped_session" in names:
            connection = connection.connection()
        connection.exec_driver_sql("SELECT 1")
        return plain_driver_of(connection.connection.driver_connection)
    return PlainPsycopg(connection)


def _kind(connection: object) -> tuple[str, set[str]]:
    """Which library it is of, and the names of its classes. None of them is imported for it."""
    classes = type(connection).__mro__
    for kind in ("sqlalchemy", "asyncpg", "psycopg"):
        if any(each.__module__.partition(".")[0] == kind for each in classes):
            return kind, {each.__name__ for each in classes}
    name = f"{type(connection).__module__}.{type(connection).__qualname__}"
    raise StoreError(f"a {name} is not a connection that can be used here", hint=f"give {_KNOWN}")


def _refuse_colour(connection: object, what: str, instead: str) -> NoReturn:
    raise StoreError(f"a {type(connection).__qualname__} {what}", hint=f"call {instead}")


def _psycopg_is_in_transaction(connection: Any) -> bool:
    """Without autocommit the first statement begins one, and nothing is kept until somebody commits."""
    return not connection.autocommit or connection.info.transaction_status.name in ("INTRANS", "INERROR", "ACTIVE")
