"""Engines whose replies get lost after the commit: the write is repeated, or nobody knows."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, cast

from fleetcron.store.engine import Script
from fleetcron.store.migrations import Altering
from fleetcron.store.written import Refused, Unknown, Written

T = TypeVar("T")


class Through:
    """An engine in front of another one."""

    def __init__(self, engine: Altering) -> None:
        self.engine = engine
        self.name = engine.name
        self.statements_run = engine.statements_run

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return await self.engine.write(script)

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return await self.engine.alter(script)

    async def read(self, script: Callable[[], Script[T]]) -> T:
        return await self.engine.read(script)

    def hints(self) -> AbstractAsyncContextManager[AsyncIterator[str]]:
        return self.engine.hints()

    async def close(self) -> None:
        await self.engine.close()


class Repeating(Through):
    """Every write is done, and done again as if its reply had been lost. `differs` hears of verbs that notice it."""

    def __init__(self, engine: Altering, dump: Callable[[], Any], differs: Callable[[str, Any, Any], None]) -> None:
        super().__init__(engine)
        self._dump = dump
        self._differs = differs
        self.verbs: set[str] = set()

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return cast(Written[T], await self._twice(self.engine.write, script))

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return cast(Written[T], await self._twice(self.engine.alter, script))

    async def _twice(self, write: Callable[[Any], Any], script: Callable[[], Any]) -> Any:
        verb = verb_of(script)
        self.verbs.add(verb)
        answer = await write(script)
        once = await self._dump()
        await write(script)
        twice = await self._dump()
        if once != twice:
            self._differs(verb, once, twice)
        return answer


class Forgetful(Through):
    """The reply to the n-th write is lost; to none if n is 0."""

    def __init__(self, engine: Altering, nth: int) -> None:
        super().__init__(engine)
        self._nth = nth
        self.verbs: list[str] = []
        self.lost: str | None = None

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        answer = await self.engine.write(script)
        self.verbs.append(verb_of(script))
        if len(self.verbs) != self._nth:
            return answer
        self.lost = self.verbs[-1]
        return Unknown("the reply was lost")

    def first_and_last(self) -> list[int]:
        """The places of the first and the last write of every verb."""
        backwards = self.verbs[::-1]
        last = {len(self.verbs) - backwards.index(verb) for verb in set(self.verbs)}
        return sorted(last | {self.verbs.index(verb) + 1 for verb in set(self.verbs)})


def verb_of(script: Callable[[], Any]) -> str:
    """As in `Jobs.amend`."""
    return script.__qualname__.partition(".<locals>")[0]
