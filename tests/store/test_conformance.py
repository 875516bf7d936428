"""Every verb of the store, on every engine. A verb is not done until it is here: the last test fails when a named
statement was never run on an engine."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product

import pytest

from fleetcron.events import Event
from fleetcron.model.almanac import Part
from fleetcron.model.answer import Answer, Forecast, Gap
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, CronEntry, Entry, EveryEntry, MisfireRule
from fleetcron.model.shard import Held
from fleetcron.model.standing import Position
from fleetcron.model.target import CommandTarget
from fleetcron.policy import amend
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.tables import Tables
from fleetcron.store.almanac import Affected, Rewind, Table
from fleetcron.store.cursors import Advanced, Group, Move
from fleetcron.store.gaps import Beside, Settled
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.migrations import migrate, require_current, status
from fleetcron.store.nodes import Node
from fleetcron.store.queue import Promoted
from fleetcron.store.shards import set_shards
from fleetcron.store.statements import Statements
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused
from fleetcron.times import zones
from tests.store import (
    check_access,
    check_attempts,
    check_edits,
    check_figures,
    check_kept,
    check_late,
    check_limits,
    check_parked,
    check_shadow,
    check_shown,
    check_steering,
    check_turns,
    check_upkeep,
    check_upstreams,
    check_work,
)
from tests.store.engines import ALL, DatabaseClock, hand_cranked
from tests.store.handwork import rank

NOW = 1_800_000_000_000  # 2027-01-15 08:00:00 UTC
MINUTE, HOUR = 60_000, 3_600_000
MINUTELY = CronEntry("* * * * *", "UTC", "skip", "both")
BERLIN = CronEntry("0 3 * * *", "Europe/Berlin")


@dataclass
class World:
    store: Store
    clock: DatabaseClock
    desk: Desk
    held: list[Held]

    async def define(self, name: str = "a", *entries: Entry, misfire: MisfireRule | None = None) -> str:
        applied = await self.desk.create(definition(name, *entries, misfire=misfire))
        assert applied.job is not None
        return applied.job.job_id

    async def group(self) -> Group:
        [group] = (await self.store.cursors.due(self.held, HOUR, 100)).groups
        return group

    async def advance(self, *moves: Move, epoch: int = 1, held: list[Held] | None = None) -> object:
        return await self.store.cursors.advance(
            self.held if held is None else held, moves, epoch=epoch, now_ms=NOW, horizon_ms=NOW + HOUR, most=100
        )

    async def runs(self) -> list[tuple[int, str, int]]:
        found = await self.store.history.runs(Span())
        return sorted((line.run.scheduled_for_ms - NOW, line.run.lane, line.run.covers) for line in found)

    async def kinds(self) -> dict[str, int]:
        counts = await self.store.events.counts(0)
        return {kind: count for kind, count in counts.items() if kind not in ("shard_taken", "schema_migrated")}


def definition(name: str = "a", *entries: Entry, misfire: MisfireRule | None = None) -> Definition:
    return Definition(name, entries or (MINUTELY,), CommandTarget(("true",)), misfire=misfire or MisfireRule())


@asynccontextmanager
async def world(url: str) -> AsyncIterator[World]:
    async with hand_cranked(url, NOW) as (engine, clock):
        store = Store(engine)
        desk = Desk(store, actor="ann", shards=2)
        assert await store.shards.fix(2) == Ok(2)
        taken = await store.shards.take("*", [0, 1], "n1", 15_000)
        assert isinstance(taken, Ok)
        yield World(store, clock, desk, taken.value)


Check = Callable[[World], Awaitable[None]]
CHECKS: dict[str, Check] = {}
RUN: defaultdict[str, set[str]] = defaultdict(set)
CHECKED: defaultdict[str, set[str]] = defaultdict(set)


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


# --- cursors


@check
async def due_groups_jobs_that_stand_alike(w: World) -> None:
    """S0-35, S2-33: only what is due, from the index; jobs with equal schedules are one group."""
    for name in "abc":
        await w.define(name)
    await w.define("d", CronEntry("0 0 * * *", "UTC", "skip", "both"))
    due = await w.store.cursors.due(w.held, MINUTE, 100)
    assert (due.now_ms, due.epoch, due.next_due_ms) == (NOW, 1, NOW + MINUTE)
    assert [(group.at, group.jobs) for group in due.groups] == [(Position(NOW), 3)]
    assert (await w.store.cursors.due(w.held, MINUTE - 1, 100)).groups == ()
    assert len((await w.store.cursors.due(w.held, 24 * HOUR, 100)).groups) == 2


@check
async def what_is_left_out_leaves_its_place_to_others(w: World) -> None:
    """What a newer release has written stays the oldest: it must not fill the page of whoever cannot read it."""
    for n in range(2, 8):
        await w.define(f"newer-{n}", EveryEntry(n * 1000, NOW))
    await w.define("other", EveryEntry(20_000, NOW))
    held = w.held
    groups = (await w.store.cursors.due(held, HOUR, 100)).groups
    assert len(groups) == 7
    [at] = {group.at for group in groups}
    newest = await w.store.cursors.due(held, 7_000, 100)
    without = {group.timing_id for group in newest.groups}
    assert (len(without), newest.next_due_ms) == (6, NOW + 2_000)
    left = await w.store.cursors.due(held, HOUR, 1, without=without)
    [other] = left.groups
    assert (other.timing_id not in without, other.at, left.next_due_ms) == (True, at, NOW + 20_000)
    move = Move(other, Position(NOW + 20_000), NOW + 40_000, [Forecast(NOW + 20_000, NOW + 20_000)])
    call = {"epoch": 1, "now_ms": NOW, "horizon_ms": NOW + HOUR, "most": 1}
    done = await w.store.cursors.advance(held, [move], **call, without=without)
    assert isinstance(done, Ok)
    assert (done.value.jobs, done.value.runs) == (1, 1)


@check
async def gaps_that_are_left_out_leave_their_place_to_others(w: World) -> None:
    entries = {name: EveryEntry(1000 * n, NOW) for n, name in enumerate(("newer", "other"), 1)}
    ids = {name: await w.define(name, entry, misfire=MisfireRule("all")) for name, entry in entries.items()}
    gap = Gap(NOW - HOUR, NOW, "outage")
    groups = (await w.store.cursors.due(w.held, HOUR, 100)).groups
    for group in groups:
        await w.advance(Move(group, Position(NOW + 1), NOW + MINUTE, gap=gap))
    found = {each.job_id: each for each in (await w.store.gaps.open(w.held, 10, 9)).gaps}
    without = {found[ids["newer"]].timing_id}
    [other] = (await w.store.gaps.open(w.held, 1, 9, without=without)).gaps
    assert other.job_id == ids["other"]
    rest = replace(gap, noticed_ms=NOW, trimmed=True)
    settled = [Settled(each, [], [], rest) for each in found.values()]
    assert isinstance(await w.store.gaps.settle(w.held, settled, epoch=1, now_ms=NOW), Ok)
    assert len((await w.store.gaps.open(w.held, 10, 0, beside=Beside(5))).gaps) == 2
    [other] = (await w.store.gaps.open(w.held, 10, 0, beside=Beside(1), without=without)).gaps
    assert other.job_id == ids["other"]


@check
async def a_timing_is_named_by_its_first_job(w: World) -> None:
    for name in "ba":
        await w.define(name)
    group = await w.group()
    assert await w.store.almanac.job_of(group.timing_id) == "a of default"
    assert await w.store.almanac.job_of(group.timing_id ^ 1) == "?"


@check
async def advance_writes_runs_answers_and_a_gap(w: World) -> None:
    """S2-5, S0-42, S4-22: the run's row, the ledger and the cursor in one transaction."""
    job_id = await w.define()
    group = await w.group()
    runs = [Forecast(NOW + MINUTE, NOW + MINUTE + 7), Forecast(NOW - 5, NOW - 5, "catchup", 3, (NOW - 9, NOW - 5))]
    answers = [Answer(NOW - 8, NOW - 6, 2, "skipped", "covered", NOW - 5)]
    gap = Gap(NOW - 30, NOW - 20, "outage")
    move = Move(group, Position(NOW + MINUTE, 0), NOW + 2 * MINUTE, runs, answers, gap)
    assert await w.advance(move) == Ok(Advanced(1, 2, 0, 2))
    live, late = [line.run for line in await w.store.history.runs(Span())][::-1]
    assert (live.job_id, live.revision, live.almanac, live.created_ms) == (job_id, 1, 1, NOW)
    assert (live.run_after_ms, live.kind, live.lane, live.state) == (NOW + MINUTE + 7, "tick", "live", "planned")
    assert (late.covers, late.window_ms, late.lane) == (3, (NOW - 9, NOW - 5), "catchup")
    [line] = await w.store.history.ledger(Span())
    assert (line.answer, line.job_id, line.revision, line.almanac, line.noted_ms) == (answers[0], job_id, 1, 1, NOW)
    found = await w.store.gaps.open(w.held, 10, 10)
    assert [(g.job_id, g.gap, g.almanac) for g in found.gaps] == [(job_id, replace(gap, noticed_ms=NOW), 1)]
    assert found.room == 9  # one of ten is on its way
    assert (await w.group()).at == Position(NOW + MINUTE, 0)


