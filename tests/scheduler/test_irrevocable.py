"""New tables, and the end of a job, next to what cannot be taken back: each was wrong once."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, EveryEntry, MisfireRule
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.plan import MOST_RUNS
from fleetcron.scheduler.tick import tick
from fleetcron.store.history import Span
from fleetcron.times.instants import parse_instant, to_ms
from tests.scheduler.world import EVERYTHING, TENANT, World, opened_world
from tests.store.engines import change

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))


def every_minute(name: str = "a", **rule: object) -> Definition:
    return Definition(
        name,
        (EveryEntry(MINUTE, 0),),
        CommandTarget(("true",)),
        tenant=TENANT,
        calendars=(CalendarUse("freeze"),),
        misfire=MisfireRule(**rule),  # type: ignore[arg-type]
    )


def freeze(*minutes: int) -> CalendarDocument:
    """A calendar that forbids some minutes after noon."""
    windows = ((NOON + n * MINUTE, NOON + (n + 1) * MINUTE) for n in minutes)
    return CalendarDocument("freeze", TENANT, windows=((0, HOUR), *windows))


def lived(scenario: Callable[[World], Awaitable[None]]) -> None:
    async def live() -> None:
        async with opened_world(":memory:", NOON) as fleet:
            world = World(*fleet)
            await world.desk.put_calendar(freeze())
            await scenario(world)
            for name in ("a", "b"):
                assert {minute: n for minute, n in (await answers(world, name)).items() if n > 1} == {}

    asyncio.run(live())


async def plan(world: World, lookahead_ms: int = 0, room: int = EVERYTHING) -> None:
    await tick(world.store.cursors, world.tables, world.held, lookahead_ms=lookahead_ms)
    await fill_gaps(world.store.gaps, world.tables, world.held, room=room)


async def answers(world: World, name: str = "a") -> Counter[int]:
    """How many answers each minute after noon has."""
    span = Span(name=name)
    found = Counter(each.run.scheduled_for_ms for each in await world.store.history.runs(span, limit=EVERYTHING))
    for each in await world.store.history.ledger(span, limit=EVERYTHING):
        found.update(range(each.answer.from_ms, each.answer.to_ms + 1, MINUTE))
    return Counter({(ms - NOON) // MINUTE: n for ms, n in found.items()})


async def shard(world: World, name: str) -> int:
    return (await world.store.jobs.find([(TENANT, name)])).standings[TENANT, name].shard


@pytest.mark.parametrize("others", [0, 10_500])
def test_new_tables_next_to_a_claimed_run(others: int) -> None:
    """A worker holds the run of the next tick; a calendar changes a later one; then nobody plans for a while. However
    many runs of other jobs were planned since."""

    async def scenario(world: World) -> None:
        await world.desk.create(every_minute(policy="skip", grace_ms=0))
        await world.clock.advance(30 * SECOND)
        await plan(world, 3 * MINUTE)
        await change(world.store.engine, f"DELETE FROM upcoming WHERE run_after_ms = {NOON + MINUTE}")  # claimed
        await world.desk.create(replace(every_minute("busy"), schedule=(EveryEntry(SECOND, 0),), calendars=()))
        for _ in range(others // MOST_RUNS):
            await plan(world, 4 * HOUR)
        await world.desk.put_calendar(freeze(2))
        await world.clock.advance(10 * MINUTE)
        await plan(world)

    lived(scenario)


def test_new_tables_after_a_step_back_of_the_clock() -> None:
    async def scenario(world: World) -> None:
        await world.desk.create(every_minute(policy="skip", grace_ms=0))
        await world.clock.advance(10 * MINUTE + 30 * SECOND)
        await plan(world)  # ten ticks are skipped
        await world.clock.set(world.now - MINUTE)
        await world.desk.put_calendar(freeze(11))
        await plan(world, 5 * MINUTE)

    lived(scenario)


@pytest.mark.parametrize("first", ["edit", "tables"])
def test_new_tables_after_a_step_back_behind_a_gap(first: str) -> None:
    """What an edit or a change of tables left undecided belongs to the rules before it, whatever the clock says."""

    async def scenario(world: World) -> None:
        job = every_minute(policy="skip", grace_ms=0)
        await world.desk.create(job)
        await world.clock.advance(10 * MINUTE + 30 * SECOND)
        if first == "edit":
            await world.desk.edit(replace(job, misfire=MisfireRule("skip", grace_ms=1)))
        else:
            await world.desk.put_calendar(freeze(30))
        await world.clock.set(world.now - MINUTE)
        await world.desk.put_calendar(freeze(11))
        await plan(world, 5 * MINUTE)
        await plan(world, 5 * MINUTE)

    lived(scenario)


def test_new_tables_never_begin_before_the_tables_that_they_replace() -> None:
    """After a step back of the clock the tables began at the latest plan. With it taken back, nothing else tells when,
    and a tick that was skipped under the tables before must not be planned again."""

    async def scenario(world: World) -> None:
        planned, late = every_minute("a"), every_minute("b", policy="skip", grace_ms=0)
        await world.desk.create(planned)
        await plan(world, 10 * MINUTE)
        await world.desk.create(late)
        await world.clock.advance(10 * MINUTE + 30 * SECOND)
        [home] = [one for one in world.held if one.shard == await shard(world, "a")]
        await tick(world.store.cursors, world.tables, [home], lookahead_ms=MINUTE)  # the latest plan
        await world.clock.set(world.now - MINUTE)
        await world.desk.put_calendar(freeze(30))
        await fill_gaps(world.store.gaps, world.tables, world.held, room=EVERYTHING)  # ten ticks of b are skipped
        await world.desk.edit(replace(planned, misfire=MisfireRule(grace_ms=1)))  # which takes the latest plan back
        await world.desk.put_calendar(freeze(11))
        await plan(world, 5 * MINUTE)

    lived(scenario)


@pytest.mark.parametrize("change_to", ["edit", "pause"])
def test_max_ticks_when_a_job_changes_after_a_step_back_behind_new_tables(change_to: str) -> None:
    """The ticks before the new tables were counted with the old ones: to count them back with the new ones is wrong."""

    async def scenario(world: World) -> None:
        job = replace(every_minute(), max_ticks=12)
        await world.desk.create(job)
        await world.clock.advance(SECOND)
        await plan(world, 10 * MINUTE)  # ten of twelve
        await world.clock.advance(9 * MINUTE)
        await world.desk.put_calendar(freeze(5, 6, 7, 8))
        await world.clock.set(NOON + 4 * MINUTE)
        if change_to == "edit":
            await world.desk.edit(replace(job, misfire=MisfireRule(grace_ms=1)))
        else:
            await world.desk.pause(TENANT, "a")
            await world.desk.resume(TENANT, "a")
        await world.clock.advance(HOUR)
        await plan(world)
        assert sum((await answers(world)).values()) == 12

    lived(scenario)


def test_the_end_of_a_job_whose_gap_has_shrunk() -> None:
    """With the first piece of a gap the tick that is in time gets its run; what is cancelled later is only the rest."""

    async def scenario(world: World) -> None:
        await world.desk.create(every_minute(policy="all"))
        await world.clock.advance(10 * MINUTE + 30 * SECOND)
        await world.desk.put_calendar(freeze(30))  # what nobody planned is a gap now; its last tick is in time
        await fill_gaps(world.store.gaps, world.tables, world.held, room=2)
        await world.desk.delete(TENANT, "a")
        await plan(world)

    lived(scenario)
