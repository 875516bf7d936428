"""The checklist, one test per item, as far as planning and storing go. Every item on both stores."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from hashlib import sha256
from typing import TypeAlias, get_args
from uuid import UUID

import pytest

from fleetcron.config import SchedulerConfig
from fleetcron.errors import StoreError
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CronEntry, EveryEntry, MisfireRule, OverlapPolicy
from fleetcron.model.run import Run
from fleetcron.model.shard import Held, shard_of
from fleetcron.model.states import RunState
from fleetcron.model.target import CommandTarget, PythonTarget
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.loop import Scheduler
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import Round, tick
from fleetcron.steps import on_step
from fleetcron.store.history import LedgerLine, Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.jobs import JobLine
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from fleetcron.times.instants import parse_instant, to_ms
from tests.coordination.fleet import holds
from tests.scheduler.world import EVERYTHING, TENANT, Slow, World, opened_world
from tests.services.postgres import Template
from tests.store.engines import DatabaseClock, change

SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))
Scenario: TypeAlias = Callable[[World], Awaitable[None]]
Live: TypeAlias = Callable[[Scenario], None]
Fleet: TypeAlias = tuple[Store, DatabaseClock, list[Held]]


@pytest.fixture(scope="module", params=["sqlite_memory", "postgres18"])
def fleet(request: pytest.FixtureRequest) -> Iterator[tuple[asyncio.Runner, Fleet]]:
    if request.param == "sqlite_memory":
        yield from opened(":memory:")
        return
    template: Template = request.getfixturevalue("store_template18")
    with template.copy() as url:
        yield from opened(url)


def opened(url: str) -> Iterator[tuple[asyncio.Runner, Fleet]]:
    with asyncio.Runner() as runner:
        world = opened_world(url, NOON)
        yield runner, runner.run(world.__aenter__())
        runner.run(world.__aexit__(None, None, None))


@pytest.fixture
def live(fleet: tuple[asyncio.Runner, Fleet]) -> Live:
    """Run a scenario in an empty fleet of two shards, at noon."""

    def run(scenario: Scenario) -> None:
        runner, parts = fleet

        async def whole() -> None:
            await scenario(await World.begin(*parts, NOON))

        runner.run(whole())

    return run


def job(name: str = "report", *entries: object, **fields: object) -> Definition:
    schedule = entries or (EveryEntry(MINUTE, 0),)
    return Definition(name, schedule, CommandTarget(("true",)), tenant=TENANT, **fields)  # type: ignore[arg-type]


async def plan(world: World, lookahead_ms: int = 0) -> Round:
    return await tick(world.store.cursors, world.tables, world.held, lookahead_ms=lookahead_ms)


async def recover(world: World) -> Round:
    done = await plan(world)
    await fill_gaps(world.store.gaps, world.tables, world.held, room=EVERYTHING)
    return done


async def runs(world: World, **span: object) -> list[Run]:
    """The oldest tick first."""
    found = await world.store.history.runs(Span(**span), limit=EVERYTHING)  # type: ignore[arg-type]
    return sorted((each.run for each in found), key=lambda run: run.scheduled_for_ms)


async def ticks(world: World, **span: object) -> list[int]:
    return [run.scheduled_for_ms for run in await runs(world, **span)]


async def ledger(world: World) -> list[LedgerLine]:
    return sorted(await world.store.history.ledger(Span()), key=lambda line: line.answer.from_ms)


async def listed(world: World, name: str = "report") -> JobLine:
    [found] = await world.store.jobs.list(JobFilter(tenant=TENANT, name=name), 2)
    return found


def minutes(*numbers: int) -> list[int]:
    return [NOON + n * MINUTE for n in numbers]


# -- the tables


def test_s0_18(live: Live) -> None:
    """S0-18: id UUID, generated; name; description."""

    async def scenario(world: World) -> None:
        await Desk(world.store, actor="me", shards=2).create(job(description="every minute"))
        found = (await listed(world)).job
        assert UUID(found.job_id).version == 7
        assert (found.definition.name, found.definition.description) == ("report", "every minute")
        await holds(world.store.engine, f"(SELECT count(*) FROM jobs WHERE job_id = '{found.job_id}') = 1")

    live(scenario)


def test_s0_19(live: Live) -> None:
    """S0-19: cron_expression; timezone, UTC by default."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", CronEntry("0 2 * * *")))
        stored = (await listed(world)).job.definition.as_document()
        assert (stored["schedule"][0]["cron"], stored["schedule"][0]["timezone"]) == ("0 2 * * *", "UTC")

    live(scenario)


