"""New zone tables and calendars: what they move, what they leave, and who may still write with the old ones."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, CronEntry, EveryEntry, MisfireRule, OnceEntry
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.times import zones
from fleetcron.times.instants import from_ms, iso, parse_instant, to_ms
from tests.scheduler.world import EVERYTHING, TENANT, Slow, World, opened_world, zone_versions

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
NEW_YORK = "America/New_York"
NOON = to_ms(parse_instant("2026-10-31T12:00:00Z"))  # eighteen hours before the clocks of New York go back
ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
TODAY, TOMORROW = iso(from_ms(NOON))[:10], iso(from_ms(NOON + DAY))[:10]


def job(*entries: object, **fields: object) -> Definition:
    return Definition("a", entries, CommandTarget(("true",)), tenant=TENANT, **fields)  # type: ignore[arg-type]


def holidays(*dates: str) -> CalendarDocument:
    return CalendarDocument("days", TENANT, "UTC", holidays=("2001-01-01", *dates))


def lived(engine: str, request: pytest.FixtureRequest, scenario: Callable[[World], Awaitable[None]]) -> None:
    url = request.getfixturevalue(f"{engine}_url")

    async def live() -> None:
        async with opened_world(url, NOON) as fleet:
            world = World(*fleet)
            world.book = replace(world.book, zones={NEW_YORK: zones.zone(NEW_YORK).dump()})
            await world.put_calendar(holidays())
            await scenario(world)

    asyncio.run(live())


async def runs(world: World) -> list[int]:
    found = await world.store.history.runs(Span(), limit=EVERYTHING)
    return sorted(each.run.scheduled_for_ms for each in found)


@ENGINES
def test_a_plan_made_with_old_tables_is_refused(engine: str, request: pytest.FixtureRequest) -> None:
    """The job stands where it stood, and yet its ticks are others: only the epoch tells."""

    async def scenario(world: World) -> None:
        await world.apply(job(EveryEntry(MINUTE, 0), calendars=(CalendarUse("days"),)))

        async def between() -> None:
            await world.put_calendar(holidays(TODAY))

        slow = Slow(world.store.engine, between)
        late = await tick(slow, Tables(world.store.almanac), world.held, lookahead_ms=HOUR)
        assert late.refused == "the zone tables or calendars have changed"
        assert await runs(world) == []
        assert (await world.store.events.counts(0))["plan_refused"] == 1
        await world.clock.advance(DAY)
        await world.check(MINUTE)

    lived(engine, request, scenario)


@ENGINES
@pytest.mark.parametrize("meanwhile", ["nothing", "resume", "pause and resume"])
def test_a_job_without_ticks_is_stuck_and_not_lost(engine: str, meanwhile: str, request: pytest.FixtureRequest) -> None:
    async def scenario(world: World) -> None:
        once = job(OnceEntry(iso(from_ms(NOON + DAY))), calendars=(CalendarUse("days"),))
        await world.apply(once)
        await world.put_calendar(holidays(TOMORROW))
        [stuck] = await world.store.jobs.list(JobFilter(), 2)
        assert (stuck.job.state, stuck.next_due_ms) == ("active", None)
        assert stuck.job.problem is not None
        assert "leave no day" in stuck.job.problem
        await world.round(2 * DAY)
        if meanwhile == "pause and resume":
            assert await world.pause("a")
        if meanwhile != "nothing":
            assert await world.resume("a")
        await world.round(2 * DAY)
        await world.put_calendar(holidays())
        [well] = await world.store.jobs.list(JobFilter(), 2)
        assert (well.job.state, well.job.problem, well.next_due_ms) == ("active", None, NOON + DAY)
        await world.clock.advance(DAY)
        await world.check()
        assert await runs(world) == [NOON + DAY]

    lived(engine, request, scenario)


@ENGINES
def test_ticks_up_to_the_adoption_by_the_old_zone_later_ones_by_the_new(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """A node with newer zone data comes; runs name the epoch that they were planned with."""

    async def scenario(world: World) -> None:
        await world.apply(job(CronEntry("30 * * * *", NEW_YORK), misfire=MisfireRule("all")))
        _, _, _, half_an_hour_more = zone_versions(NEW_YORK, NOON)  # from two to eight hours from now
        await world.clock.advance(HOUR + 45 * MINUTE)
        await world.round(HOUR)
        await world.adopt_zone(NEW_YORK, half_an_hour_more)
        await world.clock.advance(4 * HOUR)
        await world.check(MINUTE)
        old = [NOON + n * HOUR + 30 * MINUTE for n in (0, 1)]
        new = [NOON + n * HOUR for n in (2, 3, 4, 5)]
        assert await runs(world) == [*old, *new]
        epochs = {each.run.scheduled_for_ms: each.run.almanac for each in await world.store.history.runs(Span())}
        assert {epochs[t] for t in old} == {2}
        assert {epochs[t] for t in new} == {3}
        assert (await world.store.events.counts(0))["zone_adopted"] == 1

    lived(engine, request, scenario)


@ENGINES
def test_a_node_with_older_zone_data_changes_nothing(engine: str, request: pytest.FixtureRequest) -> None:
    async def scenario(world: World) -> None:
        await world.apply(job(CronEntry("30 * * * *", NEW_YORK)))
        await world.adopt_zone(NEW_YORK, zone_versions(NEW_YORK, NOON)[1])
        before, _ = await world.store.almanac.all("zone")
        old = await world.adopter.zones("old", "2020a")
        same = await world.adopter.zones("as old as the fleet", "9001")
        assert (old.tables, same.tables) == ((), ())
        assert (await world.store.almanac.all("zone"))[0] == before
        await world.clock.advance(2 * DAY)
        await world.check()  # whatever their own data says, nodes plan with the fleet's

    lived(engine, request, scenario)


@ENGINES
def test_a_paused_window_is_split_by_new_tables(engine: str, request: pytest.FixtureRequest) -> None:
    async def scenario(world: World) -> None:
        await world.apply(job(EveryEntry(HOUR, 0), calendars=(CalendarUse("days"),)))
        await world.pause("a", "all")
        await world.clock.advance(3 * HOUR)
        await world.put_calendar(holidays(TODAY))
        await world.clock.advance(9 * HOUR)
        await world.put_calendar(holidays())
        await world.clock.advance(2 * HOUR)
        await world.resume("a")
        await world.check()
        assert await runs(world) == [NOON + n * HOUR for n in (1, 2, 3, 12, 13, 14)]  # midnight is tomorrow

    lived(engine, request, scenario)


@ENGINES
def test_a_zone_that_a_calendar_stands_on_moves_its_jobs_too(engine: str, request: pytest.FixtureRequest) -> None:
    async def scenario(world: World) -> None:
        await world.put_calendar(CalendarDocument("days", TENANT, NEW_YORK, holidays=(TOMORROW,)))
        await world.apply(job(EveryEntry(20 * MINUTE, 0), calendars=(CalendarUse("days"),), misfire=MisfireRule("all")))
        await world.clock.advance(15 * HOUR)
        await world.round(2 * HOUR)
        before = await runs(world)
        # half an hour more in the evening: midnight comes half an hour earlier, and with it the holiday
        await world.adopt_zone(NEW_YORK, zone_versions(NEW_YORK, NOON + 8 * HOUR)[3])
        await world.round(2 * HOUR)
        assert set(before) - set(await runs(world)) == {NOON + 15 * HOUR + 40 * MINUTE}
        await world.clock.advance(2 * DAY)
        await world.check()

    lived(engine, request, scenario)
