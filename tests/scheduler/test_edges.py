"""Edges that the stories found, or that they do not tell: each was wrong once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, CronEntry, EveryEntry, MisfireRule, OnceEntry
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tick import tick
from fleetcron.store.history import Span
from fleetcron.times.instants import from_ms, iso, parse_instant, to_ms
from tests.scheduler.world import EVERYTHING, TENANT, World, opened_world, zone_versions
from tests.store.engines import change

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))


def job(*entries: object, **fields: object) -> Definition:
    return Definition("a", entries, CommandTarget(("true",)), tenant=TENANT, **fields)  # type: ignore[arg-type]


def lived(scenario: Callable[[World], Awaitable[None]], base: int = NOON) -> None:
    async def live() -> None:
        async with opened_world(":memory:", base) as fleet:
            await scenario(World(*fleet))

    asyncio.run(live())


async def settled(world: World) -> None:
    await tick(world.store.cursors, world.tables, world.held, lookahead_ms=0)
    await fill_gaps(world.store.gaps, world.tables, world.held, room=EVERYTHING)


async def answers(world: World) -> Counter[int]:
    """How many answers each whole minute has; a line of the ledger is taken to be about every minute in it."""
    found = Counter(each.run.scheduled_for_ms for each in await world.store.history.runs(Span(), limit=EVERYTHING))
    for each in await world.store.history.ledger(Span(), limit=EVERYTHING):
        found.update(range(each.answer.from_ms, each.answer.to_ms + 1, MINUTE))
    return found


EVERY_MINUTE = job(EveryEntry(MINUTE, 0), misfire=MisfireRule("skip", grace_ms=0))


@pytest.mark.parametrize("end", ["cancel", "delete"])
def test_an_end_cancels_gaps_that_are_open(end: str) -> None:
    async def scenario(world: World) -> None:
        await world.desk.create(replace(EVERY_MINUTE, misfire=MisfireRule("all")))
        await world.clock.advance(10 * MINUTE + SECOND)
        await tick(world.store.cursors, world.tables, world.held, lookahead_ms=0)  # the outage is a gap now
        await getattr(world.desk, end)(TENANT, "a")
        await settled(world)
        runs = await world.store.history.runs(Span())
        assert [each.run.lane for each in runs] == ["live"]  # the last tick was in time

    lived(scenario)


def test_a_delete_is_told_as_a_delete() -> None:
    async def scenario(world: World) -> None:
        await world.desk.create(EVERY_MINUTE)
        await world.desk.pause(TENANT, "a")
        await world.clock.advance(5 * MINUTE)
        await world.desk.edit(replace(EVERY_MINUTE, misfire=MisfireRule("skip", grace_ms=1)))
        await world.clock.advance(5 * MINUTE)
        await world.desk.delete(TENANT, "a")
        await settled(world)
        lines = await world.store.history.ledger(Span())
        assert [(each.answer.ticks, each.answer.reason) for each in lines] == [(5, "job_deleted"), (5, "job_deleted")]

    lived(scenario)


@pytest.mark.parametrize("change_", ["pause", "edit"])
def test_a_claimed_run_is_the_only_answer_of_its_tick(change_: str) -> None:
    """A worker holds the run of the next tick; the job is changed; then nobody plans until that tick is late."""

    async def scenario(world: World) -> None:
        await world.desk.create(EVERY_MINUTE)
        await world.clock.advance(30 * SECOND)
        await tick(world.store.cursors, world.tables, world.held, lookahead_ms=MINUTE)
        await change(world.store.engine, "DELETE FROM upcoming")  # claimed
        if change_ == "pause":
            await world.desk.pause(TENANT, "a")
        else:
            await world.desk.edit(replace(EVERY_MINUTE, description="clearer"))
        await world.clock.advance(10 * MINUTE)
        if change_ == "pause":
            await world.desk.resume(TENANT, "a")
        await settled(world)
        assert {number for _, number in (await answers(world)).items()} == {1}

    lived(scenario)


@pytest.mark.parametrize("change_", ["edit", "pause"])
def test_a_change_after_a_step_back_of_the_clock_answers_nothing_again(change_: str) -> None:
    """The database's clock goes back a minute, as the fault table allows, and somebody changes the job just then."""

    async def scenario(world: World) -> None:
        await world.desk.create(EVERY_MINUTE)
        await world.clock.advance(10 * MINUTE + 30 * SECOND)
        await settled(world)  # ten ticks are skipped
        await world.clock.set(world.now - MINUTE)
        if change_ == "edit":
            await world.desk.edit(replace(EVERY_MINUTE, description="clearer"))
        else:
            await world.desk.pause(TENANT, "a")
            await world.desk.resume(TENANT, "a")
        await tick(world.store.cursors, world.tables, world.held, lookahead_ms=5 * MINUTE)
        assert {number for _, number in (await answers(world)).items()} == {1}

    lived(scenario)