def test_s0_20(live: Live) -> None:
    """S0-20: job_type; job_payload, {} by default."""

    async def scenario(world: World) -> None:
        await world.desk.create(replace(job(), run=PythonTarget("shop.jobs:report"), type="report", payload={"n": 1}))
        await world.desk.create(job("other"))
        assert (await listed(world)).job.definition.payload == {"n": 1}
        assert (await listed(world, "other")).job.definition.payload == {}
        [found] = await world.store.jobs.list(JobFilter(type="report"), 2)
        assert found.job.definition.name == "report"

    live(scenario)


def test_s0_21(live: Live) -> None:
    """S0-21: enabled by default; three retries (four attempts); timeout 3600 s."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        found = (await listed(world)).job
        assert found.state == "active"
        assert found.definition.as_document()["retry"]["max_attempts"] == 4
        assert found.definition.as_document()["timeout"] == "1h"

    live(scenario)


def test_s0_22(live: Live) -> None:
    """S0-22: overlap_policy, skip by default, of skip, queue, cancel_previous and ours."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        assert (await listed(world)).job.definition.as_document()["overlap"]["policy"] == "skip"
        assert {"skip", "queue", "cancel_previous"} < set(get_args(OverlapPolicy))

    live(scenario)


def test_s0_23(live: Live) -> None:
    """S0-23: last_fired_at, next_fire_at, created_at, updated_at, created_by."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(MINUTE)
        await plan(world)
        await world.desk.edit(job(description="clearer"))
        found = await listed(world)
        assert (found.last_scheduled_ms, found.next_due_ms) == tuple(minutes(1, 2))
        assert (found.job.created_ms, found.job.updated_ms) == tuple(minutes(0, 1))
        assert found.job.created_by == "somebody"

    live(scenario)


def test_s0_24(live: Live) -> None:
    """S0-24: an index on next_fire_at of those that have one; an index on job_type."""

    async def scenario(world: World) -> None:
        await has_index(world, "cursors_due", "next_due_ms IS NOT NULL")
        await has_index(world, "jobs_by_type", "(type")

    live(scenario)


async def has_index(world: World, name: str, text: str) -> None:
    table = {"sqlite": "sqlite_schema WHERE name", "postgres": "pg_indexes WHERE indexname"}[world.store.engine.name]
    column = {"sqlite": "sql", "postgres": "indexdef"}[world.store.engine.name]
    quoted = text.replace("'", "''")
    await holds(world.store.engine, f"(SELECT count(*) FROM {table} = '{name}' AND {column} LIKE '%{quoted}%') = 1")


def test_s0_25(live: Live) -> None:
    """S0-25: an execution has an id, its schedule, scheduled_at; fired_at and completed_at come later."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        [run] = await runs(world)
        assert run.run_id > 0
        assert run.job_id == (await listed(world)).job.job_id
        assert (run.scheduled_for_ms, run.finished_ms) == (NOON + MINUTE, None)

    live(scenario)


