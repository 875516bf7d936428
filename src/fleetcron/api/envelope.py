"""Around every request: its id, the size and the time that it may have, and the headers that every answer has."""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fleetcron.api.bodies import MOST_BYTES
from fleetcron.api.problems import Problem
from fleetcron.api.wire import BODY_S

_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=-]{1,128}")
_ALWAYS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
# An answer of the API is nobody's page and nobody's cache.
_CLOSED: Final = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
MOST_OF_A_BATCH: Final = 16 * 1024 * 1024
# of a body that is too large: read and thrown away, so that whoever sends it gets to read why
_DRAINED: Final = 64 * 1024 * 1024
_DRAIN_QUIET_S: Final = 2.0  # whoever has read the answer sends no more; all of it ends with the body's own time
BATCH: Final = ("/jobs/batch", "/api/v1/apply", "/api/v1/plan")  # many jobs in one body


class Envelope:
    def __init__(self, app: ASGIApp, new_id: Callable[[], str]) -> None:
        self._app = app
        self._new_id = new_id

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _ID.fullmatch(given) else self._new_id()
        scope["fleetcron.request_id"] = request_id
        added: list[tuple[str, str]] = []
        scope["fleetcron.headers"] = added
        root = scope.get("root_path", "").rstrip("/").encode()  # where it is mounted, or what a proxy took off

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start":
                there = {name.lower() for name, _ in message["headers"]}
                message["headers"] = [
                    *(_placed(name, value, root) for name, value in message["headers"]),
                    *((name, value) for name, value in (*_ALWAYS, *_CLOSED) if name not in there),
                    (b"x-request-id", request_id.encode()),
                    *((name.lower().encode(), value.encode()) for name, value in added),
                ]
            if message["type"] == "http.response.body" and body.is_too_large and not message.get("more_body"):
                await send({**message, "more_body": True})  # all of it; only the end of the connection waits
                await body.drain()
                message = {"type": "http.response.body", "body": b""}
            await send(message)

        body = _Body(scope, receive, headers)
        await self._app(scope, body.receive, answered)


def _placed(name: bytes, value: bytes, root: bytes) -> tuple[bytes, bytes]:
    return (name, root + value) if name.lower() == b"location" and value.startswith(b"/") else (name, value)


class _Body:
    """Nobody's memory is filled: what says that it is too long is not kept, and what lies or dawdles is cut off."""

    def __init__(self, scope: Scope, receive: Receive, headers: dict[bytes, bytes]) -> None:
        self.is_too_large = False
        self._receive = receive
        self._most = MOST_OF_A_BATCH if scope["path"].endswith(BATCH) else MOST_BYTES
        said = headers.get(b"content-length", b"0")
        self._size = int(said) if said.isdigit() else 0
        self._seen = 0
        self._until_s: float | None = asyncio.get_running_loop().time() + BODY_S

    async def receive(self) -> Message:
        if self._size > self._most:
            raise self._too_large()
        try:
            async with asyncio.timeout_at(self._until_s):
                message = await self._receive()
        except TimeoutError:
            raise Problem(408, f"the body took longer than {BODY_S:.0f} s", headers={"Connection": "close"}) from None
        if not message.get("more_body", False):
            self._until_s = None  # from here on somebody only waits for the end of the connection
        self._seen += len(message.get("body", b""))
        if self._seen > self._most:
            raise self._too_large()
        return message

    async def drain(self) -> None:
        """A connection that is closed while somebody sends is reset, and a reset throws the answer away. So what is
        still on its way is read first: as much as is sent by mistake, not as much as anybody wants."""
        left = _DRAINED
        with suppress(TimeoutError):
            while left > 0:
                async with asyncio.timeout(_DRAIN_QUIET_S):
                    message = await self._receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body", False):
                    return

    def _too_large(self) -> Problem:
        self.is_too_large = True
        fewer = "; send fewer jobs in each request" if self._most == MOST_OF_A_BATCH else ""
        return Problem(
            413, f"the body is larger than {self._most // 1024:,} KiB{fewer}", headers={"Connection": "close"}
        )
