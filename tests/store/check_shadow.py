"""Checks of the conformance suite about jobs in shadow: nothing of them runs, pings, and the hand-over."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fleetcron.errors import DefinitionError, RefusedError
from fleetcron.model.ping import Ping, Told
from fleetcron.scheduler.backfill import backfill
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.store.history import Span
from fleetcron.store.jobs import JobFilter
from fleetcron.store.steering import DeadCount, DeadFilter
from fleetcron.store.sweeping import Sweeping
from fleetcron.store.written import Refused
from fleetcron.times.instants import LAST_MS
from fleetcron.views.shadow import reports
from tests.store.floor import MINUTE, Floor, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000
Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def on(w: "World") -> Floor:
    return Floor(w.store, w.clock, w.desk, w.held)


async def noted(w: "World", name: str) -> list[tuple[int, str]]:
    lines = await w.store.history.ledger(Span("default", name))
    return sorted((line.answer.from_ms, line.answer.reason) for line in lines)


async def planned(w: "World", name: str) -> list[int]:
    found = await w.store.history.runs(Span("default", name), limit=100, later=True)
    return sorted(line.run.scheduled_for_ms for line in found if line.run.kind != "manual")


@check
async def shadow_runs_nothing_until_it_is_handed_over(w: "World") -> None:
    floor = on(w)
    await floor.define("old", shadow_ms=LAST_MS)
    for minute in range(1, 4):
        await w.clock.set(NOW + minute * MINUTE + 1)
        await floor.plan()
    assert await planned(w, "old") == []
    assert await noted(w, "old") == [(NOW + n * MINUTE, "shadow") for n in (1, 2, 3)]

    refused = await w.store.steering.trigger(("default", "old"), None, actor="t", key="k")
    assert isinstance(refused, Refused)
    assert "in shadow" in refused.reason
    with pytest.raises(RefusedError, match="in shadow"):
        await backfill(w.store, "default", "old", NOW, NOW + 3 * MINUTE, actor="t")

    over = NOW + 6 * MINUTE  # it is a tick: ours
    done = await w.desk.hand_over("default", "old", over)
    assert (done.done, done.next_due_ms) == ("handed_over", NOW + 4 * MINUTE)
    assert (await w.desk.hand_over("default", "old", over)).done == "unchanged"
    with pytest.raises(RefusedError, match="has passed"):
        await w.desk.hand_over("default", "old", NOW + 3 * MINUTE)
    for minute in range(4, 8):
        await w.clock.set(NOW + minute * MINUTE + 1)
        await floor.plan()
    assert await noted(w, "old") == [(NOW + n * MINUTE, "shadow") for n in (1, 2, 3, 4, 5)]
    assert await planned(w, "old") == [NOW + n * MINUTE for n in (6, 7, 8)]
    assert (await w.desk.hand_over("default", "old", over)).done == "unchanged", "asked again much later"
    with pytest.raises(RefusedError, match="not in shadow: it was handed over"):
        await w.desk.hand_over("default", "old", over + MINUTE)
    filled = await backfill(w.store, "default", "old", NOW + MINUTE, NOW + 8 * MINUTE, actor="t")
    assert (filled.ticks, filled.created, filled.shadowed, filled.existing) == (7, 0, 5, 2)
    assert [each.action for each in await w.store.jobs.revisions(done.job.job_id, 9)] == ["hand_over", "create"]  # type: ignore[union-attr]


@check
async def shadow_can_end_later_than_was_said(w: "World") -> None:
    """The fleet has planned ahead past the instant when it is moved: those runs were forecasts."""
    floor = on(w)
    await floor.define("old", shadow_ms=NOW + 2 * MINUTE)
    await w.clock.set(NOW + MINUTE + 1)
    await floor.plan()
    assert (await noted(w, "old"), await planned(w, "old")) == ([(NOW + MINUTE, "shadow")], [NOW + 2 * MINUTE])
    assert (await w.desk.hand_over("default", "old", NOW + 3 * MINUTE + 1)).done == "handed_over"
    assert await planned(w, "old") == []
    for minute in (2, 3, 4):
        await w.clock.set(NOW + minute * MINUTE + 1)
        await floor.plan()
    assert await noted(w, "old") == [(NOW + n * MINUTE, "shadow") for n in (1, 2, 3)]
    assert await planned(w, "old") == [NOW + n * MINUTE for n in (4, 5)]


@check
async def shadow_is_not_what_a_file_says(w: "World") -> None:
    """A file that still says shadow does not stop a job, and one that does not say it starts none."""
    await on(w).define("old", shadow_ms=LAST_MS)
    before = (await w.store.jobs.list(JobFilter(name="old"), 1))[0].job.definition
    [plain] = await w.desk.apply([replace(before, shadow_ms=None)])
    assert plain.done == "unchanged"
    [edited] = await w.desk.apply([replace(before, shadow_ms=None, priority=3)])
    assert edited.job is not None
    assert (edited.job.definition.shadow_ms, edited.done) == (LAST_MS, "changed")
    assert "in shadow" in str(edited.warning)
    await w.desk.hand_over("default", "old", NOW + MINUTE)
    [again] = await w.desk.apply([replace(before, priority=3)])
    assert again.done == "unchanged"
    assert [line.job.definition.name for line in await w.store.jobs.list(JobFilter(shadow=True), 9)] == ["old"]


@check
async def shadow_can_be_taken_back(w: "World") -> None:
    floor = on(w)
    await floor.define("new")
    await floor.join("w1")
    await floor.next_minute()
    [run] = await floor.claim("w1")
    await floor.fail("w1", run)
    await floor.plan()
    assert await planned(w, "new") == [NOW + MINUTE, NOW + 2 * MINUTE]
    done = await w.desk.take_back("default", "new")
    assert done.done == "shadowed"
    assert (await w.desk.take_back("default", "new")).done == "unchanged"
    assert await planned(w, "new") == [NOW + MINUTE], "forecasts are withdrawn, what was due stands"
    ok(await w.store.steering.cancel([run.run_id], None, actor="t"))
    [steered] = ok(await w.store.steering.replay([run.run_id], actor="t"))
    assert (steered.done, "in shadow" in steered.reason) == ("refused", True)
    assert await w.store.steering.count_dead(DeadFilter()) == DeadCount(0, 0)
    await w.clock.set(NOW + 4 * MINUTE)
    await floor.plan()
    assert await noted(w, "new") == [(NOW + 2 * MINUTE, "shadow")], "three ticks in one line"
    await w.desk.pause("default", "new", "all")
    await w.clock.set(NOW + 6 * MINUTE + 1)
    await w.desk.resume("default", "new")
    await fill_gaps(w.store.gaps, Tables(w.store.almanac), w.held, room=100)
    assert await planned(w, "new") == [NOW + MINUTE], "whatever was chosen for the pause: nothing runs"
    lines = await w.store.history.ledger(Span("default", "new"))
    assert sum(line.answer.ticks for line in lines) == 5


@check
async def shadow_upstream_keeps_nobody(w: "World") -> None:
    floor = on(w)
    await floor.define("old", shadow_ms=LAST_MS)
    await floor.define("after", depends_on=("old",))
    await floor.join("w1")
    await floor.next_minute()
    await floor.plan()
    [run] = await floor.claim("w1")
    assert run.job_id == (await w.store.jobs.list(JobFilter(name="after"), 1))[0].job.job_id


@check
async def pings_are_kept_once(w: "World") -> None:
    job_id = await on(w).define("old", shadow_ms=LAST_MS)
    start = Told("start", host="web1", ago_ms=300, ping_id="p1")
    first = ok(await w.store.pings.note("default", "old", start))
    assert (first.ping, first.shadow_ms) == (Ping("p1", NOW - 300, NOW - 300, None, None, "web1"), LAST_MS)
    await w.clock.set(NOW + 5_000)
    end = replace(start, event="end", exit_code=2, took_ms=9_999, ago_ms=0)
    for _ in range(2):  # its reply was lost
        again = ok(await w.store.pings.note("default", "old", end))
        assert again.ping == Ping("p1", NOW - 300, NOW - 300, NOW + 5_000, 2, "web1"), "what is known stays"
        await w.clock.set(NOW + 6_000)
    ok(await w.store.pings.note("default", "old", Told("end", 0, 2_000, ping_id="p2")))
    ok(await w.store.pings.note("default", "old", Told(ping_id="p3")))
    kept = await w.store.pings.list(job_id, NOW - 300, NOW + 6_001)
    assert [(each.ping_id, each.at_ms) for each in kept] == [
        ("p1", NOW - 300),
        ("p2", NOW + 4_000),
        ("p3", NOW + 6_000),
    ]
    assert [each.ping_id for each in await w.store.pings.list(job_id, 0, LAST_MS, 1)] == ["p3"]
    assert isinstance(await w.store.pings.note("acme", "old", Told()), Refused)
    with pytest.raises(DefinitionError, match="exit code"):
        await w.store.pings.note("default", "old", Told("start", 0))
    with pytest.raises(DefinitionError) as wrong:
        await w.store.pings.note("default", "old", Told(host="a\n", ping_id="", ago_ms=-1))
    assert len(wrong.value.mistakes) == 3

    ok(await w.store.pings.note("default", "old", Told(ping_id="p4"), most=2))
    assert [each.ping_id for each in await w.store.pings.list(job_id, 0, LAST_MS)] == ["p3", "p4"]
    await w.clock.set(NOW + 91 * 86_400_000)
    ok(await Sweeping(w.store.engine).sweep(0))
    assert await w.store.pings.list(job_id, 0, LAST_MS) == []


@check
async def the_report_compares_the_ledger_with_the_pings(w: "World") -> None:
    floor = on(w)
    await floor.define("old", shadow_ms=LAST_MS)
    for minute in range(1, 5):
        await w.clock.set(NOW + minute * MINUTE + 200)
        await floor.plan()
        for host in ("web1", "web2") if minute == 3 else ("web1",):
            if minute != 2:
                ok(await w.store.pings.note("default", "old", Told("end", 0, 100, host=host)))
    lines = await w.store.jobs.list(JobFilter(name="old"), 1)
    [report] = await reports(w.store, lines)
    assert [(each.what, each.at_ms) for each in report.compared.differences()] == [
        ("missed", NOW + 2 * MINUTE), ("doubled", NOW + 3 * MINUTE),
    ]  # fmt: skip
    assert (report.verdict, report.hand_over_ms, report.in_shadow) == ("differs", None, True)
    [same] = await reports(w.store, lines, NOW + 4 * MINUTE - 1)
    assert (same.verdict, same.hand_over_ms) == ("same", NOW + 15 * MINUTE)
    # nobody plans for a while: what the old scheduler says meanwhile waits for the ticks
    for minute in range(5, 9):
        await w.clock.set(NOW + minute * MINUTE + 200)
        ok(await w.store.pings.note("default", "old", Told("end", 0, 100, host="web1")))
    [behind] = await reports(w.store, lines, NOW + 4 * MINUTE - 1)
    assert (behind.verdict, behind.compared.matched) == ("same", 1)
    await floor.plan()
    [caught_up] = await reports(w.store, lines, NOW + 4 * MINUTE - 1)
    assert (caught_up.verdict, caught_up.compared.matched) == ("same", 5)


@check
async def the_report_begins_anew_after_a_way_back(w: "World") -> None:
    """What the old scheduler did while the ticks were ours is not what it does twice."""
    floor = on(w)
    await floor.define("old", shadow_ms=LAST_MS)
    for minute in range(1, 8):
        if minute == 3:
            await w.desk.hand_over("default", "old", NOW + 3 * MINUTE)
        await w.clock.set(NOW + minute * MINUTE + 200)
        await floor.plan()
        ok(await w.store.pings.note("default", "old", Told("end", 0, 100, host="web1")))
        if minute == 5:
            await w.desk.take_back("default", "old")
    [report] = await reports(w.store, await w.store.jobs.list(JobFilter(name="old"), 1))
    assert [each.tick_ms for each in report.compared.ticks] == [NOW + 6 * MINUTE, NOW + 7 * MINUTE]
    assert (report.verdict, report.in_shadow) == ("same", True)
