"""An application has asked for a run in a transaction of its own, and takes its time: nobody waits for it.

Whoever changes the job meanwhile has committed before the application, after it, or has written and not committed when
it asks. In each order the run has one clear end, by what became of its job.
"""

from collections.abc import Callable, Coroutine, Iterator
from itertools import count
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.clock import HandClock
from fleetcron.errors import RefusedError
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Succeeded
from fleetcron.model.rules import EveryEntry, MisfireRule
from fleetcron.scheduler.desk import Desk
from fleetcron.store.borrowed import borrow
from fleetcron.store.steering import Triggered, enqueueing
from tests.faults.actors import Actor, Hold, two_actors
from tests.faults.jobs import RUN
from tests.faults.story import BEGIN_MS, CLOCK_SQL
from tests.faults.test_steering_interleavings import MINUTE, SHARDS, Scene, plan
from tests.services.postgres import Template, execute
from tests.store.conftest import give_it_tables

PATIENCE_S = 20
ENDED = "SELECT state, reason, revision FROM runs WHERE run_id = $1"


@pytest.fixture(scope="module")
def clocked(postgres18_server: str) -> Iterator[Template]:
    def prepare(url: str) -> None:
        give_it_tables(url)
        execute(url, CLOCK_SQL)

    template = Template(postgres18_server, prepare)
    yield template
    template.drop()


class Shop:
    """An application: a plain connection, and whoever does something to its jobs meanwhile."""

    def __init__(self, url: str, scene: Scene) -> None:
        self.scene = scene
        self.names = (f"job-{n}" for n in count(1))
        self.connection = self.do(asyncpg.connect(url))

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.scene.second.do(work).result(PATIENCE_S)

    def define(self, **fields: Any) -> str:
        name = next(self.names)
        fields = {"misfire": MisfireRule("skip", grace_ms=0), **fields}
        self.scene.now(self.desk.create(Definition(name, (EveryEntry(MINUTE, 0),), RUN, **fields)))
        return name

    @property
    def desk(self) -> Desk:
        return Desk(self.scene.first.store, actor="ann", shards=SHARDS)

    def begin(self) -> None:
        self.do(self.connection.execute("BEGIN"))

    def ask(self, name: str) -> Triggered:
        asked: Triggered = self.do(
            borrow(self.connection, "fleetcron", lambda: enqueueing(("default", name), None, name, actor="shop"))
        )
        return asked

    def end(self, how: str) -> None:
        self.do(self.connection.execute(how))

    def work_off(self, run_id: int) -> Any:
        """Whoever gets the run carries it out. How it ended, and under which revision."""

        async def work() -> None:
            hands = self.scene.hands[self.scene.first]
            while claimed := await hands.take():
                for each in claimed.values():
                    await hands.end(each, Succeeded())

        self.scene.now(work())
        found = self.scene.fetch(ENDED, run_id)
        assert self.scene.fetch("SELECT FROM queue") == self.scene.fetch("SELECT FROM leases") == []
        return tuple(found[0]) if found else None


@pytest.fixture
def shop(clocked: Template) -> Iterator[Shop]:
    clock = HandClock(BEGIN_MS)
    with clocked.copy() as url, two_actors(url, clock) as (first, second):
        scene = Scene(url, first, second, clock)
        scene.now(Desk(first.store, actor="ann", shards=SHARDS).delete("default", "a"))
        found = Shop(url, scene)
        yield found
        found.do(found.connection.close())
        scene.close()


Change: TypeAlias = Callable[[Shop, str], Coroutine[Any, Any, Any]]


async def edit(shop: Shop, name: str) -> Any:
    wish = Definition(name, (EveryEntry(2 * MINUTE, 0),), RUN, description="new", misfire=MisfireRule("skip"))
    return await shop.desk.edit(wish)


async def pause(shop: Shop, name: str) -> Any:
    return await shop.desk.pause("default", name)


async def cancel(shop: Shop, name: str) -> Any:
    return await shop.desk.cancel("default", name)


