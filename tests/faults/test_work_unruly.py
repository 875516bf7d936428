"""Handlers that hang, ignore, fork and print without end, under a node: nobody of theirs is left, however it ends."""

import asyncio
import signal
from dataclasses import replace
from time import monotonic

import pytest

from fleetcron.model.rules import RetryRule
from tests.executors.processes import still_alive
from tests.faults.fleet import until
from tests.faults.work_fleet import Siege, command, create, job, once, rows_of, trigger
from tests.services.guard import alive

GRACE_S = 1.0
TIMEOUT_S = 1.0
BUSY_S = 2.0  # what a busy machine may add
UNRULY = [
    once(job("hangs", "does_not_stop", 60)),
    once(job("forks", "forks", 60)),
    once(job("ignores", command("ignores", "60"))),
    once(job("leaves", command("leaves_a_child"))),
]


def children(siege: Siege) -> list[int]:
    return [line["child"] for line in siege.said("child")]


def pids(siege: Siege) -> list[int]:
    """Of everything that handlers ran in, or started."""
    return sorted({*children(siege), *(line["pid"] for line in siege.said("start"))})


@pytest.mark.parametrize("how", ["timeout", "kill"])
def test_nobody_outlives_an_unruly_handler(sqlite_siege: Siege, how: str) -> None:
    """S1-26, S3-62: after a timeout, and after kill -9 of the worker: all descendants are dead within the grace and two
    seconds."""
    siege = sqlite_siege
    timeout_ms = 1000 if how == "timeout" else 60_000
    jobs = [replace(one, timeout_ms=timeout_ms, retry=RetryRule(max_attempts=1)) for one in UNRULY]

    async def scenario() -> None:
        await create(siege.url, jobs)
        member = siege.born("host", roles=["scheduler", "worker"], grace_s=GRACE_S)
        for one in jobs:
            await trigger(siege.url, one.name)
        await siege.begun(len(jobs))
        await until(lambda: len(children(siege)) == 4)
        known = pids(siege)
        began = monotonic()
        if how == "kill":
            await siege.kill(member)
            assert await asyncio.to_thread(still_alive, known, 2 + BUSY_S) == []
        else:
            await until(lambda: not any(map(alive, known)), TIMEOUT_S + GRACE_S + 2 + BUSY_S)
            await siege.heals()
        print(f"\nthe last was gone after {monotonic() - began:.2f} s")

    asyncio.run(scenario())
    if how == "timeout":
        verdict = siege.check()
        assert verdict.attempts["timed_out"] == 3
        assert verdict.attempts["succeeded"] == 1  # it left a child behind, and that was ended


@pytest.mark.parametrize("mb", [64, pytest.param(1024, marks=pytest.mark.soak)])
def test_a_flood_of_output_harms_nobody(sqlite_siege: Siege, mb: int) -> None:
    """S3-62: a handler prints without end; beside it others begin in time, and what is kept of it is limited."""
    siege = sqlite_siege

    async def scenario() -> None:
        floods = [once(job("flood", "prints", mb=mb)), once(job("flood-command", command("prints", str(mb))))]
        await create(siege.url, [*floods, job("beside", "works", 0.02)])
        member = siege.born("host", roles=["scheduler", "worker"], ttl_s=3, deadline_s=1)
        await siege.begun(job="beside")
        for one in floods:
            await trigger(siege.url, one.name)
        await until(lambda: all(siege.said("end", job=one.name) for one in floods), 120)
        await siege.begun(len(siege.said("start", job="beside")) + 1, job="beside")
        await siege.heals()
        assert not member.has_logged("everything is stopped")
        sql = "SELECT run_id, sum(length(text)) AS kept, max(truncated) AS truncated FROM attempt_logs GROUP BY run_id"
        for kept in await asyncio.to_thread(rows_of, siege.url, sql):
            assert 1024 * 1024 <= kept["kept"] <= 9 * 1024 * 1024
            assert kept["truncated"]

    asyncio.run(scenario())
    siege.check()


def test_a_stopped_worker_takes_its_children_along(sqlite_siege: Siege) -> None:
    """SIGTERM, and a drain that is too short for everybody."""
    siege = sqlite_siege

    async def scenario() -> None:
        await create(siege.url, UNRULY)
        member = siege.born("host", roles=["scheduler", "worker"], drain_s=0.2)
        for one in UNRULY:
            await trigger(siege.url, one.name)
        await siege.begun(len(UNRULY))
        await until(lambda: len(children(siege)) == 4)
        known = pids(siege)
        member.send(signal.SIGTERM)
        await until(lambda: not member.alive, 15)
        assert [pid for pid in known if alive(pid)] == []

    asyncio.run(scenario())
