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
from fleetcron.scheduler.tick import tick
from fleetcron.store.history import Span
from fleetcron.times.instants import parse_instant, to_ms
from tests.scheduler.world import EVERYTHING, TENANT, World, opened_world
from tests.store.engines import change

SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))


def every_minute(**rule: object) -> Definition:
    return Definition(
        "a",
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
            assert {minute: n for minute, n in (await answers(world)).items() if n > 1} == {}

    asyncio.run(live())


async def plan(world: World, lookahead_ms: int = 0, room: int = EVERYTHING) -> None:
    await tick(world.store.cursors, world.tables, world.held, lookahead_ms=lookahead_ms)
    await fill_gaps(world.store.gaps, world.tables, world.held, room=room)


async def answers(world: World) -> Counter[int]:
    """How many answers each minute after noon has."""
    found = Counter(each.run.scheduled_for_ms for each in await world.store.history.runs(Span(), limit=EVERYTHING))
    for each in await world.store.history.ledger(Span(), limit=EVERYTHING):
        found.update(range(each.answer.from_ms, each.answer.to_ms + 1, MINUTE))
    return Counter({(ms - NOON) // MINUTE: n for ms, n in found.items()})


def test_new_tables_next_to_a_claimed_run() -> None:
    """A worker holds the run of the next tick; a calendar changes a later one; then nobody plans for a while."""

    async def scenario(world: World) -> None:
        await world.desk.create(every_minute(policy="skip", grace_ms=0))
        await world.clock.advance(30 * SECOND)
        await plan(world, 3 * MINUTE)
        await change(world.store.engine, f"DELETE FROM upcoming WHERE run_after_ms = {NOON + MINUTE}")  # claimed
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
    """What an edit or a change of tables left undecided belongs to the rules before it, whatever the clock says then."""

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
