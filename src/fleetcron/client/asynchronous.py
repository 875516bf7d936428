"""`AsyncClient`: the face that is awaited, on aiohttp."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from io import BytesIO
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import aiohttp
from yarl import URL

from fleetcron.client.address import address
from fleetcron.client.calls import Asynchronous, Walk
from fleetcron.client.connections import SILENCE_S
from fleetcron.client.errors import Closed
from fleetcron.client.nouns import AGENT, Nouns
from fleetcron.client.sse import Following
from fleetcron.client.wire import Answer, Broken, Heard, Play, Request, Sleep, Terms, broken, untrusted

T = TypeVar("T")
_LONGEST_LINE: Final = 2**20  # a piece of a log is much smaller
_AT_ONCE: Final = 2**20


class AsyncClient(Nouns[Asynchronous]):
    """`async with AsyncClient("https://cron.example.com", key="fck_…") as client`. Tasks may share one."""

    def __init__(
        self,
        url: str | None = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
        timeout: float = 30.0,
        tries: int = 4,
        patience: float = 60.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """The same arguments as those of Client."""
        super().__init__(self, tenant)
        self.terms = Terms(timeout, tries, patience)
        self._address = address(url, key)
        self._tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        return self._address.url

    async def close(self) -> None:
        self._is_closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def play(self, play: Play[T]) -> T:
        heard: Heard | None = None
        while True:
            try:
                step = play.send(heard)
            except StopIteration as end:
                found: T = end.value
                return found
            heard = None
            if isinstance(step, Sleep):
                await asyncio.sleep(step.seconds)
            else:
                heard = await self._send(step)

    async def walk(self, walked: Walk[Any, T], noun: Any, args: Any, kwargs: Any) -> AsyncIterator[T]:
        left, cursor = kwargs.get("limit"), None
        while left is None or left > 0:
            page = await self.play(walked.next(noun, cursor, left, args, kwargs))
            for each in page[walked.key]:
                yield each
            left = None if left is None else left - len(page[walked.key])
            cursor = page["next"]
            if cursor is None:
                return

    async def follow(self, following: Following) -> AsyncIterator[Any]:
        while not following.is_over():
            heard: Heard | None = None
            try:
                async with self._asked(following.request, streaming=True) as response:
                    if response.status == 200:
                        async for line in response.content:
                            if (data := following.feed(line)) is not None:
                                yield data
                            if following.is_over():
                                return
                    else:
                        heard = _answer(response, await response.read())
            except (aiohttp.ClientError, TimeoutError) as error:
                heard = self._broken(error)
            await asyncio.sleep(following.broke(heard))

    async def _send(self, request: Request) -> Heard:
        try:
            async with self._asked(request) as response:
                return _answer(response, await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            return self._broken(error)

    def _asked(self, request: Request, *, streaming: bool = False) -> Any:
        if self._is_closed:
            raise Closed
        if self._session is None:
            self._session = aiohttp.ClientSession(headers=self._address.headers(AGENT), read_bufsize=_LONGEST_LINE)
            # What is sent again is decided in wire.py. aiohttp would repeat a DELETE whose answer was lost, and say
            # that there is nothing to delete; this is the switch that its own test client uses.
            self._session._retry_connection = False
        url = URL(f"{self._address.url}{request.target}", encoded=True)
        limit = self.terms.timeout
        quiet = max(limit, SILENCE_S)
        return self._session.request(
            request.method,
            url,
            data=_sent(request.body),
            headers=request.headers,
            allow_redirects=False,
            ssl=True if self._tls is None else self._tls,
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=limit, sock_read=quiet)
            if streaming
            else aiohttp.ClientTimeout(total=limit),
        )

    def _broken(self, error: Exception) -> Broken:
        sent = not isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            return untrusted(self._address.url, getattr(error.certificate_error, "verify_message", "nobody knows why"))
        if isinstance(error, TimeoutError):
            url, lost_s = self._address.url, self.terms.timeout
            return broken(url, "there was no answer in time", sent=sent, lost_s=lost_s)
        if isinstance(error, aiohttp.ClientConnectorError) and error.os_error.errno:
            words = os.strerror(error.os_error.errno)
        else:
            words = f"the connection broke ({type(error).__name__})"
        return broken(self._address.url, words, sent=sent)


def _sent(body: bytes | None) -> bytes | BytesIO | None:
    """Many jobs in pieces: as a whole they would keep the loop."""
    return BytesIO(body) if body is not None and len(body) > _AT_ONCE else body


def _answer(response: aiohttp.ClientResponse, body: bytes) -> Answer:
    return Answer(response.status, {name.lower(): value for name, value in response.headers.items()}, body)