@check
async def advance_moves_only_who_still_stands_there(w: World) -> None:
    """S0-41, S4-16: whoever comes second finds the cursor moved, and writes nothing."""
    await w.define()
    move = Move(await w.group(), Position(NOW + MINUTE), NOW + 2 * MINUTE, [Forecast(NOW + MINUTE, NOW + MINUTE)])
    assert await w.advance(move) == Ok(Advanced(1, 1, 0, 0))
    assert await w.advance(move) == Ok(Advanced(0, 0, 0, 0))
    assert await w.runs() == [(MINUTE, "live", 1)]


@check
async def advance_counts_a_run_that_exists(w: World) -> None:
    """S2-8, S2-36, S4-12, S4-21: the unique key decides; the conflict is counted and is no error."""
    await w.define()
    group = await w.group()
    run = Forecast(NOW + MINUTE, NOW + MINUTE)
    assert await w.advance(Move(group, Position(NOW + 1), NOW + MINUTE, [run])) == Ok(Advanced(1, 1, 0, 0))
    again = replace(group, at=Position(NOW + 1))
    assert await w.advance(Move(again, Position(NOW + 2), NOW + MINUTE, [run])) == Ok(Advanced(1, 0, 1, 0))
    assert await w.runs() == [(MINUTE, "live", 1)]
    assert (await w.kinds())["run_conflict"] == 1


