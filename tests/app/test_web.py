"""An app inside a web application: examples/fastapi_shop.py, served by a real uvicorn, on a real PostgreSQL."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from fastapi import FastAPI

from fleetcron import Fleetcron
from fleetcron.errors import ConfigError, SchemaError, StoreError
from fleetcron.model.access import KeyWish, Role, new_key
from fleetcron.store.store import Store
from tests.app import unbilled
from tests.faults.fleet import until
from tests.services.ports import free_port
from tests.store.engines import admin, opened
from tests.store.floor import ok

ROOT = Path(__file__).parents[2]


class Shop:
    def __init__(self, process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.log = log

    def ask(self, path: str, body: Any = None, *, key: str = "", status: int = 200) -> tuple[Any, dict[str, str]]:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        data = None if body is None else json.dumps(body).encode()
        try:
            answer = urlopen(Request(self.url + path, data, headers), timeout=20)
        except HTTPError as error:
            answer = error
        with answer:
            said = answer.read()
            assert answer.status == status, said
            kind = answer.headers.get("content-type", "")
            return json.loads(said) if "json" in kind else said, {k.lower(): v for k, v in answer.headers.items()}

    async def answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            await asyncio.to_thread(self.ask, "/fleetcron/healthz")
        except OSError:
            return False
        return True


@contextmanager
def served(url: str, folder: Path) -> Iterator[Shop]:
    port = free_port()
    argv = [sys.executable, "-m", "uvicorn", "fastapi_shop:web", "--port", str(port), "--log-level", "warning"]
    ours = {key: value for key, value in os.environ.items() if not key.startswith(("FLEETCRON_", "DATABASE_URL"))}
    env = {**ours, "SHOP_URL": url, "PYTHONPATH": str(ROOT / "examples")}
    with (folder / "log").open("wb") as log, subprocess.Popen(argv, cwd=folder, env=env, stderr=log) as process:
        try:
            yield Shop(process, port, folder / "log")
        finally:
            process.kill()


def test_a_shop_on_fastapi(postgres18_url: str, tmp_path: Path) -> None:
    async def scenario(shop: Shop) -> None:
        made = new_key()
        async with opened(postgres18_url) as engine, admin(postgres18_url) as outside:
            ok(await Store(engine).keys.create(made.key_id, made.digest, KeyWish("ops", Role.ADMIN), actor="test"))
            await until(shop.answers, 60)

            def order(customer: str, status: int = 201) -> Any:
                return shop.ask("/orders", {"customer": customer}, status=status)[0]

            orders = [await asyncio.to_thread(order, customer) for customer in ("ann", "bob", "cid")]
            await asyncio.to_thread(order, "nobody", 409)

            async def are_invoiced() -> bool:
                return bool(await outside.fetchval("SELECT count(*) FROM orders WHERE invoice IS NOT NULL") == 3)

            await until(are_invoiced)
            assert await outside.fetchval("SELECT count(*) FROM orders") == 3  # of nobody's order nothing is left
            assert await outside.fetchval("SELECT count(*) FROM fleetcron.runs") == 3
            await asyncio.to_thread(looks_right, shop, made.text, orders)

            # a last order, and the end at once: what has begun is finished, what has not stays for the next one
            last = await asyncio.to_thread(order, "dan")
            shop.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(shop.process.wait, 30)
            assert shop.process.returncode in (0, -signal.SIGTERM)  # uvicorn sends itself the signal once it is done
            assert "Traceback" not in shop.log.read_text()
            for left in ("workers", "nodes", "leases"):
                assert await outside.fetchval(f"SELECT count(*) FROM fleetcron.{left}") == 0, left
            state = await outside.fetchval("SELECT state FROM fleetcron.runs WHERE run_id = $1", last["run"])
            assert state in ("planned", "succeeded")

    with served(postgres18_url, tmp_path) as shop:
        asyncio.run(scenario(shop))


def looks_right(shop: Shop, key: str, orders: list[Any]) -> None:
    """Under the path where it is mounted."""
    shop.ask("/fleetcron/api/v1/jobs", status=401)
    run, _ = shop.ask(f"/fleetcron/api/v1/runs/{orders[0]['run']}", key=key)
    assert (run["name"], run["asked_by"]) == ("send-invoice", "app:shop")
    described, _ = shop.ask("/fleetcron/openapi.json")
    assert described["servers"] == [{"url": "/fleetcron"}]
    assert "/api/v1/jobs" in described["paths"]
    page, _ = shop.ask("/fleetcron/docs")
    assert b'src="docs/start.js"' in page
    shop.ask("/fleetcron/docs/start.js")
    job = {"name": "hello", "schedule": {"every": "1h"}, "run": {"command": ["true"]}}
    _, headers = shop.ask("/fleetcron/api/v1/jobs", job, key=key, status=201)
    assert headers["location"] == "/fleetcron/api/v1/jobs/hello"
    assert shop.ask(headers["location"], key=key)[0]["name"] == "hello"
    assert "/orders" in shop.ask("/openapi.json")[0]["paths"]  # the shop's own


async def get(web: Any, path: str) -> tuple[int, Any]:
    """As a server asks it."""
    said: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        said.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "root_path": "", "query_string": b"", "headers": []}
    await web({**scope, "http_version": "1.1", "scheme": "http", "server": ("localhost", 80)}, receive, send)
    return said[0]["status"], json.loads(b"".join(part.get("body", b"") for part in said[1:]))


async def begun(web: Any) -> tuple[str, Any]:
    """Its lifespan, as a server begins and ends it: what it says first, and an answer meanwhile."""
    asked, said = asyncio.Queue[Any](), asyncio.Queue[Any]()
    life = asyncio.create_task(web({"type": "lifespan"}, asked.get, said.put))
    await asked.put({"type": "lifespan.startup"})
    first = await said.get()
    answer = await get(web, "/readyz")
    await asked.put({"type": "lifespan.shutdown"})
    await life
    return first["type"], answer


def test_only_connected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`roles=()`: no node, no table; and before that the API says what is missing."""
    monkeypatch.chdir(tmp_path)
    app = Fleetcron("sqlite:///shop.db", name="shop")
    app.job(every="1h")(unbilled.has_pydantic)
    web = FastAPI(lifespan=partial(app.lifespan, roles=()))
    api = app.asgi()
    web.mount("/fleetcron", api)

    async def scenario() -> None:
        status, told = await get(web, "/fleetcron/healthz")
        assert (status, told["status"], told["code"]) == (503, 503, "unavailable")
        assert "give the web application lifespan=app.lifespan" in told["detail"]
        life = partial(web.router.lifespan_context, web)
        with pytest.raises(StoreError, match=r"there is no database shop\.db yet"):
            async with life():
                pass
        with pytest.raises(StoreError, match=r"there is no database shop\.db yet"):
            await app.enqueue("has-pydantic")
        assert (await begun(api))[0] == "lifespan.startup.failed"
        Path("shop.db").touch()
        with pytest.raises(SchemaError, match="fleetcron migrate"):
            await app.enqueue("has-pydantic")
        async with opened("sqlite:///shop.db") as engine:
            await app.sync(Store(engine))
        async with life():
            assert await get(web, "/fleetcron/readyz") == (200, {"status": "ready"})
            assert (await app.enqueue(unbilled.has_pydantic)).created
            with pytest.raises(ConfigError, match="running in this process already"):
                async with life():
                    pass
        assert app.store is None
        assert await begun(api) == ("lifespan.startup.complete", (200, {"status": "ready"}))
        assert (await get(api, "/readyz"))[0] == 503
        with pytest.raises(ConfigError, match="'api' is not a role"):
            async with app.lifespan(roles=("api",)):
                pass

    asyncio.run(scenario())
