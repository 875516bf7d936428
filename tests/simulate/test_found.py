"""Faults that worlds have found, each told again as small as it can be."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fleetcron.config import load
from fleetcron.errors import ConfigError, StoreUnavailable
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, MisfireRule, OverlapRule, RetryRule
from fleetcron.model.target import PythonTarget
from fleetcron.model.transition import Transition
from fleetcron.scheduler.backfill import backfill
from fleetcron.simulate.database import Trip
from fleetcron.store.written import Refused
from tests.simulate.jobs import LATE_HANDLER, Manner
from tests.simulate.laws import judged
from tests.simulate.record import Record
from tests.simulate.scenario import Scenario, drawn, small
from tests.simulate.world import World

Script = Callable[[World], Awaitable[None]]


def played(scenario: Scenario, script: Script | None = None) -> Record:
    world = World(scenario)

    async def live(until_s: float) -> None:
        if script is not None:
            await script(world)

    world.people.live = live  # type: ignore[method-assign]
    record = world.run()
    assert not judged(scenario, record), judged(scenario, record)
    return record


def job(name: str, seconds: int, handler: str = "sim", **more: object) -> Definition:
    return Definition(name, (EveryEntry(seconds * 1000, 0),), PythonTarget(f"{handler}:f"), **more)  # type: ignore[arg-type]


def test_a_run_that_is_replayed_after_its_start_deadline_runs() -> None:
    """It was cancelled before its first start. The claim took no notice of the deadline, the worker did and handed it
    back, and so on without rest, for ever."""
    scenario = small(job("late", 60, start_deadline_ms=15_000), minutes=4)
    cancelled: list[int] = []

    async def script(world: World) -> None:
        while not (found := world.people._runs("finished_ms IS NULL")):
            await asyncio.sleep(1)
        cancelled.extend(found[:1])
        world.record.asked_to_cancel.update(cancelled)
        await world.people._store.steering.cancel(cancelled, None, actor="people")
        await asyncio.sleep(150)
        await world.people._store.steering.replay(cancelled, actor="people")

    record = played(scenario, script)
    [run] = [row for row in record.tables["runs"] if row["run_id"] in cancelled]
    assert (run["state"], run["round"], run["attempt"]) == ("succeeded", 1, 1)


def test_a_backfilled_run_that_goes_back_has_no_start_deadline() -> None:
    """The past is always too late. Whoever handed such a run back gave it a deadline, and the sweep expired it."""
    scenario = small(job("late", 60, LATE_HANDLER, start_deadline_ms=15_000), minutes=3)

    async def script(world: World) -> None:
        await asyncio.sleep(100)
        now_ms = world.record.clock.now_ms()
        await backfill(world.people._store, "default", "late", now_ms - 400_000, now_ms - 200_000, actor="people")

    record = played(scenario, script)
    states = [row["state"] for row in record.tables["runs"] if row["kind"] == "backfill"]
    assert len(states) >= 3
    assert set(states) == {"succeeded"}


def test_a_tick_does_not_overlap_one_that_is_going_to_be_skipped() -> None:
    """A run waited for its upstream job and was not looked at; it had been due while another one ran, so it was skipped
    in the end. The next tick was skipped for it, although nothing had run when it was due."""
    scenario = drawn(1742)
    assert judged(scenario, World(scenario).run()) == []


def test_a_tick_does_not_overlap_one_that_is_planned_after_it() -> None:
    """Whoever held the shard planned a tick and died before it could decide what an edit had left behind. The older
    tick was planned when the newer one had run: the law expected that the newer one had been skipped for it."""
    scenario = drawn(772)
    assert judged(scenario, World(scenario).run()) == []


def test_a_tick_is_late_by_the_rule_that_held_then() -> None:
    """It was planned within its grace of a minute and nobody was there to start it, so it was skipped. Then somebody
    made the grace shorter, and the law judged it by that."""
    scenario = drawn(1355)
    assert judged(scenario, World(scenario).run()) == []


def test_who_stands_in_line_behind_a_run_that_waits_is_not_stuck() -> None:
    """The first run of a queue waited for its handler, the others for the first. The sweep called them stuck, let them
    be looked at and wrote an event, every time."""
    scenario = small(job("late", 20, LATE_HANDLER, overlap=OverlapRule("queue")), minutes=3)
    record = played(scenario)
    assert "sweep_found" not in {row["kind"] for row in record.tables["events"]}
    assert [row["state"] for row in record.tables["runs"]].count("succeeded") > 5


def test_a_worker_that_has_begun_anew_is_not_forsaken_by_its_past() -> None:
    """The request to give up an old life came late, and gave away what ran in the new one: two attempts at once."""
    scenario = small(job("often", 10), minutes=2)
    answers: list[object] = []

    async def script(world: World) -> None:
        await asyncio.sleep(30)
        workers = world.people._store.workers
        [worker] = (await workers.list()).workers
        answers.append(await workers.forsake(worker.node_id, _never, started_ms=worker.started_ms - 1))
        answers.append((await workers.list()).workers[0].started_ms == worker.started_ms)

    record = played(scenario, script)
    assert answers == [Refused("it has begun anew"), True]
    assert {row["outcome"] for row in record.tables["attempts"]} == {"succeeded"}


def test_a_beginning_that_failed_half_way_is_begun_again() -> None:
    """The lease was held again, the reading after it failed: the worker went on as one that stops its work for its own
    sake, and whoever was cancelled later was written as lost."""
    scenario = replace(small(job("long", 30), minutes=3), manners={"long": Manner("ok", (25.0, 25.0))})
    world = World(scenario)

    async def live(until_s: float) -> None:
        await asyncio.sleep(35)
        world.network.no_way_there.add("n0")
        await asyncio.sleep(1.5 * scenario.ttl_s)
        node = world.places["n0"].node
        assert node is not None
        worker = node._member.worker
        assert worker is not None
        real = worker._remember

        async def fails_once() -> None:
            worker._remember = real  # type: ignore[method-assign]
            raise StoreUnavailable("it did not answer")

        worker._remember = fails_once  # type: ignore[method-assign]
        world.network.heal()
        await asyncio.sleep(60)
        while not (running := [each for each in world.record.begun if each.ending is None]):
            await asyncio.sleep(1)
        await world.people._store.steering.cancel([running[0].stay.run_id], None, actor="people")

    world.people.live = live  # type: ignore[method-assign]
    record = world.run()
    [run] = [row for row in record.tables["runs"] if row["state"] == "cancelled"]
    last = [row for row in record.tables["attempts"] if row["run_id"] == run["run_id"]][-1]
    assert last["outcome"] == "cancelled"


def test_what_an_unanswered_claim_got_is_not_forgotten() -> None:
    """The replies of a claim got lost for longer than two renewals. The safety net gave up what that claim had got, the
    next reply started it all the same, and so did whoever claimed it again: two attempts at once."""
    scenario = small(job("long", 30), minutes=3)
    scenario = replace(scenario, manners={"long": Manner("ok", (20.0, 20.0))})
    until_s: list[float] = []

    async def script(world: World) -> None:
        real = world.network.trip

        def trip(process: str, verb: str) -> Trip:
            now_s = world.loop.time()
            if not until_s and now_s > 35 and world.people._runs("run_id IN (SELECT run_id FROM queue)"):
                until_s.append(now_s + 0.7 * scenario.ttl_s)
            is_lost = verb == "Claims.claim" and bool(until_s) and now_s < until_s[0]
            return Trip(0.001, None) if is_lost else real(process, verb)

        world.network.trip = trip  # type: ignore[method-assign]

    record = played(scenario, script)
    claimed_s = {row["run_id"]: row["at_ms"] / 1000 for row in record.tables["seen_claims"]}
    assert max(each.stay.begun_s - claimed_s[each.stay.run_id] for each in record.begun) > scenario.ttl_s / 2
    assert {row["outcome"] for row in record.tables["attempts"]} == {"succeeded"}


def test_a_handler_that_came_while_nobody_heard_is_found() -> None:
    """A worker had its handler by now and asked for the runs that waited for it; the request was lost, and they waited
    for ever. (A claim that came late, and still lacked the handler, parked them with the same end.)"""
    scenario = small(job("late", 30, LATE_HANDLER, overlap=OverlapRule("allow")), minutes=3)
    lost: list[str] = []

    async def script(world: World) -> None:
        await asyncio.sleep(70)
        real = world.network.trip

        def trip(process: str, verb: str) -> Trip:
            if verb == "Workers.look_again" and not lost:
                lost.append(process)
                return Trip(None, None)
            return real(process, verb)

        world.network.trip = trip  # type: ignore[method-assign]
        world.acting.is_healed = True

    record = played(scenario, script)
    assert lost
    assert {row["state"] for row in record.tables["runs"]} == {"succeeded"}


def test_what_a_worker_gives_up_is_settled_by_the_rule_of_its_job() -> None:
    """A worker that began anew gave up its old attempts under the default rule, which forgives five losses."""
    scenario = small(job("once", 60, retry=RetryRule(max_losses=1)), minutes=3)
    scenario = replace(scenario, manners={"once": Manner("ok", (50.0, 50.0))})
    world = World(scenario)

    async def live(until_s: float) -> None:
        while not world.record.begun:
            await asyncio.sleep(1)
        world.network.no_way_there.add("n0")
        await asyncio.sleep(3 * scenario.ttl_s)  # it has given up writing how they ended
        world.network.heal()

    world.people.live = live  # type: ignore[method-assign]
    record = world.run()
    run = record.tables["runs"][0]
    assert (run["state"], run["attempt"], run["losses"]) == ("dead", 1, 1)


def test_the_misfire_rule_is_asked_once() -> None:
    """A job was resumed with `latest`: one run for all its ticks. It was planned late, on purpose, in the live lane;
    whoever queued it asked the misfire rule of the job again, and that one said skip."""
    rule = MisfireRule("skip", grace_ms=10_000, lane="live")
    scenario = small(job("paused", 20, misfire=rule), minutes=5)

    async def script(world: World) -> None:
        await asyncio.sleep(30)
        await world.people.desk.pause("default", "paused", "latest")
        await asyncio.sleep(195 - world.loop.time())  # the newest tick is late
        await world.people.desk.resume("default", "paused")

    record = played(scenario, script)
    [run] = [row for row in record.tables["runs"] if row["covers"] > 1]
    assert (run["state"], run["covers"]) == ("succeeded", 8)


def test_a_worker_finds_what_is_planned_ahead_without_a_hint() -> None:
    """Whoever plans more than ten seconds ahead tells no worker; one that was allowed to sleep for twenty found the run
    when it was too late."""
    with pytest.raises(ConfigError, match=r"worker\.poll"):
        load(None, {}, {"worker.poll": "9s"})
    rule = MisfireRule("skip", grace_ms=2_000)
    scenario = small(job("soon", 12, overlap=OverlapRule("allow"), misfire=rule), minutes=3)
    scenario = replace(scenario, settings=scenario.settings | {"scheduler.lookahead": "20s", "worker.poll": "8s"})
    record = played(scenario)
    assert {row["state"] for row in record.tables["runs"]} == {"succeeded"}


def test_what_is_caught_up_does_not_wait_for_itself() -> None:
    """All the room for catch-up was taken by runs that waited for another job, whose own missed ticks waited for room.
    Nobody ever went on. The same with runs that wait for a handler that nobody has."""
    rule = MisfireRule("all")
    jobs = [
        job("a-late", 20, misfire=rule, depends_on=("upstream",)),
        job("b-unknown", 20, LATE_HANDLER, misfire=rule),
        job("upstream", 20, misfire=rule),
    ]
    for room in ("2", "5"):
        scenario = small(*jobs, minutes=8)
        scenario = replace(scenario, settings=scenario.settings | {"scheduler.catch_up_room": room})

        async def script(world: World) -> None:
            for each in jobs:
                await world.people.desk.pause("default", each.name)
            await asyncio.sleep(170)
            for each in jobs:  # in this order their gaps are decided
                await world.people.desk.resume("default", each.name, "all")

        record = played(scenario, script)
        caught_up = [row for row in record.tables["runs"] if row["lane"] == "catchup"]
        assert len(caught_up) >= 3 * 8
        assert {row["state"] for row in caught_up} == {"succeeded"}


def _never(*facts: object) -> Transition:
    raise AssertionError(facts)
