"""The store goes away under workers: they stop in time, go on by themselves, and nothing runs twice."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from time import time

import pytest

from fleetcron.model.target import PythonTarget
from tests.faults.fleet import until
from tests.faults.nursery import Nursery
from tests.faults.work_fleet import COMMANDS, LOAD, Siege, command, create, job, once, rows_of, trigger
from tests.faults.work_node import SLOW
from tests.faults.work_stage import Sieges
from tests.services.own_postgres import OwnPostgres
from tests.services.postgres import Template
from tests.services.proxy import Fault, Proxy, proxy_to
from tests.soak.rounds import Soak
from tests.store.conftest import give_it_tables

BACK_S = 5.0  # how soon they work again when the store is back
BUSY_S = 2.0  # and what a busy machine may add to it
NODES = ("one", "other", "third")
MANY = 100  # restarts of the long suite
A_ROUND = 10
OUTAGES_S = (0, 0, 0, 0.5, 1, 1, 3, 6)
HELD = [
    once(job("coroutine", "works", 30)),
    once(job("stubborn", "does_not_stop", 30)),
    once(job("command", command("ignores", "30"))),
]


async def works_again(siege: Siege, name: str) -> float:
    """Seconds until a node begins its next attempt."""
    began_s, known = time(), len(siege.said("start", node=name))
    await siege.begun(known + 1, node=name)
    return time() - began_s


def restarted(siege: Siege, server: OwnPostgres, outages_s: Sequence[float], tell: Callable[[int], None]) -> None:
    """The server is killed as by `pg_ctl -m immediate`, and is away for so long. Nobody needs a human."""

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        for name in NODES:
            siege.survivor(name, slots=4)
        for number, outage_s in enumerate(outages_s, 1):
            await asyncio.gather(*(works_again(siege, name) for name in NODES))
            await asyncio.to_thread(server.kill)
            await asyncio.sleep(outage_s)
            await asyncio.to_thread(server.start)
            back = await asyncio.gather(*(works_again(siege, name) for name in NODES))
            print(f"\nback after {[round(each, 2) for each in back]} s")
            assert max(back) < BACK_S + BUSY_S
            tell(number)
        await siege.heals()

    asyncio.run(scenario())


def test_postgres_restarts_under_work(own_postgres: OwnPostgres, cradle: Nursery, tmp_path: Path) -> None:
    """S3-15, S3-48: three nodes, away for longer than a lease."""
    siege = Siege(own_postgres.url, tmp_path, cradle)
    try:
        restarted(siege, own_postgres, (3,), lambda _: None)
        siege.check()
    finally:
        siege.end()


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_a_hundred_restarts(own_postgres: OwnPostgres, cradle: Nursery, tmp_path: Path, soak: Soak) -> None:
    suite = soak.suite("the database restarts under work", "postgres", goal={"database restart": MANY}, seed=3)
    sieges = Sieges("postgres", cradle, tmp_path, Template(own_postgres.url, give_it_tables).copy)
    for number in suite.rounds(MANY // A_ROUND):
        chance = Random(f"{suite.seed} {number}")
        with sieges.begun() as siege:
            restarted(siege, own_postgres, chance.choices(OUTAGES_S, k=A_ROUND), suite.tell)
            suite.over({"database restart": A_ROUND}, siege.judged())
    suite.check()


@pytest.mark.parametrize("fails", [Proxy.hole, pytest.param(Proxy.cut, marks=pytest.mark.soak)], ids=["hole", "cut"])
def test_the_network_of_one_fails(postgres_siege: Siege, fails: Callable[[Proxy], None]) -> None:
    """Who cannot renew stops before others take over, also what does not want to stop; then it works again."""
    siege = postgres_siege

    async def scenario() -> None:
        await create(siege.url, [*HELD, *LOAD[:3]])
        async with proxy_to(siege.url) as proxy:
            far = siege.born("far", url=proxy.url, roles=["scheduler", "worker"])
            for one in HELD:
                await trigger(siege.url, one.name)
                await siege.begun(job=one.name)
            siege.survivor(slots=len(HELD))  # full when it has them: the other jobs are left to the other one
            fails(proxy)
            for one in HELD:
                await siege.begun(2, job=one.name)
            await until(lambda: far.has_logged("everything is stopped"))
            proxy.heal()
            back_s = await works_again(siege, "far")
            print(f"\nback after {back_s:.2f} s")
            assert back_s < BACK_S + BUSY_S
            assert far.has_logged("the worker has begun anew")

    asyncio.run(scenario())
    assert siege.said("beside") == []


@pytest.mark.soak
def test_an_import_outlives_the_lease(postgres_siege: Siege) -> None:
    """Claimed in one life of the worker, imported in the next: what was claimed is somebody else's by then."""
    siege = postgres_siege

    async def scenario() -> None:
        await create(siege.url, [once(job("slow", PythonTarget(f"{SLOW}:works"), 6))])
        async with proxy_to(siege.url) as proxy:
            far = siege.born("far", url=proxy.url, roles=["scheduler", "worker"], isolation="inline")
            run = await trigger(siege.url, "slow")
            await until(lambda: rows_of_leases(siege))
            siege.survivor(isolation="inline")
            proxy.hole()
            await until(lambda: far.has_logged("everything is stopped"))
            proxy.heal()
            await until(lambda: far.has_logged("the worker has begun anew"))
            await siege.begun(run=run)
            await siege.heals()

    siege.sleeps["far"] += 1
    asyncio.run(scenario())
    assert [line["attempt"] for line in siege.said("start")] == [2]
    siege.check()


async def rows_of_leases(siege: Siege) -> bool:
    return bool(await asyncio.to_thread(rows_of, siege.url, "SELECT node_id FROM leases WHERE node_id IS NOT NULL"))


def test_replies_get_lost_on_the_way(postgres_siege: Siege) -> None:
    """The line is cut at one COMMIT after the other, before it or after it: what was claimed is not forgotten, what
    has ended is written once."""
    siege, chance = postgres_siege, Random(4)

    async def scenario() -> None:
        await create(siege.url, [*LOAD, *COMMANDS])
        async with proxy_to(siege.url) as proxy:
            siege.born("far", url=proxy.url, isolation="inline", ttl_s=4)
            siege.survivor(slots=2)
            await siege.begun(2, node="far")
            for _ in range(20):
                proxy.at(b"COMMIT", chance.choice([Fault.LOSE_REPLY, Fault.LOSE_REPLY, Fault.LOSE_REQUEST]))
                await asyncio.wait_for(proxy.struck.wait(), 20)
                await asyncio.sleep(chance.random() * 0.2)  # anywhere in its work
            await siege.heals()

    asyncio.run(scenario())
    verdict = siege.check()
    assert verdict.attempts["succeeded"] > 30
