"""The scheduler's rounds: what they cost, how long they sleep, and what they say when the store is away."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from fleetcron.config import SchedulerConfig
from fleetcron.errors import SchemaError, StoreUnavailable
from fleetcron.model.almanac import Almanac
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, CronEntry, EveryEntry, MisfireRule
from fleetcron.model.shard import Held
from fleetcron.model.target import CommandTarget
from fleetcron.model.timing import Timing
from fleetcron.scheduler import loop, tables, tick
from fleetcron.scheduler.adopt import Adopter
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.loop import LANES, Scheduler
from fleetcron.store.engine import Script
from fleetcron.store.hints import LOST
from fleetcron.store.history import Span
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from fleetcron.times import zones
from fleetcron.times.timetable import Timetable
from fleetcron.times.zone import Zone
from tests.store.engines import DatabaseClock, change, hand_cranked
from tests.worker.shop import fetcher

NOW = 1_800_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


class Fleet:
    def __init__(self, store: Store, clock: DatabaseClock, held: list[Held]) -> None:
        self.store, self.clock, self.held = store, clock, held
        self.desk = Desk(store, actor="ann", shards=2)

    def scheduler(self, **settings: float) -> Scheduler:
        return Scheduler(self.store, lambda: self.held, SchedulerConfig(**settings), clock=self.clock.hand)  # type: ignore[arg-type]


@asynccontextmanager
async def fleet(url: str) -> AsyncIterator[Fleet]:
    async with hand_cranked(url, NOW) as (engine, clock):
        store = Store(engine)
        await store.shards.fix(2)
        taken = await store.shards.take("*", [0, 1], "n1", DAY)
        assert isinstance(taken, Ok)
        yield Fleet(store, clock, taken.value)


def job(name: str, expression: str = "* * * * *", **fields: object) -> Definition:
    entry = CronEntry(expression, "UTC", "skip", "both")
    return replace(Definition(name, (entry,), CommandTarget(("true",))), **fields)  # type: ignore[arg-type]


def test_a_plan_is_made_once_for_all_jobs_that_stand_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Next ticks are computed once per distinct schedule and cursor, not per job."""
    made = []
    monkeypatch.setattr(tick, "plan", lambda *given, plan=tick.plan: made.append(given[2]) or plan(*given))

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            await f.desk.apply([job(f"{kind}-{n}", f"*/{kind} * * * *") for kind in (1, 2, 5) for n in range(200)])
            scheduler = f.scheduler(lookahead_s=600)
            while await scheduler.step() <= 1:
                pass
            assert scheduler.health.counts["runs"] == 200 * (10 + 5 + 2)
            assert len(made) == 3

    asyncio.run(scenario())


