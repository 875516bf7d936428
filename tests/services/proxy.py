"""A network that can fail: a TCP proxy in front of a server, on the event loop of the test.

    async with proxy_to(url) as proxy:
        ... proxy.url ...
        proxy.hole()                        # from now on nothing comes through, and nobody is told
        proxy.cut()                         # every connection is reset, and new ones are too
        proxy.heal()                        # new connections work again; those of a hole are reset
        proxy.at(b"COMMIT", Fault.LOSE_REPLY)   # the next time a client sends this, once

`await proxy.struck.wait()` returns when the fault of `at` has struck.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from enum import Enum, auto
from urllib.parse import urlsplit


class Fault(Enum):
    LOSE_REQUEST = auto()  # the server never sees it, and the connection is reset
    LOSE_REPLY = auto()  # the server does it, but its answer is lost and the connection is reset
    HOLE_REQUEST = auto()  # the server never sees it, and nobody is told
    HOLE_REPLY = auto()  # the server does it, but its answer never comes, and nobody is told


class Proxy:
    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._open = asyncio.Event()
        self._open.set()
        self._cut = False
        self._fault: tuple[bytes, Fault] | None = None
        self._links: set[Link] = set()
        self._server: asyncio.Server | None = None
        self.struck = asyncio.Event()

    @property
    def url(self) -> str:
        assert self._server
        host, port = self._server.sockets[0].getsockname()
        user = self._target.netloc.rpartition("@")[0]
        return self._target._replace(netloc=f"{user}@{host}:{port}").geturl()

    def hole(self) -> None:
        self._open.clear()

    def cut(self) -> None:
        self._cut = True
        self._reset()

    def heal(self) -> None:
        if not self._open.is_set():
            self._reset()  # what was swallowed stays swallowed
        self._cut = False
        self._open.set()

    def at(self, request: bytes, fault: Fault) -> None:
        self.struck.clear()
        self._fault = (request, fault)

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def stop(self) -> None:
        assert self._server
        self._server.close()
        for link in list(self._links):
            await link.end()
        await asyncio.sleep(0)  # an aborted transport closes its socket at the next turn of the loop

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            reset(writer)
            return
        link = Link(self, reader, writer)
        self._links.add(link)
        try:
            with suppress(OSError):
                await link.carry(self._target.hostname or "127.0.0.1", self._target.port or 5432)
        finally:
            self._links.discard(link)

    def _reset(self) -> None:
        for link in self._links:
            link.reset()

    def strikes(self, request: bytes) -> Fault | None:
        """The fault that this request brings on."""
        if not self._fault or self._fault[0] not in request:
            return None
        fault, self._fault = self._fault[1], None
        return fault

    async def passable(self) -> None:
        await self._open.wait()


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._proxy = proxy
        self._client = (reader, writer)
        self._server: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._loses_reply: Fault | None = None
        self._task = asyncio.current_task()

    async def carry(self, host: str, port: int) -> None:
        """Until one of the two ends, or somebody resets the link."""
        try:
            await self._proxy.passable()
            self._server = await asyncio.open_connection(host, port)
            ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._replies())]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        finally:
            self.reset()

    async def _requests(self) -> None:
        assert self._server
        while data := await self._client[0].read(1 << 16):
            await self._proxy.passable()
            match self._proxy.strikes(data):
                case Fault.LOSE_REQUEST:
                    self._strike()
                    return
                case Fault.HOLE_REQUEST:
                    self._strike()
                    await asyncio.Event().wait()
                case fault:  # a request may come in several pieces
                    self._loses_reply = fault or self._loses_reply
            self._server[1].write(data)
            await self._server[1].drain()

    async def _replies(self) -> None:
        assert self._server
        while data := await self._server[0].read(1 << 16):
            await self._proxy.passable()
            match self._loses_reply:
                case Fault.LOSE_REPLY:
                    self._strike()
                    return
                case Fault.HOLE_REPLY:
                    self._strike()
                    await asyncio.Event().wait()
            self._client[1].write(data)
            await self._client[1].drain()

    def _strike(self) -> None:
        self._proxy.struck.set()

    def reset(self) -> None:
        reset(self._client[1])
        if self._server:
            reset(self._server[1])

    async def end(self) -> None:
        assert self._task
        self._task.cancel()
        await asyncio.wait([self._task])


def reset(writer: asyncio.StreamWriter) -> None:
    """RST, not FIN: as when the machine at the other end is gone."""
    line = writer.get_extra_info("socket")
    if line is not None and line.fileno() >= 0:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.transport.abort()


@asynccontextmanager
async def proxy_to(url: str) -> AsyncIterator[Proxy]:
    proxy = Proxy(url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
