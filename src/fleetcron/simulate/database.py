"""The database of a simulated world: a process of its own with its own clock, and SQLite in memory behind it.

A request is a whole script; it travels, is carried out at one instant of the database, and its answer travels back.
Whoever asks may be dead by then, and what was asked is done all the same. A fault of the way (`Way`) may lose the
request or the answer, or keep the request for so long that whoever asked has given up: it is then carried out late.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from fleetcron.clock import Clock
from fleetcron.errors import StoreUnavailable
from fleetcron.simulate.virtual import Process, VirtualLoop
from fleetcron.store.engine import Script
from fleetcron.store.hints import Hints
from fleetcron.store.sqlite_errors import MEMORY
from fleetcron.store.sqlite_session import SqliteSession
from fleetcron.store.written import Refused, Unknown, Written

T = TypeVar("T")

_DEADLINE_S: Final = 5.0
_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Trip:
    """How one request goes. None: it gets lost."""

    there_s: float | None
    back_s: float | None


class Way(Protocol):
    """Between a process and the database. `verb` is what is asked for, as in `Workers.bury`."""

    def trip(self, process: str, verb: str) -> Trip: ...

    def hint_s(self, process: str) -> float | None: ...


class Killed(BaseException):
    """The process that runs this script is killed in the middle of it: its transaction is rolled back."""


class _Session(SqliteSession):
    """Nobody else has this database, and nothing happens while a script runs: a read needs no transaction of its own.
    (Beginning and ending one, and forbidding it to write, was a third of what a read cost.)"""

    def read(self, script: Callable[[], Script[T]]) -> T:
        return self._run(self._open(), script)

    def _open(self) -> sqlite3.Connection:
        return self._connection or super()._open()


class Database:
    """`is_up`: whether it answers. What waits for it while it is down gets no answer."""

    def __init__(self, loop: VirtualLoop, clock: Clock) -> None:
        self.process: Process = loop.process("database")
        self.session = _Session(MEMORY, clock, busy_ms=1000)
        self.is_up = True
        self.lives = 0  # an answer of an earlier life never arrives
        self.asked_by: Process | None = None  # whose script is carried out now
        self.transactions = 0
        self._ears: list[SimulatedEngine] = []

    def carry_out(self, work: Callable[[SqliteSession], T], asked_by: Process | None = None) -> T:
        self.transactions += 1
        self.asked_by = asked_by
        try:
            value = work(self.session)
        except Killed:
            self.session.undo()
            raise
        finally:
            self.asked_by = None
            topics, self.session.committed_topics = self.session.committed_topics, []
            if topics:
                self._ears = [ear for ear in self._ears if not ear.is_deaf]
            for topic in dict.fromkeys(topics):
                for ear in self._ears:
                    ear.hear(topic)
        return value

    def go_down(self) -> None:
        """What was asked and not answered yet is lost; whoever listened hears that he hears nothing."""
        self.is_up = False
        self.lives += 1
        for ear in self._ears:
            ear.lose_hearing()

    def come_up(self) -> None:
        self.is_up = True
        for ear in self._ears:
            ear.hear_again()

    def listen(self, engine: "SimulatedEngine") -> None:
        self._ears.append(engine)

    def forget(self, engine: "SimulatedEngine") -> None:
        with suppress(ValueError):
            self._ears.remove(engine)


class SimulatedEngine:
    """The store as one process sees it."""

    name = "sqlite"

    def __init__(
        self, database: Database, way: Way, process: Process, loop: VirtualLoop, deadline_s: float = _DEADLINE_S
    ) -> None:
        self.statements_run = database.session.statements_run
        self._database = database
        self._way = way
        self._process = process
        self._loop = loop
        self._deadline_s = deadline_s
        self._hints = Hints()

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        written: Written[T] = await self._ask(lambda session: session.write(script), _verb(script), writes=True)
        return written

    async def read(self, script: Callable[[], Script[T]]) -> T:
        value: T = await self._ask(lambda session: session.read(script), _verb(script), writes=False)
        return value

    async def alter(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        return await self.write(script)

    @asynccontextmanager
    async def hints(self) -> AsyncIterator[AsyncIterator[str]]:
        self._database.listen(self)
        try:
            with self._hints.listener() as listener:
                yield listener
        finally:
            self._database.forget(self)

    @property
    def is_deaf(self) -> bool:
        """Its process is dead, and did not clean up."""
        return self._process.is_dead

    def hear(self, topic: str) -> None:
        """The database says something; it may arrive late or never."""
        delay_s = self._way.hint_s(self._process.name)
        if delay_s is not None:
            self._loop.call_later(delay_s, self._process.call, self._hints.tell, topic)

    def lose_hearing(self) -> None:
        self._process.call(self._hints.cut)

    def hear_again(self) -> None:
        self._process.call(self._hints.back)

    async def close(self) -> None:
        pass

    async def _ask(self, work: Callable[[SqliteSession], Any], verb: str, *, writes: bool) -> Any:
        answer: asyncio.Future[Any] = self._loop.create_future()
        if self._process.is_dead:
            return await answer  # for ever: the dead ask nothing
        trip = self._way.trip(self._process.name, verb)
        if trip.there_s is not None:
            self._database.process.call_later(trip.there_s, self._arrive, work, answer, trip.back_s)
        giving_up = self._loop.call_later(self._deadline_s, self._answer, answer, _NOTHING, None)
        try:
            value = await answer
        finally:
            giving_up.cancel()
        if value is not _NOTHING:
            return value
        why = "the simulated database did not answer in time"
        if writes:
            return Unknown(why)
        raise StoreUnavailable(why)

    def _arrive(
        self, work: Callable[[SqliteSession], Any], answer: "asyncio.Future[Any]", back_s: float | None
    ) -> None:
        if not self._database.is_up:
            return
        try:
            value, error = self._database.carry_out(work, self._process), None
        except Killed:
            return
        except Exception as caught:
            value, error = None, caught
        if back_s is not None:
            self._loop.call_later(back_s, self._come_back, answer, value, error, self._database.lives)

    def _come_back(self, answer: "asyncio.Future[Any]", value: Any, error: Exception | None, life: int) -> None:
        if life == self._database.lives:
            self._answer(answer, value, error)

    def _answer(self, answer: "asyncio.Future[Any]", value: Any, error: Exception | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(value)
        else:
            answer.set_exception(error)


def _verb(script: Callable[[], Script[Any]]) -> str:
    return script.__qualname__.partition(".<locals>")[0]


__all__ = ["Database", "Killed", "SimulatedEngine", "Trip", "Way"]
