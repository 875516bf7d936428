"""The server: where it listens, who may be let in there, and how it ends."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from fleetcron.api.access import OPEN_WORDS, is_loopback
from fleetcron.api.application import create_app
from fleetcron.api.context import Context
from fleetcron.api.wire import Wire
from fleetcron.errors import RefusedError, StoreError
from fleetcron.store.keys import KeyFilter

log = logging.getLogger(__name__)

_BACKLOG: Final = 512
_GRACE_S: Final = 5  # for requests that are at work when it ends
_TELL_EVERY_S: Final = 10.0


class AddressTaken(RefusedError):
    """Somebody else listens there."""


class Server:
    """`await Server.open(context)`, then `await server.run(stop)`. It listens from the moment it is opened."""

    def __init__(self, context: Context, listening: socket.socket, app: ASGIApp) -> None:
        self.context = context
        self._socket = listening
        self._app = app

    @classmethod
    async def open(cls, context: Context) -> "Server":
        """A RefusedError says why it may not or cannot listen there."""
        host, port = context.config.address
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise RefusedError(f"the API cannot listen on {context.config.listen}: {error.strerror}") from None
        family, _, _, _, address = found[0]
        is_here = is_loopback(str(address[0]).partition("%")[0])
        has_keys = bool((await context.store.keys.list(KeyFilter(), 1)).keys)
        if not is_here and not has_keys:
            raise RefusedError(
                f"the API does not listen on {context.config.listen}: others could reach it, and there is no key yet; "
                "create one (fleetcron keys create NAME --role admin), or listen on 127.0.0.1"
            )
        context.open_to_all = is_here
        try:
            listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
        except OSError as error:
            raise AddressTaken(f"the API cannot listen on {context.config.listen}: {error.strerror}") from None
        # What it accepts inherits this. asyncio sets it only on sockets that name their protocol, which those of
        # create_server do not; then the second half of each answer on a kept connection waits 40 ms for an ACK.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not has_keys:
            log.warning("the API asks nobody for a key: %s", OPEN_WORDS)
        return cls(context, listening, create_app(context))

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}"

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; requests that are at work are answered, streams end."""
        log.info("the API listens on %s", self.url)
        server = _Quiet(
            uvicorn.Config(
                self._app,
                loop="none",
                http=Wire,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_GRACE_S,
            )
        )
        serving = asyncio.create_task(server.serve([self._socket]))
        telling = asyncio.create_task(tell_uses(self.context))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.context.closing.set()
            server.should_exit = True
            for task in (telling, stopping):
                task.cancel()
            await asyncio.wait([serving, telling, stopping])
            await tell(self.context)
            self._socket.close()
        serving.result()

    def close(self) -> None:
        """For one that was opened and never ran."""
        self._socket.close()


async def tell_uses(context: Context) -> None:
    """Keys were used: told in batches, off the way of requests."""
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        await tell(context)


async def tell(context: Context) -> None:
    if used := context.uses.take():
        with suppress(StoreError):
            await context.store.keys.touch(used)


class _Quiet(uvicorn.Server):
    """Signals belong to the node: it decides what stops when."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


__all__ = ["AddressTaken", "Server", "tell", "tell_uses"]
