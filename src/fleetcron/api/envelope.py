"""Around every request: its id, the size and the time that it may have, and the headers that every answer has."""

import asyncio
import re
from collections.abc import Callable
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
            await send(message)

        await self._app(scope, _limited(scope, receive, headers), answered)


def _placed(name: bytes, value: bytes, root: bytes) -> tuple[bytes, bytes]:
    return (name, root + value) if name.lower() == b"location" and value.startswith(b"/") else (name, value)


def _limited(scope: Scope, receive: Receive, headers: dict[bytes, bytes]) -> Receive:
    """Nobody's memory is filled: what says that it is too long is not read, and what lies or dawdles is cut off."""
    most = MOST_OF_A_BATCH if scope["path"].endswith(BATCH) else MOST_BYTES
    said = headers.get(b"content-length", b"0")
    size = int(said) if said.isdigit() else 0
    seen = 0
    until_s: float | None = asyncio.get_running_loop().time() + BODY_S

    async def limited() -> Message:
        nonlocal seen, until_s
        if size > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout_at(until_s):
                message = await receive()
        except TimeoutError:
            raise Problem(408, f"the body took longer than {BODY_S:.0f} s", headers={"Connection": "close"}) from None
        if not message.get("more_body", False):
            until_s = None  # from here on somebody only waits for the end of the connection
        seen += len(message.get("body", b""))
        if seen > most:
            raise _too_large(most)
        return message

    return limited


def _too_large(most: int) -> Problem:
    return Problem(413, f"the body is larger than {most // 1024:,} KiB", headers={"Connection": "close"})