@check
async def advance_is_fenced_by_the_term(w: World) -> None:
    """S0-40, S4-21: a scheduler with an old term writes nothing but the event that says so."""
    await w.define()
    move = Move(await w.group(), Position(NOW + MINUTE), None, [Forecast(NOW + MINUTE, NOW + MINUTE)])
    stale = [replace(held, term=held.term - 1) for held in w.held]
    assert await w.advance(move, held=stale) == Refused("the shard has another owner")
    assert await w.advance(move, held=[w.held[0], stale[1]]) == Refused("the shard has another owner")
    assert await w.runs() == []
    assert (await w.kinds())["plan_refused"] == 2


@check
async def advance_is_fenced_by_the_epoch(w: World) -> None:
    await w.define()
    move = Move(await w.group(), Position(NOW + MINUTE), None, [Forecast(NOW + MINUTE, NOW + MINUTE)])
    assert await w.advance(move, epoch=2) == Refused("the zone tables or calendars have changed")
    assert await w.runs() == []


@check
async def advance_finishes_jobs(w: World) -> None:
    await w.define()
    assert await w.advance(Move(await w.group(), Position(NOW + 1), None, finished=True)) == Ok(Advanced(1, 0, 0, 0))
    [line] = await w.store.jobs.list(JobFilter(), 10)
    assert (line.job.state, line.job.revision) == ("finished", 1)
    assert (await w.kinds())["job_finished"] == 1
    assert (await w.store.cursors.due(w.held, HOUR, 100)).groups == ()


# --- gaps


@check
async def gaps_shrink_and_close(w: World) -> None:
    job_id = await w.define(misfire=MisfireRule("all"))
    gap = Gap(NOW - HOUR, NOW, "outage")
    await w.advance(Move(await w.group(), Position(NOW + 1), NOW + MINUTE, gap=gap))
    [found] = (await w.store.gaps.open(w.held, 10, 10)).gaps
    run, answer = Forecast(NOW - 9, NOW - 9, "catchup"), Answer(NOW - 99, NOW - 98, 2, "missed", "over_limit")
    rest = replace(found.gap, from_ms=NOW - 9, trimmed=True)
    first = Settled(found, [run], [answer], rest)
    settle = w.store.gaps.settle
    done = await settle(w.held, [first], epoch=1, now_ms=NOW)
    assert isinstance(done, Ok)
    assert (done.value.gaps, done.value.runs, done.value.conflicts, done.value.answered) == (1, 1, 0, 2)
    again = await settle(w.held, [first], epoch=1, now_ms=NOW)  # the reply was lost, say
    assert isinstance(again, Ok)
    assert (again.value.gaps, again.value.runs) == (0, 0)
    [smaller] = (await w.store.gaps.open(w.held, 10, 10)).gaps
    assert (smaller.gap, smaller.job_id) == (rest, job_id)
    stale = [replace(held, term=0) for held in w.held]
    last = Settled(smaller, [run], [], None)
    assert await settle(stale, [last], epoch=1, now_ms=NOW) == Refused("the shard has another owner")
    done = await settle(w.held, [last], epoch=1, now_ms=NOW)
    assert isinstance(done, Ok)
    assert (done.value.gaps, done.value.runs, done.value.conflicts) == (1, 0, 1)  # that run exists already
    assert (await w.store.gaps.open(w.held, 10, 10)).gaps == ()
    assert await w.runs() == [(-9, "catchup", 1)]


