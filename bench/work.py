"""From due to recorded: no-op runs that are due already, until each is claimed, executed and written down.

Each run has a job of its own with the default policies, so fairness and exclusivity are at work and every definition is
read once. `planned`: the runs stand in the timeline and are queued by the worker too; `queued`: they wait in the queue,
which is where the floor begins. What a process and the database compute is told by the kernel.
"""

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import work_floor
from bench.backlog import Part, fill, is_done
from bench.measure import Goal, Result, progress, table
from bench.server import database
from bench.tables import DEADLINE_S, Tables, opened
from bench.workers import command, crew
from fleetcron.clock import SystemClock
from fleetcron.config import StoreConfig
from fleetcron.policy.fairness import Wanted, ranks
from fleetcron.store.queue import Coming, Place, Shares
from fleetcron.store.store import Store
from fleetcron.store.written import Ok

# Of the floor, by what is at work beside exclusivity.
GOALS = {
    "PostgreSQL, inline, queued": 0.85,
    "PostgreSQL, inline, queued, every tenant capped": 0.8,
    "PostgreSQL, inline, queued, 10,000 tenants": 0.7,
}
GOAL_INLINE_US, GOAL_HOST_US = 20.0, 35.0
SLOTS = 1000
_CAPS = ("tenant", "weight", "max_in_flight", "burst", "max_payload", "updated_ms")
_LOOK_S = 0.1
FLOOR = "floor: run, ready, lease, attempt"


@dataclass(frozen=True)
class Way:
    """`store` is postgres or sqlite."""

    name: str
    store: str
    processes: int = 1
    isolation: str = "inline"
    queued: bool = False
    tenants: int = 100
    capped: bool = False  # every tenant has a cap, which none reaches


WAYS = (
    Way("PostgreSQL, inline, queued", "postgres", queued=True),
    Way("PostgreSQL, inline, queued, every tenant capped", "postgres", queued=True, capped=True),
    Way("PostgreSQL, inline, queued, 10,000 tenants", "postgres", queued=True, tenants=10_000),
    Way("PostgreSQL, inline", "postgres"),
    Way("PostgreSQL, inline, 2 workers", "postgres", processes=2),
    Way("PostgreSQL, hosts", "postgres", isolation="host"),
    Way("PostgreSQL, hosts, 2 workers", "postgres", processes=2, isolation="host"),
    Way("SQLite, inline, queued", "sqlite", queued=True),
    Way("SQLite, inline", "sqlite"),
    Way("SQLite, hosts", "sqlite", isolation="host"),
)


@dataclass(frozen=True)
class Seen:
    """Runs in a second, and microseconds of computing for each run: of workers, hosts, and the database."""

    per_s: float
    worker_us: float
    host_us: float
    database_us: float | None


def run(quick: bool) -> Result:
    runs, rounds = (5_000, 1) if quick else (100_000, 3)
    found: dict[str, list[Seen]] = {}
    with tempfile.TemporaryDirectory() as folder, database("fleetcron_bench_work") as url:
        for number in range(rounds):
            for name, processes in ((FLOOR, 1), (f"{FLOOR}, 2 workers", 2)):
                progress(f"work: {name}, round {number + 1} of {rounds}")
                found.setdefault(name, []).append(asyncio.run(_floor(url, processes, runs)))
            for way in WAYS:
                progress(f"work: {way.name}, round {number + 1} of {rounds}")
                path = Path(folder) / f"{len(list(Path(folder).iterdir()))}.db"
                where = url if way.store == "postgres" else f"sqlite:///{path}"
                found.setdefault(way.name, []).append(asyncio.run(_ours(where, way, runs)))
    return _result(found, runs, rounds)


async def _floor(url: str, processes: int, runs: int) -> Seen:
    async with opened(url) as tables:
        await work_floor.fill(tables, runs)
        commands = [[sys.executable, "-m", "bench.work_floor", url, f"floor-{n}"] for n in range(processes)]

        async def done() -> bool:
            rows = await tables.fetch("SELECT 1 FROM floor_ready UNION ALL SELECT 1 FROM floor_leases LIMIT 1")
            return not rows

        return await _seen(tables, commands, runs, done, "floor_runs")