def test_s0_26(live: Live) -> None:
    """S0-26: pending (our planned) at first; dispatched, running, completed, failed, skipped are states too."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        assert [run.state for run in await runs(world)] == [RunState.PLANNED]
        assert {"dispatched", "running", "succeeded", "dead", "skipped"} < {state.value for state in RunState}

    live(scenario)


def test_s0_27(live: Live) -> None:
    """S0-27: created_at of an execution (what an attempt adds is the worker's)."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(7 * SECOND)
        await plan(world, MINUTE)
        assert [run.created_ms for run in await runs(world)] == [NOON + 7 * SECOND]

    live(scenario)


def test_s0_28(live: Live) -> None:
    """S0-28: an index by schedule and instant; pending ones are a small table of their own."""

    async def scenario(world: World) -> None:
        await has_index(world, "runs_one_per_tick", "(job_id, scheduled_for_ms)")
        await world.desk.create(job())
        await plan(world, 3 * MINUTE)
        await change(world.store.engine, "DELETE FROM upcoming WHERE run_after_ms = " + str(NOON + MINUTE))  # claimed
        await holds(world.store.engine, "(SELECT count(*) FROM upcoming) = 2 AND (SELECT count(*) FROM runs) = 3")

    live(scenario)


# -- the ticker


def test_s0_34(live: Live) -> None:
    """S0-34: only whoever holds shards plans."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        held: list[Held] = []
        scheduler = Scheduler(world.store, lambda: held, SchedulerConfig(), clock=world.clock.hand)
        await scheduler.step()
        assert await ticks(world) == []
        held += world.held
        await scheduler.step()
        assert await ticks(world) == minutes(1)

    live(scenario)


def test_s0_35(live: Live) -> None:
    """S0-35: those that are enabled and due, the oldest of each shard first, no more than a batch."""

    async def scenario(world: World) -> None:
        every = {"late": 2, "later": 3, "last": 4}  # three in two shards
        oldest: dict[int, str] = {}
        for name, number in [*every.items(), ("paused", 1), ("not-yet", 60)]:
            made = await world.desk.create(job(name, EveryEntry(number * MINUTE, NOON), misfire=MisfireRule("skip")))
            assert made.job is not None
            if name in every:
                oldest.setdefault(shard_of(made.job.job_id, 2), name)
        await world.desk.pause(TENANT, "paused")
        await world.clock.advance(5 * MINUTE)
        due = await world.store.cursors.due(world.held, 0, 100)
        assert [(group.at.cursor_ms, group.jobs) for group in due.groups] == [(NOON, 1)] * 3
        assert due.next_due_ms == NOON + 2 * MINUTE
        done = await tick(world.store.cursors, world.tables, world.held, lookahead_ms=0, rows=1)
        left = {each.job.definition.name for each in await world.store.jobs.list(JobFilter(), 9) if is_due(each, world)}
        assert (done.jobs, done.more) == (len(oldest), True)
        assert left == every.keys() - set(oldest.values())

    live(scenario)


def is_due(line: JobLine, world: World) -> bool:
    return line.next_due_ms is not None and line.next_due_ms <= world.now


def test_s0_36(live: Live) -> None:
    """S0-36: dispatching and advancing are one step."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        assert await ticks(world) == minutes(1)
        assert (await listed(world)).next_due_ms == NOON + 2 * MINUTE

    live(scenario)


def test_s0_37(live: Live) -> None:
    """S0-37: whether the one before still runs does not stop the next tick from being written and the job advanced."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        await change(world.store.engine, "DELETE FROM upcoming")  # somebody has it, and goes on
        await world.clock.advance(MINUTE)
        await plan(world, MINUTE)
        assert [run.state for run in await runs(world)] == [RunState.PLANNED, RunState.PLANNED]
        assert (await listed(world)).next_due_ms == NOON + 3 * MINUTE

    live(scenario)


def test_s0_38(live: Live) -> None:
    """S0-38: advancing moves next_fire_at and last_fired_at."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        seen = []
        for _ in range(3):
            await world.clock.advance(MINUTE)
            await plan(world)
            found = await listed(world)
            seen.append((found.last_scheduled_ms, found.next_due_ms))
        assert seen == [tuple(minutes(n, n + 1)) for n in (1, 2, 3)]

    live(scenario)


def test_s0_39(live: Live) -> None:
    """S0-39: the next instant is computed in the zone of the job: two in the morning in New York is six UTC."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", CronEntry("0 2 * * *", "America/New_York")))
        assert (await listed(world)).next_due_ms == NOON + 18 * HOUR

    live(scenario)


# -- no double fire


def test_s0_40(live: Live) -> None:
    """S0-40: two planners that both decided write one run: the cursor and the key of the tick decide."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())

        async def other() -> None:
            assert (await plan(world, MINUTE)).runs == 1

        slow = await tick(Slow(world.store.engine, other), Tables(world.store.almanac), world.held, lookahead_ms=MINUTE)
        assert (slow.jobs, slow.runs) == (0, 0)
        assert await ticks(world) == minutes(1)

    live(scenario)


def test_s0_41(live: Live) -> None:
    """S0-41: what was dispatched already is not dispatched again, and that is counted."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        await change(world.store.engine, f"UPDATE cursors SET cursor_ms = {NOON}, next_due_ms = {NOON + MINUTE}")
        again = await plan(world, MINUTE)
        assert (again.runs, again.conflicts) == (0, 1)
        assert await ticks(world) == minutes(1)
        assert (await world.store.events.counts(0))["run_conflict"] == 1

    live(scenario)


def test_s0_42(live: Live) -> None:
    """S0-42: the execution is a row with an id of its own."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, 3 * MINUTE)
        ids = [run.run_id for run in await runs(world)]
        assert len(set(ids)) == 3
        assert ids == sorted(ids)

    live(scenario)


def test_s0_43(live: Live) -> None:
    """S0-43: what is put on its way names the job, the execution and the instant."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        [run] = await runs(world)
        await holds(
            world.store.engine,
            f"(SELECT count(*) FROM upcoming WHERE run_id = {run.run_id} AND job_id = '{run.job_id}'"
            f" AND run_after_ms = {run.run_after_ms}) = 1",
        )

    live(scenario)


def test_s0_44(live: Live) -> None:
    """S0-44: a stable key for whoever deduplicates: job and tick, the same whenever it is asked for."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        [run] = await runs(world)
        assert run.idempotency_key == f"job:{run.job_id}:scheduled_for:2026-06-10T12:01:00Z"

    live(scenario)


# -- recovery


def test_s0_50(live: Live) -> None:
    """S0-50: after a restart what was due is found, within 24 hours, the oldest first."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", EveryEntry(HOUR, 0), misfire=MisfireRule("all")))
        await world.clock.advance(30 * HOUR + 5 * MINUTE)
        await recover(world)
        assert await ticks(world) == [NOON + n * HOUR for n in range(7, 31)]
        assert [(line.answer.reason, line.answer.ticks) for line in await ledger(world)] == [("too_old", 6)]
        ids = [run.run_id for run in await runs(world)]
        assert ids == sorted(ids)

    live(scenario)


def test_s0_51(live: Live) -> None:
    """S0-51: what was dispatched before the outage is not recovered again."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all")))
        await plan(world, 2 * MINUTE)
        before = [run.run_id for run in await runs(world)]
        await world.clock.advance(10 * MINUTE)
        await recover(world)
        assert await ticks(world) == minutes(*range(1, 11))
        assert [run.run_id for run in await runs(world)][:2] == before

    live(scenario)