async def delete(shop: Shop, name: str) -> Any:
    return await shop.desk.delete("default", name)


async def replace(shop: Shop, name: str) -> Any:
    """Deleted, and there is another of this name."""
    await delete(shop, name)
    return await shop.desk.create(Definition(name, (EveryEntry(MINUTE, 0),), RUN))


# what becomes of a run that was asked for before
ENDS: dict[Change, tuple[str, str | None, int]] = {
    edit: ("succeeded", None, 1),
    pause: ("succeeded", None, 1),
    cancel: ("cancelled", "its job was cancelled", 1),
    delete: ("cancelled", "its job was deleted", 1),
    replace: ("cancelled", "its job was deleted", 1),
}


@pytest.mark.parametrize("change", ENDS)
def test_a_job_is_changed_while_an_application_asks_for_a_run(shop: Shop, change: Change) -> None:
    """Asked before the change, which does not wait; and nothing is there if the application changes its mind."""
    for how in ("COMMIT", "ROLLBACK"):
        name = shop.define()
        shop.begin()
        asked = shop.ask(name)
        shop.scene.now(change(shop, name))
        shop.end(how)
        assert shop.work_off(asked.run_id) == (ENDS[change] if how == "COMMIT" else None)


@pytest.mark.parametrize("first", ["the application", "the change"])
@pytest.mark.parametrize("change", [each for each in ENDS if each is not replace])
def test_an_application_asks_while_a_job_is_being_changed(shop: Shop, change: Change, first: str) -> None:
    """The change is written and not committed: the application does not wait for it either, whoever commits first."""
    name = shop.define()
    actor: Actor = shop.scene.first
    hold = actor.hold = Hold("store.commit", "amend.written")
    changed = actor.do(change(shop, name))
    assert hold.reached.wait(PATIENCE_S)
    shop.begin()
    asked = shop.ask(name)
    if first == "the application":
        shop.end("COMMIT")
    hold.go()
    changed.result(PATIENCE_S)
    if first == "the change":
        shop.end("COMMIT")
    assert shop.work_off(asked.run_id) == ENDS[change]


@pytest.mark.parametrize(
    ("change", "why"),
    [(pause, "is paused, so nothing was enqueued"), (cancel, "is cancelled: it never"), (delete, "there is no job")],
)
def test_an_application_hears_of_what_was_changed_before(shop: Shop, change: Change, why: str) -> None:
    """Also if its transaction had begun."""
    name = shop.define()
    shop.begin()
    shop.do(shop.connection.execute("SELECT 1"))
    shop.scene.now(change(shop, name))
    with pytest.raises(RefusedError, match=why):
        shop.ask(name)
    shop.end("COMMIT")


def test_an_old_snapshot_asks_for_a_run_of_a_job_that_is_gone(shop: Shop) -> None:
    """Under REPEATABLE READ the job is still there: the run ends with it."""
    name = shop.define()
    shop.do(shop.connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM fleetcron.jobs"))
    shop.scene.now(delete(shop, name))
    asked = shop.ask(name)
    shop.end("COMMIT")
    assert shop.work_off(asked.run_id) == ENDS[delete]


def test_planning_goes_on_while_a_job_ends_of_which_an_application_asks_for_a_run(shop: Shop) -> None:
    """All jobs of all shards are planned in one statement, and it writes which of them have had their last tick."""
    ending = shop.define(max_ticks=1)
    others = [shop.define() for _ in range(3)]
    shop.begin()
    asked = shop.ask(ending)
    shop.scene.pass_time(MINUTE)
    rounds = [shop.scene.now(plan(shop.scene, shop.scene.first.store)) for _ in range(2)]
    assert sum(each.jobs for each in rounds) >= 1 + len(others)
    state = "SELECT state FROM jobs WHERE name = $1"
    assert [row["state"] for row in shop.scene.fetch(state, ending)] == ["finished"]
    shop.end("COMMIT")
    assert shop.work_off(asked.run_id) == ("succeeded", None, 1)