@check
async def without_room_only_who_has_nothing_on_its_way(w: World) -> None:
    """S2-20, S1-20: what fills the room may wait for somebody who waits for room."""
    ids = {name: await w.define(name, misfire=MisfireRule("all")) for name in "ab"}
    gap = Gap(NOW - HOUR, NOW, "outage")
    await w.advance(Move(await w.group(), Position(NOW + 1), NOW + MINUTE, gap=gap))
    found = {each.job_id: each for each in (await w.store.gaps.open(w.held, 10, 2)).gaps}
    runs = [Forecast(NOW - n, NOW - n, "catchup") for n in (3, 2, 1)]
    rest = replace(gap, noticed_ms=NOW, trimmed=True)
    settled = [Settled(found[ids["a"]], runs[:2], [], rest), Settled(found[ids["b"]], [], [], rest)]
    assert isinstance(await w.store.gaps.settle(w.held, settled, epoch=1, now_ms=NOW), Ok)

    async def opened(room: int, beside: Beside | None) -> list[str]:
        return [each.job_id for each in (await w.store.gaps.open(w.held, 10, room, beside=beside)).gaps]

    assert await opened(2, None) == []
    assert await opened(2, Beside(5)) == [ids["b"]]  # a has two on their way
    assert sorted(await opened(9, Beside(1))) == sorted(ids.values())  # no bound where there is room
    [b] = (await w.store.gaps.open(w.held, 10, 2, beside=Beside(5))).gaps
    assert isinstance(await w.store.gaps.settle(w.held, [Settled(b, runs[2:], [], rest)], epoch=1, now_ms=NOW), Ok)
    assert await opened(2, Beside(5)) == []
    assert await w.store.queue.promote(0, 10, rank) == Ok(Promoted(3))
    assert await opened(2, Beside(5)) == []  # they are in the queue now


@check
async def who_gets_something_beside_the_room_takes_turns(w: World) -> None:
    for name in ("a", "b", "c", "full"):
        await w.define(name, misfire=MisfireRule("all"))
    gap = Gap(NOW - HOUR, NOW, "outage")
    await w.advance(Move(await w.group(), Position(NOW + 1), NOW + MINUTE, gap=gap))
    found = (await w.store.gaps.open(w.held, 10, 9)).gaps
    rest = replace(gap, noticed_ms=NOW, trimmed=True)
    runs = [Forecast(NOW - 1, NOW - 1, "catchup")]
    settled = [Settled(each, runs if each is found[-1] else [], [], rest) for each in found]
    assert isinstance(await w.store.gaps.settle(w.held, settled, epoch=1, now_ms=NOW), Ok)
    first, second, third = (each.gap_id for each in found[:-1])

    async def next_after(gap_id: int) -> list[int]:
        return [each.gap_id for each in (await w.store.gaps.open(w.held, 10, 1, beside=Beside(2, gap_id))).gaps]

    assert await next_after(0) == [first, second]
    assert await next_after(second) == [third, first]
    assert await next_after(third) == [first, second]


# --- jobs


@check
async def amend_creates_a_job_once(w: World) -> None:
    """S0-18, S0-23, S4-1, S4-9: what is stored of a job; its name is unique among jobs that are not deleted."""
    job_id = await w.define("a", BERLIN)
    found = await w.store.jobs.find([("default", "a"), ("default", "b"), ("other", "a")])
    assert (found.now_ms, found.epoch, found.shards, list(found.standings)) == (NOW, 1, 2, [("default", "a")])
    standing = found.standings["default", "a"]
    assert (standing.job.job_id, standing.job.state, standing.job.revision) == (job_id, "active", 1)
    assert (standing.job.created_by, standing.job.created_ms, standing.job.updated_ms) == ("ann", NOW, NOW)
    assert standing.job.definition == definition("a", BERLIN)
    assert standing.at == Position(NOW)
    assert standing.next_due_ms == 1_800_064_800_000  # 03:00 in Berlin
    timetable, _ = await Tables(w.store.almanac).timetable(standing.timing, 1)
    twin = replace(standing.job, job_id="00000000-0000-7000-8000-000000000001")
    made = amend.create(twin, standing.timing, timetable, 0, NOW, strict=True)
    assert await w.store.jobs.amend([made], epoch=1) == Ok(frozenset())
    assert await w.store.jobs.amend([made], epoch=9) == Refused("the zone tables or calendars have changed")
    other = replace(twin, definition=replace(twin.definition, name="b"))
    made = amend.create(other, standing.timing, timetable, 0, NOW, strict=True)
    assert await w.store.jobs.amend([made], epoch=1) == Ok(frozenset({twin.job_id}))
    assert (await w.kinds()) == {"job_created": 2}


