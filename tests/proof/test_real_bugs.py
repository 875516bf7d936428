"""Bugs that other schedulers really had, each played on the real engine. A docstring says whose it was.

These are about planning, cranked by hand in the world of tests/scheduler, whose `check` holds every tick against a slow
enumerator. Those about work are in test_real_bugs_at_work.py.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from fleetcron.config import SchedulerConfig
from fleetcron.errors import DefinitionError
from fleetcron.model.definition import Definition
from fleetcron.model.reading import read_job
from fleetcron.model.rules import CronEntry, EveryEntry, MisfirePolicy, MisfireRule
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.loop import Scheduler
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.cursors import Cursors
from fleetcron.store.history import Span
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from fleetcron.times import zones
from fleetcron.times.instants import parse_instant, to_ms
from tests.scheduler.world import EVERYTHING, FOR_EVER_MS, SHARDS, TENANT, Slow, World, opened_world
from tests.store.engines import hand_cranked, opened

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))
LOOKAHEAD = 20 * SECOND
ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
POLICIES: tuple[MisfirePolicy, ...] = ("skip", "latest", "all")
# zone, the instant at which an hour (in Lord Howe half an hour) is left out, and a daily time in it
GAPS = [
    ("America/New_York", "2027-03-14T07:00:00Z", "30 2 * * *"),
    ("Europe/Berlin", "2027-03-28T01:00:00Z", "30 2 * * *"),
    ("Asia/Beirut", "2027-03-27T22:00:00Z", "30 0 * * *"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00Z", "15 2 * * *"),
]


def job(name: str, *entries: CronEntry | EveryEntry, **fields: Any) -> Definition:
    return Definition(name, entries, CommandTarget(("true",)), tenant=TENANT, **fields)


def cron(name: str, expression: str, zone: str = "UTC", **fields: Any) -> Definition:
    policies = {key: fields.pop(key) for key in ("dst_gap", "dst_fold") if key in fields}
    return job(name, CronEntry(expression, zone, **policies), **fields)


def lived(
    engine: str, request: pytest.FixtureRequest, scenario: Callable[[World], Awaitable[None]], now_ms: int = NOON
) -> None:
    url = request.getfixturevalue(f"{engine}_url")

    async def live() -> None:
        async with opened_world(url, now_ms) as fleet:
            world = World(*fleet)
            known = {name: zones.zone(name).dump() for name in {zone for zone, _, _ in GAPS}}
            world.book = replace(world.book, zones=known)
            await scenario(world)

    asyncio.run(live())


async def ticks(world: World, name: str | None = None) -> list[int]:
    found = await world.store.history.runs(Span(tenant=TENANT, name=name), limit=EVERYTHING)
    return sorted(each.run.scheduled_for_ms for each in found)


@ENGINES
@pytest.mark.parametrize("hour", [3, 11, 12], ids=["later today", "an hour ago", "this very minute"])
def test_an_edited_cron_does_not_fire_at_once(engine: str, hour: int, request: pytest.FixtureRequest) -> None:
    """Hangfire: changing the cron expression of a recurring job ran it at once."""

    async def scenario(world: World) -> None:
        await world.apply(cron("a", "0 15 * * *"))
        await world.quiesce(MINUTE)
        await world.clock.advance(30 * SECOND)
        for expression in (f"0 {hour} * * *", "0 15 * * *", f"0 {hour} * * *"):  # A, B, A too
            await world.apply(cron("a", expression))
            await world.check(MINUTE)
            assert await ticks(world) == []
        await world.clock.advance(DAY)
        await world.check()
        assert len(await ticks(world)) == 1

    lived(engine, request, scenario)


@ENGINES
def test_a_jittered_tick_fires_once(engine: str, request: pytest.FixtureRequest) -> None:
    """APScheduler: with a negative jitter a job ran before its tick, found the same tick again, and ran twice. Here
    jitter only delays, never as far as the next tick, and a negative one is refused."""

    async def scenario(world: World) -> None:
        for number in range(8):
            await world.apply(cron(f"j{number}", "* * * * *", jitter_ms=MINUTE - 1))
        for _ in range(45):
            await world.clock.advance(4 * SECOND)
            await world.round(5 * SECOND)
        await world.check()
        runs = [line.run for line in await world.store.history.runs(Span(tenant=TENANT), limit=EVERYTHING)]
        assert len(runs) == 8 * 3
        assert all(run.scheduled_for_ms <= run.run_after_ms < run.scheduled_for_ms + MINUTE for run in runs)
        assert len({run.run_after_ms - run.scheduled_for_ms for run in runs}) > 4

    lived(engine, request, scenario)
    with pytest.raises(DefinitionError, match="jitter"):
        read_job({"name": "a", "schedule": {"every": "1m"}, "jitter": "-10s", "run": {"python": "t:f"}})


@ENGINES
@pytest.mark.parametrize("when", ["before it looks", "between its decision and its write"])
def test_nobody_plans_without_the_lock(engine: str, when: str, request: pytest.FixtureRequest) -> None:
    """RedBeat: jobs were sent although the lock had not been acquired, or had been lost meanwhile."""

    async def scenario(world: World) -> None:
        await world.apply(job("a", EveryEntry(SECOND, 0)))
        await world.clock.advance(3 * SECOND)
        before = world.held

        async def taken_over() -> None:
            assert isinstance(await world.store.shards.release("node", before), Ok)
            taken = await world.store.shards.take("*", range(SHARDS), "other", FOR_EVER_MS)
            assert isinstance(taken, Ok)
            world.held = taken.value

        if when == "before it looks":
            await taken_over()
            late = await tick(world.store.cursors, world.tables, before, lookahead_ms=SECOND)
        else:
            slow = Slow(world.store.engine, taken_over)
            late = await tick(slow, world.tables, before, lookahead_ms=SECOND)
            assert late.refused is not None
        assert (late.jobs, late.runs) == (0, 0)
        assert await ticks(world) == []
        await world.check()  # by whoever has it now

    lived(engine, request, scenario)


@ENGINES
@pytest.mark.parametrize("policy", POLICIES)
def test_thousands_of_missed_ticks_do_not_wedge_a_job(
    engine: str, policy: MisfirePolicy, request: pytest.FixtureRequest
) -> None:
    """Kubernetes: a CronJob with more than 100 missed starts was never started again."""

    async def scenario(world: World) -> None:
        await world.apply(cron("a", "* * * * *", misfire=MisfireRule(policy)))
        await world.clock.advance(2 * DAY + 30 * SECOND)
        await world.check()
        before = await ticks(world)
        for _ in range(3):
            await world.clock.advance(MINUTE)
            await world.check()
        now = world.now - 30 * SECOND
        assert set(await ticks(world)) - set(before) == {now - 2 * MINUTE, now - MINUTE, now}

    lived(engine, request, scenario)


@pytest.mark.parametrize(
    ("engine", "zone", "change_at", "expression"),
    [("postgres18", *GAPS[0]), *(("sqlite_memory", *gap) for gap in GAPS)],
    ids=["postgres", *(f"sqlite, {zone}" for zone, _, _ in GAPS)],
)
def test_a_time_that_does_not_exist_stops_nobody(
    engine: str, zone: str, change_at: str, expression: str, request: pytest.FixtureRequest
) -> None:
    """Hangfire: one job at a local time that the clock change left out stopped all recurring jobs."""
    at = to_ms(parse_instant(change_at))

    async def scenario(world: World) -> None:
        await world.apply(cron("skips", expression, zone, dst_gap="skip"))
        await world.apply(cron("shifts", expression, zone, dst_gap="shift"))
        await world.apply(cron("minutely", "* * * * *", zone))
        for _ in range(3 * 12):
            await world.round(5 * MINUTE)
            await world.clock.advance(5 * MINUTE)
        await world.check()
        assert await ticks(world, "shifts") == [at]
        assert await ticks(world, "skips") == []
        assert {right - left for left, right in pairwise(await ticks(world, "minutely"))} == {MINUTE}
        await world.clock.advance(DAY)
        await world.check()
        assert (len(await ticks(world, "shifts")), len(await ticks(world, "skips"))) == (2, 1)

    lived(engine, request, scenario, at - 90 * MINUTE)


@pytest.mark.parametrize(("zone", "change_at", "expression"), GAPS, ids=[zone for zone, _, _ in GAPS])
def test_a_gap_fires_a_job_once(zone: str, change_at: str, expression: str, request: pytest.FixtureRequest) -> None:
    """Quartz.NET: a job whose time fell into the hour that the clock change leaves out fired 30,000 times."""
    at = to_ms(parse_instant(change_at))
    hour = expression.split()[1]

    async def scenario(world: World) -> None:
        await world.apply(cron("daily", expression, zone, dst_gap="shift"))
        await world.apply(cron("each-second", f"* * {hour} * * *", zone, dst_gap="shift"))
        for second in range(-30, 31):  # every second a look, as of somebody who finds it due again and again
            await world.clock.set(at + second * SECOND)
            await world.round(0)
            await world.fill()
        await world.check()
        assert [t for t in await ticks(world, "daily") if abs(t - at) <= 30 * SECOND] == [at]
        found = await ticks(world, "each-second")
        assert len(found) == len(set(found)) <= 61

    lived("sqlite_memory", request, scenario, at - 2 * MINUTE)


@ENGINES
def test_no_hour_of_silence_when_clocks_go_back(engine: str, request: pytest.FixtureRequest) -> None:
    """Quartz: jobs of every minute were silent for the hour that the clocks go back."""
    begin = to_ms(parse_instant("2026-11-01T04:30:00Z"))  # New York: 06:00 UTC is one o'clock for the second time

    async def scenario(world: World) -> None:
        await world.apply(job("a", read_cron("* * * * *", "America/New_York")))
        await world.apply(job("b", read_cron("*/10 * * * *", "America/New_York")))
        for _ in range(3 * 12):
            await world.round(5 * MINUTE)
            await world.clock.advance(5 * MINUTE)
        await world.check()
        assert await ticks(world, "a") == [begin + n * MINUTE for n in range(1, 181)]
        assert await ticks(world, "b") == [begin + n * MINUTE for n in range(10, 181, 10)]

    lived(engine, request, scenario, begin)


def read_cron(expression: str, zone: str) -> CronEntry:
    """As somebody writes it, with the policies that are derived."""
    document = {"name": "a", "schedule": {"cron": expression, "timezone": zone}, "run": {"python": "t:f"}}
    [entry] = read_job(document).schedule
    assert isinstance(entry, CronEntry)
    return entry


@ENGINES
def test_who_loses_a_race_does_not_lose_the_next_tick(engine: str, request: pytest.FixtureRequest) -> None:
    """pg-boss: the instance that lost the race for a tick went on with a timer of its own, and a tick was lost when it
    was its turn. Here the loser sleeps until the instant that the database names."""

    async def scenario(world: World) -> None:
        await world.apply(job("a", EveryEntry(45 * SECOND, 0)))
        loses = Loser(world)
        config = SchedulerConfig(lookahead_s=LOOKAHEAD // SECOND, idle_poll_s=10)
        scheduler = Scheduler(world.store, lambda: world.held, config, clock=world.clock.hand)
        world.store.cursors = loses
        for turn in range(50):
            loses.winning = turn < 30  # then the winner is gone, and nobody tells the loser
            await world.clock.advance(await scheduler.step() or 1)
        assert loses.lost >= 3
        world.store.cursors = Cursors(world.store.engine)
        found = await ticks(world)
        assert len(found) >= 6
        assert {right - left for left, right in pairwise(found)} == {45 * SECOND}
        runs = [line.run for line in await world.store.history.runs(Span(), limit=EVERYTHING)]
        assert all(run.created_ms <= run.scheduled_for_ms for run in runs), "one was planned late"

    lived(engine, request, scenario)


class Loser(Cursors):
    """Somebody else always writes the same plan a moment earlier."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store.engine)
        self._world = world
        self._other = Cursors(world.store.engine)
        self.winning = True
        self.lost = 0

    async def advance(self, *args: Any, **facts: Any) -> Any:
        if self.winning:
            await tick(self._other, self._world.tables, self._world.held, lookahead_ms=LOOKAHEAD)
            self.lost += 1
        return await super().advance(*args, **facts)


