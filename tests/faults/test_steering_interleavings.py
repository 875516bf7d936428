"""Two sessions at once on PostgreSQL, one of which steers a run: it is in one place afterwards, and both were told so.

The first one has written everything and not committed; the second one does its work meanwhile, or waits for the first
one's locks. Then the first one commits.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from time import sleep
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.clock import HandClock
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Fault, Succeeded
from fleetcron.model.rules import EveryEntry, MisfireRule, OverlapRule
from fleetcron.model.shard import Held
from fleetcron.scheduler.backfill import backfill
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.claims import Claimed
from fleetcron.store.steering import DeadFilter
from fleetcron.store.store import Store
from fleetcron.store.written import Refused
from tests.faults.actors import Actor, Hold, two_actors
from tests.faults.jobs import RUN
from tests.faults.story import BEGIN_MS, CLOCK_SQL
from tests.services.postgres import Template, execute
from tests.store.check_steering import Hands, ok
from tests.store.conftest import give_it_tables

SHARDS = 2
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
FAULT = Failed(Fault("boom", "it broke"))
PLACES = """
SELECT r.state, r.round, r.finished_ms IS NOT NULL AS final,
    (SELECT count(*) FROM upcoming AS u WHERE u.run_id = r.run_id) AS upcoming,
    (SELECT count(*) FROM queue AS q WHERE q.run_id = r.run_id) AS queued,
    l.run_id IS NOT NULL AS leased, l.node_id IS NOT NULL AS held, l.cancel
