"""One connection that only listens. It comes back by itself; while it is away all are told to look for themselves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from fleetcron.errors import StoreError
from fleetcron.store.hints import Hints, Listener
from fleetcron.store.postgres_connections import Connection, Connector, farewell
from fleetcron.store.postgres_url import channel_of

_ALIVE_EVERY_S: Final = 2.0  # a black hole looks like silence, so ask
_AGAIN_AFTER_S: Final = 1.0


class Ear:
    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._alive_every_s = min(_ALIVE_EVERY_S, connector.deadline_s)
        self.channel = channel_of(connector.url.schema)
        self._hints = Hints()
        self._hints.connected = False
        self._listening: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listener(self) -> AsyncIterator[Listener]:
        with self._hints.listener() as listener:
            # a pooler cannot pass notifications on: there everybody looks about once a second
            if self._listening is None and not self._connector.url.pooled:
                self._listening = asyncio.create_task(self._listen())
            try:
                yield listener
            finally:
                if len(self._hints) == 1:
                    await self.close()

    async def close(self) -> None:
        if self._listening:
            listening, self._listening = self._listening, None
            listening.cancel()
            await asyncio.wait([listening])

    async def _listen(self) -> None:
        while True:
            with suppress(StoreError):
                connection = await self._connector.connect()
                try:
                    await self._stay(connection)
                except Exception:
                    connection.terminate()
                finally:
                    self._hints.cut()
                    await farewell(connection)
            await asyncio.sleep(_AGAIN_AFTER_S)

    async def _stay(self, connection: Connection) -> None:
        """Until the connection is lost."""
        gone = asyncio.Event()
        connection.add_termination_listener(lambda _: gone.set())
        async with asyncio.timeout(self._alive_every_s):
            await connection.add_listener(self.channel, lambda *heard: self._hints.tell(heard[-1]))
        self._hints.back()
        while not gone.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._alive_every_s):
                    await gone.wait()
                    return
            async with asyncio.timeout(self._alive_every_s):
                await connection.fetchval("SELECT 1")
