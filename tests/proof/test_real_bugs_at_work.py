"""Bugs that other schedulers really had, each played on the real engine. These are about work: claims and ends are
cranked by hand in the shop of tests/worker, and where time must pass by itself there is a crew."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from fleetcron.clock import SystemClock
from fleetcron.config import SchedulerConfig
from fleetcron.model.outcome import Failed, Fault, Succeeded
from fleetcron.model.rules import CronEntry
from fleetcron.scheduler.loop import Scheduler
from fleetcron.store.store import Store
from fleetcron.store.written import Refused
from fleetcron.times.instants import parse_instant, to_ms
from tests.scheduler.world import FOR_EVER_MS
from tests.store.engines import change, hand_cranked
from tests.worker.crew import Crew, job
from tests.worker.plays import ENGINES, HOUR, NOON, SECOND, Seen, played
from tests.worker.shop import Job, Shop, ok

DAY = 24 * HOUR


@asynccontextmanager
async def opened_shop(url: str) -> AsyncIterator[Shop]:
    async with hand_cranked(url, NOON) as (engine, clock):
        yield await Shop.open(Store(engine), clock, NOON)


@ENGINES
@pytest.mark.parametrize("limit", ["tenant", "slots", "per_tenant", "per_type"])
def test_runs_that_wait_for_a_retry_use_no_limit(engine: str, limit: str, request: pytest.FixtureRequest) -> None:
    """Airflow: runs that only waited for their next try counted against the limit, and blocked everybody."""
    url = request.getfixturevalue(f"{engine}_url")

    async def scenario() -> None:
        async with opened_shop(url) as shop:
            if limit == "tenant":
                await shop.limit("t1", most=2)
            else:
                await shop.limit_pool("p1", **{limit: {"x": 2} if limit == "per_type" else 2})  # type: ignore[arg-type]
            failing, others = [Job(n) for n in (1, 2)], [Job(n) for n in (3, 4, 5)]
            await shop.define(*failing, *others)
            await shop.join("n1", p1=9)
            resting = [run for each in failing for run in await shop.plan(each, shop.now)]
            await shop.promote()
            assert sorted(await shop.claimed("n1")) == resting
            waiting = [run for each in others for run in await shop.plan(each, shop.now)]
            await shop.promote()
            assert await shop.claimed("n1") == []
            for run in resting:
                await shop.finish("n1", run, 1, Failed(Fault("broken")))
            first = await shop.claimed("n1")
            assert len(first) == 2, "the limit is two, and those that rest are not counted"
            assert set(first) < set(waiting)
            await shop.clock.advance(10 * SECOND)  # their retries are due: they wait as everybody else
            await shop.promote()
            assert await shop.claimed("n1") == []
            for run in first:
                await shop.finish("n1", run, 1, Succeeded())
            assert len(await shop.claimed("n1")) == 2

    asyncio.run(scenario())


@ENGINES
def test_nobody_works_without_the_lease(engine: str, request: pytest.FixtureRequest) -> None:
    """RedBeat's mistake on the side of workers: whoever was declared lost claims, renews and ends nothing."""
    url = request.getfixturevalue(f"{engine}_url")

    async def scenario() -> None:
        async with opened_shop(url) as shop:
            await shop.define(Job(1), Job(2))
            await shop.join("n1", p1=9)
            [run] = await shop.plan(Job(1), shop.now)
            await shop.promote()
            assert await shop.claimed("n1") == [run]
            ok(await shop.bury("n1"))
            [other] = await shop.plan(Job(2), shop.now)
            await shop.promote()
            with pytest.raises(AssertionError, match="declared lost"):
                await shop.claim("n1")
            assert isinstance(await shop.store.workers.renew("n1", 1000), Refused)
            assert (await shop.finish("n1", run, 1)).late == (run,)
            assert await shop.states() == {run: "planned", other: "planned"}

    asyncio.run(scenario())


@ENGINES
@pytest.mark.parametrize("asleep", [30 * SECOND, 8 * HOUR], ids=["over the slot", "for the night"])
def test_a_machine_that_was_suspended_runs_its_slot(engine: str, asleep: int, request: pytest.FixtureRequest) -> None:
    """cronstable: a machine that was suspended over the slot of a job did not run it when it woke up. Here nobody
    sleeps longer than a poll on a clock that may have stood still, and what was missed is caught up."""

    async def scenario(made: Crew) -> None:
        seen = Seen()
        made.functions["t:f"] = seen.handler
        slot = to_ms(parse_instant("2026-06-10T02:00:00Z"))
        await made.set_clock(slot - HOUR)
        await made.define(job("nightly", schedule=(CronEntry("0 2 * * *"),)))
        taken = ok(await made.store.shards.take("*", range(2), "scheduler", FOR_EVER_MS))
        config = SchedulerConfig(lookahead_s=1, idle_poll_s=0.2)
        scheduler = Scheduler(made.store, lambda: taken, config, clock=SystemClock())
        stop = asyncio.Event()
        planning = asyncio.create_task(scheduler.run(stop))
        made.join()
        while scheduler.health.rounds < 2:  # both have nothing to do, and sleep
            await asyncio.sleep(0.01)
        await without_a_hint(made, slot + asleep)
        await seen.until(lambda: bool(seen.calls))
        assert seen.calls == [("nightly", "2026-06-10T02:00:00Z")]
        await without_a_hint(made, slot + DAY - SECOND)
        await seen.until(lambda: len(seen.calls) == 2)
        assert seen.calls[1] == ("nightly", "2026-06-11T02:00:00Z")
        stop.set()
        await planning

    played(request.getfixturevalue(f"{engine}_url"), scenario, poll_s=0.2)


async def without_a_hint(made: Crew, now_ms: int) -> None:
    """The clock of the database is there all at once, and nobody is told."""
    made.clock.ms += now_ms - made.clock.now_ms()
    if made.store.engine.name == "postgres":
        await change(made.store.engine, f"UPDATE test_clock SET shift_ms = {made.clock.ms}")
