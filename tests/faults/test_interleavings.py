"""Two writers at once on PostgreSQL, in every order that matters: nothing lost, nothing doubled, nobody stuck.

One is held either with a decision that grows old, or with everything written and not committed; the other one does the
whole of its work meanwhile, or waits for the first one's locks. Then the first one goes on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from threading import Event
from time import sleep
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.clock import HandClock
from fleetcron.errors import RefusedError
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, MisfireRule
from fleetcron.model.shard import Held
from fleetcron.policy.late import late
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.gaps import GapRound, fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import Round, tick
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.faults import truth
from tests.faults.actors import Actor, Hold, two_actors
from tests.faults.jobs import cron
from tests.faults.story import BEGIN_MS, CLOCK_SQL
from tests.services.postgres import Template, execute
from tests.store.conftest import give_it_tables
from tests.store.handwork import rank

SHARDS = 2
LOOKAHEAD_MS = 30_000
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
DAY_MS = 86_400_000
TODAY, TOMORROW = "2027-01-15", "2027-01-16"
ALL = MisfireRule("all", grace_ms=1000)


@pytest.fixture(scope="module")
def clocked(postgres18_server: str) -> Iterator[Template]:
    def prepare(url: str) -> None:
        give_it_tables(url)
        execute(url, CLOCK_SQL)

    template = Template(postgres18_server, prepare)
    yield template
    template.drop()


class Scene:
    """One database, two actors who both believe that they own every shard, and a clock that we move."""

    def __init__(self, url: str, first: Actor, second: Actor, clock: HandClock) -> None:
        self.url = url
        self.first, self.second = first, second
        self.clock = clock
        self.turns = 0
        self.held: list[Held] = []
        self._watch = first.do(asyncpg.connect(url)).result()
        self.look = second.do(asyncpg.connect(url, server_settings={"search_path": "fleetcron"})).result()
        self.pass_time(0)
        self.now(self._take())

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.first.do(work).result()

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        self.now(self._watch.execute(f"UPDATE fleetcron.test_clock SET now_ms = {self.clock.now_ms()}"))

    def somebody_waits(self) -> bool:
        """For a lock. Asked on the second one's loop: the first one's stands still."""
        return bool(self.second.do(self.look.fetchval(WAITING)).result())

    def tables(self) -> truth.Tables:
        return self.second.do(truth.read_through(self.look)).result()

    async def _take(self) -> None:
        await self.first.store.shards.fix(SHARDS)
        self.held = await take(self.first.store)

    async def plan(self) -> None:
        """Until nothing is left to do."""
        for _ in range(100):
            done, filled = await ticks(self, self.first.store), await gaps(self, self.first.store)
            assert [done.refused, filled.refused, done.unknown, filled.unknown] == [None] * 4
            if not (done.jobs or filled.gaps):
                return
        raise AssertionError("the scheduler does not come to rest")

    def close(self) -> None:
        self.now(self._watch.close())
        self.second.do(self.look.close()).result()


async def take(store: Store) -> list[Held]:
    """Somebody whom nobody has seen before takes everything."""
    for lease in await store.shards.owners():
        await store.nodes.leave(lease.held.owner)
    answer = await store.shards.take("*", range(SHARDS), f"n{id(object())}", 3_600_000)
    assert isinstance(answer, Ok)
    return answer.value


async def ticks(scene: Scene, store: Store) -> Round:
    return await tick(store.cursors, Tables(store.almanac), scene.held, lookahead_ms=LOOKAHEAD_MS, rows=100)


async def gaps(scene: Scene, store: Store) -> GapRound:
    return await fill_gaps(store.gaps, Tables(store.almanac), scene.held, room=1_000_000, rows=100)


def job(scene: Scene, expression: str = "*/15 * * * * *") -> Definition:
    return cron(f"job-{scene.turns}", expression, "UTC", ALL, calendars=(CalendarUse("days"),))


async def edit(scene: Scene, store: Store) -> None:
    """Each time to something else."""
    other = ("*/20 * * * * *", "*/30 * * * * *")[store is scene.second.store]
    await Desk(store, actor="test", shards=SHARDS).edit(job(scene, other))


async def pause(scene: Scene, store: Store) -> None:
    await Desk(store, actor="test", shards=SHARDS).pause("default", job(scene).name, "all")


async def resume(scene: Scene, store: Store) -> None:
    await Desk(store, actor="test", shards=SHARDS).resume("default", job(scene).name)


async def cancel(scene: Scene, store: Store) -> None:
    await Desk(store, actor="test", shards=SHARDS).cancel("default", job(scene).name)


async def delete(scene: Scene, store: Store) -> None:
    await Desk(store, actor="test", shards=SHARDS).delete("default", job(scene).name)


async def create(scene: Scene, store: Store) -> None:
    await Desk(store, actor="test", shards=SHARDS).apply([cron(f"new-{scene.turns}", "*/20 * * * * *", "UTC", ALL)])


async def put_calendar(scene: Scene, store: Store, *holidays: str) -> None:
    """Each time it is another calendar, whoever brings it."""
    far = date(2030, 1, 1) + timedelta(days=scene.turns), date(2040, 1, 1 + (store is scene.second.store))
    days = CalendarDocument("days", timezone="UTC", holidays=(*holidays, *(day.isoformat() for day in far)))
    await Desk(store, actor="test", shards=SHARDS).put_calendar(days)


async def holiday(scene: Scene, store: Store) -> None:
    """From now on today is a holiday: the forecasts go."""
    await put_calendar(scene, store, TODAY)


async def workday(scene: Scene, store: Store) -> None:
    """Today is no holiday any more: there are ticks where there were none."""
    await put_calendar(scene, store)


async def take_over(scene: Scene, store: Store) -> None:
    """The shards whose plan is under way are left for the next time."""
    await take(store)


@dataclass(frozen=True)
class Verb:
    act: Callable[[Scene, Store], Coroutine[Any, Any, Any]]
    decided: str  # the step at which it has read and decided
    written: str  # the last step before its transaction is to be committed


VERBS = {
    "tick": Verb(ticks, "tick.planned", "advance.write"),
    "gaps": Verb(gaps, "gaps.decided", "gaps.write"),
    "edit": Verb(edit, "desk.decided", "amend.written"),
    "pause": Verb(pause, "desk.decided", "amend.written"),
    "resume": Verb(resume, "desk.decided", "amend.written"),
    "cancel": Verb(cancel, "desk.decided", "amend.written"),
    "delete": Verb(delete, "desk.decided", "amend.written"),
    "create": Verb(create, "desk.decided", "amend.written"),
    "holiday": Verb(holiday, "adopt.begin", "adopt.written"),
    "workday": Verb(workday, "adopt.begin", "adopt.written"),
    "take_over": Verb(take_over, "shards.locked", "shards.written"),
}


LIKE_EDIT = ("pause", "resume", "cancel")  # held at the same steps, with the same locks


def interleave(scene: Scene, one: str, other: str, *, committed: bool) -> None:
    """`one` is held; `other` does its work, or waits for a lock; `one` goes on."""
    prepare(scene, one, other)
    verb = VERBS[one]
    hold = scene.first.hold = Hold("store.commit", verb.written) if not committed else Hold(verb.decided)
    first = scene.first.do(VERBS[one].act(scene, scene.first.store))
    while not hold.reached.wait(0.002):
        assert not first.done(), f"{one} had nothing to do: {first.result()}"
    second = scene.second.do(VERBS[other].act(scene, scene.second.store))
    while not second.done() and not scene.somebody_waits():
        sleep(0.001)
    hold.go()
    for ended in (first, second):
        outcome(ended)
    scene.first.hold = None


def outcome(ended: "Future[Any]") -> None:
    with suppress(RefusedError):  # the other one was faster, and what was asked makes no sense any more
        ended.result(20)


def prepare(scene: Scene, one: str, other: str) -> None:
    scene.turns += 1
    desk = Desk(scene.first.store, actor="test", shards=SHARDS)
    before = holiday if "workday" in (one, other) else workday
    scene.now(before(scene, scene.first.store))
    scene.turns += 1
    scene.now(desk.apply([job(scene)]))
    scene.pass_time(1_000)
    scene.now(scene.plan())
    if "resume" in (one, other):
        scene.now(desk.pause("default", job(scene).name, "all"))
    scene.pass_time(100_000)
    if "gaps" in (one, other):  # what is late becomes a gap, and then there are new ticks again
        scene.now(ticks(scene, scene.first.store))
        if "resume" in (one, other):
            scene.now(desk.pause("default", job(scene).name, "latest"))
        scene.pass_time(25_000)


@pytest.fixture
def scene(clocked: Template) -> Iterator[Scene]:
    clock = HandClock(BEGIN_MS)
    with clocked.copy() as url, two_actors(url, clock) as (first, second):
        found = Scene(url, first, second, clock)
        found.now(put_calendar(found, first.store))
        others = [cron(f"other-{number}", "*/15 * * * * *", "UTC", ALL) for number in range(4)]
        found.now(Desk(first.store, actor="test", shards=SHARDS).apply(others))
        yield found
        found.close()


@pytest.mark.parametrize("committed", [True, False], ids=["decided", "written"])
@pytest.mark.parametrize(
    "one", [pytest.param(one, marks=pytest.mark.soak if one in LIKE_EDIT else ()) for one in VERBS]
)
def test_two_writers_at_once(scene: Scene, one: str, committed: bool) -> None:
    """S2-42, S4-21: each with each, in both orders."""
    for other in VERBS:
        interleave(scene, one, other, committed=committed)
        scene.pass_time(20_000)
        scene.held = scene.now(take(scene.first.store))
        scene.now(scene.plan())
        verdict = truth.judge(scene.tables(), scene.clock.now_ms())
        assert verdict.wrong == [], f"{one} and {other}"
        assert verdict.events["run_conflict"] == 0, f"{one} and {other}"


def test_a_plan_that_was_made_with_old_tables_is_refused(scene: Scene) -> None:
    """The job stands where it stood, and its next tick is the same: only the epoch tells that a later tick is gone."""
    midnight_ms = BEGIN_MS // DAY_MS * DAY_MS + DAY_MS
    scene.pass_time(midnight_ms - 20_000 - scene.clock.now_ms())
    scene.now(Desk(scene.first.store, actor="test", shards=SHARDS).apply([job(scene)]))
    hold = scene.first.hold = Hold("tick.planned")
    planned = scene.first.do(ticks(scene, scene.first.store))
    assert hold.reached.wait(20)
    scene.second.do(put_calendar(scene, scene.second.store, TOMORROW)).result()
    hold.go()
    assert planned.result().refused == "the zone tables or calendars have changed"
    scene.now(scene.plan())
    verdict = truth.judge(scene.tables(), scene.clock.now_ms())
    assert verdict.wrong == []
    assert verdict.events["plan_refused"] > 0


def test_a_tick_that_is_queued_while_a_calendar_is_brought_stands_before_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could be withdrawn when that was decided, and not any more when it was written: the run stood, and the
    calendar said that its instant was no tick."""
    scene.now(Desk(scene.first.store, actor="test", shards=SHARDS).apply([job(scene)]))
    scene.pass_time(14_500 - scene.clock.now_ms() % 15_000)
    scene.now(scene.plan())
    engine: Any = scene.first.store.engine
    execute_, reached, go = engine._execute, Event(), Event()

    async def stopped(connection: object, name: str, *rest: Any) -> Any:
        if name == "cursors_rewind" and not reached.is_set():
            reached.set()
            assert go.wait(20)
        return await execute_(connection, name, *rest)

    monkeypatch.setattr(engine, "_execute", stopped)
    adopted = scene.first.do(holiday(scene, scene.first.store))
    assert reached.wait(20)
    scene.second.do(scene.second.store.queue.promote(1_000, 1_000, rank, late)).result()
    go.set()
    adopted.result()
    query = (
        "SELECT r.scheduled_for_ms FROM queue AS q JOIN runs AS r USING (run_id) JOIN jobs AS j ON j.job_id = r.job_id"
    )
    name = job(scene).name
    queued = scene.second.do(scene.look.fetchval(f"{query} WHERE j.name = '{name}'")).result()
    began = scene.second.do(scene.look.fetchval("SELECT max(noted_ms) FROM almanac WHERE kind = 'calendar'")).result()
    assert queued == scene.clock.now_ms() + 500
    assert began >= queued


@pytest.mark.parametrize("verb", ["tick", "pause"])
def test_a_deadlock_is_tried_again(scene: Scene, verb: str) -> None:
    """Somebody else has a row that we want, and wants one that we have: the database ends our try, not our verb."""
    scene.now(Desk(scene.first.store, actor="test", shards=SHARDS).apply([job(scene)]))

    async def in_each_others_way() -> None:
        # it looks for deadlocks late, so that it is we who find this one
        await scene.look.execute("BEGIN; SET LOCAL deadlock_timeout = 60000; SELECT FROM cursors FOR UPDATE")
        ours = scene.first.do(VERBS[verb].act(scene, scene.first.store))
        while not await scene.look.fetchval(WAITING):
            await asyncio.sleep(0.001)
        await scene.look.fetch("SELECT FROM almanac_epoch FOR UPDATE")  # returns when the database has ended our try
        assert not ours.done()
        await scene.look.execute("COMMIT")
        await asyncio.wrap_future(ours)

    scene.second.do(in_each_others_way()).result(20)
    scene.pass_time(20_000)
    scene.now(scene.plan())
    assert truth.judge(scene.tables(), scene.clock.now_ms()).wrong == []
