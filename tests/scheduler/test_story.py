"""Jobs are created, edited, paused, cancelled, re-created; tables change; schedulers are away, slow, stale; the clock
steps. Whatever happens in whatever order, every tick has one answer, and it is the one that the rules give.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, MisfireRule
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.store.history import Span
from tests.scheduler.moves import BEGINNINGS, Dice, Story, play
from tests.scheduler.world import TENANT, World, opened_world

STEPS = 30
EVERY_MINUTE = Definition("a", (EveryEntry(60_000),), CommandTarget(("true",)), tenant=TENANT)
AMOUNT = pytest.mark.parametrize(
    "amount",
    [
        pytest.param(200, id="bounded"),
        pytest.param(10_000, id="long", marks=[pytest.mark.soak, pytest.mark.timeout(7200)]),
    ],
)


@AMOUNT
@pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
def test_every_tick_has_the_answer_that_the_rules_give(
    engine: str, amount: int, request: pytest.FixtureRequest
) -> None:
    """I1, I2; S2-5, S2-7, S4-3, S4-6: no tick lost, none twice, through changes, outages and steps of the clock."""
    url = request.getfixturevalue(f"{engine}_url")

    async def tell_all() -> None:
        async with opened_world(url, BEGINNINGS[0]) as fleet:

            async def fails(story: Story) -> Exception | None:
                try:
                    await play(await World.begin(*fleet, story.base), story)
                except Exception as error:
                    return error
                return None

            for number in range(amount):
                story = Dice(number).story(STEPS)
                error = await fails(story)
                if error is not None:
                    raise AssertionError(f"story {number}, {await shortened(story, fails)}") from error

    asyncio.run(tell_all())


async def shortened(story: Story, fails: Callable[[Story], Awaitable[Exception | None]]) -> Story:
    """Without the moves that it does not need to fail."""
    at = len(story.moves)
    while at:
        at -= 1
        shorter = Story(story.base, (*story.moves[:at], *story.moves[at + 1 :]))
        if await fails(shorter) is not None:
            story = shorter
    return story


@pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
def test_gaps_may_be_decided_before_anything_is_planned(engine: str, request: pytest.FixtureRequest) -> None:
    """On a fresh connection: the two steps write with statements of their own, in either order."""
    url = request.getfixturevalue(f"{engine}_url")

    async def scenario() -> None:
        async with opened_world(url, BEGINNINGS[0]) as fleet:
            world = World(*fleet)
            await world.apply(EVERY_MINUTE)
            await world.clock.advance(600_000)
            await world.pause("a")
            await world.check()  # nothing is due, and a gap is decided
            await world.resume("a")
            await world.clock.advance(60_000)
            await world.check()

    asyncio.run(scenario())


@pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
def test_gaps_that_wait_for_room_do_not_hide_younger_ones(engine: str, request: pytest.FixtureRequest) -> None:
    """A full catch-up lane does not keep a tick from running that an edit left behind and that is in time."""
    url = request.getfixturevalue(f"{engine}_url")

    async def scenario() -> None:
        async with opened_world(url, BEGINNINGS[0]) as fleet:
            world = World(*fleet)
            await world.apply(replace(EVERY_MINUTE, name="waits", misfire=MisfireRule("all")))
            await world.clock.advance(600_000)
            await world.round(0)
            await world.apply(EVERY_MINUTE)
            await world.clock.advance(60_000)
            await world.apply(
                replace(EVERY_MINUTE, misfire=replace(EVERY_MINUTE.misfire, limit=99))
            )  # a tick of just now is left behind
            for _ in range(5):
                await fill_gaps(world.store.gaps, world.tables, world.held, room=0, rows=5)  # one gap a time
            found = await world.store.history.runs(Span(name="a"))
            assert [each.run.scheduled_for_ms for each in found] == [world.now]
            await world.check()

    asyncio.run(scenario())