def test_s0_52(live: Live) -> None:
    """S0-52: recovered with the original due time, and counted."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", EveryEntry(HOUR, NOON), misfire=MisfireRule("latest")))
        await world.clock.advance(3 * HOUR + 10 * MINUTE)
        done = await recover(world)
        assert (done.runs, done.answered) == (1, 2)
        [run] = await runs(world)
        assert (run.scheduled_for_ms, run.created_ms) == (NOON + 3 * HOUR, NOON + 3 * HOUR + 10 * MINUTE)

    live(scenario)


def test_s0_53(live: Live) -> None:
    """S0-53: afterwards the next instant lies ahead."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", EveryEntry(HOUR, NOON)))
        await world.clock.advance(3 * HOUR + 10 * MINUTE)
        await recover(world)
        assert (await listed(world)).next_due_ms == NOON + 4 * HOUR

    live(scenario)


# -- identity


def test_s2_5(live: Live) -> None:
    """S2-5: the run is in the database before its work may begin."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", EveryEntry(HOUR, NOON)))
        await world.clock.advance(HOUR - 30 * SECOND)
        await plan(world, MINUTE)
        [run] = await runs(world)
        assert run.created_ms < run.run_after_ms

    live(scenario)


def test_s2_6(live: Live) -> None:
    """S2-6: the schedule changes; a run that is due keeps its identity."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(MINUTE)
        await plan(world)
        before = await runs(world)
        await world.desk.edit(job("report", EveryEntry(7 * MINUTE, 0)))
        await plan(world)
        assert await runs(world) == before
        assert (await listed(world)).job.revision == 2

    live(scenario)


def test_s2_7(live: Live) -> None:
    """S2-7: identity is the nominal time, however late somebody looks."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(MINUTE + 37 * SECOND)
        await plan(world)
        assert await ticks(world) == minutes(1)

    live(scenario)


def test_s2_8(live: Live) -> None:
    """S2-8: inserted if absent, as created (our planned)."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        for _ in range(2):
            await plan(world, MINUTE)
            await change(world.store.engine, f"UPDATE cursors SET cursor_ms = {NOON}, next_due_ms = {NOON + MINUTE}")
        assert [run.state for run in await runs(world)] == [RunState.PLANNED]

    live(scenario)


