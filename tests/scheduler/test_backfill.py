"""Backfill: runs for the ticks of the past that have none, and a ledger that stays exact.

What is expected is counted by hand: a tick of `every n minutes` is a multiple of n minutes, so that every line of the
ledger can be spelled out tick by tick without the code that wrote it.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby

import pytest

from fleetcron.errors import RefusedError, StoreError
from fleetcron.model.answer import Answer, Forecast
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.past import Entry, Past
from fleetcron.model.rules import CalendarUse, EveryEntry, MisfirePolicy, MisfireRule
from fleetcron.model.run import Run
from fleetcron.model.shard import Held
from fleetcron.model.target import CommandTarget
from fleetcron.policy.supersede import fill, split
from fleetcron.scheduler.backfill import PIECE, Backfilled, backfill
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.backfills import Backfills
from fleetcron.store.engine import Engine
from fleetcron.store.history import LedgerLine, Span
from fleetcron.store.store import Store
from fleetcron.times.cron import Cron
from fleetcron.times.every import Every
from fleetcron.times.timetable import Timetable
from tests.scheduler.world import opened_world
from tests.store.engines import DatabaseClock, change

NOW = 1_800_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
SCHEDULES = (
    Cron("30 2 * * *", "America/New_York"),
    Cron("*/7 1-3 * * *", "Australia/Lord_Howe", "shift", "both"),
    Cron("0 0 29-31 * *", "UTC", month_end="clamp"),
    Every("90m"),
)


# -- the ledger, split


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_a_split_line_says_exactly_what_is_left(schedule: Cron | Every) -> None:
    """Against every tick spelled out: stretches between the taken ones, their ends and their number."""
    timetable = Timetable(schedule)
    chance = random.Random(repr(schedule))
    for _ in range(60):
        after = NOW + chance.randrange(400) * DAY
        ticks = list(timetable.ticks_ms(after, after + chance.choice((3, 40, 200)) * DAY))
        if not ticks:
            continue
        share = chance.choice((0.0, 0.03, 0.5, 0.97, 1.0))
        taken = [each for each in ticks if chance.random() < share]
        line = Answer(ticks[0], ticks[-1], len(ticks), "skipped", "covered", ticks[-1] + 1)
        left = [list(some) for is_taken, some in groupby(ticks, set(taken).__contains__) if not is_taken]
        expected = [replace(line, from_ms=some[0], to_ms=some[-1], ticks=len(some)) for some in left]
        chance.shuffle(taken)
        assert split(line, taken, timetable) == expected


def test_an_instant_within_a_line_that_was_no_tick_then_changes_nothing() -> None:
    """The job ran every 10 minutes when the line was written, and runs every 15 now."""
    old, new = Timetable(Every("10m")), Timetable(Every("15m"))
    entry = Entry(1, Answer(NOW, NOW + HOUR, 7, "missed", "too_old"), 1, 11, 5, NOW)
    past = Past(NOW + DAY, NOW + DAY, (), [entry], frozenset())
    ticks = list(new.ticks_ms(NOW - 1, NOW + HOUR))
    made = fill(past, new, ticks, {(11, 5): old})
    assert [run.scheduled_for_ms for run in made.runs] == ticks
    [line] = made.superseded
    assert line.taken == (NOW, NOW + 30 * MINUTE, NOW + HOUR)
    assert [(each.from_ms - NOW, each.to_ms - NOW, each.ticks) for each in line.rest] == [
        (10 * MINUTE, 20 * MINUTE, 2), (40 * MINUTE, 50 * MINUTE, 2),
    ]  # fmt: skip


def test_a_line_that_does_not_count_right_is_not_split() -> None:
    entry = Entry(7, Answer(NOW, NOW + HOUR, 6, "missed", "too_old"), 1, 11, 5, NOW)
    past = Past(NOW + DAY, NOW + DAY, (), [entry], frozenset())
    timetable = Timetable(Every("10m"))
    with pytest.raises(StoreError, match="line 7 of the ledger says 6 ticks, its timetable has 7"):
        fill(past, timetable, [NOW], {(11, 5): timetable})


def test_a_run_has_the_jitter_of_its_tick() -> None:
    timetable = Timetable(Every("1h"), jitter="50m", seed="acme/a")
    ticks = list(timetable.ticks_ms(NOW - 1, NOW + HOUR))
    made = fill(Past(NOW + DAY, NOW + DAY, (), [], frozenset()), timetable, ticks, {})
    assert made.runs == [Forecast(each, timetable.start_ms(each), "catchup") for each in ticks]
    assert made.runs[0].run_after_ms > ticks[0]


# -- whole stories


@dataclass
class Fleet:
    store: Store
    clock: DatabaseClock
    held: list[Held]
    minutes: dict[int, int] = field(default_factory=dict)  # of the schedule, by revision

    def __post_init__(self) -> None:
        self.desk = Desk(self.store, actor="somebody", shards=2)
        self.tables = Tables(self.store.almanac)

    async def plan(self, room: int = 10**6) -> None:
        while (await tick(self.store.cursors, self.tables, self.held, lookahead_ms=MINUTE)).jobs:
            pass
        while (await fill_gaps(self.store.gaps, self.tables, self.held, room=room)).runs and room > 1000:
            pass

    async def apply(self, minutes: int, rule: MisfireRule, **more: object) -> None:
        entry = EveryEntry(minutes * MINUTE, 0)
        wanted = Definition("a", (entry,), CommandTarget(("true",)), misfire=rule, **more)  # type: ignore[arg-type]
        [applied] = await self.desk.apply([wanted])
        assert applied.job is not None
        self.minutes[applied.job.revision] = minutes

    async def steer(self, verb: str, policy: MisfirePolicy | None = None) -> None:
        done = await getattr(self.desk, verb)("default", "a", *([policy] if policy else []))
        self.minutes[done.job.revision] = self.minutes[max(self.minutes)]

    async def runs(self) -> list[Run]:
        return [line.run for line in await self.store.history.runs(Span(), limit=10**5)]

    async def lines(self) -> Sequence[LedgerLine]:
        return await self.store.history.ledger(Span(), limit=10**5)

    async def answers(self) -> dict[int, tuple[str, str, int]]:
        """Every tick in the ledger, spelled out; no line says more or less than its ticks, and none has two."""
        found: dict[int, tuple[str, str, int]] = {}
        for line in await self.lines():
            ticks = spelled(line.answer.from_ms, line.answer.to_ms, self.minutes[line.revision])
            assert ticks[0] == line.answer.from_ms
            assert ticks[-1] == line.answer.to_ms
            for each in ticks:
                assert each not in found, "two lines for one tick"
                found[each] = line.answer.answer, line.answer.reason, line.revision
            # an instant of another revision's schedule may have got a run within the line
            assert line.answer.ticks == len(ticks)
        return found

    async def undecided(self) -> list[tuple[int, int]]:
        job = (await self.store.jobs.named("default", "a"))[0]
        past = await self.store.backfills.look(job.job_id, 0, NOW + 1000 * DAY)
        assert past is not None
        return [*past.gaps, (past.cursor_ms, NOW + 1000 * DAY)]

    async def backfill(self, from_ms: int, to_ms: int, **more: object) -> Backfilled:
        return await backfill(self.store, "default", "a", from_ms, to_ms, actor="bob", **more)  # type: ignore[arg-type]


class Slow(Backfills):
    """Something happens between a look at the past and the write that follows."""

    def __init__(self, engine: Engine, happening: Callable[[], Awaitable[object]], before: int) -> None:
        super().__init__(engine)
        self._happening = happening
        self._left = before

    async def look(self, job_id: str, from_ms: int, to_ms: int) -> Past | None:
        found = await super().look(job_id, from_ms, to_ms)
        self._left -= 1
        if not self._left:
            await self._happening()
        return found


def spelled(from_ms: int, to_ms: int, minutes: int) -> list[int]:
    step = minutes * MINUTE
    return list(range(-(-from_ms // step) * step, to_ms + 1, step))


@asynccontextmanager
async def fleet(url: str = ":memory:") -> AsyncIterator[Fleet]:
    async with opened_world(url, NOW) as (store, clock, held):
        yield Fleet(store, clock, held)


async def live(world: Fleet, chance: random.Random) -> None:
    """A life of outages, pauses and edits."""
    policies: tuple[MisfirePolicy, ...] = ("skip", "latest", "all")
    rule = MisfireRule(chance.choice(policies), limit=chance.choice((3, 100)), window_ms=2 * HOUR, grace_ms=0)
    await world.apply(chance.choice((2, 3, 5)), rule)
    for _ in range(12):
        await world.clock.advance(chance.choice((MINUTE, 7 * MINUTE, 50 * MINUTE, 5 * HOUR)))
        match chance.randrange(6):
            case 0:
                await world.apply(chance.choice((2, 3, 4, 5, 10)), replace(rule, policy=chance.choice(policies)))
            case 1:
                await world.steer("pause", chance.choice(policies))
                await world.clock.advance(chance.choice((MINUTE, HOUR)))
                if chance.random() < 0.7:
                    await world.steer("resume")
                else:
                    await world.plan()
                    await world.steer("resume", chance.choice(policies))
            case 2:
                await world.plan(room=chance.randrange(4))  # gaps stay open
            case _:
                await world.plan()


@pytest.mark.parametrize("seed", range(25))
def test_every_tick_has_one_answer_afterwards(seed: int) -> None:
    """Every tick of the schedule that is decided has its run, the ledger says what is left, and nothing else moved."""

    async def scenario() -> None:
        chance = random.Random(seed)
        async with fleet() as world:
            await live(world, chance)
            now, minutes = world.clock.now_ms(), world.minutes[max(world.minutes)]
            before, answered, open_past = await world.runs(), await world.answers(), await world.undecided()
            from_ms = NOW - chance.choice((0, HOUR)) + chance.randrange(3) * chance.randrange(HOUR)
            to_ms = chance.choice((now - HOUR, now, now + DAY))
            to_ms = max(to_ms, from_ms + MINUTE)
            ticks = spelled(from_ms, min(to_ms - 1, now), minutes)
            left = [each for each in ticks if any(a < each <= b for a, b in open_past)]
            there = {run.scheduled_for_ms for run in before}
            existing = [each for each in ticks if each in there and each not in left]
            created = [each for each in ticks if each not in there and each not in left]
            taken = [each for each in created if each in answered]
            expected = Backfilled(len(ticks), len(created), len(taken), len(existing), len(left))
            assert await world.backfill(from_ms, to_ms, dry_run=True) == expected
            assert (await world.runs(), await world.answers()) == (before, answered)
            assert await world.backfill(from_ms, to_ms) == expected
            after = await world.runs()
            made = [run for run in after if run.kind == "backfill"]
            assert sorted(run.scheduled_for_ms for run in made) == created
            assert {(run.lane, run.revision) for run in made} <= {("catchup", max(world.minutes))}
            assert all(run.run_after_ms == run.scheduled_for_ms for run in made)
            assert [run for run in after if run.kind != "backfill"] == before
            assert await world.answers() == {each: why for each, why in answered.items() if each not in taken}
            events = await world.store.events.list(kind="ledger_superseded", limit=1000)
            assert sum(each.event.count for each in events) == len(taken)
            again = await world.backfill(from_ms, to_ms)
            assert again == replace(expected, created=0, superseded=0, existing=len(existing) + len(created))
            assert len(await world.runs()) == len(after)
            await world.plan()  # the scheduler goes on, and meets no run of ours
            assert (await world.store.events.counts(0)).get("run_conflict", 0) == 0
            await world.answers()

    asyncio.run(scenario())


def test_a_large_backfill_goes_piece_by_piece() -> None:
    """Each piece is a transaction of its own: what was done stands when the next one fails, and asking again does the
    rest. The line of the ledger shrinks from its beginning."""

    async def scenario() -> None:
        async with fleet() as world:
            await world.apply(1, MisfireRule("skip", grace_ms=0))
            await world.clock.advance(1000 * MINUTE + 1)
            await world.plan()
            [line] = await world.lines()
            assert line.answer.ticks == 1000
            heard: list[tuple[int, int]] = []

            def progress(done: int, total: int) -> None:
                heard.append((done, total))
                if done == 2 * PIECE:
                    raise RuntimeError("the terminal is gone")

            with pytest.raises(RuntimeError):
                await world.backfill(NOW + 1, NOW + DAY, progress=progress)
            assert heard == [(PIECE, 1000), (2 * PIECE, 1000)]
            assert len([run for run in await world.runs() if run.kind == "backfill"]) == 600
            assert [(each.answer.from_ms, each.answer.ticks) for each in await world.lines()] == [
                (NOW + 601 * MINUTE, 400)
            ]
            assert await world.backfill(NOW + 1, NOW + DAY) == Backfilled(1000, 400, 400, 600, 0)
            assert await world.lines() == []
            events = await world.store.events.list(kind="ledger_superseded")
            assert [each.event.detail["ticks"] for each in events][::-1] == [1000, 700, 400, 100]

    asyncio.run(scenario())


def test_what_cannot_be_is_refused() -> None:
    async def scenario() -> None:
        async with fleet() as world:
            with pytest.raises(RefusedError, match="there is no job a of tenant default"):
                await world.backfill(NOW - DAY, NOW)
            await world.apply(1, MisfireRule())
            with pytest.raises(RefusedError, match="ends before it begins"):
                await world.backfill(NOW, NOW)
            with pytest.raises(RefusedError, match=r"52,594,560 ticks lie there, and the limit is 10,000"):
                await world.backfill(NOW - 36_524 * DAY, NOW)
            with pytest.raises(RefusedError, match="1,440 ticks lie there, and the limit is 1,439"):
                await world.backfill(NOW - DAY, NOW, limit=1439)
            assert (await world.backfill(NOW - DAY, NOW, limit=1440, dry_run=True)).created == 1440
            assert await world.backfill(NOW + HOUR, NOW + DAY) == Backfilled()
            await world.steer("cancel")
            with pytest.raises(RefusedError, match="is cancelled"):
                await world.backfill(NOW - DAY, NOW)
            assert await world.runs() == []

    asyncio.run(scenario())


def test_before_its_creation_a_job_has_ticks_to_fill() -> None:
    """The ticks are those of its schedule as it is now; before it existed nobody answered any of them."""

    async def scenario() -> None:
        async with fleet() as world:
            await world.apply(10, MisfireRule())
            assert await world.backfill(NOW - HOUR, NOW) == Backfilled(6, 6, 0, 0, 0)
            await world.steer("delete")
            with pytest.raises(RefusedError):
                await world.backfill(NOW - DAY, NOW)

    asyncio.run(scenario())


def test_max_ticks_ends_what_can_be_filled() -> None:
    """What would come after the last allowed tick is no tick of the job."""

    async def scenario() -> None:
        async with fleet() as world:
            await world.apply(1, MisfireRule("skip", grace_ms=0), max_ticks=5)
            await world.clock.advance(20 * MINUTE)
            await world.plan()
            assert [each.answer.ticks for each in await world.lines()] == [5]
            assert await world.backfill(NOW + 1, NOW + DAY) == Backfilled(5, 5, 5, 0, 0)

    asyncio.run(scenario())


def test_an_edit_meanwhile_ends_it_and_new_tables_do_not() -> None:
    """Another definition is another question. After new tables it goes on with the ticks that there are then."""

    async def scenario() -> None:
        async with fleet() as world:
            days = CalendarDocument("days", timezone="UTC", holidays=("2040-01-01",))
            await world.desk.put_calendar(days)
            await world.apply(1, MisfireRule(), calendars=(CalendarUse("days"),))
            # yesterday becomes a holiday: what is left of it are the ticks of today
            holiday = replace(days, holidays=("2027-01-14",))
            world.store.backfills = Slow(world.store.engine, lambda: world.desk.put_calendar(holiday), before=2)
            done = await world.backfill(NOW - DAY, NOW)
            today = NOW // DAY * DAY
            assert done.created == 300 + (NOW - today) // MINUTE
            made = sorted(run.scheduled_for_ms for run in await world.runs())
            assert made == [*range(NOW - DAY, NOW - DAY + 300 * MINUTE, MINUTE), *range(today, NOW, MINUTE)]
            use = (CalendarUse("days"),)
            world.store.backfills = Slow(
                world.store.engine, lambda: world.apply(2, MisfireRule(), calendars=use), before=1
            )
            with pytest.raises(RefusedError, match="was changed meanwhile"):
                await world.backfill(NOW - DAY, NOW)

    asyncio.run(scenario())


def test_the_scheduler_and_a_backfill_do_not_answer_twice() -> None:
    """A tick that is in a gap when the backfill looks, and decided when it writes, has its answer from the scheduler or
    from the backfill, never from both."""

    async def scenario() -> None:
        async with fleet() as world:
            await world.apply(1, MisfireRule("all", limit=2, grace_ms=0))
            await world.clock.advance(10 * MINUTE + 1)
            await world.plan(room=0)
            gaps = (await world.undecided())[:-1]
            assert len(gaps) == 1
            world.store.backfills = Slow(world.store.engine, world.plan, before=1)
            assert await world.backfill(NOW + 1, NOW + DAY) == Backfilled(10, 8, 8, 2, 0)
            assert [run.kind for run in await world.runs() if run.scheduled_for_ms < world.clock.now_ms()].count(
                "backfill"
            ) == 8
            assert await world.answers() == {}

    asyncio.run(scenario())


def test_a_backfill_that_nobody_can_count_does_not_break_the_ledger() -> None:
    async def scenario() -> None:
        async with fleet() as world:
            await world.apply(1, MisfireRule("skip", grace_ms=0))
            await world.clock.advance(10 * MINUTE + 1)
            await world.plan()
            await change(world.store.engine, "UPDATE ledger SET ticks = ticks + 1")
            with pytest.raises(StoreError, match="of the ledger says 11 ticks, its timetable has 10"):
                await world.backfill(NOW + 1, NOW + DAY)
            assert [run for run in await world.runs() if run.kind == "backfill"] == []
            assert [each.answer.ticks for each in await world.lines()] == [11]

    asyncio.run(scenario())
