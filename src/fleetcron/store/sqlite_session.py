"""One connection to a SQLite file, without threads: whole scripts as transactions.

Durability: WAL with synchronous=FULL. A commit is on the disk before the caller hears of it, so it survives power loss.
"""

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn, TypeVar
from urllib.parse import quote

from fleetcron.clock import Clock
from fleetcron.errors import StoreError
from fleetcron.steps import step
from fleetcron.store.engine import Row, Script
from fleetcron.store.sqlite_errors import MEMORY, is_busy, is_not_committed, is_of_the_connection, meaning, primary
from fleetcron.store.statements import DDL, NOTIFY, Statements
from fleetcron.store.written import Ok, Refused, Unknown, Written

T = TypeVar("T")

_PRAGMAS: Final = (
    "synchronous = FULL",
    "foreign_keys = ON",
    "temp_store = MEMORY",
    "journal_size_limit = 67108864",  # give back what a burst has made of the WAL
)
_PRAGMAS_OF_A_READER: Final = ("query_only = ON",)
_PAUSE_S: Final = 0.02


class SqliteSession:
    """Opens the file when it is first needed, and again after a failure that a new connection may cure."""

    def __init__(
        self, path: str, clock: Clock, *, busy_ms: int, writes: bool = True, statements_run: set[str] | None = None
    ) -> None:
        self.path = path if path == MEMORY else os.path.abspath(path)
        self._clock = clock
        self._busy_ms = busy_ms
        self._writes = writes
        self._statements = Statements.for_engine("sqlite")
        self._connection: sqlite3.Connection | None = None
        self._openings = 0
        self._file: tuple[int, int] | None = None
        self._reading = False
        self.statements_run: set[str] = set() if statements_run is None else statements_run
        self._said: list[str] = []
        self.committed_topics: list[str] = []  # what the last write wanted others to know

    def write(self, script: Callable[[], Script[T | Refused]], *, busy_ms: int | None = None) -> Written[T]:
        """One BEGIN IMMEDIATE … COMMIT. Raises if nothing was written."""
        self._said, self.committed_topics = [], []
        connection = self._open()
        try:
            self._begin(connection, self._busy_ms if busy_ms is None else busy_ms)
            step("store.began")
            value = self._run(connection, script)
        except BaseException as error:
            self.undo()
            self._raise(error)
        step("store.commit")
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self.undo()
            if is_not_committed(error):
                self._raise(error)
            self.close()
            return Unknown(str(meaning(error, self.path)))
        self.committed_topics = self._said
        step("store.committed")
        return value if isinstance(value, Refused) else Ok(value)

    def read(self, script: Callable[[], Script[T]]) -> T:
        """One snapshot: what commits meanwhile is not seen. Writing in it is an error."""
        connection = self._open()
        self._reading = True
        try:
            if self._writes:  # a file has a session of its own for reads, memory has not
                connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            value = self._run(connection, script)
            connection.execute("COMMIT")
        except BaseException as error:
            self.undo()
            self._raise(error)
        finally:
            self._reading = False
            if self._writes and self._connection:
                connection.execute("PRAGMA query_only = OFF")
        return value

    def changes_of_others(self) -> tuple[int, int]:
        """It changes when another connection has committed, or may have. This connection's commits do not count.

        SQLite's number says nothing about another connection's: after a second opening the file is looked at anew.
        """
        connection = self._open()
        try:
            return self._openings, int(connection.execute("PRAGMA data_version").fetchone()[0])
        except sqlite3.Error as error:
            self._raise(error)

    def close(self) -> None:
        if self._connection:
            connection, self._connection = self._connection, None
            with suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection and self._file != self._identity():
            self.close()  # the file was moved away or replaced: what we write to the old one nobody would ever find
        if not self._connection:
            try:
                self._connection = self._connected()
            except sqlite3.Error as error:
                self._raise(error)
            self._file = self._identity()
            self._openings += 1
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        # A missing file is made only the first time: an empty one in the place of one that vanished hides the loss.
        mode = "rw" if self._file or not self._writes else "rwc"
        uri = MEMORY if self.path == MEMORY else f"file:{quote(self.path)}?mode={mode}"
        connection = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None, cached_statements=1000)
        try:
            connection.row_factory = sqlite3.Row
            connection.create_function("db_now_ms", 0, self._clock.now_ms)
            connection.create_function("db_now_us", 0, self._clock.now_us)
            if self._writes:
                self._use_wal(connection)
            connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
            for pragma in (*_PRAGMAS, *(() if self._writes else _PRAGMAS_OF_A_READER)):
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """When several open a new file, SQLite refuses this at once to all but one, whatever its busy timeout is."""
        for _ in range(int(self._busy_ms / 1000 / _PAUSE_S)):
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
                time.sleep(_PAUSE_S)
            else:
                return
        connection.execute("PRAGMA journal_mode = WAL")

    def _identity(self) -> tuple[int, int] | None:
        if self.path == MEMORY:
            return None
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _begin(self, connection: sqlite3.Connection, busy_ms: int) -> None:
        if busy_ms == self._busy_ms:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")

    def _run(self, connection: sqlite3.Connection, script: Callable[[], Script[T]]) -> T:
        generator = script()
        try:
            name, parameters = next(generator)
            while True:
                name, parameters = generator.send(self._execute(connection, name, parameters))
        except StopIteration as done:
            value: T = done.value
            return value
        finally:
            generator.close()

    def _execute(self, connection: sqlite3.Connection, name: str, parameters: Mapping[str, Any]) -> list[Row]:
        if name == NOTIFY:
            self._said.append(parameters["topic"])
            return []
        if name == DDL:
            for text in statements_in(parameters["text"]):
                connection.execute(text)
            return []
        statement = self._statements[name]
        statement.check(parameters)
        self.statements_run.add(name)
        try:
            for text in statement.before:
                connection.execute(text, parameters)
            return connection.execute(statement.sql, parameters).fetchall()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            self._raise(error, name)

    def undo(self) -> None:
        """Take back what is open. A connection that cannot do even that is given up, which takes it back too."""
        if self._connection:
            try:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                self.close()

    def _raise(self, error: BaseException, statement: str | None = None) -> NoReturn:
        """Raise the error as we name it. One that is not of the database stays what it is."""
        if isinstance(error, OverflowError | UnicodeError) and statement:
            raise StoreError(f"the statement {statement} was given a value that SQLite cannot hold: {error}") from error
        if not isinstance(error, sqlite3.Error):
            raise error
        if self._reading and statement and primary(error) == sqlite3.SQLITE_READONLY:
            raise StoreError(f"the statement {statement} writes, but was called in a read") from error
        if is_of_the_connection(error) and self.path != MEMORY:  # a closed :memory: is an empty one
            self.close()
        raise meaning(error, self.path, statement) from error


def statements_in(text: str) -> Iterator[str]:
    """The statements of a migration. (executescript would commit what is open first.)"""
    statement = ""
    for piece in re.split("(?<=;)", text):
        statement += piece
        if sqlite3.complete_statement(statement):  # not every semicolon ends one: strings, comments, triggers
            yield statement
            statement = ""
    if statement.strip():
        yield statement  # without a semicolon, or only a comment, which SQLite takes for nothing
