"""An app inside a web application: the API to be mounted, and a lifespan in which a node works beside the requests.

Whoever mounts an ASGI app has to run the lifespan himself: frameworks do not pass it on. So the API answers from the
moment that `app.lifespan` has begun, and says so before.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from secrets import SystemRandom
from typing import Any, Final, TypeAlias

from fleetcron.app.application import Fleetcron
from fleetcron.app.running import lend_functions, prepared, settings
from fleetcron.clock import SystemClock
from fleetcron.config import Config
from fleetcron.errors import ConfigError, Mistake
from fleetcron.node import Node
from fleetcron.scheduler.sync import tell as tell_applied
from fleetcron.store.migrations import require_current
from fleetcron.store.opening import require_file
from fleetcron.store.store import Store

log = logging.getLogger(__name__)

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
ROLES: Final = ("scheduler", "worker")
_NOT_YET: Final = "fleetcron is not connected: give the web application lifespan=app.lifespan"


class Mounted:
    """The API as an ASGI app, under any path. Served by itself (`uvicorn shop:api`) it brings the lifespan along."""

    def __init__(self, app: Fleetcron) -> None:
        self._app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan_alone(self._app, receive, send)
        elif self._app.api is not None:
            await self._app.api(scope, receive, send)
        elif scope["type"] == "http":
            await _refuse(send)


@asynccontextmanager
async def living(app: Fleetcron, roles: Sequence[str] | None) -> AsyncIterator[None]:
    """Connected; and unless `roles` is empty, a node that plans or works, until the end, when it drains."""
    if app.store is not None:
        raise ConfigError([Mistake("app.lifespan", "this app is running in this process already", "begin it once")])
    if roles is not None and (unknown := sorted(set(roles) - set(ROLES))):
        hint = f"there are: {', '.join(ROLES)}; () only connects. The API is mounted: app.asgi()"
        raise ConfigError([Mistake("app.lifespan(roles=…)", f"{unknown[0]!r} is not a role", hint)])
    async with AsyncExitStack() as ending:
        if roles is not None and not roles:
            config = settings(app)
            require_file(config.store.url)
            store = await Store.open(config.store, SystemClock())
            ending.push_async_callback(store.close)
            await require_current(store.engine)
        else:
            store, config = await ending.enter_async_context(_node(app, roles))
        app.store = store
        ending.callback(_forget, app)
        await ending.enter_async_context(_api(app, store, config))
        yield


@asynccontextmanager
async def _node(app: Fleetcron, roles: Sequence[str] | None) -> AsyncIterator[tuple[Store, Config]]:
    config = prepared(app)
    chosen = tuple(role for role in (config.node.roles if roles is None else roles) if role in ROLES)
    node = await Node.start(replace(config, node=replace(config.node, roles=chosen)))
    stop = asyncio.Event()
    running: asyncio.Task[None] | None = None
    try:
        lend_functions(app, node)
        tell_applied(app.managed_by, await app.sync(node.store, shards=node.config.scheduler.shards))
        running = asyncio.create_task(node.run(stop))
        running.add_done_callback(_told)
        yield node.store, node.config
    finally:
        stop.set()
        try:
            if running is not None:
                await running
        finally:
            await node.close()


@asynccontextmanager
async def _api(app: Fleetcron, store: Store, config: Config) -> AsyncIterator[None]:
    """Only if somebody has asked for it: its import takes half a second."""
    if not app.is_mounted:
        yield
        return
    create_app, context, server = await asyncio.to_thread(_imported)
    number = await store.shards.number()
    made = context.Context(
        store,
        SystemClock(),
        config.api,
        number or config.scheduler.shards,
        chance=SystemRandom().random,
        worker_ttl_ms=round(config.worker.lease_ttl_s * 1000),
    )
    app.api = create_app(made)
    telling = asyncio.create_task(server.tell_uses(made))
    try:
        yield
    finally:
        made.closing.set()  # streams end
        telling.cancel()
        with suppress(asyncio.CancelledError):
            await telling
        await server.tell(made)


def _imported() -> tuple[Any, Any, Any]:
    from fleetcron.api import context, server
    from fleetcron.api.application import create_app

    return create_app, context, server


def _forget(app: Fleetcron) -> None:
    app.store = app.api = None


def _told(running: "asyncio.Task[None]") -> None:
    """The web application goes on without it, so somebody has to hear of it."""
    if not running.cancelled() and (error := running.exception()) is not None:
        log.error("the node of this process has ended: nothing is planned and worked on here", exc_info=error)


async def _lifespan_alone(app: Fleetcron, receive: Receive, send: Send) -> None:
    await receive()
    living_now = living(app, ())
    try:
        await living_now.__aenter__()
    except Exception as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        return
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await living_now.__aexit__(None, None, None)
    await send({"type": "lifespan.shutdown.complete"})


async def _refuse(send: Send) -> None:
    told = {
        "type": "urn:fleetcron:problem:unavailable",
        "title": "It cannot be done now",
        "status": 503,
        "code": "unavailable",
        "detail": _NOT_YET,
        "request_id": "",
    }  # as the API says it, which is not there yet
    body = json.dumps(told)
    headers = [(b"content-type", b"application/problem+json"), (b"retry-after", b"1")]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
