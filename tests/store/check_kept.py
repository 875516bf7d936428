"""Checks of the conformance suite about runs that stand although they are later than a change. What people cancel, or
cancel and replay, ahead of its time delays nothing; what was claimed a moment early does, whatever became of it."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Fault, Lost
from fleetcron.model.rules import CalendarUse, EveryEntry, MisfireRule
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.engine import Script
from fleetcron.store.history import Span
from fleetcron.store.job_pages import JobFilter
from fleetcron.store.rows import rows
from tests.store.floor import MINUTE, NOW, TWICE, Floor, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
POLICIES = ("skip", "latest", "all")
WAYS = ("cancelled", "replayed")


def check(function: Callable[[Floor], Awaitable[None]]) -> Check:
    async def on_a_floor(w: "World") -> None:
        f = Floor(w.store, w.clock, w.desk, w.held)
        await function(f)
        assert "run_conflict" not in await f.store.events.counts(0)

    CHECKS[function.__name__] = on_a_floor
    return on_a_floor


def freeze(*minutes: int) -> CalendarDocument:
    """A calendar that forbids some minutes."""
    windows = ((NOW + n * MINUTE, NOW + (n + 1) * MINUTE) for n in minutes)
    return CalendarDocument("freeze", windows=((0, MINUTE), *windows))


async def plan(f: Floor, minutes: int = 0) -> None:
    tables = Tables(f.store.almanac)
    await tick(f.store.cursors, tables, f.held, lookahead_ms=minutes * MINUTE)
    for _ in range(3):
        await fill_gaps(f.store.gaps, tables, f.held, room=100)


async def at(f: Floor, minute: float) -> None:
    await f.clock.set(NOW + round(minute * MINUTE))


async def runs(f: Floor, name: str) -> dict[int, str]:
    """By minute: the state of its run."""
    found = await f.store.history.runs(Span("default", name), limit=100, later=True)
    return {(line.run.scheduled_for_ms - NOW) // MINUTE: str(line.run.state) for line in reversed(found)}


async def answers(f: Floor, name: str) -> Counter[int]:
    """How many answers each minute has."""
    found = Counter((await runs(f, name)).keys())
    for line in await f.store.history.ledger(Span("default", name), limit=100):
        inside = range(line.answer.from_ms, line.answer.to_ms + 1, MINUTE)
        assert len(inside) == line.answer.ticks, line
        found.update((ms - NOW) // MINUTE for ms in inside)
    return found


async def updated_ms(f: Floor, name: str) -> int:
    [line] = await f.store.jobs.list(JobFilter(name=name), 1)
    return line.job.updated_ms


async def with_kept(f: Floor, way: str, *names: str) -> str:
    """Five runs are planned of each job; people cancel the third of them, and replay it. The state that it has."""
    await plan(f, 5)
    for name in names:
        found = await f.store.history.runs(Span("default", name), limit=100, later=True)
        [run_id] = [line.run.run_id for line in found if line.run.scheduled_for_ms == NOW + 3 * MINUTE]
        ok(await f.store.steering.cancel([run_id], None, actor="ann"))
        if way == "replayed":
            ok(await f.store.steering.replay([run_id], actor="ann"))
    return "cancelled" if way == "cancelled" else "planned"


def minutely(name: str, **fields: object) -> Definition:
    fields = {"schedule": (EveryEntry(MINUTE, 0),), "retry": TWICE, **fields}
    return Definition(name, run=CommandTarget(("true",)), **fields)  # type: ignore[arg-type]


@check
async def a_pause_begins_at_once(f: Floor) -> None:
    for number in range(len(WAYS) * len(POLICIES)):
        await f.define(f"a{number}", schedule=(EveryEntry(MINUTE, 0),))
    for number, (way, on_resume) in enumerate(product(WAYS, POLICIES)):
        name = f"a{number}"
        state = await with_kept(f, way, name)
        await at(f, number / 100)
        await f.desk.pause("default", name, on_resume)  # type: ignore[arg-type]
        assert (await runs(f, name), await updated_ms(f, name)) == ({3: state}, f.now), (way, on_resume)
    await at(f, 6.5)
    for number in range(len(WAYS) * len(POLICIES)):
        await f.desk.resume("default", f"a{number}")
    await plan(f, 2)
    for number, (way, on_resume) in enumerate(product(WAYS, POLICIES)):
        assert await answers(f, f"a{number}") == Counter(range(1, 9)), (way, on_resume)


@check
async def an_edit_begins_at_once(f: Floor) -> None:
    """The cancelled tick stays what it is, whether it is one of the new schedule or not."""
    for way in WAYS:
        await f.define(way, schedule=(EveryEntry(MINUTE, 0),))
        state = await with_kept(f, way, way)
        job = minutely(way, misfire=MisfireRule("skip"))
        await f.desk.edit(job)
        assert (await runs(f, way), await updated_ms(f, way)) == ({3: state}, f.now)
        await plan(f, 5)
        assert await runs(f, way) == {n: state if n == 3 else "planned" for n in range(1, 6)}
        await f.desk.edit(replace(job, schedule=(EveryEntry(2 * MINUTE, 0),)))
        await plan(f, 5)
        assert await runs(f, way) == {2: "planned", 3: state, 4: "planned"}


@check
async def new_tables_begin_at_once(f: Floor) -> None:
    await f.desk.put_calendar(freeze())
    uses = {"schedule": (EveryEntry(MINUTE, 0),), "calendars": (CalendarUse("freeze"),)}
    for name in (*WAYS, "other"):
        await f.define(name, **uses)
    states = {way: await with_kept(f, way, way) for way in WAYS}
    await f.desk.put_calendar(freeze(1))
    await plan(f, 5)
    for name in (*WAYS, "other"):
        state = states.get(name, "planned")
        assert await runs(f, name) == {n: state if n == 3 else "planned" for n in range(2, 6)}, name
    await f.desk.put_calendar(freeze(3))
    await plan(f, 5)
    assert await runs(f, "other") == dict.fromkeys((1, 2, 4, 5), "planned")
    assert await runs(f, "cancelled") == dict.fromkeys((1, 2, 4, 5), "planned") | {3: "cancelled"}


@check
async def a_change_begins_after_what_was_claimed_early_and_lost(f: Floor) -> None:
    """Half a second before its instant it is on its way again, with an attempt behind it: no forecast to withdraw."""
    await f.desk.put_calendar(freeze())
    names = ("paused", "edited", "of-tables")
    for name in names:
        await f.define(name, schedule=(EveryEntry(MINUTE, 0),), calendars=(CalendarUse("freeze"),))
    await plan(f, 5)
    await at(f, 0.99)
    await f.join("worker")
    await f.queue()
    for run in await f.claim("worker"):
        await f.end("worker", run, Lost(Fault("worker_died", "it died")))
    await f.desk.pause("default", "paused")
    await f.desk.edit(minutely("edited", schedule=(EveryEntry(2 * MINUTE, 0),)))
    await f.desk.put_calendar(freeze(1, 3))
    await plan(f, 5)
    assert [await updated_ms(f, name) for name in names[:2]] == [NOW + MINUTE] * 2
    assert [await runs(f, name) for name in names] == [
        {1: "retrying"},
        {1: "retrying", 2: "planned", 4: "planned"},
        {1: "retrying"} | dict.fromkeys((2, 4, 5), "planned"),
    ]


@check
async def max_ticks_counts_what_is_kept_once(f: Floor) -> None:
    for way in WAYS:
        await f.define(way, schedule=(EveryEntry(MINUTE, 0),), max_ticks=6)
        await with_kept(f, way, way)
        for grace_ms in (1, 2, 3):
            await f.desk.edit(minutely(way, misfire=MisfireRule(grace_ms=grace_ms), max_ticks=6))
            await plan(f, 5)
        await f.desk.pause("default", way)
        await f.desk.resume("default", way)
    await plan(f, 20)
    for way in WAYS:
        assert await answers(f, way) == Counter(range(1, 7)), way


@check
async def an_outage_leaves_what_is_kept(f: Floor) -> None:
    """Its tick has its answer: the others are decided without it, as those of the jobs beside it are with it."""
    cases = list(product(WAYS, POLICIES))
    for way, policy in cases:
        for name in (f"{way}-{policy}", f"{way}-{policy}-other"):
            await f.define(name, schedule=(EveryEntry(MINUTE, 0),), misfire=MisfireRule(policy))
    for way, policy in cases:
        await with_kept(f, way, f"{way}-{policy}")
    for way, policy in cases:
        for name in (f"{way}-{policy}", f"{way}-{policy}-other"):
            await f.desk.edit(minutely(name, misfire=MisfireRule(policy, grace_ms=1)))
    await at(f, 3.5)
    await plan(f, 2)
    for way, policy in cases:
        name = f"{way}-{policy}"
        assert await answers(f, name) == Counter(range(1, 6)), name
        assert await answers(f, f"{name}-other") == Counter(range(1, 6)), name
        late = {"skip": {3}, "latest": {2, 3}, "all": {1, 2, 3}}[policy]
        assert (await runs(f, name)).keys() == late | {4, 5}, name


@check
async def a_cancelled_run_is_a_tick_for_dependencies(f: Floor) -> None:
    """Whatever the schedule becomes: it is the answer of its upstream job, and a period begins at it."""
    await f.define("up", schedule=(EveryEntry(3 * MINUTE, NOW),))
    await f.define("down", schedule=(EveryEntry(4 * MINUTE, NOW),), depends_on=("up",))
    await f.define("late", schedule=(EveryEntry(3 * MINUTE, NOW),), depends_on=("up",))
    await plan(f, 5)
    for name in ("up", "late"):
        [line] = await f.store.history.runs(Span("default", name), limit=100, later=True)
        assert line.run.scheduled_for_ms == NOW + 3 * MINUTE
        ok(await f.store.steering.cancel([line.run.run_id], None, actor="ann"))
    await f.desk.edit(minutely("up", schedule=(EveryEntry(10 * MINUTE, NOW),)))
    await f.desk.edit(minutely("late", schedule=(EveryEntry(4 * MINUTE, NOW),), depends_on=("up",)))
    await plan(f, 5)
    assert await runs(f, "late") == {3: "cancelled", 4: "planned"}
    assert await upstream(f, "down", 4) == "cancelled"
    assert await upstream(f, "late", 4) is None  # its period is the minute since its own run that was cancelled


async def upstream(f: Floor, name: str, minute: int) -> str | None:
    """What became of the upstream job, as a run sees it."""
    found = await f.store.history.runs(Span("default", name), limit=100, later=True)
    [run] = [line.run for line in found if line.run.scheduled_for_ms == NOW + minute * MINUTE]
    asked = {"run_id": run.run_id, "job_id": run.job_id, "scheduled_for_ms": run.scheduled_for_ms}

    def script() -> Script[str | None]:
        [row] = yield "upstreams_of_runs", {"rows": rows([asked])}
        answer: str | None = row["answer"]
        return answer

    return await f.store.engine.read(script)