@check
async def amend_changes_only_who_still_stands_there(w: World) -> None:
    await w.define()
    before = (await w.store.jobs.find([("default", "a")])).standings["default", "a"]
    timetable, _ = await Tables(w.store.almanac).timetable(before.timing, 1)
    pausing = amend.pause(before, timetable, NOW + 5, "bob", "latest")
    group = await w.group()
    await w.advance(Move(group, Position(NOW + MINUTE), NOW + 2 * MINUTE, [Forecast(NOW + MINUTE, NOW + MINUTE)]))
    assert await w.store.jobs.amend([pausing], epoch=1) == Ok(frozenset())  # a scheduler was faster
    before = (await w.store.jobs.find([("default", "a")])).standings["default", "a"]
    pausing = amend.pause(before, timetable, NOW + 5, "bob", "latest")
    assert await w.store.jobs.amend([pausing], epoch=1) == Ok(frozenset({before.job.job_id}))
    assert await w.store.jobs.amend([pausing], epoch=1) == Ok(frozenset())  # repeated after a lost reply
    after = (await w.store.jobs.find([("default", "a")])).standings["default", "a"]
    assert after == pausing.after
    assert await w.runs() == []  # the forecast was withdrawn
    assert await w.kinds() == {"job_created": 1, "job_paused": 1, "runs_withdrawn": 1}


@check
async def amend_leaves_gaps_and_answers(w: World) -> None:
    """Edit and resume: the undecided past is a gap under the rules that held then, noticed when it is to be decided."""
    await w.define()
    await w.clock.set(NOW + 5 * MINUTE)
    await w.desk.pause("default", "a", "all")  # an outage until here
    await w.clock.set(NOW + 7 * MINUTE)
    await w.desk.edit(definition("a", EveryEntry(MINUTE, 0)))  # a paused piece until here, not yet to be decided
    opened = (await w.store.gaps.open(w.held, 10, 10)).gaps
    assert [(g.gap.from_ms - NOW, g.gap.to_ms - NOW, g.gap.cause, g.revision) for g in opened] == [
        (0, 5 * MINUTE, "outage", 1)
    ]
    await w.clock.set(NOW + 9 * MINUTE)
    await w.desk.resume("default", "a")
    opened = (await w.store.gaps.open(w.held, 10, 10)).gaps
    assert [(g.gap.from_ms - NOW, g.gap.to_ms - NOW, g.gap.cause, g.gap.policy, g.revision) for g in opened] == [
        (0, 5 * MINUTE, "outage", None, 1),
        (5 * MINUTE, 7 * MINUTE, "pause", "all", 2),
        (7 * MINUTE, 9 * MINUTE, "pause", "all", 3),
    ]
    assert {g.gap.noticed_ms for g in opened} == {NOW + 5 * MINUTE, NOW + 9 * MINUTE}


@check
async def gaps_follow_a_job_to_another_region(w: World) -> None:
    await w.define()
    await w.clock.set(NOW + 5 * MINUTE)
    await w.desk.edit(replace(definition("a", EveryEntry(MINUTE, 0)), region="eu"))
    assert (await w.store.gaps.open(w.held, 10, 10)).gaps == ()
    await w.desk.edit(definition("a", EveryEntry(MINUTE, 0)))
    assert [g.gap.from_ms for g in (await w.store.gaps.open(w.held, 10, 10)).gaps] == [NOW]


@check
async def amend_deletes_and_keeps_history(w: World) -> None:
    job_id = await w.define()
    run = Forecast(NOW + MINUTE, NOW + MINUTE)
    await w.advance(Move(await w.group(), Position(NOW + MINUTE), NOW + 2 * MINUTE, [run]))
    await w.clock.set(NOW + MINUTE)
    await w.desk.delete("default", "a")
    assert await w.store.jobs.list(JobFilter(), 10) == []
    assert await w.runs() == [(MINUTE, "live", 1)]
    revisions = await w.store.jobs.revisions(job_id, 10)
    assert [(each.revision, each.action, each.actor) for each in revisions] == [
        (2, "delete", "ann"),
        (1, "create", "ann"),
    ]
    assert revisions[1].before is None
    assert revisions[0].before == revisions[1].after
    assert await w.define("a") != job_id  # the name is free again
    assert [line.run.job_id for line in await w.store.history.runs(Span(name="a"))] == [job_id]


@check
async def jobs_are_listed_by_filter_and_page(w: World) -> None:
    """S0-24, S0-58: filters; pages go on after the last line."""
    for name in ("a", "b", "c"):
        await w.define(name)
    await w.desk.create(replace(definition("x"), tenant="acme", type="report", pool="slow", managed_by="app:shop"))
    await w.desk.pause("default", "b")

    async def names(limit: int = 10, **wanted: object) -> list[str]:
        return [line.job.definition.name for line in await w.store.jobs.list(JobFilter(**wanted), limit)]  # type: ignore[arg-type]

    assert await names() == ["x", "a", "b", "c"]
    assert await names(tenant="acme") == await names(type="report") == await names(pool="slow") == ["x"]
    assert await names(managed_by="app:shop") == ["x"]
    assert await names(state="paused") == await names(name="b") == await names(text="b") == ["b"]
    assert await names(2) == ["x", "a"]
    assert await names(2, after=("default", "a")) == ["b", "c"]
    assert await names(text="%") == await names(tenant="nobody") == await names(managed_by="app:") == []


