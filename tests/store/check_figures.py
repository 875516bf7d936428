"""Checks of the conformance suite about figures: how many runs ended how, and how long they took."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fleetcron.model.rules import OverlapRule
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from tests.store.check_attempts import floor
from tests.store.floor import MINUTE, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000
DAY = 24 * 3_600_000
Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


@check
async def figures_of_a_job_and_of_a_day(w: "World") -> None:
    """S1-36, S1-39: by state, with the average of those that have started; of a tenant or of all."""
    f = floor(w)
    one = await f.define("one", overlap=OverlapRule("allow"))
    await f.define("two", tenant="acme", overlap=OverlapRule("allow"))
    await f.join("n")
    await f.next_minute()
    for run in await f.claim("n"):
        await (f.succeed if run.name == "one" else f.fail)("n", run)
    await f.next_minute()
    [again] = [run for run in await f.claim("n") if run.name == "one"]
    await f.succeed("n", again)
    figures = w.store.figures
    found = await figures.of_job(one, 0, NOW + DAY)
    assert found.states == {"succeeded": 2}
    assert (found.timed, found.average_ms) == (2, 0)
    assert (await figures.of_job(one, NOW + 2 * MINUTE, NOW + DAY)).states == {"succeeded": 1}
    assert (await figures.of_job(one, 0, NOW)).average_ms is None
    assert (await figures.ended(None, NOW)).states == {"succeeded": 2}
    assert (await figures.ended("acme", NOW)).states == {}
    assert (await figures.ended(None, NOW + 2 * MINUTE)).states == {"succeeded": 1}
    assert (await figures.ended(None, NOW + 3 * DAY)).states == {}  # the halving ends behind the last run


@check
async def a_list_of_jobs_has_their_last_run(w: "World") -> None:
    """S1-34: which run it was, when it began and ended, and why it ended so."""
    f = floor(w)
    await f.define("one")
    await f.join("n")
    [line] = await w.store.jobs.list(JobFilter(), 9)
    assert (line.last_run_id, line.last_started_ms, line.last_finished_ms) == (None, None, None)
    await f.next_minute()
    [run] = await f.claim("n")
    await f.succeed("n", run)
    [line] = await w.store.jobs.list(JobFilter(), 9)
    assert (line.last_run_id, line.last_state) == (run.run_id, "succeeded")
    assert line.last_started_ms == line.last_finished_ms == f.now
    await w.clock.set(f.now + 1)
    asked = ok(await w.store.steering.trigger(line.job.job_id, None, actor="ann", key="k"))
    [line] = await w.store.jobs.list(JobFilter(), 9)
    assert (line.last_run_id, line.last_state) == (asked.run_id, "planned")  # who never ticks has runs too
    await f.next_minute()
    [line] = await w.store.jobs.list(JobFilter(), 9)
    assert line.last_run_id not in (asked.run_id, run.run_id)


@check
async def whose_runs_these_are(w: "World") -> None:
    f = floor(w)
    await f.define("one")
    await f.define("two", tenant="acme")
    await f.plan()
    found = await w.store.history.runs(Span())
    expected = {line.run.run_id: line.tenant for line in found}
    assert sorted(expected.values()) == ["acme", "default"]
    assert await w.store.history.tenants([*expected, 9_999]) == expected
    assert await w.store.history.tenants([]) == {}


@check
async def when_what_a_worker_holds_could_begin(w: "World") -> None:
    f = floor(w)
    await f.define("one")
    await f.join("n")
    assert not await w.store.queue.has_work("default")
    await f.next_minute()
    assert (await w.store.queue.has_work("default"), await w.store.queue.has_work("other")) == (True, False)
    [run] = await f.claim("n")
    assert not await w.store.queue.has_work("default")
    claimed_ms = f.now
    await w.clock.advance(500)
    found = await w.store.workers.begun("n")
    assert (found.now_ms, found.held) == (claimed_ms + 500, [(run.run_id, 1, "default", "live", claimed_ms)])
    assert (await w.store.workers.begun("other")).held == []
