"""A million jobs of which none is due: what the scheduler costs when it has nothing to do.

Cost has to grow with what is due, not with what exists.
"""

import asyncio
import json
import os
import subprocess
import sys
from statistics import median
from time import perf_counter

import asyncpg

from bench import fleet
from bench.measure import Goal, Result, progress, table
from bench.server import database
from fleetcron.clock import SystemClock
from fleetcron.config import Config, StoreConfig
from fleetcron.node import Node
from fleetcron.store.migrations import migrate
from fleetcron.store.statements import Statements
from fleetcron.store.store import Store

GOAL_ROUND_MS, GOAL_MEMORY_MB, GOAL_START_S = 5.0, 150.0, 2.0
DAY_MS = 86_400_000
_ROUNDS = 20


def run(quick: bool) -> Result:
    jobs = 20_000 if quick else 1_000_000
    with database("fleetcron_bench_idle") as url:
        asyncio.run(_prepare(url, jobs))
        seen = json.loads(
            subprocess.run([sys.executable, "-m", "bench.idle", url], check=True, capture_output=True).stdout
        )
    goals = [
        Goal(
            f"a round <= {GOAL_ROUND_MS:g} ms of database time",
            f"{seen['round_ms']:.2f} ms",
            seen["round_ms"] <= GOAL_ROUND_MS,
        ),
        Goal("the round reads the index", seen["index"], seen["index"] == "cursors_due"),
        Goal(f"memory <= {GOAL_MEMORY_MB:g} MB", f"{seen['memory_mb']:.0f} MB", seen["memory_mb"] <= GOAL_MEMORY_MB),
        Goal(f"start <= {GOAL_START_S:g} s", f"{seen['start_s']:.2f} s", seen["start_s"] <= GOAL_START_S),
    ]
    return Result(
        figures={"jobs": jobs, **seen},
        lines=table(
            [f"{jobs:,} jobs, none due", ""],
            [
                ["a round of the scheduler, as the client sees it", f"{seen['client_ms']:.2f} ms"],
                ["of that in the database", f"{seen['round_ms']:.2f} ms"],
                ["a heartbeat (renew, look around), as the client sees it", f"{seen['beat_ms']:.2f} ms"],
                ["memory of the process", f"{seen['memory_mb']:.0f} MB"],
                ["from the start of the process to the end of the first round", f"{seen['start_s']:.2f} s"],
            ],
        ),
        goals=goals,
    )


async def _prepare(url: str, jobs: int) -> None:
    progress(f"idle: {jobs:,} jobs")
    store = await Store.open(StoreConfig(url=url), SystemClock())
    await migrate(store.engine)
    await store.close()
    connection = await fleet.connect(url)
    now_ms = await connection.fetchval("SELECT db_now_ms()")
    await fleet.fill(connection, jobs, now_ms + DAY_MS)
    await connection.close()


async def _measure(url: str, begin: float) -> dict[str, object]:
    """In a process of its own, so that its memory and its start are only its own."""
    node = await Node.start(Config(store=StoreConfig(url=url)))
    await node.member.holder.beat()
    await node.member.scheduler.step()
    start_s = perf_counter() - begin
    rounds, beats = [], []
    for _ in range(_ROUNDS):
        at = perf_counter()
        await node.member.scheduler.step()
        rounds.append((perf_counter() - at) * 1e3)
        at = perf_counter()
        await node.member.holder.beat()
        beats.append((perf_counter() - at) * 1e3)
    memory_mb = _peak_mb()
    connection = await fleet.connect(url)
    spent_ms, index = await _in_database(connection)
    await connection.close()
    await node.member.holder.release()
    await node.close()
    return {
        "start_s": start_s,
        "client_ms": median(rounds),
        "beat_ms": median(beats),
        "memory_mb": memory_mb,
        "round_ms": spent_ms,
        "index": index,
    }


async def _in_database(connection: asyncpg.Connection) -> tuple[float, str]:
    """What the statements of a round take inside the database, planning included, and which index finds the due."""
    held = json.dumps([{"region": "*", "shard": shard} for shard in range(fleet.SHARDS)])
    now_ms = await connection.fetchval("SELECT db_now_ms()")
    given = {"held": held, "horizon_ms": now_ms + 60_000, "per_shard": 313, "most": 1000, "room": 1000, "without": "[]"}
    statements = Statements.for_engine("postgres")
    best: dict[str, float] = {}
    index = "a scan of all"
    for name in ("fleet_now", "cursors_due", "cursors_next", "gaps_open", "upcoming_catchup_count"):
        statement = statements[name]
        for _ in range(5):
            text = f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.sql}"
            shown = json.loads(await connection.fetchval(text, *(given[each] for each in statement.parameters)))[0]
            best[name] = min(best.get(name, 1e9), shown["Planning Time"] + shown["Execution Time"])
            if name == "cursors_due" and '"Index Name": "cursors_due"' in json.dumps(shown):
                index = "cursors_due"
    return sum(best.values()), index


def _peak_mb() -> float:
    with open("/proc/self/status") as status:
        [line] = [line for line in status if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


def _started() -> float:
    """When this process began, on the clock of perf_counter: what was imported before this line counts too."""
    with open("/proc/self/stat") as stat:
        ticks = int(stat.read().rsplit(")", 1)[1].split()[19])
    with open("/proc/uptime") as uptime:
        now = float(uptime.read().split()[0])
    return perf_counter() - (now - ticks / os.sysconf("SC_CLK_TCK"))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(sys.argv[1], _started()))))