@check
async def jobs_are_listed_by_any_filters_together(w: World) -> None:
    """Whatever index a page is read from, it is what a plain look at all jobs gives, page after page."""
    made = [
        Definition(
            name=f"{letter}_{number % 3}%",
            schedule=definition("a").schedule,
            run=definition("a").run,
            tenant=("acme", "default", "zoo")[number % 3],
            type=("export", "report")[number % 2],
            pool=("slow", "default")[number // 2 % 2],
            managed_by=(None, "app:shop")[number // 3 % 2],
        )
        for number, letter in enumerate("abcdefghijkl")
    ]
    await w.desk.apply(made)
    for each in made[::4]:
        await w.desk.pause(each.tenant, each.name)
    everything = sorted(made, key=lambda each: (each.tenant, each.name))
    paused = {each.seed for each in made[::4]}
    wishes = [
        dict(zip(("tenant", "name", "state", "type", "pool", "managed_by", "text"), values, strict=True))
        for values in product(
            (None, "default", "zoo"), (None, "b_1%"), (None, "paused", "active"), (None, "report"), (None, "slow"),
            (None, "app:shop"), (None, "_1%", "k", "1_", "%" * 60_000),
        )
    ]  # fmt: skip
    for wish in wishes[::7]:  # every value meets every other
        wanted = [
            each.seed
            for each in everything
            if all(wish[field] in (None, getattr(each, field)) for field in ("tenant", "name", "type", "pool"))
            and wish["managed_by"] in (None, each.managed_by)
            and wish["state"] in (None, "paused" if each.seed in paused else "active")
            and (wish["text"] or "") in each.name
        ]
        found: list[str] = []
        after = None
        while page := await w.store.jobs.list(JobFilter(**wish, after=after), 2):  # type: ignore[arg-type]
            last = page[-1].job.definition
            after = last.tenant, last.name
            found += [line.job.definition.seed for line in page]
        assert found == wanted, wish


@check
async def jobs_are_counted_and_named(w: World) -> None:
    """The next instant is that of the run that is planned already, if there is one."""
    first = await w.define("a")
    await w.advance(
        Move(await w.group(), Position(NOW + MINUTE), NOW + 2 * MINUTE, [Forecast(NOW + MINUTE, NOW + MINUTE)])
    )
    await w.define("b")
    await w.desk.pause("default", "b")
    count = await w.store.jobs.count()
    assert (count.now_ms, dict(count.jobs), count.next_ms) == (NOW, {"active": 1, "paused": 1}, NOW + MINUTE)
    lines = await w.store.jobs.list(JobFilter(), 10)
    assert [line.next_planned_ms for line in lines] == [NOW + MINUTE, None]
    await w.desk.delete("default", "a")
    await w.clock.advance(1)
    second = await w.define("a")
    assert [job.job_id for job in await w.store.jobs.named("default", "a")] == [second, first]
    assert [await w.store.jobs.name_of("default", each) for each in (first, second)] == [None, "a"]
    assert await w.store.jobs.name_of("acme", second) is None


# --- what the fleet plans with


def zone_table(name: str, release: str, other: str | None = None) -> Table:
    """A table of a zone; with `other`, the ticks of another one under its name."""
    zone = zones.zone(other or name)
    return Table(Part("zone", "", name), zone.hash, release, zone.dump())


@check
async def a_zone_comes_with_the_first_job_that_asks_it(w: World) -> None:
    await w.define("a", BERLIN)
    part = Part("zone", "", "Europe/Berlin")
    [table] = await w.store.almanac.read([part, Part("zone", "", "Asia/Tokyo")], 1)
    assert table == zone_table("Europe/Berlin", zones.release())
    assert await w.store.almanac.read([part], 0) == []
    assert await w.store.almanac.all("zone") == (1, [table])
    assert await w.store.almanac.all("calendar") == (1, [])
    before = (await w.store.jobs.find([("default", "a")])).standings["default", "a"]
    twin = replace(before.job, job_id="00000000-0000-7000-8000-000000000001", definition=definition("b", BERLIN))
    timetable, _ = await Tables(w.store.almanac).timetable(before.timing, 1)
    made = amend.create(twin, before.timing, timetable, 0, NOW, strict=True)
    other = zone_table("Europe/Berlin", "2000a", "Asia/Tokyo")
    assert await w.store.jobs.amend([made], epoch=1, tables=[other]) == Refused(
        "another node has brought another table of a zone"
    )


@check
async def adopting_a_table_rewinds_the_jobs_that_ask_it(w: World) -> None:
    await w.define("a", BERLIN)
    await w.define("b", MINUTELY)
    await w.define("c", BERLIN)
    await w.desk.pause("default", "c")
    standing = (await w.store.jobs.find([("default", "a")])).standings["default", "a"]
    key = standing.timing.timing_id
    part = Part("zone", "", "Europe/Berlin")
    assert await w.store.almanac.timings([key]) == {key: standing.timing.body()}
    seen = await w.store.almanac.affected([part])
    assert [(each.state, each.jobs, each.at) for each in seen.standpoints] == [
        ("active", 1, Position(NOW)),
        ("paused", 1, Position(NOW)),
    ]

    def decide(facts: Affected) -> list[Rewind]:
        assert (facts.timings, facts.epoch, facts.now_ms) == ({key: standing.timing.body()}, 1, NOW + 9)
        active, paused = facts.standpoints
        return [
            Rewind(active, 0, None, (NOW, NOW + 1), problem="it has no ticks"),
            Rewind(paused, 0, None, (NOW, NOW + 2)),
        ]

    await w.clock.set(NOW + 9)
    table = zone_table("Europe/Berlin", "2999a", "Asia/Tokyo")
    event = Event("zone_adopted", node_id="n1")
    adopt = w.store.almanac.adopt
    done = await adopt([table], [part], decide, epoch=1, events=[event])
    assert isinstance(done, Ok)
    assert (done.value.epoch, done.value.jobs, done.value.withdrawn) == (2, 2, 0)
    assert await adopt([table], [part], decide, epoch=1, events=[event]) == Refused(
        "the zone tables or calendars have changed"
    )
    assert await w.store.almanac.read([part], 2) == [table]
    assert await w.store.almanac.read([part], 1) == [zone_table("Europe/Berlin", zones.release())]
    standings = (await w.store.jobs.find([("default", "a"), ("default", "c")])).standings
    assert standings["default", "a"].job.problem == "it has no ticks"
    assert {each.at for each in standings.values()} == {Position(NOW + 9)}
    [gap] = (await w.store.gaps.open(w.held, 10, 10)).gaps  # the other waits for the resume of its job
    assert (gap.gap.from_ms, gap.gap.to_ms, gap.gap.cause, gap.almanac) == (NOW, NOW + 1, "outage", 1)
    kinds = await w.kinds()
    assert (kinds["zone_adopted"], kinds["job_stuck"]) == (1, 1)


@check
async def a_calendar_change_withdraws_forecasts(w: World) -> None:
    await w.desk.put_calendar(CalendarDocument("off", holidays=("2027-02-01",)))
    await w.desk.create(replace(definition("a"), calendars=(CalendarUse("off"),)))
    group = await w.group()
    run = Forecast(NOW + MINUTE, NOW + MINUTE)
    await w.advance(Move(group, Position(NOW + MINUTE), NOW + 2 * MINUTE, [run]), epoch=2)
    adoption = await w.desk.put_calendar(CalendarDocument("off", holidays=("2027-01-15",)))
    assert (adoption.jobs, adoption.withdrawn) == (1, 1)
    assert await w.runs() == []
    assert (await w.desk.put_calendar(CalendarDocument("off", holidays=("2027-01-15",)))).tables == ()


# --- history and events


@check
async def history_is_listed_by_filter_and_page(w: World) -> None:
    """S0-28, S0-62, S4-26: by job, time range and state; the newest first."""
    job_id = await w.define()
    runs = [Forecast(NOW + n, NOW + n) for n in range(1, 6)]
    answers = [Answer(NOW - n, NOW - n, 1, "missed", "too_old") for n in range(1, 6)]
    await w.advance(Move(await w.group(), Position(NOW + 5), NOW + HOUR, runs, answers))

    async def found(limit: int = 9, state: str | None = None, **span: object) -> list[int]:
        lines = await w.store.history.runs(Span(**span), state=state, limit=limit)  # type: ignore[arg-type]
        return [line.run.scheduled_for_ms - NOW for line in lines]

    assert await found() == [5, 4, 3, 2, 1]
    assert await found(from_ms=NOW + 2, to_ms=NOW + 4) == [3, 2]
    assert await found(state="dead") == await found(name="b") == await found(tenant="x") == []
    page = await w.store.history.runs(Span(tenant="default", name="a"), limit=2)
    assert await found(before_id=page[-1].run.run_id) == [3, 2, 1]
    lines = await w.store.history.ledger(Span(name="a", from_ms=NOW - 3), answer="missed", limit=9)
    assert sorted(line.answer.from_ms - NOW for line in lines) == [-3, -2, -1]
    assert await w.store.history.ledger(Span(), answer="skipped") == []
    told = await w.store.history.events(Span(tenant="default", name="a"), kind="job_created")
    assert [(line.tenant, line.name, line.actor) for line in told] == [("default", "a", "ann")]
    assert await w.store.history.events(Span(name="b")) == []
    assert [noted.event.job_id for noted in await w.store.events.list(kind="job_created")] == [job_id]
    assert [noted.event.kind for noted in await w.store.events.list(job_id=job_id, limit=1)] == ["job_created"]


# --- nodes and shards; tests/coordination has their semantics


@check
async def nodes_come_and_go(w: World) -> None:
    nodes = w.store.nodes
    node = Node("n2", "host", 1, ("scheduler",))
    assert await nodes.announce(node, 10, shards=2) == Ok(NOW)
    assert await nodes.announce(node, 10, shards=2) == Ok(NOW)
    assert isinstance(await nodes.announce(replace(node, node_id="n3"), 10, shards=3), Refused)
    assert await nodes.heartbeat("n2", 10, 5) == Ok(NOW)
    assert [(each.node, each.clock_offset_ms, each.alive) for each in await nodes.list()] == [(node, 5, True)]
    for given_back in (len(w.held), 0):  # again: as if the reply was lost
        assert await nodes.resign("n1", ("worker",)) == Ok(given_back)
        assert await w.store.shards.owners() == []
    assert await nodes.resign("n2", ("worker",)) == await nodes.resign("n2", ("worker",)) == Ok(0)
    assert [each.node for each in await nodes.list()] == [replace(node, roles=("worker",))]
    assert await nodes.leave("n2") == Ok(0)
    assert isinstance(await nodes.heartbeat("n2", 10, 5), Refused)
    await nodes.announce(node, 10, shards=2)
    await w.clock.set(NOW + 11)
    assert await nodes.give_up_silent() == Ok(["n2"])


@check
async def shards_change_hands_and_number(w: World) -> None:
    """S0-30, S4-13: leases by the database's clock, a term that only rises."""
    job_id = await w.define()
    shards = w.store.shards
    assert await shards.take("*", [0, 1], "n2", 15_000) == Ok([])
    assert await shards.renew("n1", w.held, 15_000) == Ok(w.held)
    assert [each.held for each in await shards.owners()] == w.held
    await w.clock.set(NOW + 15_000)
    taken = await shards.take("*", [0, 1], "n2", 15_000)
    assert taken == Ok([Held("*", 0, 2), Held("*", 1, 2)])
    assert await shards.renew("n1", w.held, 15_000) == Ok([])
    assert isinstance(await set_shards(w.store.engine, 5), Refused)
    assert isinstance(taken, Ok)
    assert await shards.release("n2", taken.value) == taken
    assert await set_shards(w.store.engine, 5) == Ok(1)
    assert await shards.number() == 5
    assert await shards.take("*", [0], "n3", 15_000) == Ok([Held("*", 0, 4)])
    found = await w.store.jobs.find([("default", "a")])
    assert (found.standings["default", "a"].job.job_id, found.shards) == (job_id, 5)


@check
async def the_schema_is_current(w: World) -> None:
    await require_current(w.store.engine)
    assert await migrate(w.store.engine) == []
    assert not (await status(w.store.engine)).pending


for more in (
    check_upstreams, check_limits, check_attempts, check_shown, check_steering, check_work, check_upkeep, check_access,
    check_edits, check_figures, check_kept, check_late, check_shadow, check_parked, check_turns,
):  # fmt: skip
    CHECKS |= more.CHECKS


def run(name: str, engine: str, url: str) -> None:
    async def scenario() -> None:
        async with world(url) as w:
            await CHECKS[name](w)
            RUN[engine] |= w.store.engine.statements_run

    asyncio.run(scenario())
    CHECKED[engine].add(name)


def grouped(names: list[str]) -> list[object]:
    """One worker for each engine, so that the last test knows what was run."""
    return [pytest.param(name, marks=pytest.mark.xdist_group(f"conformance-{name}")) for name in names]


@pytest.mark.parametrize("engine", grouped(list(ALL)))
@pytest.mark.parametrize("name", CHECKS)
def test_verb(name: str, engine: str, request: pytest.FixtureRequest) -> None:
    run(name, engine, request.getfixturevalue(f"{engine.replace('-', '_')}_url"))


# Run only where tables are made or other people's data are met; each has a test of its own there.
ELSEWHERE = {
    "migrations_create", "migrations_insert", "migrations_lock", "migrations_schema",
}  # fmt: skip


@pytest.mark.parametrize("engine", grouped(list(ALL)))
def test_every_statement_was_run(engine: str, request: pytest.FixtureRequest) -> None:
    for name in CHECKS:  # none, unless this test was asked for alone
        if name not in CHECKED[engine] and engine.startswith("sqlite"):
            run(name, engine, ":memory:")
        elif name not in CHECKED[engine]:
            with request.getfixturevalue(f"store_template{engine.removeprefix('postgres')}").copy() as url:
                run(name, engine, url)
    statements = Statements.for_engine("sqlite" if engine.startswith("sqlite") else "postgres")
    assert sorted(set(statements) - RUN[engine] - ELSEWHERE) == []
