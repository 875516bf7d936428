"""Two actors on one database, each with a thread, a loop and connections of its own, that can be held at a step.

A held actor is like a process that the machine has forgotten: its transaction stays open, its decision grows old.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from fleetcron import steps
from fleetcron.clock import HandClock
from fleetcron.store.opening import open_engine
from fleetcron.store.store import Store

T = TypeVar("T")
PATIENCE_S = 20.0


class Hold:
    """Where an actor is to stop: at a step, the first time after another one."""

    def __init__(self, step: str, after: str | None = None) -> None:
        self._step = step
        self._after = after
        self.reached = threading.Event()
        self._go = threading.Event()

    def pass_by(self, step: str) -> None:
        if self._after is not None:
            if step == self._after:
                self._after = None
        elif step == self._step and not self.reached.is_set():
            self.reached.set()
            assert self._go.wait(PATIENCE_S)

    def go(self) -> None:
        self._go.set()


class Actor:
    def __init__(self, url: str, clock: HandClock) -> None:
        self.hold: Hold | None = None
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.ident = self._thread.ident
        self.store = self.do(self._open(url, clock)).result(PATIENCE_S)

    async def _open(self, url: str, clock: HandClock) -> Store:
        return Store(await open_engine(url, clock=clock, connections=2))

    def do(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def close(self) -> None:
        self.do(self.store.close()).result(PATIENCE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()


@contextmanager
def two_actors(url: str, clock: HandClock) -> Iterator[tuple[Actor, Actor]]:
    actors: list[Actor] = []

    def pass_by(step: str) -> None:
        for actor in actors:
            if actor.hold and threading.get_ident() == actor.ident:
                actor.hold.pass_by(step)

    try:
        actors += [Actor(url, clock), Actor(url, clock)]
        steps.on_step(pass_by)
        yield actors[0], actors[1]
    finally:
        steps.on_step(None)
        for actor in actors:
            if actor.hold:
                actor.hold.go()
            actor.close()