def test_one_entry_that_cannot_be_leaves_the_others() -> None:
    """New zone data puts the one local time into a gap; the hourly entry beside it has ticks as before."""
    base = to_ms(parse_instant("2027-03-13T18:00:00Z"))  # thirteen hours before the clocks of New York go forward

    async def scenario(world: World) -> None:
        tables = zone_versions("America/New_York", base)
        world.book = replace(world.book, zones={"America/New_York": tables[2]})
        hourly = CronEntry("0 * * * *", "America/New_York")
        await world.desk.create(job(hourly))  # the fleet knows the zone
        await world.adopt_zone("America/New_York", tables[2])  # without the change of that night
        await world.desk.edit(job(hourly, OnceEntry("2027-03-14T02:30", "America/New_York", "skip")))
        await world.adopt_zone("America/New_York", tables[0])
        await tick(world.store.cursors, world.tables, world.held, lookahead_ms=HOUR)
        assert [each.run.scheduled_for_ms for each in await world.store.history.runs(Span())] == [base + HOUR]

    lived(scenario, base)


def test_a_calendar_that_takes_all_that_is_left_makes_a_job_stuck_and_not_finished() -> None:
    today = iso(from_ms(NOON))[:10]
    tomorrow = iso(from_ms(NOON + DAY))[:10]

    async def scenario(world: World) -> None:
        await world.desk.put_calendar(CalendarDocument("days", TENANT, "UTC", holidays=("2001-01-01",)))
        await world.desk.create(job(EveryEntry(HOUR, 0), ends_ms=NOON + DAY, calendars=(CalendarUse("days"),)))
        await world.desk.put_calendar(CalendarDocument("days", TENANT, "UTC", holidays=(today, tomorrow)))
        await settled(world)
        await world.desk.put_calendar(CalendarDocument("days", TENANT, "UTC", holidays=("2001-01-01",)))
        await world.clock.advance(HOUR)
        await settled(world)
        assert [each.run.scheduled_for_ms for each in await world.store.history.runs(Span())] == [NOON + HOUR]

    lived(scenario)


@pytest.mark.parametrize("policy", ["latest", "all"])
def test_edits_that_keep_the_schedule_do_not_multiply_what_is_caught_up(policy: str) -> None:
    """Four edits of the description in a paused hour are no four paused windows."""

    async def scenario(world: World) -> None:
        rule = MisfireRule(policy, limit=2)  # type: ignore[arg-type]
        definition = replace(EVERY_MINUTE, misfire=rule)
        await world.desk.create(definition)
        await world.desk.pause(TENANT, "a", policy)  # type: ignore[arg-type]
        for number in range(4):
            await world.clock.advance(10 * MINUTE)
            await world.desk.edit(replace(definition, description=f"take {number}"))
        await world.desk.resume(TENANT, "a")
        await settled(world)
        assert len(await world.store.history.runs(Span())) == {"latest": 1, "all": 2}[policy]

    lived(scenario)


def test_edits_that_keep_the_schedule_do_not_move_the_window() -> None:
    """Nobody plans for an hour, somebody edits the description meanwhile: what is older than the window is missed."""

    async def scenario(world: World) -> None:
        definition = replace(EVERY_MINUTE, misfire=MisfireRule("latest", window_ms=5 * MINUTE))
        await world.desk.create(definition)
        await world.clock.advance(10 * MINUTE)
        await world.desk.edit(replace(definition, description="clearer"))
        await world.clock.advance(50 * MINUTE + 30 * SECOND)
        await settled(world)
        late = [each.run for each in await world.store.history.runs(Span()) if each.run.lane == "catchup"]
        assert [run.scheduled_for_ms for run in late] == [NOON + 59 * MINUTE]

    lived(scenario)


def test_a_tick_past_its_latest_start_is_missed_within_its_grace() -> None:
    async def scenario(world: World) -> None:
        rule = MisfireRule("latest", grace_ms=MINUTE)
        await world.desk.create(replace(EVERY_MINUTE, misfire=rule, start_deadline_ms=5 * SECOND))
        await world.clock.advance(MINUTE + 11 * SECOND)
        await settled(world)
        [each] = await world.store.history.ledger(Span())
        assert (each.answer.from_ms, each.answer.reason) == (NOON + MINUTE, "start_deadline")
        assert await world.store.history.runs(Span()) == []

    lived(scenario)


def test_late_runs_of_the_live_lane_need_no_room() -> None:
    async def scenario(world: World) -> None:
        await world.desk.create(replace(EVERY_MINUTE, misfire=MisfireRule("all", lane="live")))
        await world.clock.advance(30 * MINUTE + SECOND)
        await tick(world.store.cursors, world.tables, world.held, lookahead_ms=0)
        await fill_gaps(world.store.gaps, world.tables, world.held, room=0, rows=500)
        assert len(await world.store.history.runs(Span())) == 30

    lived(scenario)


def test_the_smallest_batches_decide_gaps_too() -> None:
    async def scenario(world: World) -> None:
        await world.desk.create(replace(EVERY_MINUTE, misfire=MisfireRule("all")))
        await world.clock.advance(3 * MINUTE + SECOND)
        await tick(world.store.cursors, world.tables, world.held, lookahead_ms=0)
        while (await fill_gaps(world.store.gaps, world.tables, world.held, room=EVERYTHING, rows=1)).gaps:
            pass
        assert len(await world.store.history.runs(Span())) == 3

    lived(scenario)
