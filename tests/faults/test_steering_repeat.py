"""Commit done, reply lost, for what people do to runs: done again it changes nothing, and whoever asked is answered."""

import asyncio
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, TypeVar

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.model.definition import Definition
from fleetcron.model.ping import Told
from fleetcron.model.rules import EveryEntry, MisfireRule, OverlapRule
from fleetcron.scheduler.backfill import Backfilled, backfill
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.engine import Script
from fleetcron.store.migrations import Altering
from fleetcron.store.steering import DeadFilter
from fleetcron.store.store import Store
from fleetcron.store.written import Refused, Unknown, Written
from fleetcron.views.asking import answer
from fleetcron.views.replaying import replay
from tests.faults import truth
from tests.faults.jobs import RUN
from tests.faults.replies import Forgetful, Repeating, Through
from tests.faults.test_repeat import verbs_that_write
from tests.store.check_steering import FAILED, Hands, ok
from tests.store.engines import DatabaseClock, hand_cranked

T = TypeVar("T")
NOW = 1_800_000_000_000
MINUTE, HOUR = 60_000, 3_600_000
TABLES = ("runs", "upcoming", "queue", "leases", "attempts", "ledger", "gaps", "events", "cursors", "jobs", "pings")
JOB = ("default", "a")
_numbers = count()


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue({"sqlite": "sqlite_file_url", "postgres": "postgres18_url"}[request.param]))


async def begin(store: Store, clock: DatabaseClock) -> Hands:
    """A job with ten ticks in the ledger, and a worker."""
    desk = Desk(store, actor="test", shards=2)
    rule = MisfireRule("skip", grace_ms=0)
    await desk.apply([Definition("a", (EveryEntry(MINUTE, 0),), RUN, misfire=rule, overlap=OverlapRule("allow"))])
    await clock.advance(10 * MINUTE + 1)
    held = ok(await store.shards.take("*", [0, 1], "n1", 10**9))
    while (await tick(store.cursors, Tables(store.almanac), held, lookahead_ms=0)).jobs:
        pass
    return await Hands(store, clock.now_ms).join()


async def one_that(store: Store, hands: Hands, where: str) -> int:
    run_id = int(ok(await store.steering.trigger(JOB, None, actor="ann", key=f"{where} {next(_numbers)}")).run_id)
    if where != "planned":
        await hands.queue()
    if where in ("running", "dead"):
        claimed = await hands.claim()
        if where == "dead":
            await hands.end(claimed[run_id], FAILED)
    return run_id


