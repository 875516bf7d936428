"""The API on PostgreSQL: 10,000 jobs in one call, the first page of them, and small requests."""

import http.client
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench.measure import Goal, Result, progress
from bench.server import database

CRONS = ("0 2 * * *", "*/5 * * * *", "30 9 * * MON-FRI", "15 0 1 * *")


def run(quick: bool) -> Result:
    number = 1_000 if quick else 10_000
    with database("fleetcron_bench_api") as url, server(url) as (host, key):
        api = Client(host, key)
        progress(f"creating {number:,} jobs in one call")
        lines = "\n".join(json.dumps(_job(at)) for at in range(number)).encode()
        api.ask("POST", "/jobs/batch", json.dumps(_job(0)).encode(), "application/x-ndjson")  # everything is imported
        created_s, body = api.timed("POST", "/jobs/batch", lines, "application/x-ndjson")
        assert json.loads(body)["counts"] == {"created": number - 1, "unchanged": 1}
        again_s, _ = api.timed("POST", "/jobs/batch", lines, "application/x-ndjson")
        pages = sorted(api.timed("GET", "/jobs?limit=100")[0] for _ in range(20))
        small = sorted(api.timed("GET", "/me")[0] for _ in range(200))
    page_ms, small_ms = pages[10] * 1000, small[100] * 1000
    return Result(
        lines=[
            f"{number:,} jobs created in one call: {created_s:.2f} s ({number / created_s:,.0f} a second)",
            f"the same again, unchanged: {again_s:.2f} s",
            f"first page of 100: {page_ms:.1f} ms; GET /me: {small_ms:.1f} ms (median)",
        ],
        figures={
            "jobs": number,
            "created_s": created_s,
            "unchanged_s": again_s,
            "page_ms": page_ms,
            "small_ms": small_ms,
        },
        goals=[
            Goal(
                "10,000 jobs in one call take 5 s at most",
                f"{created_s:.2f} s for {number:,}",
                created_s <= 5 * number / 10_000,
            )
        ],
    )


def _job(number: int) -> dict[str, object]:
    schedule = {"cron": CRONS[number % len(CRONS)], "timezone": "Europe/Berlin"}
    run = {"http": {"url": f"https://shop.example/{number}"}}
    return {"name": f"job-{number}", "schedule": schedule, "run": run, "payload": {"shop": number}, "pool": "web"}


class Client:
    def __init__(self, host: str, key: str) -> None:
        self._connection = http.client.HTTPConnection(host, timeout=300)
        self._key = key

    def ask(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": kind}
        self._connection.request(method, f"/api/v1{path}", body, headers)
        response = self._connection.getresponse()
        found = response.read()
        assert response.status < 300, found[:500]
        return found

    def json(self, method: str, path: str) -> Any:
        return json.loads(self.ask(method, path))

    def timed(self, *request: object) -> tuple[float, bytes]:
        began = time.perf_counter()
        body = self.ask(*request)  # type: ignore[arg-type]
        return time.perf_counter() - began, body


@contextmanager
def server(url: str) -> Iterator[tuple[str, str]]:
    """`fleetcron api` as a process of its own, and a key."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("FLEETCRON_")}
    env = {**ours, "FLEETCRON_DATABASE_URL": url}
    command = [sys.executable, "-m", "fleetcron"]
    subprocess.run([*command, "migrate"], env=env, check=True, capture_output=True)
    made = subprocess.run(
        [*command, "keys", "create", "bench", "--role", "admin", "--rate", "600000", "--json"],
        env=env, check=True, capture_output=True, text=True,
    )  # fmt: skip
    server = subprocess.Popen(
        [*command, "api", "--listen", "127.0.0.1:0", "--log-level", "error"], env=env, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if found := re.search(r"http://([^/]+)/api", line):
                yield found[1], json.loads(made.stdout)["key"]
                break
    finally:
        server.terminate()
        server.wait()
        if server.stdout is not None:
            server.stdout.close()
