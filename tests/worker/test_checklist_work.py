"""The checklist as far as work goes: what schedulers and workers owe together, shown end to end with real handlers.

On SQLite in memory, and on PostgreSQL where storage or concurrency matters. Where a story needs hours, the database's
clock is set to the next thing that happens: it is the only clock that counts.
"""

import asyncio
import logging
import os
import socket
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron import Fleetcron
from fleetcron.app.running import lend_functions
from fleetcron.clock import SystemClock
from fleetcron.config import Config, ExecutorConfig, WorkerConfig
from fleetcron.config.settings import CoordinationConfig, NodeConfig, SchedulerConfig, StoreConfig
from fleetcron.errors import RefusedError, StoreError
from fleetcron.executors.context import GiveUp
from fleetcron.model.outcome import Succeeded
from fleetcron.model.reading import read_job
from fleetcron.model.rules import CronEntry, EveryEntry, MisfireRule, OnceEntry, OverlapRule, RetryRule
from fleetcron.model.run import RunLine
from fleetcron.model.states import RunState
from fleetcron.node import Node
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim, Taken
from fleetcron.store.ends import Ended
from fleetcron.store.history import Span
from fleetcron.store.jobs import JobFilter
from fleetcron.store.written import Ok
from fleetcron.times.instants import iso, parse_instant, to_ms
from fleetcron.upkeep.loop import Upkeep
from fleetcron.worker.settling import settling
from tests.faults.inside import Shifted
from tests.store.engines import change
from tests.worker.crew import PATIENCE_S, Crew, Function, Hall, crew, every_second, job
from tests.worker.shop import rank

ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
NOON = to_ms(parse_instant("2026-06-10T12:00:00Z"))
TICK = "2026-06-01T02:00:00Z"
MINUTELY = (EveryEntry(MINUTE, 0),)
ONCE_ONLY = RetryRule(max_attempts=1)
SUCCEEDED, DEAD, CANCELLED, SKIPPED = RunState.SUCCEEDED, RunState.DEAD, RunState.CANCELLED, RunState.SKIPPED

Scenario = Callable[[Crew], Awaitable[None]]


def played(url: str, scenario: Scenario, functions: dict[str, Function] | None = None, **settings: Any) -> None:
    async def play() -> None:
        async with crew(url, functions, **settings) as made:
            await scenario(made)

    asyncio.run(play())


def at(text: str) -> int:
    return to_ms(parse_instant(text))


def ok(written: Any) -> Any:
    assert isinstance(written, Ok), written
    return written.value


class Seen:
    """A handler that writes down what it was called for."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []  # job and tick
        self._more = asyncio.Condition()

    async def handler(self, ctx: Any) -> None:
        async with self._more:
            self.calls.append((ctx.job, iso(ctx.scheduled_for)))
            self._more.notify_all()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_S), self._more:
            await self._more.wait_for(is_so)

    def has(self, tick: str, names: set[str]) -> bool:
        return names <= {name for name, its in self.calls if its == tick}

    def ticks(self, name: str) -> list[str]:
        return sorted(tick for job_name, tick in self.calls if job_name == name)


# -- a fleet


def settings(url: str, name: str | None = None, *roles: str, shards: int = 1) -> Config:
    return Config(
        store=StoreConfig(url=url),
        scheduler=SchedulerConfig(lookahead_s=2, idle_poll_s=0.5, shards=shards),
        coordination=CoordinationConfig(lease_ttl_s=2, heartbeat_s=0.5, margin_s=0.3, node_ttl_s=2),
        node=NodeConfig(name=name, roles=roles or ("scheduler", "worker")),
        worker=WorkerConfig(pools=("default=20",), lease_ttl_s=2, renew_s=0.4, drain_s=5, poll_s=1),
        executor=ExecutorConfig(isolation="inline", handlers=("t:f",)),
    )


class Member:
    """A whole node in this process."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._stop = asyncio.Event()
        self._work = asyncio.create_task(node.run(self._stop))

    async def leave(self) -> None:
        self._stop.set()
        async with asyncio.timeout(PATIENCE_S):
            await self._work
        await self.node.close()


@asynccontextmanager
async def node(config: Config, functions: dict[str, Function]) -> AsyncIterator[Member]:
    made = await Node.start(config)
    made.functions.update(functions)
    member = Member(made)
    try:
        yield member
    finally:
        await member.leave()


def test_a_fleet_runs_every_tick_once_and_others_are_ready_to_take_over(postgres18_url: str) -> None:
    """S0-1, S0-2, S0-6, S0-8, S0-14, S0-15, S1-1, S1-2, S1-46, S3-13, S3-14: 45 jobs, two schedulers (one leads, the
    other one stands by), three workers; the leader and a worker leave in the middle; every tick runs exactly once."""
    names = [f"job-{number:02}" for number in range(45)]
    every = {"overlap": OverlapRule("allow"), "misfire": MisfireRule("all", lane="live")}

    async def scenario() -> tuple[list[tuple[str, str]], set[str]]:
        seen = Seen()
        functions = {"t:f": seen.handler}
        async with (
            node(settings(postgres18_url, "s1", "scheduler"), functions) as s1,
            node(settings(postgres18_url, "s2", "scheduler"), functions) as s2,
            node(settings(postgres18_url, "w1", "worker"), functions) as w1,
            node(settings(postgres18_url, "w2", "worker"), functions) as w2,
            node(settings(postgres18_url, "w3", "worker"), functions) as w3,
        ):
            await s1.node.desk.apply([every_second(name, **every) for name in names])
            await seen.until(lambda: len({name for name, _ in seen.calls}) == 45)
            held = [len(each.node.holder.held()) for each in (s1, s2, w1, w2, w3)]
            assert sorted(held) == [0, 0, 0, 0, 1]
            leader, other = (s1, s2) if s1.node.holder.held() else (s2, s1)
            assert leader.node.worker is None  # whoever decides when has nothing to do with how
            await asyncio.gather(leader.leave(), w1.leave())
            done = len(seen.calls)
            await seen.until(lambda: len(seen.calls) >= done + 3 * 45)
            assert other.node.holder.held()
            runs = [line.run.run_id for line in await w2.node.store.history.runs(Span(), limit=400)]
            by = {each.node_id for run in runs for each in await w2.node.store.past_attempts.of_run(run)}
            await asyncio.gather(w2.leave(), w3.leave())
            return seen.calls, {name.rpartition("-")[0] for name in by}

    calls, workers = asyncio.run(scenario())
    assert [call for call, times in Counter(calls).items() if times != 1] == []
    for name in names:
        ticks = sorted(at(tick) for each, tick in calls if each == name)
        assert ticks == list(range(ticks[0], ticks[-1] + 1, SECOND))
    assert workers == {"w1", "w2", "w3"}