def test_s2_9(live: Live) -> None:
    """S2-9: what was created is on its way in the same transaction: a crash leaves nothing to be found and enqueued."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())

        def hook(step: str) -> None:
            if step == "tick.written":
                raise DiedError

        on_step(hook)
        try:
            with pytest.raises(DiedError):
                await plan(world, MINUTE)
        finally:
            on_step(None)
        await holds(world.store.engine, "(SELECT count(*) FROM upcoming) = 1 AND (SELECT count(*) FROM runs) = 1")

    live(scenario)


class DiedError(Exception):
    """Stands for the end of the process."""


# -- missed runs


async def five_missed(world: World, rule: MisfireRule) -> None:
    await world.desk.create(job(misfire=rule))
    await world.clock.advance(5 * MINUTE + 59 * SECOND)
    await world.clock.advance(2 * SECOND)  # the sixth is in time
    await recover(world)


def test_s2_16(live: Live) -> None:
    """S2-16: skip: the missed ticks are answered as skipped, what is in time runs."""

    async def scenario(world: World) -> None:
        await five_missed(world, MisfireRule("skip"))
        assert await ticks(world) == minutes(6)
        [line] = await ledger(world)
        assert (line.answer.ticks, line.answer.answer, line.answer.reason) == (5, "skipped", "misfire")

    live(scenario)


def test_s2_17(live: Live) -> None:
    """S2-17: all: every missed tick gets its own run."""

    async def scenario(world: World) -> None:
        await five_missed(world, MisfireRule("all"))
        assert await ticks(world) == minutes(1, 2, 3, 4, 5, 6)
        assert [run.lane for run in await runs(world)] == ["catchup"] * 5 + ["live"]
        assert await ledger(world) == []

    live(scenario)


def test_s2_18(live: Live) -> None:
    """S2-18: latest: one run for the newest, which covers the others."""

    async def scenario(world: World) -> None:
        await five_missed(world, MisfireRule("latest"))
        latest, live_one = await runs(world)
        assert (latest.scheduled_for_ms, latest.covers) == (NOON + 5 * MINUTE, 5)
        assert latest.window_ms == (NOON, NOON + 5 * MINUTE)
        assert (live_one.scheduled_for_ms, live_one.covers) == (NOON + 6 * MINUTE, 1)
        [line] = await ledger(world)
        assert (line.answer.ticks, line.answer.covered_by_ms) == (4, NOON + 5 * MINUTE)

    live(scenario)


def test_s2_19(live: Live) -> None:
    """S2-19: bounded: only what lies within the window, and no more than the limit; the rest is missed."""

    async def scenario(world: World) -> None:
        await five_missed(world, MisfireRule("all", window_ms=4 * MINUTE, limit=2))
        assert await ticks(world) == minutes(4, 5, 6)
        found = [(line.answer.reason, line.answer.ticks) for line in await ledger(world)]
        assert found == [("too_old", 2), ("over_limit", 1)]

    live(scenario)


def test_s2_21(live: Live) -> None:
    """S2-21: the offset is a hash of tenant and name below the window; re-created, the job keeps it."""

    async def scenario(world: World) -> None:
        wanted = int.from_bytes(sha256(f"{TENANT}/report".encode()).digest()[:8], "big") % (10 * MINUTE)
        for _ in range(2):
            await world.desk.create(job("report", EveryEntry(HOUR, 0), jitter_ms=10 * MINUTE))
            await plan(world, HOUR)
            [run] = await runs(world)
            assert (run.scheduled_for_ms, run.run_after_ms) == (NOON + HOUR, NOON + HOUR + wanted)
            await world.desk.delete(TENANT, "report")  # and takes the forecast with it

    live(scenario)


# -- the cron service


async def other_node(world: World) -> list[Held]:
    """Another node takes the shards over."""
    [own] = {one.owner for one in world.held}
    await world.store.shards.release(own, world.held)
    name = "b" if own != "b" else "a"
    taken = await world.store.shards.take("*", [one.shard for one in world.held], name, 10**12)
    assert isinstance(taken, Ok)
    return taken.value


def test_s4_2(live: Live) -> None:
    """S4-2: the same instants whichever node leads."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", CronEntry("*/20 * * * *", "Asia/Kolkata")))
        for _ in range(6):
            await world.clock.advance(20 * MINUTE)
            await tick(world.store.cursors, Tables(world.store.almanac), world.held, lookahead_ms=0)
            world.held[:] = await other_node(world)
        assert await ticks(world) == minutes(10, 30, 50, 70, 90, 110)

    live(scenario)


