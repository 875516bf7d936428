"""The same on SQLite: a script of ours in a transaction of the application's, on a connection to the same file.

Nobody has to be told: nodes look whether somebody else has committed to the file.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, TypeVar, cast

from fleetcron.clock import Clock
from fleetcron.errors import RefusedError, StoreError
from fleetcron.store.engine import Row, Script
from fleetcron.store.sqlite_errors import meaning
from fleetcron.store.statements import NOTIFY, Statements
from fleetcron.store.written import Refused

T = TypeVar("T")


def borrow_sqlite(connection: Any, path: str, clock: Clock, script: Callable[[], Script[T | Refused]]) -> T:
    """Run it on the application's connection, inside its transaction. A RefusedError if it was refused."""
    _require(connection, path)
    connection.create_function("db_now_ms", 0, clock.now_ms)  # the clock of the fleet is the machine's
    connection.create_function("db_now_us", 0, clock.now_us)
    if not connection.in_transaction:
        connection.execute("BEGIN IMMEDIATE")  # as Python would before the first write
    connection.execute("SAVEPOINT fleetcron")
    try:
        value = _run(connection, script)
        if isinstance(value, Refused):
            raise RefusedError(value.reason)
    except BaseException as error:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK TO fleetcron")
            connection.execute("RELEASE fleetcron")
        if isinstance(error, sqlite3.Error):
            raise meaning(error, path) from error
        raise
    connection.execute("RELEASE fleetcron")
    return value


def _require(connection: Any, path: str) -> None:
    if not isinstance(connection, sqlite3.Connection):
        kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
        hint = f"the store of this app is SQLite: give a sqlite3.Connection to {path}, or call app.enqueue(…)"
        raise StoreError(f"a {kind} is not a connection that can be used here", hint=hint)
    [main] = (row[2] for row in connection.execute("PRAGMA database_list").fetchall() if row[1] == "main")
    if os.path.realpath(main) != os.path.realpath(path):
        raise StoreError(f"the connection leads to {main or 'memory'}, and the store of this app is {path}")
    if connection.isolation_level is None and not connection.in_transaction:
        raise RefusedError(
            "the connection is not in a transaction, so there is nothing that the run could be committed with; begin "
            "one (BEGIN IMMEDIATE), or use app.enqueue(…)"
        )


def _run(connection: sqlite3.Connection, script: Callable[[], Script[T]]) -> T:
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    with closing(script()) as generator, closing(cursor):
        try:
            name, parameters = next(generator)
            while True:
                name, parameters = generator.send(_execute(cursor, name, parameters))
        except StopIteration as done:
            return cast(T, done.value)


def _execute(cursor: sqlite3.Cursor, name: str, parameters: Mapping[str, Any]) -> list[Row]:
    if name == NOTIFY:
        return []
    statement = Statements.for_engine("sqlite")[name]
    statement.check(parameters)
    for text in statement.before:
        cursor.execute(text, parameters)
    return cursor.execute(statement.sql, parameters).fetchall()
