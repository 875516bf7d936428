"""The jobs list of the API with a million jobs: the first page, pages after it, and pages by filter."""

import asyncio
import statistics
import tempfile
from pathlib import Path
from urllib.parse import quote, urlencode

from bench.api import Client, server
from bench.measure import Goal, Result, progress, table
from bench.server import database
from bench.tables import opened
from fleetcron.model.reading import read_job
from fleetcron.model.target import handler_key

ROUNDS = 15
GOAL_MS = 50
TENANTS, TYPES, POOLS = 1_000, 200, 50
# one of 50 jobs is paused; every job has run twice, and one of 100 died the last time
_NUMBERS = {
    "postgres": "generate_series(1, {jobs}) AS n (i)",
    "sqlite": "(WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {jobs}) SELECT i FROM n)",
}
_IDS = {
    "postgres": "(lpad(to_hex(1700000000000 + i), 12, '0') || '70008000' || lpad(to_hex(i), 12, '0'))::uuid",
    "sqlite": "printf('%08x-%04x-7000-8000-%012x', (1700000000000 + i) / 65536, (1700000000000 + i) % 65536, i)",
}
_STATE = "CASE WHEN i % 50 = 49 THEN 'paused' ELSE 'active' END"
_ENDED = "CASE WHEN i % 100 = 1 THEN 'dead' ELSE 'succeeded' END"
ASKED = {
    "first page of 100": {},
    "first page of 500": {"limit": 500},
    "by tenant": {"tenant": "tenant-500"},
    "by state": {"state": "paused"},
    "by type": {"type": "type-77"},
    "by pool": {"pool": "pool-7"},
    "by pool and state": {"pool": "pool-7", "state": "paused"},
    "by text, of a tenant": {"tenant": "tenant-500", "text": "report-99"},
    "by text that many have": {"text": "report"},
    "by text that few have": {"text": "99999"},
}
BEYOND = {"by text that few have", "first page of 500"}  # looks at every name; is five pages


def run(quick: bool) -> Result:
    jobs = 20_000 if quick else 1_000_000
    figures: dict[str, dict[str, float]] = {}
    with database("fleetcron_bench_list") as url:
        figures["PostgreSQL"] = _measured(url, jobs)
    with tempfile.TemporaryDirectory() as folder:
        figures["SQLite"] = _measured(f"sqlite:///{Path(folder) / 'list.db'}", jobs)
    names = [*ASKED, "the page after the first", "a page in the middle", "one job"]
    worst = max(figures["PostgreSQL"][name] for name in names if name not in BEYOND)
    rows = [[name, *(f"{figures[engine][name]:.1f}" for engine in figures)] for name in names]
    return Result(
        lines=[
            f"{jobs:,} jobs, each with two runs; ms over HTTP, the median of {ROUNDS}:",
            *table(["", *figures], rows),
        ],
        figures={"jobs": jobs, **figures},
        goals=[Goal(f"a page of 100 takes {GOAL_MS} ms at most on PostgreSQL", f"{worst:.1f} ms", worst <= GOAL_MS)],
    )


def _measured(url: str, jobs: int) -> dict[str, float]:
    asyncio.run(_fill(url, jobs))
    progress("asking")
    with server(url) as (host, key):
        api = Client(host, key)
        first = api.json("GET", "/jobs")["next"]
        middle = api.json("GET", f"/jobs?tenant=tenant-{TENANTS // 2}&limit=1")["next"]
        asked = {name: f"/jobs?{urlencode(query)}" for name, query in ASKED.items()}
        asked["the page after the first"] = f"/jobs?cursor={quote(first)}"
        asked["a page in the middle"] = f"/jobs?cursor={quote(middle)}"
        asked["one job"] = "/jobs/report-500?tenant=tenant-500"
        found = {}
        for name, path in asked.items():
            api.ask("GET", path)
            found[name] = statistics.median(api.timed("GET", path)[0] for _ in range(ROUNDS)) * 1000
        return found


async def _fill(url: str, jobs: int) -> None:
    """By statements of our own: through the API it would take an hour."""
    engine = "sqlite" if url.startswith("sqlite") else "postgres"
    numbers, job_id = _NUMBERS[engine].format(jobs=jobs), _IDS[engine]
    run = {"http": {"url": "https://shop.example/report"}}
    schedule = {"cron": "0 * * * *", "timezone": "Europe/Berlin"}
    definition = read_job({"name": "the-name", "tenant": "the-tenant", "schedule": schedule, "run": run, "pool": "p"})
    body = definition.body().replace('"pool":"p"', '"pool":"the-pool"').replace("'", "''")
    tenant, name = f"'tenant-' || {_text('i % ' + str(TENANTS))}", f"'report-' || {_text('i')}"
    pool, kind = f"'pool-' || {_text('i % ' + str(POOLS))}", f"'type-' || {_text('i % ' + str(TYPES))}"
    written = f"replace(replace(replace('{body}', 'the-name', {name}), 'the-tenant', {tenant}), 'the-pool', {pool})"
    timing = definition.timing(0)
    async with opened(url) as tables:
        now_ms = await tables.now_ms()
        hour_ms = now_ms - now_ms % 3_600_000
        await tables.run(f"INSERT INTO timings VALUES ({timing.timing_id}, '{timing.body()}')")
        progress(f"filling {engine} with {jobs:,} jobs")
        await tables.run(
            "INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, revision, definition, created_by,"
            f" created_ms, updated_ms, handler) SELECT {job_id}, {tenant}, {name}, {kind}, {pool}, '*',"
            f" {_STATE}, 1, {_json(engine, written)}, 'bench', 0, 0,"
            f" '{handler_key(definition.run)}' FROM {numbers}"
        )
        progress(f"filling {engine} with cursors and runs")
        await tables.run(
            "INSERT INTO cursors (job_id, region, shard, state, timing_id, revision, cursor_ms, ticks_used,"
            f" next_due_ms) SELECT {job_id}, '*', i % 16, {_STATE}, {timing.timing_id}, 1, {hour_ms}, 0,"
            f" CASE WHEN i % 50 = 49 THEN NULL ELSE {hour_ms + 3_600_000} END FROM {numbers}"
        )
        for at_ms, state in ((hour_ms - 3_600_000, "'succeeded'"), (hour_ms, _ENDED)):
            await tables.run(
                "INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, started_ms, finished_ms,"
                f" almanac, covers, revision, kind, lane, state) SELECT {job_id}, {at_ms}, {at_ms}, {at_ms - 60_000},"
                f" {at_ms}, {at_ms + 4_000}, 1, 1, 1, 'tick', 'live', {state} FROM {numbers}"
            )
        await tables.settle()


def _text(what: str) -> str:
    return f"CAST({what} AS TEXT)"


def _json(engine: str, text: str) -> str:
    return f"CAST({text} AS JSONB)" if engine == "postgres" else text
