"""The checklist as far as work goes. When runs start, whatever the clocks say, after outages too; and their lives."""

import asyncio
from functools import partial
from typing import Any

import pytest

from fleetcron.clock import SystemClock
from fleetcron.executors.context import GiveUp
from fleetcron.model.reading import read_job
from fleetcron.model.rules import CronEntry, MisfireRule, OnceEntry, OverlapRule
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.times.instants import iso, to_ms
from tests.faults.inside import Shifted
from tests.store.engines import change
from tests.worker.crew import PATIENCE_S, WHENEVER, Crew, every_second, job
from tests.worker.plays import (
    CANCELLED,
    DEAD,
    ENGINES,
    HOUR,
    MINUTE,
    MINUTELY,
    NOON,
    SECOND,
    SUCCEEDED,
    Seen,
    at,
    played,
)
from tests.worker.shop import ok


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
        await made.define(job(schedule=MINUTELY, overlap=OverlapRule("queue"), misfire=WHENEVER))
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