@pytest.mark.parametrize("engine", ["sqlite_file", "postgres18"])
def test_deploys_do_not_postpone_a_long_interval(engine: str, request: pytest.FixtureRequest) -> None:
    """River: an interval counted from the start of the process, so a job with one longer than the time between two
    deploys never ran."""
    url = request.getfixturevalue(f"{engine}_url")
    definition = job("a", EveryEntry(10 * DAY))

    async def scenario() -> None:
        async with hand_cranked(url, NOON) as (first, clock):
            for day in range(35):
                async with opened(url, clock.hand) as engine:  # each day another process, which applies its file
                    store = Store(engine)
                    assert isinstance(await store.shards.fix(SHARDS), Ok)
                    await Desk(store, actor="deploy", shards=SHARDS).apply([definition])
                    taken = await store.shards.take("*", range(SHARDS), f"node {day}", HOUR)
                    assert isinstance(taken, Ok)
                    assert taken.value
                    await tick(store.cursors, Tables(store.almanac), taken.value, lookahead_ms=MINUTE)
                await clock.advance(DAY)
            found = await Store(first).history.runs(Span(tenant=TENANT), limit=EVERYTHING)
            assert [each.run.scheduled_for_ms for each in reversed(found)] == [NOON + n * 10 * DAY for n in (1, 2, 3)]

    asyncio.run(scenario())


@ENGINES
@pytest.mark.parametrize("policy", POLICIES)
def test_a_resumed_job_ticks_again(engine: str, policy: MisfirePolicy, request: pytest.FixtureRequest) -> None:
    """Temporal: a schedule that was unpaused did not run again, for its timer was not set anew."""

    async def scenario(world: World) -> None:
        config = SchedulerConfig(lookahead_s=LOOKAHEAD // SECOND, idle_poll_s=10)
        scheduler = Scheduler(world.store, lambda: world.held, config, clock=world.clock.hand)
        await world.apply(cron("a", "*/5 * * * *"))
        for asleep in (MINUTE, 3 * HOUR):
            await world.pause("a", policy)
            await world.pause("a", policy)  # twice is once
            await world.clock.advance(asleep)
            await world.round(0)
            await world.resume("a")
            await world.resume("a")
            await world.check()
            before = await ticks(world)
            following = (world.now // (5 * MINUTE) + 1) * 5 * MINUTE
            while world.now < following:  # it sleeps as long as it says itself
                await world.clock.advance(await scheduler.step() or 1)
            assert [t for t in await ticks(world) if t not in before][:1] == [following]
            await world.check()

    lived(engine, request, scenario)