@pytest.mark.parametrize("step", ["tick.due", "tick.planned", "advance.fence", "advance.write"])
def test_s4_3(live: Live, step: str) -> None:
    """S4-3: once, wherever the scheduler fails in its write."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())

        def hook(name: str) -> None:
            if name == step:
                raise DiedError

        on_step(hook)
        try:
            with pytest.raises(DiedError):
                await plan(world, MINUTE)
        finally:
            on_step(None)
        await plan(world, MINUTE)
        assert await ticks(world) == minutes(1)
        assert (await listed(world)).next_due_ms == NOON + 2 * MINUTE

    live(scenario)


def test_s4_4(live: Live) -> None:
    """S4-4: what downtime skipped is recovered."""

    async def scenario(world: World) -> None:
        await world.desk.create(job("report", CronEntry("0 */6 * * *")))
        await world.clock.advance(7 * HOUR)
        await recover(world)
        assert await ticks(world) == [NOON + 6 * HOUR]

    live(scenario)


def test_s4_5(live: Live) -> None:
    """S4-5: thousands of jobs: one plan and one transaction for a thousand that stand alike (10,000: test_outage)."""

    async def scenario(world: World) -> None:
        await world.desk.apply([job(f"job-{n}") for n in range(1000)])
        due = await world.store.cursors.due(world.held, MINUTE, 5000)
        assert [group.jobs for group in due.groups] == [1000]
        done = await plan(world, MINUTE)
        assert (done.jobs, done.runs) == (1000, 1000)

    live(scenario)


def test_s4_6(live: Live) -> None:
    """S4-6: steps of the clock, forward and back, neither double nor lose a tick."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all")))
        for ms in (90, -60, 45, 60, -30, -30, 120, 59, -60, 150):
            await world.clock.set(world.now + ms * SECOND)
            await plan(world, 30 * SECOND)
            await fill_gaps(world.store.gaps, world.tables, world.held, room=EVERYTHING)
        found = await ticks(world)
        assert found == minutes(*range(1, len(found) + 1))
        assert found[-1] >= world.now - MINUTE

    live(scenario)


def test_s4_9(live: Live) -> None:
    """S4-9: id, unique name, schedule, zone, type, payload template."""

    async def scenario(world: World) -> None:
        definition = replace(
            job("sync", CronEntry("0 */6 * * *", "Europe/Berlin")), type="sync", payload={"at": "{{ scheduled_for }}"}
        )
        await world.desk.create(definition)
        assert (await listed(world, "sync")).job.definition == definition
        await has_index(world, "jobs_by_name", "(tenant, name) WHERE")
        [again] = await world.desk.apply([definition])
        assert again.done == "unchanged"

    live(scenario)


def test_s4_10(live: Live) -> None:
    """S4-10: how many past-due ticks to recover; enabled; the last tick that was enqueued."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all", limit=3)))
        stored = (await listed(world)).job
        assert (stored.definition.misfire.limit, stored.state) == (3, "active")
        await world.clock.advance(10 * MINUTE + SECOND)
        await recover(world)
        assert await ticks(world) == minutes(7, 8, 9, 10)
        assert (await listed(world)).last_scheduled_ms == NOON + 10 * MINUTE

    live(scenario)


def test_s4_11(live: Live) -> None:
    """S4-11: id, job, nominal instant, the instant it was enqueued, status; and under which revision and tables."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(MINUTE + SECOND)
        await plan(world)
        [run] = await runs(world)
        assert (run.scheduled_for_ms, run.created_ms) == (NOON + MINUTE, NOON + MINUTE + SECOND)
        assert (run.state, run.revision, run.almanac, run.kind) == (RunState.PLANNED, 1, 1, "tick")

    live(scenario)


def test_s4_12(live: Live) -> None:
    """S4-12: unique by job and nominal instant."""

    async def scenario(world: World) -> None:
        await has_index(world, "runs_one_per_tick", "UNIQUE INDEX")
        await has_index(world, "runs_one_per_tick", "(job_id, scheduled_for_ms)")

    live(scenario)