async def _ours(url: str, way: Way, runs: int) -> Seen:
    async with opened(url) as tables:
        due_ms = await tables.now_ms() - 1000
        tenants = [f"tenant-{number:05}" for number in range(min(way.tenants, runs))]
        share = runs // len(tenants)
        await fill(tables, [Part(tenant, share, due_ms) for tenant in tenants])
        if way.capped:
            caps = [(tenant, 1, SLOTS * 2, 1, 1_000_000, 0) for tenant in tenants]
            await tables.copy("tenants", _CAPS, caps)
        if way.queued:
            await _queue(url)
            await tables.settle()
        commands = [command(url, f"worker-{n}", SLOTS, isolation=way.isolation) for n in range(way.processes)]
        return await _seen(tables, commands, share * len(tenants), lambda: is_done(tables), "runs")


async def _seen(
    tables: Tables, commands: list[list[str]], runs: int, done: Callable[[], Awaitable[bool]], history: str
) -> Seen:
    async with crew(commands) as workers:
        database_s, (worker_s, host_s) = tables.cpu_s(), workers.cpu_s()
        begin_ms = await tables.now_ms()
        workers.go()
        while not await done():
            workers.check()
            await asyncio.sleep(_LOOK_S)
        after_s, (worker_after_s, host_after_s) = tables.cpu_s(), workers.cpu_s()
        await workers.stop()
    counted = f"SELECT count(*), max(finished_ms) FROM {history} WHERE state = 'succeeded'"
    [(recorded, end_ms)] = await tables.fetch(counted)
    assert recorded == runs, f"{recorded} of {runs} runs were recorded"
    return Seen(
        per_s=runs / max(0.001, (end_ms - begin_ms) / 1000),
        worker_us=(worker_after_s - worker_s) / runs * 1e6,
        host_us=(host_after_s - host_s) / runs * 1e6,
        database_us=None if database_s is None or after_s is None else (after_s - database_s) / runs * 1e6,
    )


async def _queue(url: str) -> None:
    store = await Store.open(StoreConfig(url=url, deadline_s=DEADLINE_S), SystemClock())
    more = True
    while more:
        written = await store.queue.promote(0, 2000, _ranked)
        assert isinstance(written, Ok)
        more = written.value.more
    await store.close()


def _ranked(coming: Sequence[Coming], shares: Shares) -> tuple[list[int], dict[Place, int]]:
    return ranks([Wanted(c.pool, c.lane, c.priority, c.tenant, c.weight) for c in coming], shares)


def _result(found: dict[str, list[Seen]], runs: int, rounds: int) -> Result:
    per_s = {name: median(each.per_s for each in some) for name, some in found.items()}
    cost = {
        name: (
            median(s.worker_us for s in some),
            median(s.host_us for s in some),
            _median([s.database_us for s in some]),
        )
        for name, some in found.items()
    }
    floor = per_s[FLOOR]
    inline_us, host_us = cost["PostgreSQL, inline"][0], cost["PostgreSQL, hosts"][0]
    lines = table(
        [f"{runs:,} no-op runs", "runs/s", "of the floor", "worker µs", "host µs", "database µs"],
        [
            [name, f"{per_s[name]:,.0f}", f"{per_s[name] / floor:.2f}", *(_shown(us) for us in cost[name])]
            for name in found
        ],
    )
    goals = [
        *(
            Goal(f"{name}: >= {goal:g} of the floor", f"{per_s[name] / floor:.2f}", per_s[name] >= goal * floor)
            for name, goal in GOALS.items()
        ),
        Goal(f"worker, inline: <= {GOAL_INLINE_US:g} µs per run", f"{inline_us:.0f} µs", inline_us <= GOAL_INLINE_US),
        Goal(f"worker, hosts: <= {GOAL_HOST_US:g} µs per run", f"{host_us:.0f} µs", host_us <= GOAL_HOST_US),
    ]
    figures = {
        "runs": runs, "rounds": rounds, "slots": SLOTS, "per_s": per_s,
        "us": {name: dict(zip(("worker", "host", "database"), us, strict=True)) for name, us in cost.items()},
    }  # fmt: skip
    return Result(figures, lines, goals)


def _median(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _shown(us: float | None) -> str:
    return "" if us is None else f"{us:.0f}"
