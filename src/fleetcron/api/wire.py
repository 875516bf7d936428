"""What comes over the wire before anybody knows who asks: the head of a request, and how long one may take to send it.

The parser keeps what it reads of a head until it is complete, and waits for a body as long as it comes. Nobody has
shown a key by then, so both have an end here: a head of bounded size and time, and a body that is over some time.
"""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_OF_A_HEAD: Final = 64 * 1024  # the address and all headers
HEAD_S: Final = 30.0
BODY_S: Final = 60.0
_LINGER_S: Final = 15.0  # beyond that: whoever reads a body says first that it took too long
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Wire(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._in_head = True
        self._seen = 0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(HEAD_S)

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait(None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._in_head:
            if not self._seen and self._timer is None:
                self._wait(HEAD_S)
            self._seen += len(data)
        super().data_received(data)
        if self._in_head and self._seen > MOST_OF_A_HEAD and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._wait(BODY_S + _LINGER_S)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head, self._seen = True, 0
        self._wait(None)
        super().on_message_complete()

    def _wait(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._over)

    def _over(self) -> None:
        self._timer = None
        self.transport.close()
