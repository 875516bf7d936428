"""A script of ours in a transaction that is not ours: it counts if the application commits, and never was if not.

The statements are those that the engine runs, and they find their tables by the search path; so it is set for the time
of the script, inside a savepoint: what is refused, or fails, leaves the application's transaction as it was, and the
application may go on with it. Hints are notifications, which PostgreSQL itself sends when the transaction commits.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar

from fleetcron.errors import RefusedError, SchemaError, StoreError
from fleetcron.store.drivers import Driver, PlainDriver, driver_of, plain_driver_of
from fleetcron.store.engine import Row, Script
from fleetcron.store.postgres_url import channel_of
from fleetcron.store.statements import NOTIFY, Statements
from fleetcron.store.written import Refused

T = TypeVar("T")
# SQL with $1, $2, … and what is given; the rows come back
Steps: TypeAlias = Generator[tuple[str, Sequence[Any]], list[Row], T]

_SAVE: Final = "SAVEPOINT fleetcron"
_UNDO: Final = "ROLLBACK TO SAVEPOINT fleetcron"
_RELEASE: Final = "RELEASE SAVEPOINT fleetcron"
_ENTER: Final = (
    "WITH before AS MATERIALIZED (SELECT current_setting('search_path') AS path) "
    "SELECT path, set_config('search_path', $1, true) FROM before"
)
_LEAVE: Final = "SELECT set_config('search_path', $1, true)"
_TELL: Final = "SELECT pg_notify($1, $2)"
_NO_TABLES: Final = ("42P01", "42703", "42883", "3F000")
_DENIED: Final = "42501"


async def borrow(connection: Any, schema: str, script: Callable[[], Script[T | Refused]]) -> T:
    """Run it on the application's connection, inside its transaction. A RefusedError if it was refused."""
    driver = await driver_of(connection)
    _require_transaction(driver.is_in_transaction)
    return await borrow_driver(driver, schema, script)


async def borrow_driver(driver: Driver, schema: str, script: Callable[[], Script[T | Refused]]) -> T:
    steps = _steps(schema, script)
    try:
        call = next(steps)
        while True:
            try:
                rows = await driver.fetch(*call)
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(rows)
    except StopIteration as done:
        value: T = done.value
        return value


def borrow_sync(connection: Any, schema: str, script: Callable[[], Script[T | Refused]]) -> T:
    """The same for a connection that is not awaited."""
    driver = plain_driver_of(connection)
    _require_transaction(driver.is_in_transaction)
    return borrow_plain_driver(driver, schema, script)


def borrow_plain_driver(driver: PlainDriver, schema: str, script: Callable[[], Script[T | Refused]]) -> T:
    steps = _steps(schema, script)
    try:
        call = next(steps)
        while True:
            try:
                rows = driver.fetch(*call)
            except BaseException as error:
                call = steps.throw(error)
            else:
                call = steps.send(rows)
    except StopIteration as done:
        value: T = done.value
        return value


def _steps(schema: str, script: Callable[[], Script[T | Refused]]) -> Steps[T]:
    yield _SAVE, ()
    try:
        [before] = yield _ENTER, (schema,)
        value = yield from _scripted(script, schema)
        if isinstance(value, Refused):
            raise RefusedError(value.reason)
        yield _LEAVE, (before["path"],)
        yield _RELEASE, ()
    except BaseException as error:
        with suppress(Exception):  # a connection that is gone has rolled back by itself
            yield _UNDO, ()  # the search path too
            yield _RELEASE, ()
        named = _named(error, schema)
        if named is error:
            raise
        raise named from error
    return value


def _scripted(script: Callable[[], Script[T]], schema: str) -> Steps[T]:
    """The names become texts; a hint is told once for each topic."""
    statements = Statements.for_engine("postgres")
    topics: dict[str, None] = {}
    generator = script()
    try:
        name, parameters = next(generator)
        while True:
            rows: list[Row] = []
            if name == NOTIFY:
                topics[parameters["topic"]] = None
            else:
                statement = statements[name]
                statement.check(parameters)
                rows = yield statement.sql, [parameters[each] for each in statement.parameters]
            name, parameters = generator.send(rows)
    except StopIteration as done:
        for topic in topics:
            yield _TELL, (channel_of(schema), topic)
        value: T = done.value
        return value
    finally:
        generator.close()


def _named(error: BaseException, schema: str) -> BaseException:
    """What the database lacks, by name. Everything else stays the driver's own error: its owner knows what to do."""
    state = str(getattr(error, "sqlstate", None) or "")
    said = " ".join(str(error).split())
    if state in _NO_TABLES:
        hint = "the connection must lead to the database of fleetcron's store; `fleetcron migrate` makes its tables"
        return SchemaError(f"there are no tables of this fleetcron in the schema {schema} there ({said})", hint=hint)
    if state == _DENIED:
        hint = "grant this user what docs/operate/databases.md lists for applications"
        return StoreError(f"the user of this connection may not write into the schema {schema} ({said})", hint=hint)
    return error


def _require_transaction(is_in_transaction: bool) -> None:
    if not is_in_transaction:
        raise RefusedError(
            "the connection is not in a transaction, so there is nothing that the run could be committed with; begin "
            "one, such as `async with connection.transaction():`, or use app.enqueue(…)"
        )