def test_every_verb_may_be_repeated(store_url: str) -> None:
    """S3-4, S3-8, S0-61: the second time changes no row of any table, also none of the events."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOW) as (engine, clock):
            store = Store(engine)
            hands = await begin(store, clock)
            different: list[str] = []

            async def dump() -> dict[str, list[str]]:
                found = await asyncio.to_thread(truth.read, store_url, TABLES)
                return {table: sorted(str(tuple(row)) for row in found[table]) for table in TABLES}

            def differs(verb: str, once: dict[str, Any], twice: dict[str, Any]) -> None:
                different.extend(f"{verb}: {table}" for table in TABLES if once[table] != twice[table])

            repeating = Repeating(engine, dump, differs)
            twice = Store(repeating).steering
            places = ("dead", "running", "queued", "planned")  # a claim takes whatever is queued before it
            dead, running, queued, planned = [await one_that(store, hands, where) for where in places]
            ok(await twice.trigger(JOB, {"n": 1}, actor="ann", key="twice"))
            ok(await twice.enqueue(JOB, {"n": 2}, actor="app", key="twice too"))
            ok(await twice.discard([dead], "known", actor="ann"))
            ok(await twice.replay([dead], actor="ann"))
            done = ok(await twice.cancel([planned, queued, running, dead], "no", actor="ann"))
            assert [each.done for each in done] == ["cancelled", "cancelled", "stopping", "cancelled"]
            await hands.end((running, 1), FAILED)
            await one_that(store, hands, "dead")
            assert ok(await twice.replay_many(DeadFilter(), actor="ann")).runs == 1
            filled = await backfill(Store(repeating), *JOB, NOW + 1, NOW + 5 * MINUTE, actor="ann")
            assert filled == Backfilled(4, 4, 4, 0, 0)
            desk, pings = Desk(Store(repeating), actor="ann", shards=2), Store(repeating).pings
            ok(await pings.note(*JOB, Told("start", ping_id="p")))
            ok(await pings.note(*JOB, Told("end", 0, 700, ping_id="p")))
            assert (await desk.take_back(*JOB)).done == "shadowed"
            assert (await desk.hand_over(*JOB, NOW + 90 * MINUTE)).done == "handed_over"
            assert different == []
            ours = {verb for verb in verbs_that_write() if verb.startswith(("Steering.", "Backfills.", "Pings."))}
            ours.add("Jobs.amend")
            assert ours == {verb for verb in repeating.verbs if not verb.startswith("Desk")}

    asyncio.run(scenario())


class Meanwhile(Through):
    """The first reply is lost, and something happens before anybody asks again."""

    def __init__(self, engine: Altering, then: Callable[[], Awaitable[object]]) -> None:
        super().__init__(engine)
        self._then: Callable[[], Awaitable[object]] | None = then

    async def write(self, script: Callable[[], Script[T | Refused]]) -> Written[T]:
        answer = await self.engine.write(script)
        if self._then is None:
            return answer
        then, self._then = self._then, None
        await then()
        return Unknown("the reply was lost")


def test_a_run_that_died_again_before_its_replay_was_repeated(store_url: str) -> None:
    """It was replayed, and died: that was what somebody had asked for, once."""

    async def scenario() -> None:
        async with hand_cranked(store_url, NOW) as (engine, clock):
            store = Store(engine)
            hands = await begin(store, clock)
            run_id = await one_that(store, hands, "dead")

            async def it_dies_again() -> None:
                await hands.end((await hands.take())[run_id], FAILED)

            [done] = await replay(Store(Meanwhile(engine, it_dies_again)).steering, [run_id], actor="ann")
            assert (done.done, done.reason) == ("unchanged", "it was replayed meanwhile, and is dead since")
            found = await asyncio.to_thread(truth.read, store_url, TABLES)
            assert [(run["state"], run["round"]) for run in found["runs"] if run["run_id"] == run_id] == [("dead", 1)]

    asyncio.run(scenario())


def test_whoever_gets_no_reply_is_answered_all_the_same(store_url: str) -> None:
    async def scenario() -> None:
        async with hand_cranked(store_url, NOW) as (engine, clock):
            store = Store(engine)
            await begin(store, clock)

            def weak() -> Store:
                return Store(Forgetful(engine, 1))

            one = weak().steering
            made = await answer(lambda: one.trigger(JOB, None, actor="ann", key="k"))
            assert not made.created  # by the first try, which nobody heard of
            other = weak().steering
            [done] = await answer(lambda: other.cancel([made.run_id], None, actor="ann"))
            assert (done.done, done.reason) == ("unchanged", "it is cancelled")
            assert (await Desk(weak(), actor="ann", shards=2).take_back(*JOB)).done == "shadowed"
            assert (await Desk(weak(), actor="ann", shards=2).hand_over(*JOB, NOW + HOUR)).done == "handed_over"
            noted = weak().pings
            assert (await answer(lambda: noted.note(*JOB, Told(ping_id="p")))).ping.ping_id == "p"
            await clock.advance(HOUR)
            filled = await backfill(weak(), *JOB, NOW + 1, NOW + 5 * MINUTE, actor="ann")
            assert (filled.ticks, filled.existing + filled.created) == (4, 4)
            found = await asyncio.to_thread(truth.read, store_url, TABLES)
            assert sorted(run["kind"] for run in found["runs"]) == ["backfill"] * 4 + ["manual"]

            async def never() -> Unknown:
                return Unknown("the line is cut")

            with pytest.raises(StoreUnavailable, match="the line is cut"):
                await answer(never)

    asyncio.run(scenario())