FROM runs AS r LEFT JOIN leases AS l ON l.run_id = r.run_id WHERE r.run_id = $1
"""


@pytest.fixture(scope="module")
def clocked(postgres18_server: str) -> Iterator[Template]:
    def prepare(url: str) -> None:
        give_it_tables(url)
        execute(url, CLOCK_SQL)

    template = Template(postgres18_server, prepare)
    yield template
    template.drop()


class Scene:
    """One database, two sessions, a worker in each, and a run that is brought to where a test wants it."""

    def __init__(self, url: str, first: Actor, second: Actor, clock: HandClock) -> None:
        self.first, self.second = first, second
        self.clock = clock
        self.numbers = count(1)
        self.look = second.do(asyncpg.connect(url, server_settings={"search_path": "fleetcron"})).result()
        self.hands = {actor: Hands(actor.store, clock.now_ms, "w1") for actor in (first, second)}
        self.held: list[Held] = []
        self.run_id = 0
        self.claimed: Claimed | None = None
        self.pass_time(0)
        self.now(self._begin())

    async def _begin(self) -> None:
        store = self.first.store
        await store.shards.fix(SHARDS)
        self.held = ok(await store.shards.take("*", range(SHARDS), "n1", 1000 * HOUR))
        await self.hands[self.first].join()
        await self.apply()

    async def apply(self, **fields: Any) -> None:
        entry = EveryEntry(MINUTE, 0)
        fields = {"overlap": OverlapRule("queue"), "misfire": MisfireRule("skip", grace_ms=0), **fields}
        await Desk(self.first.store, actor="test", shards=SHARDS).apply([Definition("a", (entry,), RUN, **fields)])

    def now(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.first.do(work).result(20)

    def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        text = f"UPDATE test_clock SET now_ms = {self.clock.now_ms()}"
        self.second.do(self.look.execute(text)).result(20)

    def somebody_waits(self) -> bool:
        return bool(self.second.do(self.look.fetchval(WAITING)).result(20))

    def fetch(self, text: str, *values: object) -> list[Any]:
        return list(self.second.do(self.look.fetch(text, *values)).result(20))

    def close(self) -> None:
        self.second.do(self.look.close()).result(20)

    # -- where the run is

    async def bring(self, where: str) -> None:
        """A new run of the job, and nobody else in the way."""
        hands, store = self.hands[self.first], self.first.store
        made = await store.steering.trigger(("default", "a"), None, actor="ann", key=f"s{next(self.numbers)}")
        self.run_id = ok(made).run_id
        if where == "planned":
            return
        await hands.queue()
        if where == "queued":
            return
        self.claimed = (await hands.claim())[self.run_id]
        if where == "running":
            return
        if where == "dead":
            await hands.end(self.claimed, FAULT)
            return
        await hands.end(self.claimed, FAULT, tries=99)
        if where != "resting":
            self.clock.advance(DAY)
            later = self.look.execute(f"UPDATE test_clock SET now_ms = {self.clock.now_ms()}")
            await asyncio.wrap_future(self.second.do(later))
        if where == "resting, queued":
            await hands.queue()

    def place(self) -> Any:
        [row] = self.fetch(PLACES, self.run_id)
        return row

    def check(self) -> None:
        """The run is in exactly one place."""
        row = self.place()
        ways = row["upcoming"] + row["queued"]
        if row["final"]:
            assert (ways, row["leased"]) == (0, False), dict(row)
        elif row["held"]:
            assert ways == 0, dict(row)
        else:
            assert ways == 1, dict(row)

    def end_run(self) -> None:
        """Whatever is left, so that the next one has the job for itself."""

        async def work() -> None:
            await self.first.store.steering.cancel([self.run_id], "clean up", actor="test")

        self.now(work())
        if self.place()["held"]:
            row = self.fetch("SELECT attempt FROM leases WHERE run_id = $1", self.run_id)[0]
            self.now(self.hands[self.first].end((self.run_id, row["attempt"]), Succeeded()))
        self.check()


Act: TypeAlias = Callable[[Scene, Actor], Coroutine[Any, Any, Any]]


async def cancel(scene: Scene, actor: Actor) -> Any:
    [done] = ok(await actor.store.steering.cancel([scene.run_id], "no", actor="bob"))
    return done.done


async def replay(scene: Scene, actor: Actor) -> Any:
    [done] = ok(await actor.store.steering.replay([scene.run_id], actor="bob"))
    return done.done


async def replay_many(scene: Scene, actor: Actor) -> Any:
    return ok(await actor.store.steering.replay_many(DeadFilter(), actor="bob")).runs


async def discard(scene: Scene, actor: Actor) -> Any:
    [done] = ok(await actor.store.steering.discard([scene.run_id], "no", actor="bob"))
    return done.done


async def promote(scene: Scene, actor: Actor) -> Any:
    return await scene.hands[actor].queue()


async def claim(scene: Scene, actor: Actor) -> Any:
    return list(await scene.hands[actor].claim())


async def succeed(scene: Scene, actor: Actor) -> Any:
    return await _end(scene, actor, Succeeded())


async def fail(scene: Scene, actor: Actor) -> Any:
    return await _end(scene, actor, FAULT)


async def die(scene: Scene, actor: Actor) -> Any:
    return await _end(scene, actor, FAULT, tries=1)


async def _end(scene: Scene, actor: Actor, outcome: Succeeded | Failed, tries: int = 99) -> Any:
    assert scene.claimed is not None
    return (await scene.hands[actor].end(scene.claimed, outcome, tries)).state.value


async def hand_back(scene: Scene, actor: Actor) -> Any:
    assert scene.claimed is not None
    held = (scene.claimed.run_id, scene.claimed.attempt, scene.claimed.batch)
    return ok(await actor.store.attempts.hand_back("w1", [held]))


WRITTEN: dict[Act, str] = {
    cancel: "cancel.written", replay: "replay.written", replay_many: "replay.written", discard: "discard.written",
    promote: "promote.written", claim: "claim.written", succeed: "finish.written", fail: "finish.written",
    die: "finish.written", hand_back: "hand_back.written",
}  # fmt: skip


def both(scene: Scene, one: Act, other: Act) -> tuple[Any, Any]:
    """`one` has written and not committed; `other` does its work, or waits for it; then `one` commits."""
    hold = scene.first.hold = Hold("store.commit", WRITTEN[one])
    first = scene.first.do(one(scene, scene.first))
    while not hold.reached.wait(0.002):
        assert not first.done(), first.result()
    second = scene.second.do(other(scene, scene.second))
    while not second.done() and not scene.somebody_waits():
        sleep(0.001)
    hold.go()
    answers = first.result(20), second.result(20)
    scene.first.hold = None
    return answers


@pytest.fixture
def scene(clocked: Template) -> Iterator[Scene]:
    clock = HandClock(BEGIN_MS)
    with clocked.copy() as url, two_actors(url, clock) as (first, second):
        found = Scene(url, first, second, clock)
        yield found
        found.close()


# where the run is, what races with a cancel, and what the cancel may say: if it is first, and if it is second
RACES: list[tuple[str, Act, str, set[str]]] = [
    ("planned", promote, "cancelled", {"cancelled"}),
    ("resting, due", promote, "cancelled", {"cancelled"}),
    ("queued", claim, "cancelled", {"stopping"}),
    ("resting, queued", claim, "cancelled", {"stopping"}),
    ("running", succeed, "stopping", {"refused"}),
    ("running", fail, "stopping", {"cancelled"}),
    ("running", die, "stopping", {"refused"}),
    ("running", hand_back, "stopping", {"cancelled"}),
    ("planned", cancel, "cancelled", {"unchanged"}),
    ("queued", cancel, "cancelled", {"unchanged"}),
    ("running", cancel, "stopping", {"unchanged"}),
    ("resting", cancel, "cancelled", {"unchanged"}),
]


def test_cancel_against_everything_that_moves_a_run(scene: Scene) -> None:
    """S3-4: cancelled and not claimed, or claimed and asked to stop; never both, never neither."""
    for where, other, if_first, if_second in RACES:
        told = f"{where}, {other.__name__}"
        scene.now(scene.bring(where))
        said, _ = both(scene, cancel, other)
        scene.check()
        assert said == if_first, told
        row = scene.place()
        if said == "cancelled":
            assert row["state"] == "cancelled", told
        elif other is not succeed:  # whoever was asked to stop does not go on
            assert row["state"] == "cancelled" or row["cancel"] is not None, told
        scene.end_run()

        scene.now(scene.bring(where))
        _, said = both(scene, other, cancel)
        scene.check()
        assert said in if_second, told
        row = scene.place()
        if said == "cancelled":
            assert row["state"] == "cancelled", told
        if said == "stopping":
            assert row["held"], told
            assert row["cancel"] == "no (by bob)", told
        scene.end_run()


def test_a_dead_letter_is_replayed_once(scene: Scene) -> None:
    """S3-8: whoever comes second finds it open."""
    for one, other in ((replay, replay), (replay, replay_many), (replay_many, replay)):
        scene.now(scene.bring("dead"))
        both(scene, one, other)
        scene.check()
        row = scene.place()
        assert (row["state"], row["round"], row["upcoming"]) == ("planned", 1, 1)
        events = scene.fetch("SELECT count FROM events WHERE kind = 'run_replayed' ORDER BY event_id")
        assert len(events) == 1
        scene.fetch("DELETE FROM events")
        scene.end_run()


def test_replay_against_discard(scene: Scene) -> None:
    """A replay takes a discard back; a discard of a run that is open again is refused."""
    scene.now(scene.bring("dead"))
    assert both(scene, discard, replay) == ("discarded", "replayed")
    scene.check()
    scene.end_run()
    scene.now(scene.bring("dead"))
    assert both(scene, replay, discard) == ("replayed", "refused")
    scene.check()
    assert scene.place()["state"] == "planned"


def test_one_key_is_one_run(scene: Scene) -> None:
    """S0-61: two that ask at once with the same key get the same run."""

    async def trigger(_scene: Scene, actor: Actor) -> Any:
        return ok(await actor.store.steering.trigger(("default", "a"), None, actor="bob", key="same"))

    WRITTEN[trigger] = "trigger.written"
    one, other = both(scene, trigger, trigger)
    assert one.run_id == other.run_id
    assert (one.created, other.created) == (True, False)
    [row] = scene.fetch("SELECT count(*) AS runs FROM runs WHERE asked_key = 'same'")
    assert row["runs"] == 1
    [row] = scene.fetch("SELECT count(*) AS ways FROM upcoming WHERE run_id = $1", one.run_id)
    assert row["ways"] == 1


def test_a_job_is_triggered_while_it_is_being_cancelled(scene: Scene) -> None:
    """Nobody waits for the other. Whoever asks before the end of the job is committed gets a run that ends with it;
    whoever asks after it is refused."""

    async def end_job(_scene: Scene, actor: Actor) -> Any:
        return (await Desk(actor.store, actor="test", shards=SHARDS).cancel("default", "a")).done

    async def trigger(_scene: Scene, actor: Actor) -> Any:
        return await actor.store.steering.trigger(("default", "a"), None, actor="bob", key="late")

    async def trigger_again(_scene: Scene, actor: Actor) -> Any:
        return await actor.store.steering.trigger(("default", "a"), None, actor="bob", key="later")

    WRITTEN[end_job] = "amend.written"
    done, said = both(scene, end_job, trigger)
    scene.run_id = ok(said).run_id
    assert done == "cancelled"
    assert scene.now(scene.hands[scene.first].take()) == {}
    scene.check()
    assert scene.place()["state"] == "cancelled"
    assert scene.now(trigger_again(scene, scene.first)) == Refused("default/a is cancelled: it never runs again")


def test_a_forecast_is_cancelled_or_taken_back(scene: Scene) -> None:
    """An edit takes a forecast back that is being cancelled, or leaves it cancelled: the tick has one answer."""

    async def edit(_scene: Scene, actor: Actor) -> Any:
        entry = EveryEntry(MINUTE, 0)
        wish = Definition("a", (entry,), RUN, description=f"no {next(scene.numbers)}", overlap=OverlapRule("queue"))
        return (await Desk(actor.store, actor="test", shards=SHARDS).edit(wish)).done

    WRITTEN[edit] = "amend.written"
    for one, other in ((cancel, edit), (edit, cancel)):
        scene.pass_time(MINUTE)
        scene.now(plan(scene, scene.first.store))
        [row] = scene.fetch("SELECT run_id FROM runs WHERE kind = 'tick' ORDER BY scheduled_for_ms DESC LIMIT 1")
        scene.run_id = row["run_id"]
        said, then = both(scene, one, other)
        if one is cancel:
            assert (said, then) == ("cancelled", "changed")
            scene.check()
        else:
            assert (said, then) == ("changed", "refused")
            assert scene.fetch("SELECT FROM runs WHERE run_id = $1", scene.run_id) == []
            assert scene.fetch("SELECT FROM upcoming WHERE run_id = $1", scene.run_id) == []


async def plan(scene: Scene, store: Store) -> Any:
    return await tick(store.cursors, Tables(store.almanac), scene.held, lookahead_ms=MINUTE)


def test_a_backfill_and_the_scheduler_answer_a_tick_once(scene: Scene) -> None:
    """Run or ledger line, never both, never two; whoever comes second sees what the first one did."""

    async def filled(_scene: Scene, actor: Actor) -> Any:
        """Each session has its own stretch; they overlap, and the last ten minutes may be undecided."""
        begin = scene.clock.now_ms() - (15 if actor is scene.first else 12) * MINUTE
        return await backfill(actor.store, "default", "a", begin, begin + 8 * MINUTE, actor="bob")

    async def ticks(scene: Scene, actor: Actor) -> Any:
        return (await plan(scene, actor.store)).jobs

    async def gaps(scene: Scene, actor: Actor) -> Any:
        return (await fill_gaps(actor.store.gaps, Tables(actor.store.almanac), scene.held, room=10**6)).gaps

    WRITTEN.update({filled: "backfill.written", ticks: "advance.write", gaps: "gaps.write"})
    scene.now(scene.apply(misfire=MisfireRule("all", limit=3, grace_ms=0)))

    def rest() -> None:
        for _ in range(3):
            scene.now(ticks(scene, scene.first))
            scene.now(gaps(scene, scene.first))

    scene.pass_time(30 * MINUTE)
    rest()
    for one, other in ((filled, ticks), (ticks, filled), (filled, gaps), (gaps, filled), (filled, filled)):
        scene.pass_time(10 * MINUTE)
        if gaps in (one, other):
            scene.now(ticks(scene, scene.first))
        if one is other:
            rest()
        both(scene, one, other)
        rest()
        twice = scene.fetch(
            "SELECT r.scheduled_for_ms FROM runs AS r JOIN ledger AS l ON l.job_id = r.job_id"
            " AND r.scheduled_for_ms BETWEEN l.from_ms AND l.to_ms WHERE r.kind <> 'manual'"
        )
        assert twice == [], (one.__name__, other.__name__)
        now = scene.clock.now_ms()
        [row] = scene.fetch("SELECT count(*) AS n FROM runs WHERE kind <> 'manual' AND scheduled_for_ms <= $1", now)
        [line] = scene.fetch("SELECT coalesce(sum(ticks), 0) AS n FROM ledger")
        assert row["n"] + line["n"] == (now - BEGIN_MS) // MINUTE, (one.__name__, other.__name__)
        assert scene.fetch("SELECT FROM events WHERE kind = 'run_conflict'") == []
    assert len(scene.fetch("SELECT FROM events WHERE kind = 'ledger_superseded'")) == 5
