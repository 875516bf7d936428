"""Who listens for hints in this process. A hint says what changed; LOST says that some may have gone missing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Final

LOST: Final = "lost"  # look at everything: nobody could say what changed
LOST_EVERY_S: Final = 1.0


class Hints:
    def __init__(self) -> None:
        self._listeners: dict[Listener, None] = {}  # in order: a simulated world tells them all the same way again
        self.connected = True

    def tell(self, topic: str) -> None:
        for listener in self._listeners:
            listener.tell(topic)

    def cut(self) -> None:
        """Nothing can be heard from now on: everybody hears LOST at once, and then about once a second."""
        if self.connected:
            self.connected = False
            self.tell(LOST)

    def back(self) -> None:
        """Everything can be heard again, but not what was said meanwhile."""
        self.connected = True
        self.tell(LOST)

    @contextmanager
    def listener(self) -> Iterator["Listener"]:
        listener = Listener(self)
        self._listeners[listener] = None
        try:
            yield listener
        finally:
            self._listeners.pop(listener, None)

    def __len__(self) -> int:
        return len(self._listeners)


class Listener(AsyncIterator[str]):
    """One topic waits once, however often it was told: a slow listener costs no memory."""

    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._waiting: dict[str, None] = {}
        self._told = asyncio.Event()

    def tell(self, topic: str) -> None:
        self._waiting[topic] = None
        self._told.set()

    async def __anext__(self) -> str:
        while not self._waiting:
            self._told.clear()
            try:
                async with asyncio.timeout(None if self._hints.connected else LOST_EVERY_S):
                    await self._told.wait()
            except TimeoutError:
                return LOST
        topic = next(iter(self._waiting))
        del self._waiting[topic]
        return topic