@pytest.mark.parametrize(("role", "shards"), [("worker", 0), ("scheduler", 1)])
def test_whoever_only_works_leaves_the_shards_to_schedulers(sqlite_memory_url: str, role: str, shards: int) -> None:
    """S0-14, S0-15: the jobs of a shard that a worker held would be planned by nobody."""

    async def scenario() -> None:
        made = await Node.start(settings(sqlite_memory_url, "n1", role))
        assert len(await made.holder.beat()) == shards
        await made.holder.release()
        await made.close()

    asyncio.run(scenario())


COUNTED: Counter[str] = Counter()


async def count(ctx: Any) -> None:
    COUNTED[ctx.job] += 1


def test_an_app_registers_starts_and_stops(tmp_path: Path) -> None:
    """S1-12, S1-15, S1-16: what is registered and enabled is scheduled from start to stop; hostname-pid ran it."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    app = Fleetcron(url, name="shop")
    app.job(every="1s", name="enabled")(count)
    app.job(every="1s", name="disabled")(count)
    COUNTED.clear()

    async def scenario() -> None:
        made = await Node.start(settings(url))
        lend_functions(app, made)
        assert [each.done for each in await app.sync(made.store, shards=1)] == ["created", "created"]
        await made.desk.pause("default", "disabled")
        member = Member(made)
        async with asyncio.timeout(PATIENCE_S):
            while not (lines := await made.store.history.runs(Span(name="enabled"), state="succeeded")):
                await asyncio.sleep(0.02)
        [attempt] = await made.store.past_attempts.of_run(lines[0].run.run_id)
        assert attempt.node_id.startswith(f"{socket.gethostname()}-{os.getpid()}-")
        await member.leave()

    asyncio.run(scenario())
    assert set(COUNTED) == {"enabled"}
    stopped = COUNTED["enabled"]

    async def look() -> None:
        other = await Node.start(settings(url))
        assert len(await other.store.history.runs(Span(name="enabled"), state="succeeded")) == stopped
        await other.close()

    asyncio.run(look())


# -- when


def test_the_hour_is_that_of_the_job(sqlite_memory_url: str) -> None:
    """S0-3, S0-5, S0-7, S0-13, S2-44: nightly, every five minutes, monthly; two in the morning is two where the
    customers are; a local time that does not exist, or exists twice, is what the job says."""
    skip = MisfireRule("skip")
    jobs = {
        "nightly-report": CronEntry("0 2 * * *"),
        "health-check": CronEntry("*/5 * * * *"),
        "monthly-billing": CronEntry("0 0 1 * *"),
        "billing": CronEntry("0 2 * * *", "America/Los_Angeles"),
        "reminder": CronEntry("0 9 * * *", "Asia/Tokyo"),
        "gap-skip": CronEntry("30 2 * * *", "America/New_York", dst_gap="skip"),
        "gap-shift": CronEntry("30 2 * * *", "America/New_York", dst_gap="shift"),
        "fold-first": CronEntry("30 1 * * *", "America/New_York", dst_fold="first"),
        "fold-both": CronEntry("30 1 * * *", "America/New_York", dst_fold="both"),
    }
    expected = {
        "2026-03-08T07:00:00Z": {"gap-shift", "health-check"},  # 02:30 is not there; it is three o'clock
        "2026-03-08T07:30:00Z": {"health-check"},  # would be 02:30 in winter
        "2026-06-10T02:00:00Z": {"nightly-report", "health-check"},
        "2026-07-01T00:00:00Z": {"monthly-billing", "reminder", "health-check"},
        "2026-07-01T09:00:00Z": {"billing", "health-check"},
        "2026-11-01T05:30:00Z": {"fold-first", "fold-both", "health-check"},
        "2026-11-01T06:30:00Z": {"fold-both", "health-check"},
    }
    early: list[str] = []

    async def scenario(made: Crew) -> None:
        seen = Seen()

        async def handler(ctx: Any) -> None:
            if made.clock.now_ms() < to_ms(ctx.scheduled_for):
                early.append(ctx.job)
            await seen.handler(ctx)

        made.functions["t:f"] = handler
        await made.set_clock(at("2026-03-08T06:57:00Z"))
        await made.define(*(job(name, schedule=(entry,), misfire=skip) for name, entry in jobs.items()))
        made.join()
        for tick, names in expected.items():
            await made.set_clock(at(tick) - 300)
            await made.plan(lookahead_s=2)
            await seen.until(partial(seen.has, tick, names))
        await made.leave()
        assert sorted(seen.calls) == sorted((name, tick) for tick, names in expected.items() for name in names)

    played(sqlite_memory_url, scenario)
    assert early == []


def test_a_node_whose_clock_is_wrong_starts_nothing_early(sqlite_memory_url: str) -> None:
    """S0-10: one is an hour ahead, one a day behind; the database says what time it is."""
    starts: list[tuple[int, int]] = []
    enough = asyncio.Event()

    async def handler(ctx: Any) -> None:
        starts.append((SystemClock().now_ms() - to_ms(ctx.scheduled_for), ctx.run_id))
        if len(starts) == 6:
            enough.set()

    async def scenario(made: Crew) -> None:
        await made.define(*(every_second(name, overlap=OverlapRule("queue")) for name in "abc"))
        await made.plan()
        made.join("ahead", clock=Shifted(HOUR))
        made.join("behind", clock=Shifted(-24 * HOUR))
        async with asyncio.timeout(PATIENCE_S):
            await enough.wait()
        assert min(starts)[0] >= 0
        assert len({run for _, run in starts}) == len(starts)

    played(sqlite_memory_url, scenario, {"t:f": handler})


@ENGINES
def test_an_outage_skips_nothing_silently(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-4, S0-6, S0-9, S0-17, S3-48 … S3-53: five minutes without a scheduler. A tick in the last thirty seconds
    simply runs; those before it are skipped, caught up with one run (the default), with all, or fired at once; also
    those of a pause. Whatever did not run is in the ledger."""
    rules = {
        "skip": MisfireRule("skip"),
        "default": MisfireRule(),
        "latest": MisfireRule("latest"),
        "all": MisfireRule("all"),
        "at-once": MisfireRule("all", lane="live"),
    }
    ticks = [f"2026-06-10T12:0{minute}:00Z" for minute in range(1, 6)]
    expected = {
        "deploy": ticks[4:],
        "skip": ticks[4:],
        "default": ticks[3:],
        "latest": ticks[3:],
        "all": ticks,
        "at-once": ticks,
        "paused": ticks,
    }

    async def scenario(made: Crew) -> None:
        seen = Seen()
        covers: dict[tuple[str, str], int] = {}

        async def handler(ctx: Any) -> None:
            covers[ctx.job, iso(ctx.scheduled_for)] = ctx.covers
            await seen.handler(ctx)

        made.functions["t:f"] = handler
        await made.set_clock(NOON + 30 * SECOND)
        queue = OverlapRule("queue")
        await made.define(
            job("deploy", schedule=(CronEntry("5 12 * * *"),)),
            job("paused", schedule=MINUTELY, overlap=queue),
            *(job(name, schedule=MINUTELY, misfire=rule, overlap=queue) for name, rule in rules.items()),
        )
        await made.desk.pause("default", "paused", "all")
        await made.set_clock(NOON + 5 * MINUTE + 15 * SECOND)  # nobody was there meanwhile
        await made.desk.resume("default", "paused")
        await made.plan()
        made.join()
        await seen.until(lambda: all(len(seen.ticks(name)) >= len(want) for name, want in expected.items()))
        assert {name: seen.ticks(name) for name in expected} == expected
        assert [tick for name, tick in seen.calls if name == "at-once"] == ticks
        assert (covers["latest", ticks[3]], covers["default", ticks[3]], covers["all", ticks[3]]) == (4, 4, 1)
        ledger = await made.store.history.ledger(Span(name="skip"))
        assert sum(line.answer.ticks for line in ledger) == 4
        assert read_job({"name": "a", "schedule": {"every": "1m"}, "run": {"python": "t:f"}}).misfire.policy == "latest"

    played(request.getfixturevalue(f"{engine}_url"), scenario)


