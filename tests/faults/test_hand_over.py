"""What a stop and a crash cost, measured by the database's clock, and that planning goes on meanwhile."""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest

from fleetcron.store.migrations import known
from tests.faults import truth
from tests.faults.fleet import Fleet, Watch, fleet, until
from tests.faults.inside import JOBS
from tests.faults.node import TTL_S
from tests.faults.test_fleet import desk_of
from tests.services.guard import Guard

SHARDS = 16
SLACK_MS = 2000  # for a machine that is busy with other things


def changes(tables: truth.Tables, kind: str, name: str) -> dict[tuple[str, int], int]:
    """When each shard changed hands, the last time: by region and number, of nodes whose id begins so."""
    found: dict[tuple[str, int], int] = {}
    for event in sorted(tables["events"], key=lambda row: int(row["event_id"])):
        if event["kind"] == kind and str(event["node_id"]).startswith(f"{name}-"):
            detail: dict[str, Any] = json.loads(event["detail"])
            found |= {(region, shard): event["at_ms"] for region, shard, _ in detail["shards"]}
    return found


async def stop_and_crash(processes: Fleet, ttl_ms: int, *leases: str) -> None:
    watch = await Watch.open(processes.url)
    try:
        first = processes.start("first", None, *leases)
        await until(lambda: holds(watch, "first", SHARDS))
        async with desk_of(processes.url) as desk:
            await desk.apply(JOBS)
        second = processes.start("second", None, *leases)
        await until(lambda: holds(watch, "second", SHARDS // 2))
        await processes.stop([first])
        await until(lambda: holds(watch, "second", SHARDS))
        await until(watch.caught_up_ms)
        stopped = await truth.read_postgres(processes.url)

        processes.start("third", None, *leases)
        await until(lambda: holds(watch, "third", SHARDS // 2))
        victim = processes.members[-1]
        crashed_ms = await watch.now_ms()
        victim.send(signal.SIGKILL)
        await until(lambda: holds(watch, "second", SHARDS))
        await until(watch.caught_up_ms)
        now_ms = await watch.now_ms()
        await processes.stop([second])
        crashed = await truth.read_postgres(processes.url)
    finally:
        await watch.close()

    given, taken = changes(stopped, "shard_released", "first"), changes(stopped, "shard_taken", "second")
    waits = [taken[key] - at_ms for key, at_ms in given.items()]  # half of them when the second one came
    over = changes(crashed, "shard_taken_over", "second")
    costs = [at_ms - crashed_ms for at_ms in over.values()]
    verdict = truth.judge(crashed, now_ms)
    print(f"\nafter a stop: {min(waits)} to {max(waits)} ms; after a crash: {min(costs)} to {max(costs)} ms; {verdict}")
    assert (len(waits), len(over)) == (SHARDS, SHARDS // 2)
    assert max(waits) < 1000 + SLACK_MS
    assert max(costs) < ttl_ms + 1000 + SLACK_MS
    # Planning went on while the shards changed hands: no tick waited longer for its answer than they did.
    late = [run["created_ms"] - run["scheduled_for_ms"] for run in stopped["runs"]]
    late += [line["noted_ms"] - line["from_ms"] for line in stopped["ledger"]]
    assert max(late) < 1000 + SLACK_MS
    assert verdict.wrong == []
    assert verdict.undecided == 0


async def holds(watch: Watch, name: str, shards: int) -> bool:
    return await watch.holds(name) == shards


def test_a_stop_and_a_crash(processes: Fleet) -> None:
    """S0-15, S3-13, S4-3: well under a second after SIGTERM, TTL + 1 s after kill -9; no tick is lost."""
    asyncio.run(stop_and_crash(processes, round(TTL_S * 1000)))


@pytest.mark.soak
def test_a_stop_and_a_crash_with_the_default_leases(processes: Fleet) -> None:
    asyncio.run(stop_and_crash(processes, 15_000, "default"))


async def made_all(watch: Watch) -> bool:
    return await watch.events("schema_migrated") == len(known("postgres"))


def test_three_nodes_start_at_once_on_an_empty_database(guard: Guard, postgres18_database: str, tmp_path: Path) -> None:
    """All of them want to make the tables; one does, and each gets its share."""

    async def scenario(fleet: Fleet) -> None:
        names = ("a", "b", "c")
        for name in names:
            fleet.start(name)
        async with asyncio.timeout(30):
            watch = await Watch.open(postgres18_database)
            while await watch.ask("SELECT to_regclass('events')") is None:
                await asyncio.sleep(0.02)
            await until(lambda: made_all(watch))
        try:
            async with desk_of(postgres18_database) as desk:
                await desk.apply(JOBS)
            for name in names:
                await until(lambda name=name: watch.holds(name))
            await until(watch.caught_up_ms)
            now_ms = await watch.now_ms()
            assert all(member.alive for member in fleet.members)
            await fleet.stop(fleet.members)
        finally:
            await watch.close()
        verdict = truth.judge(await truth.read_postgres(postgres18_database), now_ms)
        assert verdict.wrong == []
        assert verdict.events["schema_migrated"] == len(known("postgres"))

    with fleet(guard, postgres18_database, tmp_path) as found:
        asyncio.run(scenario(found))
