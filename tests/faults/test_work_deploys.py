"""Deploys: a worker is asked to leave, others go on. Nothing is lost, and nobody has to wait for a lease."""

import asyncio
import signal
from time import monotonic

from fleetcron.model.target import PythonTarget
from tests.faults.fleet import until
from tests.faults.work_fleet import COMMANDS, LOAD, Siege, create, job, once, rows_of, trigger
from tests.faults.work_node import SLOW
from tests.faults.work_stage import POSTGRES, SQLITE, rarely


@rarely(SQLITE)
def test_a_rolling_deploy_costs_nothing(siege: Siege) -> None:
    """S0-4, S3-18: old nodes leave while new ones come; handlers that are shorter than the drain time end in peace."""

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        old = [siege.survivor(f"old-{number}", isolation="inline", slots=4) for number in range(2)]
        await siege.begun(6)
        for number, member in enumerate(old):
            siege.survivor(f"new-{number}", isolation=("host", "inline")[number], slots=4)
            await siege.begun(node=f"new-{number}")
            await siege.stops(member)
            assert member.said()["counts"].get("lost", 0) == 0
            assert not await siege.works(member.name)
        await siege.heals()

    asyncio.run(scenario())
    verdict = siege.check()
    assert verdict.attempts["lost"] == 0  # no extra attempt
    assert verdict.events["worker_lost"] == verdict.events["finish_refused"] == verdict.events["sweep_found"] == 0
    assert verdict.attempts["succeeded"] > 15


def test_a_worker_leaves_while_it_imports(sqlite_siege: Siege) -> None:
    """What it claimed and could not start yet goes back, costs no attempt, and nobody waits for its lease."""
    siege = sqlite_siege

    async def holds() -> bool:
        sql = "SELECT node_id FROM leases WHERE node_id IS NOT NULL"
        return bool(await asyncio.to_thread(rows_of, siege.url, sql))

    async def scenario() -> None:
        await create(siege.url, [once(job("slow", PythonTarget(f"{SLOW}:works")))])
        leaver = siege.born("leaver", roles=["scheduler", "worker"], drain_s=0.3, ttl_s=30, deadline_s=5)
        await trigger(siege.url, "slow")
        await until(holds)
        began = monotonic()
        await siege.stops(leaver)
        assert monotonic() - began < 8
        assert not await siege.works("leaver")
        assert not await holds()
        assert not await asyncio.to_thread(rows_of, siege.url, "SELECT attempt FROM attempts")

    asyncio.run(scenario())


@rarely(POSTGRES)
def test_what_is_longer_than_the_drain_is_tried_again_in_a_moment(siege: Siege) -> None:
    """It is asked, ended and told as lost; whoever lives takes it without waiting for a lease."""
    long = once(job("long", "blocks", 30))

    async def scenario() -> None:
        await create(siege.url, [long])
        leaver = siege.born("leaver", roles=["scheduler", "worker"], drain_s=0.5, ttl_s=30, deadline_s=5)
        run = await trigger(siege.url, "long")
        await siege.begun(node="leaver")
        siege.survivor()
        began = monotonic()
        leaver.send(signal.SIGTERM)
        siege.cuts["leaver"] += 1
        await siege.begun(1, node="survivor", run=run)
        assert monotonic() - began < 8  # far below its lease
        await until(lambda: not leaver.alive)
        assert leaver.said()["counts"]["lost"] == 1
        rows = await asyncio.to_thread(rows_of, siege.url, "SELECT error_code FROM attempts")
        assert [row["error_code"] for row in rows] == ["worker_stopped"]
        assert not await siege.works("leaver")

    asyncio.run(scenario())
    assert siege.said("beside") == []
    assert [line["how"] for line in siege.said("end", node="leaver")] == ["stopped"]
