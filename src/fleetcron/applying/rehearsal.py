"""A dry run: the same desk, the same statements, and every transaction taken back at its end."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeVar

from fleetcron.model.almanac import Part
from fleetcron.store.almanac import AlmanacTables, Table
from fleetcron.store.engine import Engine, Script
from fleetcron.store.migrations import Altering
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Written

T = TypeVar("T")


class TakenBack(Exception):
    """Ends a transaction that would have been committed."""

    def __init__(self, value: object) -> None:
        self.value: Final[Any] = value
        super().__init__("a dry run")


class Rehearsal:
    """An engine that writes nothing."""

    def __init__(self, engine: Altering) -> None:
        self._engine = engine
        self.name = engine.name
        self.statements_run = engine.statements_run

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return await self._taken_back(self._engine.write, script)

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return await self._taken_back(self._engine.alter, script)

    async def read(self, script: Callable[[], Script[T]]) -> T:
        return await self._engine.read(script)

    def hints(self) -> AbstractAsyncContextManager[Any]:
        return self._engine.hints()

    async def close(self) -> None:
        await self._engine.close()

    async def _taken_back(self, write: Callable[..., Any], script: Callable[[], Script[T | Refused]]) -> Written[T]:
        def rehearsed() -> Script[T | Refused]:
            raise TakenBack((yield from script()))

        try:
            await write(rehearsed)
        except TakenBack as done:
            return done.value if isinstance(done.value, Refused) else Ok(done.value)
        raise AssertionError("a rehearsal ends by being taken back")


class RehearsedAlmanac(AlmanacTables):
    """Calendars that were rehearsed hold for the jobs that come after them."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._rehearsed: dict[Part, Table] = {}

    def add(self, tables: Iterable[Table]) -> None:
        self._rehearsed |= {table.part: table for table in tables}

    async def read(self, parts: Iterable[Part], epoch: int) -> list[Table]:
        wanted = list(parts)
        stored = [table for table in await super().read(wanted, epoch) if table.part not in self._rehearsed]
        return stored + [self._rehearsed[part] for part in wanted if part in self._rehearsed]


class RehearsalStore(Store):
    """A store that answers as if everything had been written. Closing it is the business of who opened the engine."""

    def __init__(self, store: Store) -> None:
        super().__init__(Rehearsal(store.engine))
        self.rehearsed = RehearsedAlmanac(self.engine)
        self.almanac = self.rehearsed