@ENGINES
def test_a_tick_that_is_dispatched_twice_runs_once(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-16, S1-22, S2-42, S3-31: two schedulers at once, and one that begins again from an old cursor; only what lies
    in the lookahead is planned, each tick has one row and one execution."""

    async def scenario(made: Crew) -> None:
        seen = Seen()
        made.functions["t:f"] = seen.handler
        await made.set_clock(NOON + 30 * SECOND)
        await made.define(job(schedule=MINUTELY, overlap=OverlapRule("queue")))
        await made.plan(lookahead_s=300)
        ticks = [line.run.scheduled_for_ms for line in await made.runs()]
        assert ticks == [NOON + minute * MINUTE for minute in range(1, 6)]
        await change(made.store.engine, f"UPDATE cursors SET cursor_ms = {NOON + 30_000}, next_due_ms = {ticks[0]}")
        await asyncio.gather(made.plan(lookahead_s=300), made.plan(lookahead_s=300))
        assert len(await made.runs()) == 5
        assert (await made.store.events.counts(0))["run_conflict"] >= 1
        made.join("w1")
        made.join("w2")
        await made.set_clock(ticks[-1])
        await made.ended(*(line.run.run_id for line in await made.runs()))
        assert [at(tick) for _, tick in seen.calls] == ticks

    played(request.getfixturevalue(f"{engine}_url"), scenario)


@ENGINES
def test_the_life_of_jobs_and_runs(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-1, S3-2, S3-3, S3-4, S3-7, S3-8, S3-27: a one-time job ends with its run; a cron job is paused, resumed and
    goes on; a scheduled run is cancelled; a dead one is run again; all of it is in the history."""

    async def scenario(made: Crew) -> None:
        seen, is_well = Seen(), asyncio.Event()
        made.functions["t:f"] = seen.handler

        async def broken(ctx: Any) -> None:
            if not is_well.is_set():
                raise GiveUp("not yet")

        made.functions["t:broken"] = broken
        await made.set_clock(NOON + 50 * SECOND)
        await made.define(
            job("once", schedule=(OnceEntry("2026-06-10T12:01:00Z"),)),
            job("cron", schedule=(CronEntry("* * * * *", "Europe/Berlin"),)),
            job("cancelled", schedule=(OnceEntry("2026-06-10T12:01:00Z"),)),
            job("dead", "t:broken", schedule=(OnceEntry("2026-06-10T12:01:00Z"),)),
        )
        await made.plan(lookahead_s=15)
        [doomed] = await made.runs("cancelled")
        ok(await made.store.steering.cancel([doomed.run.run_id], "not today", actor="me"))
        await made.set_clock(NOON + MINUTE - 100)
        made.join()
        await seen.until(lambda: {"once", "cron"} <= {name for name, _ in seen.calls})
        await made.desk.pause("default", "cron", "skip")
        await made.set_clock(NOON + 2 * MINUTE + 30 * SECOND)
        await made.plan(lookahead_s=15)
        await made.desk.resume("default", "cron")
        await made.set_clock(NOON + 3 * MINUTE - 100)
        await made.plan(lookahead_s=15)
        await seen.until(lambda: len(seen.ticks("cron")) == 2)
        assert seen.ticks("cron") == ["2026-06-10T12:01:00Z", "2026-06-10T12:03:00Z"]
        assert seen.ticks("cancelled") == []

        [dead] = await made.ended((await made.runs("dead"))[0].run.run_id)
        assert dead.run.state is DEAD
        is_well.set()
        ok(await made.store.steering.replay([dead.run.run_id], actor="me"))
        [again] = await made.ended(dead.run.run_id)
        assert (again.run.state, again.run.attempt, again.run.round) == (SUCCEEDED, 2, 1)
        assert again.run.idempotency_key == dead.run.idempotency_key

        states = {line.name: line.run.state for line in await made.store.history.runs(Span(to_ms=NOON + 2 * MINUTE))}
        assert states == {"once": SUCCEEDED, "cron": SUCCEEDED, "cancelled": CANCELLED, "dead": SUCCEEDED}
        jobs = {each.job.definition.name: each.job.state for each in await made.store.jobs.list(JobFilter(), 9)}
        assert (jobs["once"], jobs["cron"]) == ("finished", "active")

    played(request.getfixturevalue(f"{engine}_url"), scenario)


# -- what is stored


@ENGINES
def test_what_a_definition_is(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-4, S1-5, S1-7, S1-8, S1-10, S1-11, S1-12, S3-24 … S3-27, S3-53: every field has its place and its default, and
    one tenant has one job of a name."""
    cron = {"name": "price-updates", "schedule": {"cron": "0 * * * *"}, "run": {"python": "shop.jobs:update"}}

    async def scenario(made: Crew) -> None:
        recurring = read_job({**cron, "tenant": "acme", "payload": {"kind": "full"}, "description": "hourly"})
        once = read_job({**cron, "name": "once", "schedule": {"at": "2099-01-01T09:00:00Z"}})
        await made.define(recurring, once)
        [stored] = await made.store.jobs.list(JobFilter(tenant="acme"), 2)
        document = stored.job.definition.as_document()
        assert (stored.job.state, document["type"], document["payload"]) == (
            "active",
            "shop.jobs:update",
            {"kind": "full"},
        )
        [entry] = document["schedule"]
        assert (entry["cron"], entry["timezone"], entry["month_end"]) == ("0 * * * *", "UTC", "skip")
        assert once.as_document()["schedule"][0]["at"] == "2099-01-01T09:00:00Z"
        assert (document["retry"]["max_attempts"], document["overlap"]["policy"]) == (4, "skip")
        assert (document["alerts"]["on_failure"], document["alerts"]["after_missed"]) == (True, 2)
        assert document["misfire"]["policy"] == "latest"
        fixed = read_job({**cron, "retry": {"max_attempts": 11, "backoff": {"fixed": "60s"}}})
        assert (fixed.retry.max_attempts, fixed.retry.delays_ms) == (11, (60_000,))
        [row] = await made.rows("SELECT * FROM jobs WHERE tenant = 'acme'")
        assert (row["name"], row["type"], row["state"], row["overlap"]) == (
            "price-updates", "shop.jobs:update", "active", "skip",
        )  # fmt: skip
        assert row["created_ms"] <= row["updated_ms"]
        with pytest.raises(RefusedError, match="taken"):
            await made.desk.create(recurring)
        with pytest.raises(StoreError):  # the database itself says so
            await change(
                made.store.engine,
                "INSERT INTO jobs (job_id, tenant, name, type, pool, region, state, revision, definition, created_by,"
                " created_ms, updated_ms) SELECT '00000000-0000-0000-0000-000000000001', tenant, name, type, pool,"
                " region, state, revision, definition, created_by, created_ms, updated_ms FROM jobs"
                " WHERE tenant = 'acme'",
            )

    played(request.getfixturevalue(f"{engine}_url"), scenario)


@ENGINES
def test_definitions_runs_and_attempts_are_kept_apart(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-20, S3-21, S3-28, S3-29, S3-30, S1-13: which run failed, in how many attempts, whether the next one still
    happened, and that it was the handler's fault; a tick cannot have two runs."""

    async def handler(ctx: Any) -> None:
        if iso(ctx.scheduled_for) == TICK:
            raise ValueError("no such shop")

    async def scenario(made: Crew) -> None:
        await made.define(job(retry=RetryRule(max_attempts=2, delays_ms=(0,), jitter=0)))
        first = await made.tick("a", at(TICK))
        made.join()
        await made.ended(first)
        second = await made.tick("a", await made.now_ms())
        await made.ended(second)
        [failed] = await made.store.history.runs(Span(name="a"), state="dead")
        assert (failed.run.run_id, failed.run.scheduled_for_ms) == (first, at(TICK))
        attempts = await made.attempts(first)
        assert [(each.attempt, each.outcome, each.node_id) for each in attempts] == [
            (1, "failed", "w1"),
            (2, "failed", "w1"),
        ]
        assert {(each.error.code, each.error.text) for each in attempts if each.error} == {
            ("ValueError", "no such shop")
        }
        shown = await made.store.history.run(first)
        assert shown is not None
        assert shown.next is not None
        assert (shown.next.run.run_id, shown.next.run.state) == (second, SUCCEEDED)
        with pytest.raises(StoreError):
            await change(
                made.store.engine,
                "INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind,"
                " lane, state) SELECT job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision,"
                f" kind, lane, 'planned' FROM runs WHERE run_id = {first}",
            )

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": handler})


@pytest.mark.parametrize("engine", ["sqlite_file", "postgres18"])
def test_what_was_defined_and_planned_survives(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """S3-10, S3-18, S0-9: everybody goes away and comes back; the job is there, and its run runs."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}" if engine == "sqlite_file" else request.getfixturevalue("postgres18_url")
    seen = Seen()
    planned: list[int] = []

    async def before(made: Crew) -> None:
        await made.define(job(payload={"kind": "full"}))
        planned.append(await made.tick("a", await made.now_ms()))

    async def after(made: Crew) -> None:
        made.join()
        [line] = await made.ended(*planned)
        assert line.run.state is SUCCEEDED

    played(url, before)
    played(url, after, {"t:f": seen.handler})
    assert len(seen.calls) == 1


@ENGINES
def test_the_record_is_there_before_the_work_and_stays_afterwards(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-21, S1-23, S1-25, S3-36: the handler finds its own run in the store, running, held by its worker; afterwards
    nothing is held, whether it succeeded or raised, and every run is still there, succeeded or dead."""

    async def scenario(made: Crew) -> None:
        found: list[tuple[RunState, str | None, int]] = []

        async def handler(ctx: Any) -> None:
            line = await made.line(ctx.run_id)
            found.append((line.run.state, line.node_id, line.run.attempt))
            if ctx.payload["fails"]:
                raise ValueError

        made.functions["t:f"] = handler
        await made.define(job(retry=ONCE_ONLY, overlap=OverlapRule("allow")))
        made.join()
        runs = [await made.trigger(payload={"fails": number % 3 == 0}) for number in range(12)]
        states = Counter(line.run.state for line in await made.ended(*runs))
        assert found == [(RunState.RUNNING, "w1", 1)] * 12
        assert await made.count("leases") == 0
        assert states == {SUCCEEDED: 8, DEAD: 4}
        assert states == Counter(line.run.state for line in await made.store.history.runs(Span(name="a"), limit=1000))
        assert (await made.store.jobs.list(JobFilter(), 1))[0].job.definition.as_document()["retention"]["age"] == "90d"

    played(request.getfixturevalue(f"{engine}_url"), scenario)


def test_who_scheduled_and_who_completed_is_in_the_log(
    sqlite_memory_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """S1-33: what was planned, and how each attempt ended, with the instance that ran it."""

    async def scenario(made: Crew) -> None:
        await made.set_clock(NOON + 59 * SECOND)
        await made.define(job(schedule=MINUTELY))
        await made.plan(lookahead_s=5)
        made.join("host-42")
        [line] = await made.runs()
        await made.ended(line.run.run_id)
        await made.leave("host-42")

    with caplog.at_level(logging.DEBUG, logger="fleetcron"):
        played(sqlite_memory_url, scenario, {"t:f": lambda: None})
    said = [record.getMessage() for record in caplog.records]
    assert any(each.startswith("1 jobs planned, 1 runs") for each in said)
    assert any(each.startswith("host-42: run ") and "attempt 1: succeeded in " in each for each in said)


# -- who works, and how much at a time


def test_a_worker_has_slots_and_a_second_one_doubles_them(sqlite_memory_url: str) -> None:
    """S1-30, S3-14: five at a time and not one more; with another worker ten."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job(overlap=OverlapRule("allow")))
        made.join("w1")
        runs = [await made.trigger() for _ in range(12)]
        for each in runs[:5]:
            await hall.begun(each)
        assert await made.count("leases") == 5
        made.join("w2")
        for each in runs[5:10]:
            await hall.begun(each)
        for each in runs:
            hall.tell(each)
        await made.ended(*runs)
        assert hall.most_at_once("a") == 10

    played(sqlite_memory_url, scenario, pools=("default=5",))


@ENGINES
def test_claims_take_the_oldest_first_and_never_the_same(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-32, S3-33, S3-34, S4-38: fifty of sixty, in the order in which they are due; each is held by one, with an
    expiry, under the number of its attempt; two at once share the rest."""

    async def scenario(made: Crew) -> None:
        await made.define(job(overlap=OverlapRule("allow")))
        now_ms = await made.now_ms()
        due = {await made.tick("a", now_ms - number): now_ms - number for number in range(80)}
        for name in ("w1", "w2", "w3"):
            ok(await made.store.workers.join(name, "", {"default": 60}, 5_000))
        ok(await made.store.queue.promote(0, 100, rank))
        oldest = sorted(due, key=due.__getitem__)
        first = await claim(made, "w1", 50)
        assert [run.run_id for run in first.runs] == oldest[:50]
        assert {run.attempt for run in first.runs} == {1}
        others = await asyncio.gather(claim(made, "w2", 15), claim(made, "w3", 15))
        assert sorted(run.run_id for taken in others for run in taken.runs) == sorted(oldest[50:])
        held = await made.rows("SELECT run_id, node_id FROM leases")
        assert Counter(row["node_id"] for row in held) == {"w1": 50, "w2": 15, "w3": 15}
        assert all(each.expires_ms > now_ms for each in (await made.store.workers.list()).workers)

    played(request.getfixturevalue(f"{engine}_url"), scenario)


async def claim(made: Crew, node_id: str, room: int) -> Taken:
    taken: Taken = ok(
        await made.store.claims.claim(Claim(node_id, f"batch of {node_id}", "default", room, room), choose)
    )
    return taken


@ENGINES
def test_a_worker_that_vanishes_costs_one_attempt(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-11, S3-12, S3-15, S3-19, S3-34: it did the work, but told nobody. While its lease lasts nobody else has the
    run; then it is done once more, and not more often, under the next number; the first one is not heard any more."""
    done: list[tuple[int, str]] = []

    async def handler(ctx: Any) -> None:
        done.append((ctx.attempt, ctx.idempotency_key))

    async def scenario(made: Crew) -> None:
        await made.define(job())
        run_id = await made.trigger()
        ok(await made.store.workers.join("ghost", "", {"default": 1}, 400))
        ok(await made.store.queue.promote(0, 9, rank))
        [run] = (await claim(made, "ghost", 1)).runs
        done.append((run.attempt, (await made.line(run_id)).run.idempotency_key))
        made.join()
        assert (await made.line(run_id)).node_id == "ghost"
        stop = asyncio.Event()
        watch = Upkeep(
            made.store, "w1", ttl_ms=400, settling=lambda known: settling(known, lambda: 0), clock=SystemClock()
        )
        watching = asyncio.create_task(watch.run(stop))
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.losses, line.run.attempt) == (SUCCEEDED, 1, 2)
        assert [each.outcome for each in await made.attempts(run_id)] == ["lost", "succeeded"]
        late = ok(
            await made.store.attempts.finish(
                "ghost", [Ended(run_id, 1, Succeeded(), run.due_ms, run.due_ms)], settling({}, lambda: 0)
            )
        )
        assert (late.transitions, late.late) == ({}, (run_id,))
        stop.set()
        await watching
        assert [attempt for attempt, _ in done] == [1, 2]
        assert len({key for _, key in done}) == 1

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": handler})


def test_a_long_run_keeps_its_lease(sqlite_memory_url: str) -> None:
    """S3-35: three times as long as a lease, with somebody who watches for expired ones."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job())
        made.join("w1")
        run_id = await made.trigger()
        await hall.begun(run_id)
        made.join("w2")
        watch = Upkeep(
            made.store, "w2", ttl_ms=500, settling=lambda known: settling(known, lambda: 0), clock=SystemClock()
        )
        first = (await made.store.workers.list()).workers[0].expires_ms
        async with asyncio.timeout(PATIENCE_S):
            while (await made.store.workers.list()).workers[0].expires_ms < first + 1_500:
                await watch.step()
                await asyncio.sleep(0.02)
        hall.tell(run_id)
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.attempt, line.run.losses) == (SUCCEEDED, 1, 0)

    played(sqlite_memory_url, scenario, lease_ttl_s=0.5, renew_s=0.1)


# -- trying again


def test_retries_wait_as_the_job_says(sqlite_memory_url: str) -> None:
    """S1-7, S1-22, S3-6, S3-38, S3-39: after a fixed delay, or 30, 120, 600, 1800 and 7200 seconds with a jitter of at
    most 20 % and five minutes; without attempts left the run is dead, and nothing is held or planned for it."""
    delays = (30, 120, 600, 1800, 7200)

    async def handler() -> None:
        raise ValueError

    async def scenario(made: Crew) -> None:
        fixed = RetryRule(max_attempts=4, backoff="fixed", delays_ms=(150,), jitter=0)
        await made.define(
            job("fixed", retry=fixed), job("listed", retry=RetryRule(max_attempts=6)), job("none", retry=ONCE_ONLY)
        )
        made.join()
        runs = [await made.trigger(name) for name in ("fixed", "none")]
        lines = await made.ended(*runs)
        assert [(line.run.state, line.run.attempt) for line in lines] == [(DEAD, 4), (DEAD, 1)]
        attempts = await made.attempts(runs[0])
        for one, following in pairwise(attempts):
            # both are the worker's reading of the database's clock, which is off by a few milliseconds at most
            assert following.started_ms - (one.finished_ms or 0) >= 145

        run_id = await made.trigger("listed")
        for number, delay_s in enumerate(delays, 1):
            [line] = await made.until(partial(rests_after, number), run_id)
            ended = (await made.attempts(run_id))[-1].finished_ms
            assert ended is not None
            assert line.next_ms is not None
            wait_s = (line.next_ms - ended) / 1000
            assert delay_s <= wait_s <= delay_s + min(0.2 * delay_s, 300) + PATIENCE_S
            await made.set_clock(line.next_ms)
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.failures) == (DEAD, 6)
        assert [await made.count(table) for table in ("leases", "upcoming", "queue")] == [0, 0, 0]

    played(sqlite_memory_url, scenario, {"t:f": handler})


def rests_after(failures: int, lines: Sequence[RunLine]) -> bool:
    return lines[0].run.failures == failures and lines[0].next_ms is not None


CREATE = """
CREATE TABLE invoices (invoice_id {id} PRIMARY KEY, tenant_id TEXT NOT NULL, for_tick TEXT NOT NULL);
CREATE TABLE invoice_generation_keys (
    tenant_id TEXT NOT NULL, idempotency_key TEXT NOT NULL, invoice_id BIGINT, created_at {time} NOT NULL,
    PRIMARY KEY (tenant_id, idempotency_key)
)
"""


def test_the_example_of_an_idempotent_handler(tmp_path: Path, sqlite_memory_url: str) -> None:
    """S3-11, S3-41, S3-42: an attempt that fails after its work was committed is repeated; there is one invoice."""
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as shop:
        shop.executescript(CREATE.format(id="INTEGER", time="TEXT"))
    shop.close()

    def invoice(ctx: Any) -> int:
        connection = sqlite3.connect(path, isolation_level="IMMEDIATE")
        try:
            with connection:
                found = connection.execute(
                    "SELECT invoice_id FROM invoice_generation_keys WHERE tenant_id = ? AND idempotency_key = ?",
                    (ctx.tenant, ctx.idempotency_key),
                ).fetchone()
                if found is None:
                    made = connection.execute(
                        "INSERT INTO invoices (tenant_id, for_tick) VALUES (?, ?) RETURNING invoice_id",
                        (ctx.tenant, iso(ctx.scheduled_for)),
                    ).fetchone()
                    connection.execute(
                        "INSERT INTO invoice_generation_keys VALUES (?, ?, ?, ?)",
                        (ctx.tenant, ctx.idempotency_key, made[0], "now"),
                    )
        finally:
            connection.close()
        if found is None:
            raise ConnectionError("after the commit")
        return int(found[0])

    asked = invoiced(sqlite_memory_url, invoice)
    with sqlite3.connect(path) as shop:
        kept = shop.execute("SELECT invoice_id, tenant_id, for_tick FROM invoices").fetchall()
        keys = shop.execute("SELECT tenant_id, idempotency_key, invoice_id FROM invoice_generation_keys").fetchall()
    shop.close()
    assert kept == [(1, "default", TICK)]
    assert keys == [("default", asked, 1)]


def test_the_example_of_an_idempotent_handler_on_postgresql(postgres18_url: str) -> None:
    """S3-42: the same in one transaction of PostgreSQL, where the key decides between two at once."""

    async def ask(text: str, *values: object) -> Any:
        connection = await asyncpg.connect(postgres18_url)
        try:
            return (
                await connection.fetch(text, *values) if values or "SELECT" in text else await connection.execute(text)
            )
        finally:
            await connection.close()

    asyncio.run(ask(CREATE.format(id="BIGINT GENERATED ALWAYS AS IDENTITY", time="TIMESTAMPTZ")))

    async def invoice(ctx: Any) -> int:
        connection = await asyncpg.connect(postgres18_url)
        try:
            async with connection.transaction():
                mine = await connection.fetchval(
                    "INSERT INTO invoice_generation_keys VALUES ($1, $2, NULL, now()) ON CONFLICT DO NOTHING"
                    " RETURNING idempotency_key",
                    ctx.tenant, ctx.idempotency_key,
                )  # fmt: skip
                if mine is not None:
                    number = await connection.fetchval(
                        "INSERT INTO invoices (tenant_id, for_tick) VALUES ($1, $2) RETURNING invoice_id",
                        ctx.tenant, iso(ctx.scheduled_for),
                    )  # fmt: skip
                    await connection.execute(
                        "UPDATE invoice_generation_keys SET invoice_id = $1 WHERE idempotency_key = $2", number, mine
                    )
            if mine is not None:
                raise ConnectionError("after the commit")
            return int(await connection.fetchval("SELECT invoice_id FROM invoice_generation_keys"))
        finally:
            await connection.close()

    asked = invoiced(postgres18_url, invoice)
    rows = asyncio.run(
        ask("SELECT idempotency_key, for_tick FROM invoices JOIN invoice_generation_keys USING (invoice_id)")
    )
    assert [tuple(row) for row in rows] == [(asked, TICK)]


def invoiced(url: str, invoice: Function) -> str:
    """The key under which the work of one tick was done in two attempts."""
    keys: list[str] = []

    async def scenario(made: Crew) -> None:
        await made.define(job(retry=RetryRule(max_attempts=3, delays_ms=(0,), jitter=0)))
        run_id = await made.tick("a", at(TICK))
        made.join()
        [line] = await made.ended(run_id)
        attempts = await made.attempts(run_id)
        assert [each.outcome for each in attempts] == ["failed", "succeeded"]
        assert attempts[1].result == "1"
        assert line.run.idempotency_key == f"job:{line.run.job_id}:scheduled_for:{TICK}"
        keys.append(line.run.idempotency_key)

    played(url, scenario, {"t:f": invoice})
    return keys[0]


# -- whose turn it is


@ENGINES
def test_what_depends_on_others_waits_for_them(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-9, S1-19, S1-20: it waits for the run of the same period, without an attempt, and goes on in the moment in
    which that has succeeded; if that is dead, it is skipped and says why."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.set_clock(NOON + 58 * SECOND)
        await made.define(
            job("load", schedule=MINUTELY),
            job("report", schedule=MINUTELY, depends_on=("load",)),
            job("broken", schedule=MINUTELY),
            job("after", schedule=MINUTELY, depends_on=("broken",)),
        )
        await made.plan(lookahead_s=5)
        runs = {name: (await made.runs(name))[0].run.run_id for name in ("load", "report", "broken", "after")}
        for name in ("report", "after"):
            hall.tell(runs[name])
        made.join()
        await hall.begun(runs["load"])
        [line] = await made.until(lambda lines: lines[0].waiting is not None, runs["report"])
        assert line.waiting is not None
        assert (line.waiting.gate, line.waiting.key, line.run.attempt) == ("upstream", made.jobs["load"], 0)
        hall.tell(runs["load"])
        hall.tell(runs["broken"], dies=True)
        lines = await made.ended(*runs.values())
        assert [line.run.state for line in lines] == [SUCCEEDED, SUCCEEDED, DEAD, SKIPPED]
        assert hall.in_order([runs["load"], runs["report"]]) == [runs["load"], runs["report"]]
        assert hall.most_at_once("after") == 0
        assert "broken" in (lines[3].run.reason or "")

    played(request.getfixturevalue(f"{engine}_url"), scenario)


@ENGINES
def test_tenants_share_and_limits_hold(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-9, S3-16, S3-54, S3-55, S3-57 … S3-60: a tenant with many runs does not keep others waiting; one that is at
    its cap is passed over and the slots go to those with capacity; so is a type at its quota; what matters more comes
    first; jobs and payloads beyond the limit are refused."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        free = OverlapRule("allow")
        ok(await made.store.limits.put_tenant("capped", {"max_in_flight": 1, "max_jobs": 1}, actor="me"))
        ok(await made.store.limits.put_tenant("small", {"max_payload": 64}, actor="me"))
        ok(await made.store.limits.put_pool("default", {"per_type": {"export": 1}}, actor="me"))
        await made.define(
            job("many", tenant="big", overlap=free),
            job("few", tenant="small", overlap=free),
            job("exports", tenant="big", type="export", overlap=free),
            job("capped", tenant="capped", overlap=free),
            job("urgent", tenant="big", priority=50, overlap=free),
        )
        with pytest.raises(RefusedError, match="at most 1"):
            await made.desk.create(job("second", tenant="capped"))
        with pytest.raises(RefusedError, match="may have 64"):
            await made.desk.create(job("large", tenant="small", payload={"text": "x" * 100}))
        waiting = [(name, tenant) for name, tenant, count in PARTS for _ in range(count)]
        runs = {
            name: [await made.trigger(each, tenant=tenant) for each, tenant in waiting if each == name]
            for name, _, _ in PARTS
        }
        every = [run for some in runs.values() for run in some]
        for run in every:
            hall.tell(run)
        made.join()
        await made.ended(*every)
        order = hall.in_order(every)
        assert set(order[:2]) == set(runs["urgent"])
        assert max(order.index(run) for run in runs["few"]) < len(order) - 8  # the many are not all before the few
        assert (hall.most_at_once("capped"), hall.most_at_once("exports")) == (1, 1)

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=("default=2",))


PARTS = (("many", "big", 20), ("few", "small", 3), ("exports", "big", 3), ("capped", "capped", 3), ("urgent", "big", 2))


@ENGINES
def test_a_slow_export_does_not_starve_billing(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-61, S3-62: pools have slots of their own, so has every profile: email, reports, billing, exports, webhooks."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(*(job(name, pool=name, overlap=OverlapRule("allow")) for name in POOLS))
        made.join()
        exports = [await made.trigger("export") for _ in range(6)]
        for run in exports[:2]:
            await hall.begun(run)
        others = [await made.trigger(name) for name in POOLS if name != "export" for _ in range(3)]
        for run in others:
            hall.tell(run)
        lines = await made.ended(*others)
        assert {line.run.state for line in lines} == {SUCCEEDED}
        assert hall.most_at_once("export") == 2  # and these still run
        for run in exports:
            hall.tell(run)
        await made.ended(*exports)

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=tuple(f"{name}=2" for name in POOLS))


POOLS = ("email", "report", "billing", "export", "webhook")


@ENGINES
def test_a_storm_of_catch_up_leaves_room_for_live_ticks(engine: str, request: pytest.FixtureRequest) -> None:
    """S2-43: of four slots catch-up may have three, and has them as long as there is catch-up, without waiting for a
    poll; a tick that is due now starts at once."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job("late", overlap=OverlapRule("allow")), job("live"))
        now_ms = await made.now_ms()
        storm = [await made.tick("late", now_ms - number * MINUTE, "catchup", now_ms) for number in range(1, 21)]
        made.join()
        async with asyncio.timeout(PATIENCE_S):
            while len(hall.stays) < 3:
                await asyncio.sleep(0.01)
        live = await made.tick("live", await made.now_ms())
        await hall.begun(live)
        for run in (live, *storm):
            hall.tell(run)
        await made.ended(live, *storm)
        assert hall.most_at_once("late") == 3

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=("default=4",), poll_s=3 * PATIENCE_S)


@ENGINES
def test_slots_that_are_free_are_used_at_once(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-5, S3-14: runs that no slot could be promised to a moment early begin when the first of the others ends, not
    when somebody happens to look."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job(overlap=OverlapRule("allow")))
        made.join()
        due_ms = await made.now_ms() + 900
        runs = [await made.tick("a", due_ms)]
        await made.until(lambda lines: lines[0].node_id is not None, *runs)  # it is held until its instant
        runs += [await made.tick("a", due_ms + number) for number in range(1, 6)]
        for run in runs:
            hall.tell(run)
        await made.ended(*runs)
        assert hall.most_at_once("a") <= 3

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=("default=3",), poll_s=3 * PATIENCE_S)
