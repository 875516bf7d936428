"""A session of SQLite and the only thread that ever touches it."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.store.hints import Hints
from fleetcron.store.sqlite_session import SqliteSession

T = TypeVar("T")


@dataclass(slots=True)
class _Call:
    work: Callable[[SqliteSession], Any]
    answer: "asyncio.Future[Any]"
    until_s: float  # on the clock of the caller's loop
    topics: list[str] = field(default_factory=list)


class SqliteThread:
    def __init__(self, session: SqliteSession, *, patience_s: float, hints: Hints) -> None:
        self._session = session
        self._patience_s = patience_s
        self._hints = hints
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._ended: asyncio.Future[None] | None = None
        self._thread = Thread(target=self._serve, name=f"fleetcron {session.path}", daemon=True)
        self._thread.start()

    async def call(self, work: Callable[[SqliteSession], T]) -> T:
        """Do the work on the thread. A caller that is cancelled does not stop work that has begun."""
        if self._ended:
            raise StoreError(f"the SQLite file {self._session.path} was closed by this process")
        return await self.post(work)

    def post(self, work: Callable[[SqliteSession], T]) -> "asyncio.Future[T]":
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.put(_Call(work, answer, loop.time() + self._patience_s))
        return answer

    async def close(self) -> None:
        """Do all that was asked for, then end the thread."""
        if self._ended is None:
            self._ended = asyncio.get_running_loop().create_future()
            self._calls.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _serve(self) -> None:
        while call := self._calls.get():
            if call.answer.cancelled():
                continue  # nothing has begun, and nobody waits for it any more
            result: Any = None
            error: BaseException | None = None
            try:
                self._in_time(call)
                result = call.work(self._session)
                call.topics, self._session.committed_topics = self._session.committed_topics, []
            except BaseException as caught:
                error = caught
            self._on_loop(call.answer, partial(self._tell, call, result, error))
        self._session.close()
        assert self._ended
        self._on_loop(self._ended, partial(self._ended.set_result, None))

    def _in_time(self, call: _Call) -> None:
        """The first in the queue waits for a lock; those behind it must not do so one after the other."""
        if call.answer.get_loop().time() > call.until_s:
            raise StoreUnavailable(
                f"the SQLite file {self._session.path} is held by another process, or too slow for what is asked of it",
                hint="`fuser` with the name of the file tells who has it open",
            )

    def _tell(self, call: _Call, result: Any, error: BaseException | None) -> None:
        for topic in call.topics:
            self._hints.tell(topic)
        if call.answer.cancelled():
            return
        if error is None:
            call.answer.set_result(result)
        else:
            call.answer.set_exception(error)

    @staticmethod
    def _on_loop(answer: "asyncio.Future[Any]", tell: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
            answer.get_loop().call_soon_threadsafe(tell)
