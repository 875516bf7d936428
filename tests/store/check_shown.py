"""Checks of the conformance suite about what people are shown of runs: lists up to now, and all that is kept of one."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fleetcron.model.outcome import Fault, Lost
from fleetcron.model.rules import OverlapRule
from fleetcron.store.history import Discarded, Span
from fleetcron.store.job_pages import JobFilter
from tests.store.check_attempts import Chunk, floor
from tests.store.engines import change
from tests.store.floor import MINUTE, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000  # 2027-01-15 08:00:00 UTC
Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


@check
async def what_is_planned_for_later_is_left_out_and_counted(w: "World") -> None:
    """Of the fleet, a tenant or a job; a run that has ended ahead of its tick is no plan any more."""
    f = floor(w)
    await f.define("a")
    await f.next_minute()
    await f.define("b")
    await f.plan()

    async def found(later: bool = False, **span: object) -> list[tuple[str, int]]:
        lines = await w.store.history.runs(Span(**span), later=later)  # type: ignore[arg-type]
        return [(line.name, (line.run.scheduled_for_ms - NOW) // MINUTE) for line in lines]

    assert sorted(await found(later=True)) == [("a", 1), ("a", 2), ("b", 2)]
    for span in ({}, {"tenant": "default"}, {"name": "a"}):
        assert await found(**span) == [("a", 1)]
    assert await found(name="b") == await found(tenant="x") == []
    assert len(await w.store.history.runs(Span(), state="planned", later=False)) == 3  # who names a state means it
    later = w.store.history.later
    assert [await later(Span(**span)) for span in ({}, {"tenant": "default"}, {"name": "b"})] == [2, 2, 1]
    assert await later(Span(tenant="x")) == 0
    [b] = await w.store.history.runs(Span(name="b"))
    ok(await w.store.steering.cancel([b.run.run_id], None, actor="ann"))
    assert (await found(name="b"), await later(Span(name="b"))) == ([("b", 2)], 0)
    await w.clock.set(NOW + 2 * MINUTE)
    assert len(await found()) == 3
    assert await later(Span()) == 0


@check
async def the_open_runs_of_a_job(w: "World") -> None:
    """Planned, queued, running and resting ones, of all kinds or of one; what has ended is left out, as are others."""
    f = floor(w)
    job_id = await f.define("a", overlap=OverlapRule("allow"))
    await f.define("b")
    for _ in range(3):
        await f.next_minute()
    await f.join("n1")
    first, second, third = sorted((run for run in await f.claim("n1") if run.name == "a"), key=lambda run: run.run_id)
    await f.succeed("n1", first)
    await f.fail("n1", second)
    asked = ok(await w.store.steering.trigger(job_id, None, actor="ann", key="k")).run_id
    await f.plan()

    async def found(**more: Any) -> list[tuple[int, bool]]:
        runs = await w.store.history.open(job_id, **{"limit": 100, **more})
        return [(run.run_id, run.started) for run in runs]

    held = [(second.run_id, True), (third.run_id, True)]
    [*before, (planned, started)] = await found(kind="tick")
    assert (before, started) == (held, False)
    assert await found() == sorted([*held, (asked, False), (planned, False)])
    assert await found(kind="manual") == [(asked, False)]
    assert await found(kind="backfill") == []
    assert await found(limit=1) == held[:1]


@check
async def too_many_to_count_are_not_counted(w: "World") -> None:
    f = floor(w)
    job_id = await f.define("a")
    columns = "job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind, lane, state"
    tick = NOW + 10 * MINUTE
    values = ", ".join(
        f"('{job_id}', {tick + n}, {tick + n}, 1, 1, 1, 1, 'tick', 'live', 'planned')" for n in range(999)
    )
    await change(w.store.engine, f"INSERT INTO runs ({columns}) VALUES {values}")
    coming = (
        "INSERT INTO upcoming (run_after_ms, run_id, job_id, lane) SELECT run_after_ms, run_id, job_id, lane FROM runs"
    )
    await change(w.store.engine, coming)
    assert await w.store.history.later(Span()) == 999
    await f.plan()
    assert await w.store.history.later(Span()) is None


@check
async def a_run_is_shown_with_what_is_kept_of_its_attempts(w: "World") -> None:
    """S3-30: nobody counted what an attempt printed that was lost, or that still runs; the pieces are there."""
    f = floor(w)
    await f.define("a")
    await f.next_minute()
    await f.join("n1")
    [run] = await f.claim("n1")
    ok(await w.store.output.append("n1", [Chunk(run.run_id, 1, 0, "page 1\n"), Chunk(run.run_id, 1, 1, "ä\n")]))
    await f.end("n1", run, Lost(Fault("lost", "the worker n1 vanished")))
    await f.queue()
    [again] = await f.claim("n1")
    ok(await w.store.output.append("n1", [Chunk(run.run_id, 2, 0, "x")]))
    shown = await w.store.history.run(again.run_id)
    assert shown is not None
    assert (shown.kept, shown.discarded, shown.way, shown.worker) == ({1: 10, 2: 1}, None, [], None)


@check
async def a_dead_letter_says_who_discarded_it(w: "World") -> None:
    """S3-8: also where others of the same job were discarded at other times."""
    f = floor(w)
    await f.define("a")
    await f.join("n1")
    died = []
    for _ in range(2):
        await f.next_minute()
        [run] = await f.claim("n1")
        await change(w.store.engine, f"DELETE FROM leases WHERE run_id = {run.run_id}")
        await change(w.store.engine, f"UPDATE runs SET state = 'dead', finished_ms = 1 WHERE run_id = {run.run_id}")
        died.append(run.run_id)
    first, second = died
    assert [await _discarded(w, run_id) for run_id in died] == [None, None]
    at_ms = w.clock.now_ms()
    ok(await w.store.steering.discard([first], "known bug", actor="eve"))
    await w.clock.advance(1000)
    ok(await w.store.steering.discard([second], "by hand", actor="ann"))
    assert await _discarded(w, first) == Discarded(at_ms, "known bug", "eve")
    assert await _discarded(w, second) == Discarded(at_ms + 1000, "by hand", "ann")
    ok(await w.store.steering.replay([first], actor="ann"))
    assert await _discarded(w, first) is None


@check
async def a_merged_run_is_followed_to_the_one_that_works(w: "World") -> None:
    f = floor(w)
    await f.define("a")
    for _ in range(4):
        await f.next_minute()
    fourth, third, second, first = (line.run.run_id for line in await w.store.history.runs(Span()))
    for run_id, into in ((first, second), (second, fourth), (third, fourth)):
        await change(w.store.engine, f"UPDATE runs SET state = 'merged', covered_by = {into} WHERE run_id = {run_id}")
    shown = await w.store.history.run(first)
    assert shown is not None
    assert shown.worker is not None
    assert (shown.way, shown.worker.run.run_id) == ([second, fourth], fourth)
    found = await w.store.history.covering([first, third, fourth])
    assert found == {first: fourth, third: fourth}
    assert await w.store.history.covering([]) == {}
    # a circle cannot be; it must not hang whoever looks
    await change(w.store.engine, f"UPDATE runs SET covered_by = {first} WHERE run_id = {fourth}")
    shown = await w.store.history.run(first)
    assert shown is not None
    assert shown.way == [second, fourth, first]


@check
async def the_list_of_jobs_says_how_the_last_run_stands(w: "World") -> None:
    """S0-27: the row of a run says planned until its end, whatever is done about it."""
    f = floor(w)
    for name in ("done", "fails", "runs", "waits"):
        await f.define(name, overlap=OverlapRule("allow", concurrency_key=None if name in ("done", "fails") else "k"))

    async def last() -> list[str | None]:
        return [line.last_state for line in await w.store.jobs.list(JobFilter(), 9)]

    assert await last() == [None] * 4
    await f.next_minute()
    assert await last() == ["planned"] * 4
    await f.join("n1")
    done, failed, _ = sorted(await f.claim("n1"), key=lambda run: run.name)
    await f.succeed("n1", done)
    await f.fail("n1", failed)
    finished, tried, *rest = await last()
    assert (finished, tried, sorted(map(str, rest))) == ("succeeded", "retrying", ["running", "waiting"])


async def _discarded(w: "World", run_id: int) -> Discarded | None:
    shown = await w.store.history.run(run_id)
    assert shown is not None
    return shown.discarded
