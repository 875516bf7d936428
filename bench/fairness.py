"""One tenant with a hundred thousand runs, and ninety-nine with ten: how long the small ones wait because of it.

`alone`: only the small ones, all due at one instant. `behind`: the noisy one has been at work for a while when they
become due. `at once`: all are due at the same instant, and the runs of the noisy one were planned first. Then four
tenants that all have a backlog, with weights 1, 1, 2, 4. Real workers in processes of their own; handlers wait a given
time and do nothing. Instants are those of the database, as they are stored.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.backlog import Part, fill
from bench.handlers import WHILE
from bench.measure import Goal, Result, progress, quantile, table
from bench.server import database
from bench.tables import Tables, opened
from bench.workers import Crew, command, crew

SLOTS = 50
HANDLER_S = 0.05
WEIGHTS = {"a": 1, "b": 1, "c": 2, "d": 4}
GOAL_SHARE, GOAL_IDLE_MS = 0.8, 500
_SOON_MS = 3_000
_LOOK_S = 0.2


@dataclass(frozen=True)
class Size:
    noisy: int
    each: int  # runs of a small tenant
    head_s: float  # the noisy one has been at work so long
    window_s: float
    watched_s: float  # of the work by weights


QUICK = Size(noisy=9_000, each=3, head_s=3, window_s=3, watched_s=8)
FULL = Size(noisy=100_000, each=10, head_s=20, window_s=60, watched_s=90)
SMALL = [f"small-{number:02}" for number in range(99)]


def run(quick: bool) -> Result:
    size = QUICK if quick else FULL
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder, database("fleetcron_bench_fairness") as url:
        for name, where, processes in (("PostgreSQL", url, 2), ("SQLite", f"sqlite:///{Path(folder)}/", 1)):
            found[name] = asyncio.run(_on(name, where, processes, size))
    goals, rows = [], []
    for name, seen in found.items():
        limit = 2 * seen["alone"]["p95"] + 2 * HANDLER_S * 1000
        for way in ("behind", "at once"):
            p95 = seen[way]["p95"]
            text = f"{name}: small tenants {way} a noisy one: p95 <= 2 x alone + 2 handlers ({limit:,.0f} ms)"
            goals.append(Goal(text, f"{p95:,.0f} ms", p95 <= limit))
        worst, idle_ms = min(seen["shares"].values()), seen["idle_ms"]
        text = f"{name}: every tenant >= {GOAL_SHARE} of its share in any {size.window_s:g} s"
        goals.append(Goal(text, f"{worst:.2f}", worst >= GOAL_SHARE))
        text = f"{name}: no worker idle for {GOAL_IDLE_MS} ms while something may run"
        goals.append(Goal(text, f"{idle_ms:,.0f} ms", idle_ms < GOAL_IDLE_MS))
        rows += [
            [f"{name}, start delay of small tenants, {way}", f"{seen[way]['p50']:,.0f}", f"{seen[way]['p95']:,.0f}"]
            for way in ("alone", "behind", "at once")
        ]
        rows.append([f"{name}, free slots while something may run", f"{seen['free']:.1%}", ""])
        shares = ", ".join(f"{share:.2f}" for share in seen["shares"].values())
        rows.append([f"{name}, smallest part of their shares, weights 1, 1, 2, 4", shares, ""])
    lines = table([f"{size.noisy:,} runs of one tenant, {size.each} of each of {len(SMALL)}", "p50 ms", "p95 ms"], rows)
    figures = {"slots": SLOTS, "handler_s": HANDLER_S, "runs": size.noisy, "each": size.each, "seen": found}
    return Result(figures, lines, goals)


async def _on(name: str, where: str, processes: int, size: Size) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for way in ("alone", "behind", "at once", "weights"):
        progress(f"fairness: {name}, {way}")
        url = f"{where}{way.replace(' ', '-')}.db" if where.startswith("sqlite") else where
        async with opened(url) as tables:
            if way == "weights":
                found["shares"] = await _by_weight(tables, url, processes, size)
            else:
                found |= await _small(tables, url, processes, size, way)
    return found


async def _small(tables: Tables, url: str, processes: int, size: Size, way: str) -> dict[str, Any]:
    """Until the small ones are done; what is left of the noisy one does not matter."""
    now_ms = await tables.now_ms()
    noisy = 0 if way == "alone" else size.noisy
    parts = [_part("noisy", noisy, now_ms), *(_part(name, size.each, now_ms) for name in SMALL)]
    await fill(tables, [part for part in parts if part.runs])
    async with crew(_commands(url, processes, look=True)) as workers:
        head_ms = round(size.head_s * 1000) if way == "behind" else 0
        due_ms = await _put_off(tables, 0 if way == "at once" else noisy, head_ms)
        workers.go()
        waiting = f"SELECT count(*) FROM runs WHERE run_id > {noisy} AND finished_ms IS NULL"
        await _until_none(tables, workers, waiting)
        end_ms = await tables.now_ms()
        left = await tables.fetch("SELECT count(*) FROM queue WHERE gate IS NULL")
        seen = await workers.stop()
    delays = await tables.fetch(
        "SELECT a.started_ms - r.run_after_ms FROM attempts AS a JOIN runs AS r ON r.run_id = a.run_id"
        f" WHERE a.attempt = 1 AND r.run_id > {noisy}"
    )
    ordered = sorted(delay for (delay,) in delays)
    assert len(ordered) == size.each * len(SMALL)
    found: dict[str, Any] = {way: {"p50": quantile(ordered, 0.5), "p95": quantile(ordered, 0.95), "max": ordered[-1]}}
    if way == "behind":
        assert left[0][0], "the noisy tenant has too few runs for this machine: nothing was left of them"
        watched = [[(at, free) for at, free in each["free"] if due_ms <= at <= end_ms] for each in seen]
        found["free"] = _mean([free / (SLOTS // processes) for each in watched for _, free in each])
        found["idle_ms"] = max(_longest_idle(each, SLOTS // processes) for each in watched)
    return found


async def _put_off(tables: Tables, after_run: int, head_ms: int) -> int:
    """The runs after this one become due soon, and not before the workers are at work. When that is."""
    soon_ms = _SOON_MS
    while True:
        due_ms = await tables.now_ms() + soon_ms + head_ms
        for table_name in ("runs", "upcoming"):
            await tables.run(f"UPDATE {table_name} SET run_after_ms = {due_ms} WHERE run_id > {after_run}")
        if await tables.now_ms() < due_ms - head_ms - _SOON_MS / 2:
            return due_ms
        soon_ms *= 2


async def _by_weight(tables: Tables, url: str, processes: int, size: Size) -> dict[str, float]:
    """The smallest part of its share that each tenant got in any window."""
    now_ms = await tables.now_ms()
    per_s = SLOTS / HANDLER_S / sum(WEIGHTS.values())
    parts = [_part(name, round(weight * per_s * size.watched_s * 1.2), now_ms) for name, weight in WEIGHTS.items()]
    await tables.copy(
        "tenants",
        ("tenant", "weight", "burst", "max_payload", "updated_ms"),
        [(name, weight, 1, 1_000_000, 0) for name, weight in WEIGHTS.items()],
    )
    await fill(tables, parts)
    async with crew(_commands(url, processes)) as workers:
        workers.go()
        begin_ms = await tables.now_ms()
        while await tables.now_ms() < begin_ms + size.watched_s * 1000:
            workers.check()
            await asyncio.sleep(_LOOK_S)
        end_ms = await tables.now_ms()
        await workers.stop()
    rows = await tables.fetch(
        "SELECT j.tenant, a.started_ms FROM attempts AS a JOIN runs AS r ON r.run_id = a.run_id"
        f" JOIN jobs AS j ON j.job_id = r.job_id WHERE a.started_ms <= {end_ms} ORDER BY a.started_ms"
    )
    starts = {name: [at for tenant, at in rows if tenant == name] for name in WEIGHTS}
    # until the first backlog is used up, and after everybody's first runs were queued
    begin = max(each[0] for each in starts.values())
    end = min(each[-1] for each in starts.values())
    window_ms = min(size.window_s * 1000, end - begin)
    return {name: _smallest(starts, name, begin, end, window_ms) for name in WEIGHTS}


def _smallest(starts: dict[str, list[int]], name: str, begin: int, end: int, window_ms: float) -> float:
    parts = []
    for at in range(begin, max(begin, round(end - window_ms)) + 1, max(1, round(window_ms / 20))):
        counts = {tenant: sum(at <= each < at + window_ms for each in some) for tenant, some in starts.items()}
        fair = sum(counts.values()) * WEIGHTS[name] / sum(WEIGHTS.values())
        parts.append(counts[name] / max(fair, 1e-9))
    return min(parts)


def _part(tenant: str, runs: int, due_ms: int) -> Part:
    return Part(tenant, runs, due_ms, handler=WHILE, payload={"s": HANDLER_S})


def _commands(url: str, processes: int, *, look: bool = False) -> list[list[str]]:
    return [command(url, f"worker-{number}", SLOTS // processes, look=look) for number in range(processes)]


async def _until_none(tables: Tables, workers: Crew, counted: str) -> None:
    while (await tables.fetch(counted))[0][0]:
        workers.check()
        await asyncio.sleep(_LOOK_S)


def _longest_idle(seen: Sequence[tuple[float, int]], slots: int) -> float:
    """The longest time without anything in any slot of a worker."""
    longest = idle = 0.0
    for (before, free), (after, _) in pairwise(seen):
        idle = idle + after - before if free >= slots else 0.0
        longest = max(longest, idle)
    return longest


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