def test_jobs_that_differ_in_their_jitter_share_a_timetable(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    monkeypatch.setattr(tables, "build", lambda *given, build=tables.build: built.append(given) or build(*given))

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            await f.desk.apply([job(f"j{n}", "0 * * * *", jitter_ms=30 * MINUTE) for n in range(50)])
            built.clear()
            await f.scheduler(lookahead_s=2 * 3600).step()
            lines = await f.store.history.runs(Span(), limit=500)
            delays = {line.run.run_after_ms - line.run.scheduled_for_ms for line in lines}
            assert (len(lines), len(built)) == (100, 1)
            assert len(delays) > 40  # S2-21: each job its own
            assert all(0 <= delay < 30 * MINUTE for delay in delays)

    asyncio.run(scenario())


def test_it_sleeps_until_something_is_due() -> None:
    """S0-34: not by blind polling. The first tick of the lookahead is the next time to look."""

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            scheduler = f.scheduler(lookahead_s=60, idle_poll_s=30)
            assert await scheduler.step() == 30_000  # nothing exists
            await f.desk.create(job("daily", "0 0 * * *"))
            assert await scheduler.step() == 30_000
            await f.desk.create(job("soon", "1 8 * * *"))  # at NOW + 1 min
            assert await scheduler.step() == 1  # it wrote something: one more look says when to come again
            assert scheduler.health.counts["runs"] == 1
            assert await scheduler.step() == 30_000
            await f.clock.set(
                NOW + 15 * HOUR + 58 * MINUTE + 50_000
            )  # 23:58:50: the daily one comes into view at 23:59
            assert await scheduler.step() == 10_000
            f.held = []
            assert await scheduler.step() == 30_000

    asyncio.run(scenario())


def test_a_hint_wakes_it() -> None:
    async def scenario() -> None:
        async with fleet(":memory:") as f:
            scheduler, stop = f.scheduler(lookahead_s=60, idle_poll_s=30), asyncio.Event()
            running = asyncio.create_task(scheduler.run(stop))
            while not scheduler.health.rounds:
                await asyncio.sleep(0)
            before = scheduler.health.rounds
            await f.desk.create(job("a"))
            async with asyncio.timeout(10):  # far less than its sleep
                while not scheduler.health.counts["runs"]:
                    await asyncio.sleep(0.001)
            assert scheduler.health.rounds <= before + 3
            stop.set()
            await running

    asyncio.run(scenario())


@pytest.mark.parametrize(("topic", "wakes"), [("jobs", True), (LOST, True), ("work", False), ("shards", False)])
def test_what_wakes_it(topic: str, wakes: bool) -> None:
    """What was said by somebody who cannot be heard any more may have been an edit. What workers do is none."""

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            scheduler, stop = f.scheduler(lookahead_s=60, idle_poll_s=30), asyncio.Event()
            running = asyncio.create_task(scheduler.run(stop))
            while not scheduler.health.rounds:
                await asyncio.sleep(0)

            def script() -> Script[None]:
                yield "notify", {"topic": topic}

            before = scheduler.health.rounds
            await f.store.engine.write(script)
            await f.store.shards.number()  # a turn of the store: the hint was told before its answer
            await f.store.shards.number()
            assert (scheduler.wake.is_set() or scheduler.health.rounds > before) is wakes
            stop.set()
            await running

    asyncio.run(scenario())


def test_trouble_is_health_and_passes(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with fleet(f"sqlite:///{tmp_path / 'jobs.db'}") as f:
            await f.desk.create(job("a"))
            scheduler = f.scheduler(lookahead_s=60)
            (tmp_path / "jobs.db").rename(tmp_path / "elsewhere.db")
            await scheduler._turn()
            assert not scheduler.health.ok
            assert "jobs.db" in str(scheduler.health.trouble)
            assert await scheduler._turn() > 100
            (tmp_path / "elsewhere.db").rename(tmp_path / "jobs.db")
            await scheduler._turn()
            assert scheduler.health.ok
            assert scheduler.health.counts["runs"] == 1

    asyncio.run(scenario())


def test_a_refusal_is_told_though_the_store_goes_away_right_after_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*_given: object, **_settings: object) -> None:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(loop, "fill_gaps", away)

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            await f.desk.create(job("a"))
            await f.clock.set(NOW + 2 * DAY)
            assert isinstance(await f.store.shards.take("*", [0, 1], "n2", DAY), Ok)
            scheduler = f.scheduler(lookahead_s=60)
            await scheduler._turn()
            assert scheduler.health.counts["refused"] == 1
            assert "a plan was refused: the shard has another owner" in caplog.text

    asyncio.run(scenario())


def test_a_burst_is_planned_in_lanes(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with fleet(postgres18_url) as f:
            await f.desk.apply([job(f"j{n}") for n in range(60)])
            scheduler = f.scheduler(lookahead_s=60, batch_rows=10)
            rounds = 0
            while await scheduler.step() == 0:
                rounds += 1
            assert scheduler.health.counts["runs"] == 60
            assert scheduler.health.counts["conflicts"] == 0
            assert rounds < 60 / 10  # the first round alone, then LANES at a time
            assert LANES == 2

    asyncio.run(scenario())


def test_catch_up_waits_for_room_and_nobody_waits_behind_it() -> None:
    """S2-20: a long outage under `all` is created only as far as there is room; other gaps are decided meanwhile."""

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            every = (EveryEntry(MINUTE, 0),)
            for n in range(3):
                await f.desk.create(job(f"all-{n}", schedule=every, misfire=MisfireRule("all", limit=100)))
            await f.desk.create(job("paused", schedule=every))
            await f.desk.pause("default", "paused")
            await f.clock.set(NOW + 5 * HOUR)
            scheduler = f.scheduler(lookahead_s=1, catch_up_room=120)
            while await scheduler.step() <= 1:
                pass

            async def caught_up() -> dict[str, int]:
                lines = await f.store.history.runs(Span(), limit=1000)
                return Counter(line.name for line in lines if line.run.lane == "catchup")

            assert sorted((await caught_up()).values()) == [20, 100]
            await f.clock.set(NOW + 5 * HOUR + 1_000)
            while await scheduler.step() <= 1:
                pass
            # who would have nothing at all has a hundredth of the room for itself
            assert sorted((await caught_up()).values()) == [1, 20, 100]
            await f.desk.resume("default", "paused", "skip")
            while await scheduler.step() <= 1:
                pass
            [line] = await f.store.history.ledger(Span(name="paused"))
            assert (line.answer.ticks, line.answer.reason) == (300, "paused")
            missed = await f.store.history.ledger(Span(name="all-2"))
            assert [each.answer.reason for each in missed] == ["over_limit"]  # decided, though its runs wait

    asyncio.run(scenario())


def test_planning_knows_nothing_of_executing() -> None:
    """S4-8: the scheduler ends with a durable run on its way; who does the work is another room, never loaded."""
    code = (
        "import sys, fleetcron.scheduler.loop;"
        "print([n for n in sys.modules if n.startswith(('fleetcron.executors', 'fleetcron.worker'))])"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert said.strip() == "[]"


NEWER = {
    "field": ("misfire.colour", '"red"'),
    "policy": ("misfire.policy", '"newest_two"'),
    "lane": ("misfire.lane", '"express"'),
    "gap": ("entries.0.dst_gap", '"stretch"'),
    "expression": ("entries.0.cron", '"* * * * * FULLMOON"'),
    "type": ("jitter_ms", '"adaptive"'),
}


async def write_newer(f: Fleet, what: str, whose: str) -> None:
    """The schedules of these jobs as a newer release may write them."""
    path, value = NEWER[what]
    way = path.replace(".0", "[0]")
    to = {
        "sqlite": f"json_set(body, '$.{way}', json('{value}'))",
        "postgres": f"jsonb_set(CAST(body AS jsonb), '{{{path.replace('.', ',')}}}', '{value}')",
    }[f.store.engine.name]
    ids = f"SELECT timing_id FROM cursors WHERE job_id IN (SELECT job_id FROM jobs WHERE {whose})"
    await change(f.store.engine, f"UPDATE timings SET body = {to} WHERE timing_id IN ({ids})")


@pytest.mark.parametrize("what", NEWER)
@pytest.mark.parametrize("url", ["sqlite_memory_url", "postgres18_url"])
def test_a_schedule_that_a_newer_release_has_written_stops_no_other(
    url: str, what: str, request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """Old and new nodes plan side by side while a fleet is renewed. What the old one cannot read stays due, and is left
    as it is, in the past too; it says so once, and does not ask again and again."""
    where = request.getfixturevalue(url)

    async def scenario() -> None:
        async with fleet(where) as f:
            every = MisfireRule(policy="all")
            await f.desk.apply([job("newer", "*/5 * * * *", misfire=every), job("other"), job("gone", misfire=every)])
            await f.clock.set(NOW + HOUR)  # what is behind is a gap
            while await f.scheduler(catch_up_room=1).step() <= 1:
                pass
            await write_newer(f, what, "name <> 'other'")
            before = await standing(f)
            await f.clock.set(NOW + 2 * HOUR)
            scheduler = f.scheduler()
            rests = [await scheduler.step() for _ in range(6)]
            assert rests[-1] > 1_000  # until the other one is due
            after = await standing(f)
            assert {name for name in before if before[name] != after[name]} == {"other"}
            assert scheduler.health.counts["runs"] > 0

    asyncio.run(scenario())
    assert len([each for each in caplog.messages if "newer release" in each]) == 2


@pytest.mark.parametrize("url", ["sqlite_memory_url", "postgres18_url"])
def test_a_page_full_of_them_keeps_nobody_from_being_planned(url: str, request: pytest.FixtureRequest) -> None:
    """They stay due, and are the oldest: one job of a shard could be planned only as long as they fit into one page
    with it. The same holds for their gaps."""
    where = request.getfixturevalue(url)

    async def scenario() -> None:
        async with fleet(where) as f:
            every = MisfireRule(policy="all")
            many = [job(f"newer-{n}", f"*/{n} * * * *", misfire=every) for n in range(2, 14)]
            await f.desk.apply(many)
            await f.clock.set(NOW + HOUR)
            while await f.scheduler(catch_up_room=1).step() <= 1:
                pass
            await write_newer(f, "field", "true")
            await f.desk.apply([job("other", "*/15 * * * *", misfire=every)])
            before = await standing(f)
            await f.clock.set(NOW + 3 * HOUR)
            scheduler = f.scheduler(batch_rows=5)  # a page of five cursors, and of one gap
            rests = [await scheduler.step() for _ in range(40)]
            after = await standing(f)
            assert {name for name in before if before[name] != after[name]} == {"other"}
            assert after["other"] == (NOW + 3 * HOUR, 8, None)
            assert rests[-1] > 1_000
            f.store.engine.statements_run.clear()
            await f.clock.set(NOW + 3 * HOUR + 30 * MINUTE)
            assert await scheduler.step() <= 1
            assert "cursors_due" in f.store.engine.statements_run
            assert "timings_read" not in f.store.engine.statements_run  # what cannot be read is not read again

    asyncio.run(scenario())


def test_nor_do_those_without_a_tick_until_they_have_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """New tables may give ticks to a schedule that has none: so it is looked at again in every epoch."""
    build = tables.build

    def without(timing: Timing, almanac: Almanac) -> Timetable:
        return (
            tables.Never("a holiday every day")
            if len(timing.entries) > 1 and almanac.epoch < 3
            else build(timing, almanac)
        )

    monkeypatch.setattr(tables, "build", without)

    async def scenario() -> None:
        async with fleet(":memory:") as f:
            await f.desk.put_calendar(CalendarDocument("days", holidays=("2001-01-01",)))
            noon = CronEntry("0 12 * * *", "UTC", "skip", "both")
            for n in range(5):
                entries = (CronEntry("* * * * *", "UTC", "skip", "both"), noon)
                await f.desk.create(job(f"never-{n}", schedule=entries, max_ticks=100 + n))
            await f.clock.set(NOW + MINUTE)
            await f.desk.create(job("other", "*/2 * * * *"))
            before = await standing(f)
            await f.clock.set(NOW + 10 * MINUTE)
            scheduler = f.scheduler(batch_rows=2)
            for _ in range(10):
                await scheduler.step()
            after = await standing(f)
            assert {name for name in before if before[name] != after[name]} == {"other"}
            await f.desk.put_calendar(CalendarDocument("days", holidays=("2001-01-02",)))
            while await scheduler.step() <= 1:
                pass
            now = await standing(f)
            assert {name for name in after if after[name] != now[name]} >= {f"never-{n}" for n in range(5)}

    asyncio.run(scenario())


@pytest.mark.parametrize("url", ["sqlite_memory_url", "postgres18_url"])
def test_a_calendar_that_would_move_it_is_refused_with_its_name(url: str, request: pytest.FixtureRequest) -> None:
    where = request.getfixturevalue(url)

    async def scenario() -> None:
        async with fleet(where) as f:
            days = CalendarDocument("days", holidays=("2001-01-01",))
            await f.desk.put_calendar(days)
            await f.desk.apply([job("newer", calendars=(CalendarUse("days"),)), job("other")])
            await write_newer(f, "policy", "name = 'newer'")
            with pytest.raises(SchemaError, match="written the job newer of default"):
                await f.desk.put_calendar(replace(days, holidays=("2001-01-02",)))
            await f.desk.put_calendar(replace(days, name="others"))

    asyncio.run(scenario())


def test_a_node_starts_and_leaves_the_zones_of_what_it_cannot_read() -> None:
    async def scenario() -> None:
        async with fleet(":memory:") as f:
            for name, zone in (("newer", "Europe/Berlin"), ("other", "Asia/Tokyo")):
                await f.desk.create(job(name, schedule=(CronEntry("0 9 * * *", zone),)))
            await write_newer(f, "field", "name = 'newer'")
            adopter = Adopter(f.store.almanac, tables.Tables(f.store.almanac))
            adopted = await adopter.zones("n1", "9999z", lambda name: Zone.load(name, zones.zone("Asia/Dubai").dump()))
            assert [table.part.name for table in adopted.tables] == ["Asia/Tokyo"]

    asyncio.run(scenario())


async def standing(f: Fleet) -> dict[str, tuple[object, ...]]:
    """By job: its cursor, its gaps and how many runs it has."""
    found = await fetcher(f.store.engine)(
        "SELECT j.name, c.cursor_ms, (SELECT count(*) FROM runs AS r WHERE r.job_id = j.job_id) AS runs,"
        " (SELECT min(g.from_ms) FROM gaps AS g WHERE g.job_id = j.job_id) AS gap"
        " FROM jobs AS j JOIN cursors AS c ON c.job_id = j.job_id"
    )
    return {row["name"]: (row["cursor_ms"], row["runs"], row["gap"]) for row in found[0]}
