"""A network that can fail: a TCP proxy between one node and the database.

- reset(): every connection is broken once
- cut(): and new ones are refused, until heal()
- hole(): nothing comes through, and nobody is told, until heal()
- slow(seconds): everything takes that much longer, until heal()
- lose_reply(): the next COMMIT reaches the server, and its answer is lost (what is encrypted: the next request)
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias
from urllib.parse import parse_qsl, urlencode, urlsplit

Ends: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Reach: TypeAlias = Callable[[], Awaitable[Ends]]

_CHUNK: Final = 1 << 16
_SSL_REQUEST: Final = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"
_RST: Final = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: on, for no time


def reach(peer: object) -> Reach:
    """How to open a connection to where another one leads, by the name of its peer: an address, or a socket file."""

    async def connect() -> Ends:
        if isinstance(peer, tuple):
            return await asyncio.open_connection(str(peer[0]), int(peer[1]))
        return await asyncio.open_unix_connection(str(peer))

    return connect


class Proxy:
    def __init__(self, target: Reach) -> None:
        self.target = target
        self._open = asyncio.Event()
        self._open.set()
        self._is_cut = False
        self._loses_reply = False
        self._delay_s = 0.0
        self._links: set[Link] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def stop(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for link in list(self._links):
            await link.end()
        await self._server.wait_closed()

    def url(self, url: str) -> str:
        """The same database, through here."""
        assert self._server is not None
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        port = self._server.sockets[0].getsockname()[1]
        options = parse_qsl(parts.query, keep_blank_values=True)
        rest = urlencode([(name, value) for name, value in options if name not in ("host", "port")])
        return parts._replace(netloc=f"{user}{at}127.0.0.1:{port}", query=rest).geturl()

    def reset(self) -> None:
        for link in self._links:
            link.reset()

    def cut(self) -> None:
        self._is_cut = True
        self.reset()

    def hole(self) -> None:
        self._open.clear()

    def slow(self, seconds: float) -> None:
        self._delay_s = seconds

    def lose_reply(self) -> None:
        self._loses_reply = True

    def heal(self) -> None:
        if not self._open.is_set():
            self.reset()  # what was swallowed stays swallowed
        self._is_cut = self._loses_reply = False
        self._delay_s = 0.0
        self._open.set()

    async def passable(self) -> None:
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        await self._open.wait()

    def strikes(self, request: bytes, *, is_encrypted: bool) -> bool:
        """Whether the answer to this request is to be lost."""
        if not self._loses_reply or not (is_encrypted or b"COMMIT" in request):
            return False
        self._loses_reply = False
        return True

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Not a coroutine: its task would belong to asyncio, which calls it an error when a link is ended."""
        if self._is_cut:
            _reset(writer)
            return
        link = Link(self, (reader, writer))
        self._links.add(link)
        link.task.add_done_callback(lambda _: self._links.discard(link))


class Link:
    """One connection through the proxy."""

    def __init__(self, proxy: Proxy, client: Ends) -> None:
        self._proxy = proxy
        self._client = client
        self._server: Ends | None = None
        self._loses_reply = False
        self._asks_for_encryption = self._is_encrypted = False
        self.task = asyncio.create_task(self._carry())

    async def _carry(self) -> None:
        """Until one of the two ends, or somebody resets the link."""
        try:
            await self._proxy.passable()
            with suppress(OSError):  # nobody is there: the client is told by a reset
                self._server = await self._proxy.target()
                await self._both_ways()
        finally:
            self.reset()

    async def _both_ways(self) -> None:
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._replies())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _requests(self) -> None:
        assert self._server is not None
        while data := await self._client[0].read(_CHUNK):
            await self._proxy.passable()
            self._asks_for_encryption |= data == _SSL_REQUEST
            self._loses_reply |= self._proxy.strikes(data, is_encrypted=self._is_encrypted)
            self._server[1].write(data)
            await self._server[1].drain()

    async def _replies(self) -> None:
        assert self._server is not None
        while data := await self._server[0].read(_CHUNK):
            await self._proxy.passable()
            if self._loses_reply:
                return
            self._is_encrypted |= self._asks_for_encryption and data == b"S"
            self._client[1].write(data)
            await self._client[1].drain()

    def reset(self) -> None:
        _reset(self._client[1])
        if self._server is not None:
            _reset(self._server[1])

    async def end(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


def _reset(writer: asyncio.StreamWriter) -> None:
    """RST, not FIN: as when the machine at the other end is gone."""
    line = writer.get_extra_info("socket")
    if line is not None and line.fileno() >= 0:
        with suppress(OSError):  # a socket file has no such thing
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
    writer.transport.abort()
