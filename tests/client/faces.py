"""Both clients behind one way of asking, so that every story is told to both of them."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import Any

from fleetcron import AsyncClient, Client


class Asked:
    """`asked.jobs.get("x")` on the blocking client, or on the asynchronous one with somebody who awaits it."""

    def __init__(self, thing: Any, loop: asyncio.AbstractEventLoop | None) -> None:
        self._thing, self._loop = thing, loop

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        return found if isinstance(found, str) else Asked(found, self._loop)

    def __call__(self, *args: Any, **more: Any) -> Any:
        found = self._thing(*args, **more)
        if self._loop is None:
            assert not inspect.isawaitable(found)
            return found
        if isinstance(found, AsyncIterator):
            return self._each(found)
        return self._loop.run_until_complete(found)

    def _each(self, found: AsyncIterator[Any]) -> Iterator[Any]:
        assert self._loop is not None
        while True:
            try:
                yield self._loop.run_until_complete(anext(found))  # type: ignore[arg-type]
            except StopAsyncIteration:
                return


def asked(face: str, url: str, **more: Any) -> Asked:
    if face == "blocking":
        return Asked(Client(url, **more), None)
    return Asked(AsyncClient(url, **more), asyncio.new_event_loop())


def closed(client: Asked) -> None:
    client.close()
    if client._loop is not None:
        client._loop.close()