def test_s4_14(live: Live) -> None:
    """S4-14: the next tick after the last that was scheduled, not after now."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all")))
        await world.clock.advance(2 * MINUTE)
        await plan(world)
        await world.clock.advance(3 * MINUTE)
        await recover(world)
        assert await ticks(world) == minutes(1, 2, 3, 4, 5)

    live(scenario)


def test_s4_15(live: Live) -> None:
    """S4-15: a tick within the buffer ahead is written, one beyond it is not."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(55 * SECOND - 1)
        assert (await plan(world, 5 * SECOND)).jobs == 0
        await world.clock.advance(1)
        assert (await plan(world, 5 * SECOND)).runs == 1

    live(scenario)


def test_s4_16(live: Live) -> None:
    """S4-16: inserted: enqueued, and the cursor moves; there already: nothing is enqueued, and the cursor moves."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await plan(world, MINUTE)
        await change(world.store.engine, f"UPDATE cursors SET cursor_ms = {NOON}, next_due_ms = {NOON + MINUTE}")
        await plan(world, MINUTE)
        await holds(world.store.engine, "(SELECT count(*) FROM upcoming) = 1")
        assert (await listed(world)).next_due_ms == NOON + 2 * MINUTE

    live(scenario)


def test_s4_17(live: Live) -> None:
    """S4-17: enqueued early, with the exact instant before which it may not start."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await world.clock.advance(57 * SECOND)
        await plan(world, 5 * SECOND)
        [run] = await runs(world)
        assert (run.created_ms, run.run_after_ms) == (NOON + 57 * SECOND, NOON + MINUTE)

    live(scenario)


def test_s4_18(live: Live) -> None:
    """S4-18: a new owner computes everything between the last tick and now."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all")))
        await plan(world, MINUTE)
        await world.clock.advance(5 * MINUTE)
        world.held[:] = await other_node(world)
        await recover(world)
        assert await ticks(world) == minutes(1, 2, 3, 4, 5)

    live(scenario)


def test_s4_19(live: Live) -> None:
    """S4-19: only the most recent ones are kept; older ones are answered, not dropped silently."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all", limit=2)))
        await world.clock.advance(10 * MINUTE + SECOND)
        await recover(world)
        assert await ticks(world) == minutes(8, 9, 10)
        found = [(line.answer.answer, line.answer.reason, line.answer.ticks) for line in await ledger(world)]
        assert found == [("missed", "over_limit", 7)]

    live(scenario)


def test_s4_20(live: Live) -> None:
    """S4-20: recovered ticks may start at once."""

    async def scenario(world: World) -> None:
        await world.desk.create(job(misfire=MisfireRule("all")))
        await world.clock.advance(5 * MINUTE)
        await recover(world)
        assert all(run.run_after_ms <= world.now for run in await runs(world))
        await holds(world.store.engine, "(SELECT count(*) FROM upcoming) = 5")

    live(scenario)


def test_s4_21(live: Live) -> None:
    """S4-21: under a split brain the old owner writes nothing."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        old = list(world.held)
        world.held[:] = await other_node(world)
        stale = await tick(world.store.cursors, world.tables, old, lookahead_ms=MINUTE)
        assert stale.refused == "the shard has another owner"
        assert await ticks(world) == []
        await plan(world, MINUTE)
        assert await ticks(world) == minutes(1)

    live(scenario)


def test_s4_22(live: Live) -> None:
    """S4-22: insert and enqueue are one transaction: a failure leaves neither, and the next round writes both."""

    async def scenario(world: World) -> None:
        await world.desk.create(job())
        await change(world.store.engine, "ALTER TABLE upcoming RENAME TO elsewhere")
        with pytest.raises(StoreError):
            await plan(world, MINUTE)
        await change(world.store.engine, "ALTER TABLE elsewhere RENAME TO upcoming")
        await holds(world.store.engine, "(SELECT count(*) FROM runs) = 0")
        assert (await listed(world)).next_due_ms == NOON + MINUTE
        await plan(world, MINUTE)
        await holds(world.store.engine, "(SELECT count(*) FROM upcoming) = 1 AND (SELECT count(*) FROM runs) = 1")

    live(scenario)
