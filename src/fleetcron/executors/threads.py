"""Threads for plain functions: as many as are needed, and kept. A queue and nothing else costs 0.5 µs a function."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

_AT_ONCE: Final = 8
_SOON_S: Final = 0.001

Item = TypeVar("Item")


def in_a_thread(work: Callable[[], Item]) -> "asyncio.Future[Item]":
    """In one of its own. It may hang for ever: it takes nobody's place, and the process can end without it. `work` does
    not raise."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[Item] = loop.create_future()

    def tell(done: Item) -> None:
        if not over.done():
            over.set_result(done)

    def run() -> None:
        done = work()
        with suppress(RuntimeError):  # the loop is closed: nobody waits for it any more
            loop.call_soon_threadsafe(tell, done)

    threading.Thread(target=run, name="alone", daemon=True).start()
    return over


class Threads(Generic[Item]):
    """`work` runs in a fresh context. A thread in which it returns False is not used again."""

    def __init__(self, most: int, work: Callable[[Item], bool]) -> None:
        self._loop = asyncio.get_running_loop()
        self._most = most
        self._work = work
        self._queue: SimpleQueue[Item | None] = SimpleQueue()
        self._alive: set[threading.Thread] = set()
        self._growing = False

    def put(self, item: Item) -> None:
        self._queue.put(item)
        if not self._growing:
            self._growing = True
            # An idle thread takes it at once, and short functions are done before more threads would have started:
            # only what still waits after a moment needs another thread.
            if self._alive:
                self._loop.call_later(_SOON_S, self._grow)
            else:
                self._grow()

    def close(self) -> None:
        """Idle threads end; one that is inside a function is left to it."""
        for _ in list(self._alive):
            self._queue.put(None)

    def _grow(self) -> None:
        self._growing = False
        waiting = self._queue.qsize()
        for _ in range(min(waiting, _AT_ONCE, self._most - len(self._alive))):
            thread = threading.Thread(target=self._run, name="handler", daemon=True)
            self._alive.add(thread)
            thread.start()
        if waiting and len(self._alive) < self._most:
            self._growing = True
            self._loop.call_later(_SOON_S, self._grow)

    def _run(self) -> None:
        while True:
            item = self._queue.get()
            if item is None or not contextvars.Context().run(self._work, item):
                break
        self._alive.discard(threading.current_thread())
