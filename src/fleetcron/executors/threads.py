"""Threads for plain functions: as many as are needed, and kept.

An idle thread waits at a pipe, not at a lock. Who writes to a pipe tells the kernel that it is about to sleep, so the
thread is woken where the loop runs, or on an idle core. Who releases a lock does not: the thread was woken on the core
where it had run before, behind whoever computed there, while the loop's own core fell idle. Live jobs started 1.9 ms
late at p95 while others were caught up on SQLite (two cores), and 0.8 ms late with the pipe.
"""

import asyncio
import contextvars
import os
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
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
        self._bell = _Bell()
        self._alive: set[threading.Thread] = set()
        self._growing = False
        self._process = os.getpid()

    def put(self, item: Item) -> None:
        self._give(item)
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
        self._most = 0  # a look that is still to come must start none for what ends the others
        for _ in list(self._alive):
            self._give(None)

    def let_go(self, ident: int) -> None:
        """The thread with this number may never come back from its function: another one may start in its place."""
        for thread in [*self._alive]:  # a copy: others leave it meanwhile
            if thread.ident == ident:
                self._alive.discard(thread)
        self._grow()

    def _give(self, item: Item | None) -> None:
        self._queue.put(item)
        self._bell.ring()

    def _grow(self) -> None:
        self._growing = False
        waiting = self._queue.qsize()
        for _ in range(min(waiting, _AT_ONCE, self._most - len(self._alive))):
            thread = threading.Thread(target=self._run, name="handler", daemon=True)
            self._alive.add(thread)  # first: it may leave as soon as it has begun
            try:
                thread.start()
            except RuntimeError:  # this machine has no room for one, so far
                self._alive.discard(thread)
                break
        if waiting and len(self._alive) < self._most:
            self._growing = True
            self._loop.call_later(_SOON_S, self._grow)

    def _run(self) -> None:
        try:
            while (item := self._taken()) is not None and self._done(item):
                pass
        finally:
            self._alive.discard(threading.current_thread())
            if not self._queue.empty():  # it was put while this one counted as somebody who would take it
                with suppress(RuntimeError):  # the loop is closed
                    self._loop.call_soon_threadsafe(self._grow)

    def _done(self, item: Item) -> bool:
        goes_on = contextvars.Context().run(self._work, item)
        if os.getpid() != self._process:  # a fork that has come back from its function: nothing else here is its own
            os._exit(0)
        return goes_on

    def _taken(self) -> Item | None:
        while True:
            try:
                return self._queue.get_nowait()
            except Empty:  # also after a ring for what a busy thread took by itself
                self._bell.wait()


class _Bell:
    """One ring ends one wait. Nobody counts: a ring too many costs a look into the queue."""

    def __init__(self) -> None:
        self._ear, self._button = os.pipe()
        os.set_blocking(self._button, False)
        # With the last thread that may wait here. Not when the process ends: some may still be in a function.
        weakref.finalize(self, _close, self._ear, self._button).atexit = False

    def ring(self) -> None:
        with suppress(BlockingIOError):  # the pipe is full of rings, so nobody waits
            os.write(self._button, b"!")

    def wait(self) -> None:
        os.read(self._ear, 1)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
