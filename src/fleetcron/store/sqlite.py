"""The SQLite engine: one thread writes, another reads, and neither ever holds up the event loop.

A script runs as a whole on its thread, so a transaction never waits for anybody's code between two statements. If the
caller is cancelled the thread finishes what it began: the transaction is committed or rolled back, never left open.
Other processes may use the same file; SQLite's own lock puts their writes in order.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from fleetcron.clock import Clock
from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.store.engine import Script
from fleetcron.store.hints import LOST, Hints
from fleetcron.store.sqlite_errors import MEMORY
from fleetcron.store.sqlite_session import SqliteSession
from fleetcron.store.sqlite_thread import SqliteThread
from fleetcron.store.written import Refused, Written

T = TypeVar("T")

_MIGRATION_BUSY_MS: Final = 60_000
_LOOK_EVERY_S: Final = 1.0  # how soon a commit of another process is noticed
_NOTHING: Final = (0, 0)  # never seen: whatever is seen next is a change


class SqliteEngine:
    name = "sqlite"

    def __init__(self, path: str, *, clock: Clock, deadline_s: float = 5.0) -> None:
        busy_ms = int(deadline_s * 1000)
        self.statements_run: set[str] = set()
        self._hints = Hints()
        self._watch: asyncio.Task[None] | None = None
        self._seen: tuple[int, int] | None = None
        writer = SqliteSession(path, clock, busy_ms=busy_ms, statements_run=self.statements_run)
        self.path = writer.path
        self._writer = SqliteThread(writer, patience_s=deadline_s, hints=self._hints)
        self._reader = self._writer
        if path != MEMORY:  # every connection to :memory: is another database
            reader = SqliteSession(path, clock, busy_ms=busy_ms, writes=False, statements_run=self.statements_run)
            self._reader = SqliteThread(reader, patience_s=deadline_s, hints=self._hints)

    @classmethod
    async def open(cls, path: str, *, clock: Clock, deadline_s: float = 5.0) -> "SqliteEngine":
        """Open or create the file. Raises at once if that is not possible.

        A call waits at most `deadline_s` for its turn and as long again for a lock that another process holds.
        """
        engine = cls(path, clock=clock, deadline_s=deadline_s)
        try:
            await engine._writer.call(SqliteSession.changes_of_others)
        except BaseException:
            await engine.close()
            raise
        return engine

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return await self._write(lambda session: session.write(script))

    async def read(self, script: Callable[[], Script[T]]) -> T:
        return await self._reader.call(lambda session: session.read(script))

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        """As `write`, for migrations: it waits longer for other processes, and DDL is allowed."""
        return await self._write(lambda session: session.write(script, busy_ms=_MIGRATION_BUSY_MS))

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[str]]:
        """What this process has said it changed; LOST when another process has committed anything from now on."""
        with self._hints.listener() as listener:
            try:
                if self.path != MEMORY:
                    await self._look_at_others()  # before the caller goes on: what is committed then must be heard
                    self._watch = self._watch or asyncio.create_task(self._watch_others())
                yield listener
            finally:
                if len(self._hints) == 1:
                    await self._stop_watching()

    async def close(self) -> None:
        """Finish what was asked for, then let go of the file. May be called twice."""
        await self._stop_watching()
        if self._reader is not self._writer:
            await self._reader.close()
        await self._writer.close()  # last: the last connection of a file tidies its WAL away, and a reader may not

    async def _write(self, work: Callable[[SqliteSession], Written[T]]) -> Written[T]:
        try:
            return await self._writer.call(work)
        except StoreUnavailable:
            # The connections of a process share what SQLite keeps beside the file. Opened without the right to write,
            # it stays so until all of them are closed.
            if self._reader is not self._writer:
                self._reader.post(SqliteSession.close)
            raise

    async def _watch_others(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            await self._look_at_others()

    async def _look_at_others(self) -> None:
        try:
            now = await self._writer.call(SqliteSession.changes_of_others)
        except StoreError:
            self._hints.tell(LOST)
            self._seen = _NOTHING
        else:
            if self._seen is not None and self._seen != now:
                self._hints.tell(LOST)
            self._seen = now

    async def _stop_watching(self) -> None:
        if self._watch:
            watch, self._watch = self._watch, None
            watch.cancel()
            await asyncio.wait([watch])
        self._seen = None
