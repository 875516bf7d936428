"""The real server for tests: uvicorn on a free port, on a real store whose database clock the test moves by hand.

It lives on an event loop of its own in a thread; the test asks it over HTTP with the standard library alone, and does
what is not HTTP (`api.do(...)`) on that loop.
"""

import asyncio
import http.client
import json
import threading
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlencode, urlsplit

import uvicorn.server

from fleetcron.api.context import Context
from fleetcron.api.server import Server
from fleetcron.clock import SystemClock
from fleetcron.config import ApiConfig
from fleetcron.model.access import KeyWish, Role, new_key
from fleetcron.scheduler.desk import Desk
from fleetcron.store.store import Store
from tests.store.engines import hand_cranked
from tests.store.floor import Floor, ok

T = TypeVar("T")


class _Impatient:
    """asyncio for the loop of uvicorn, which looks ten times in a second whether it is to end, and then waits for a
    tenth of a second more. That is a fifth of a second for each test."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.005))


uvicorn.server.asyncio = _Impatient()  # type: ignore[attr-defined]
NOW = 1_800_000_000_000  # 2027-01-15 08:00:00 UTC
V1 = "/api/v1"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]  # in small letters
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def places(self) -> list[str]:
        """Of mistakes: the pointers and the parameters."""
        return [each.get("pointer", each.get("parameter")) for each in self.json["errors"]]


class Api:
    """`api.get("/jobs")` and its like ask under /api/v1 and insist on the status; a path that begins with // is taken
    from the root."""

    def __init__(self, url: str, floor: Floor, context: Context, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self.floor = floor
        self.store = floor.store
        self.context = context
        self._loop = loop
        self._key: str | None = None

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def key(self, name: str, role: Role = Role.ADMIN, tenant: str | None = None, **more: Any) -> str:
        made = new_key()
        pools = more.pop("pools", ("*",) if role is Role.WORKER else ())
        wish = KeyWish(name, role, tenant, pools, more.pop("lasts_ms", None), more.pop("rate", None))
        ok(self.do(self.store.keys.create(made.key_id, made.digest, wish, actor="test")))
        return made.text

    def acting(self, key: str | None) -> "Api":
        """The same server, asked with this key unless another is given."""
        other = Api(self.url, self.floor, self.context, self._loop)
        other._key = key
        return other

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        **query: object,
    ) -> Answer:
        where = path[1:] if path.startswith("//") else f"{V1}{path}"
        if query:
            where += "?" + urlencode({name.rstrip("_"): value for name, value in query.items() if value is not None})
        said = {name.lower(): value for name, value in (headers or {}).items()}
        if (key or self._key) is not None:
            said.setdefault("authorization", f"Bearer {key or self._key}")
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            said.setdefault("content-type", "application/json")
        place = urlsplit(self.url)
        assert place.hostname is not None
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
        try:
            connection.request(method, where, data, said)
            response = connection.getresponse()
            got = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, got, response.read())
        finally:
            connection.close()

    def get(self, path: str, status: int = 200, **more: Any) -> Any:
        return self._insist("GET", path, None, status, **more)

    def post(self, path: str, body: object = None, status: int = 200, **more: Any) -> Any:
        return self._insist("POST", path, body, status, **more)

    def put(self, path: str, body: object = None, status: int = 200, **more: Any) -> Any:
        return self._insist("PUT", path, body, status, **more)

    def patch(self, path: str, body: object = None, status: int = 200, **more: Any) -> Any:
        return self._insist("PATCH", path, body, status, **more)

    def delete(self, path: str, status: int = 200, **more: Any) -> Any:
        return self._insist("DELETE", path, None, status, **more)

    def _insist(self, method: str, path: str, body: object, status: int, **more: Any) -> Any:
        got = self.ask(method, path, body, **more)
        assert got.status == status, f"{method} {path}: {got.status}\n{got.body.decode()[:2000]}"
        kind = got.headers.get("content-type", "")
        assert kind.startswith("application/problem+json") == (status >= 400), kind
        return got.json if got.body else None


@contextmanager
def serving(url: str, **config: Any) -> Iterator[Api]:
    """The server on the database at `url`, until the end of the block."""
    started: dict[str, Any] = {}
    ready = threading.Event()

    async def main() -> None:
        async with hand_cranked(url, NOW) as (engine, clock):
            store = Store(engine)
            ok(await store.shards.fix(4))
            held = ok(await store.shards.take("*", range(4), "node", 3_600_000))
            floor = Floor(store, clock, Desk(store, actor="test", shards=4), held)
            context = Context(store, SystemClock(), ApiConfig(**{"listen": "127.0.0.1:0", **config}), 4)
            server = await Server.open(context)
            stop = asyncio.Event()
            started.update(loop=asyncio.get_running_loop(), stop=stop)
            started["api"] = Api(server.url, floor, context, started["loop"])
            ready.set()
            await server.run(stop)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            started["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=run)
    thread.start()
    ready.wait(60)
    try:
        if "api" not in started:
            raise started["error"]
        yield started["api"]
    finally:
        if "loop" in started:
            started["loop"].call_soon_threadsafe(started["stop"].set)
        thread.join(60)
    if "error" in started:
        raise started["error"]
