"""The checklist as far as work goes. What is stored of definitions, runs and attempts, and stays."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleetcron.errors import RefusedError, StoreError
from fleetcron.model.reading import read_job
from fleetcron.model.rules import OverlapRule, RetryRule
from fleetcron.model.states import RunState
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.times.instants import iso
from tests.store.engines import change
from tests.worker.crew import WHENEVER, Crew, job
from tests.worker.plays import DEAD, ENGINES, MINUTELY, NOON, ONCE_ONLY, SECOND, SUCCEEDED, TICK, Seen, at, played


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
        await made.define(job(retry=RetryRule(max_attempts=2, delays_ms=(0,), jitter=0), misfire=WHENEVER))
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
