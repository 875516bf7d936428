"""Two sessions that want the same key, name or request, on PostgreSQL, switched at every statement.

The first one is stopped before each of its statements in turn, and before its commit; the second one does the whole of
its work meanwhile, or waits for a lock; then the first one goes on. Every pair is played in both orders.
"""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from time import sleep
from typing import Any, TypeAlias

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.model.access import KeyText, KeyWish, Role, new_key, new_session
from fleetcron.store.idempotency import KEPT_MS, STALE_MS
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Written
from tests.faults.actors import PATIENCE_S, Actor, two_actors
from tests.faults.scene import WAITING, Stop
from tests.services.postgres import Template
from tests.store.check_access import ok
from tests.store.engines import DatabaseClock

NOW = 1_800_000_000_000
WISH = KeyWish("ci", Role.OPERATOR, "acme")


@dataclass
class Scene:
    """Two actors on one database, a clock, and what the two of them are about."""

    actors: tuple[Actor, Actor]
    clock: DatabaseClock
    look: Any
    numbers: Iterator[int] = field(default_factory=count)
    name: str = ""
    keys: tuple[KeyText, KeyText] = field(default_factory=lambda: (new_key(), new_key()))
    token: str = ""

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.actors[0].do(work).result(PATIENCE_S)

    def begin(self, prepare: "Act") -> None:
        """Something new each time: what was before is nobody's business."""
        self.name = f"n{next(self.numbers)}"
        self.keys, self.token = (new_key(), new_key()), new_session().digest
        self.do(prepare(self, self.actors[0].store))

    def rows(self, query: str) -> list[Any]:
        found: list[Any] = self.actors[1].do(self.look.fetch(query)).result(PATIENCE_S)
        return found

    def interleave(self, one: "Act", other: "Act", before: int) -> tuple[Any, Any] | None:
        """What both said; None if the first one has no such statement."""
        stops = Stop(self.actors[0], before), Stop(self.actors[1], -1)
        for stop in stops:
            stop.install()
        try:
            ran = self.actors[0].do(one(self, self.actors[0].store))
            while not stops[0].reached.wait(0.002):
                if ran.done():
                    ran.result()
                    return None
            then = self.actors[1].do(other(self, self.actors[1].store))
            while not then.done() and not self.rows(WAITING)[0][0]:
                sleep(0.001)
            stops[0].go()
            said = ran.result(PATIENCE_S), then.result(PATIENCE_S)
        finally:
            stops[0].go()
            for stop in stops:
                stop.remove()
        assert [*stops[0].errors, *stops[1].errors] == []  # also no deadlock that was tried again
        return said


Act: TypeAlias = Callable[[Scene, Store], Coroutine[Any, Any, Any]]


@pytest.fixture
def scene(store_template18: Template) -> Iterator[Scene]:
    with store_template18.copy() as url, opened(url) as found:
        yield found


@contextmanager
def opened(url: str) -> Iterator[Scene]:
    clock = DatabaseClock(NOW)
    with two_actors(url, clock.hand) as (first, second):
        first.do(clock.take_over(first.store.engine)).result(PATIENCE_S)
        look = second.do(asyncpg.connect(url, server_settings={"search_path": "fleetcron"})).result(PATIENCE_S)
        yield Scene((first, second), clock, look)
        second.do(look.close()).result(PATIENCE_S)


# -- what there is


async def nothing(_scene: Scene, _store: Store) -> None:
    """Nobody has asked."""


async def a_request(scene: Scene, store: Store) -> None:
    await asks("old")(scene, store)


async def a_stale_request(scene: Scene, store: Store) -> None:
    await asks("old")(scene, store)
    await scene.clock.advance(STALE_MS)


async def a_request_of_yesterday(scene: Scene, store: Store) -> None:
    await asks("old")(scene, store)
    await finishes("old")(scene, store)
    await scene.clock.advance(KEPT_MS)


async def a_key(scene: Scene, store: Store) -> None:
    assert await creates(0)(scene, store) == "created"


async def two_keys(scene: Scene, store: Store) -> None:
    await a_key(scene, store)
    other = scene.keys[1]
    ok(await store.keys.create(other.key_id, other.digest, KeyWish(f"{scene.name}.b", Role.VIEWER), actor="ann"))


# -- what they do, and what they say


def asks(owner: str, request: str = "r") -> Act:
    async def act(scene: Scene, store: Store) -> str:
        return type(ok(await store.idempotency.begin("s", scene.name, request, owner=owner))).__name__

    return act


def finishes(owner: str) -> Act:
    async def act(scene: Scene, store: Store) -> str:
        return word(await store.idempotency.finish("s", scene.name, owner=owner, status=200, headers={}, body=b"x"))

    return act


def gives_back(owner: str) -> Act:
    async def act(scene: Scene, store: Store) -> str:
        return str(ok(await store.idempotency.abandon("s", scene.name, owner=owner)))

    return act


async def purges(_scene: Scene, store: Store) -> str:
    return word(await store.idempotency.purge())


def creates(which: int, name: str = "") -> Act:
    async def act(scene: Scene, store: Store) -> str:
        key, wish = scene.keys[which], KeyWish(name or scene.name, Role.OPERATOR, "acme")
        done = await store.keys.create(key.key_id, key.digest, wish, actor="ann")
        return ("created" if done.value.created else "known") if isinstance(done, Ok) else "Refused"

    return act


async def revokes(scene: Scene, store: Store) -> str:
    return str(ok(await store.keys.revoke(scene.keys[0].key_id, "x", actor="ann")).changed)


async def logs_in(scene: Scene, store: Store) -> str:
    return word(await store.sessions.create(scene.token, scene.keys[0].key_id))


def touches(*order: int) -> Act:
    async def act(scene: Scene, store: Store) -> str:
        return str(ok(await store.keys.touch([scene.keys[at].key_id for at in order])))

    return act


def word(written: Written[Any]) -> str:
    assert isinstance(written, Ok | Refused), written
    return type(written).__name__


# -- every pair, with all that may come out, whoever is stopped; the first of each is what `one` says

PAIRS: dict[str, tuple[Act, Act, Act, set[tuple[str, str]]]] = {
    "the same request twice": (nothing, asks("a"), asks("b"), {("New", "Running"), ("Running", "New")}),
    "two requests with one key": (
        nothing, asks("a"), asks("b", "other"), {("New", "Different"), ("Different", "New")},
    ),
    "two take over": (a_stale_request, asks("a"), asks("b"), {("New", "Running"), ("Running", "New")}),
    "take over and the end of who was thought dead": (
        a_stale_request, asks("a"), finishes("old"), {("New", "Refused"), ("Done", "Ok")},
    ),
    "take over and give back": (
        a_stale_request, asks("a"), gives_back("old"), {("New", "False"), ("New", "True")},
    ),
    "ask and give back": (a_request, asks("a"), gives_back("old"), {("Running", "True"), ("New", "True")}),
    "ask and the end": (a_request, asks("a"), finishes("old"), {("Running", "Ok"), ("Done", "Ok")}),
    "the end twice": (a_request, finishes("old"), finishes("old"), {("Ok", "Ok")}),
    "the end and give back": (
        a_request, finishes("old"), gives_back("old"), {("Ok", "False"), ("Refused", "True")},
    ),
    "ask again after a day and purge": (a_request_of_yesterday, asks("a"), purges, {("New", "Ok")}),
    "two ask again after a day": (
        a_request_of_yesterday, asks("a"), asks("b"), {("New", "Running"), ("Running", "New")},
    ),
    "two purge": (a_request_of_yesterday, purges, purges, {("Ok", "Ok")}),
    "two keys want a name": (nothing, creates(0), creates(1), {("created", "Refused"), ("Refused", "created")}),
    "one key twice": (nothing, creates(0), creates(0), {("created", "known"), ("known", "created")}),
    "revoke twice": (a_key, revokes, revokes, {("True", "False"), ("False", "True")}),
    "replace and revoke": (a_key, creates(1), revokes, {("created", "True"), ("Refused", "True")}),
    "log in and revoke": (a_key, logs_in, revokes, {("Ok", "True"), ("Refused", "True")}),
    "log in twice": (a_key, logs_in, logs_in, {("Ok", "Ok")}),
    "touch in two orders": (
        two_keys, touches(0, 1), touches(1, 0), {("2", "0"), ("0", "2")},
    ),
    "touch and revoke": (a_key, touches(0), revokes, {("1", "True"), ("0", "True")}),
}  # fmt: skip


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("pair", PAIRS)
def test_two_sessions(scene: Scene, pair: str, turned: bool) -> None:
    prepare, one, other, allowed = PAIRS[pair]
    first, second = (other, one) if turned else (one, other)
    for before in count():
        scene.begin(prepare)
        said = scene.interleave(first, second, before)
        if said is None:
            assert before > 0
            return
        assert (said[::-1] if turned else said) in allowed, f"stopped before statement {before}: {said}"
        afterwards(scene, pair)


def afterwards(scene: Scene, pair: str) -> None:
    """Whatever they said: what is there now is one story."""
    events = scene.rows(f"SELECT kind FROM events WHERE detail ->> 'key_id' = '{scene.keys[0].key_id}'")
    kinds = [row["kind"] for row in events]
    assert sorted(set(kinds)) == sorted(kinds)  # none of them twice
    found = scene.rows(f"SELECT * FROM access_keys WHERE key_id = '{scene.keys[0].key_id}'")
    assert ("key_created" in kinds) == bool(found)
    assert ("key_revoked" in kinds) == any(row["revoked_ms"] is not None for row in found)
    named = scene.rows(f"SELECT 1 FROM access_keys WHERE name = '{scene.name}' AND revoked_ms IS NULL")
    assert len(named) <= 1
    requests = scene.rows(f"SELECT * FROM idempotency WHERE key = '{scene.name}'")
    assert len(requests) <= 1
    if pair.startswith("log in and revoke"):
        assert scene.do(scene.actors[0].store.sessions.find(scene.token)) is None


def test_a_purge_waits_for_nobody(scene: Scene) -> None:
    """Somebody holds an old request: the sweep goes past it, and has it the next time."""
    scene.begin(a_request_of_yesterday)
    held, scene.name = scene.name, "n"
    scene.do(a_request_of_yesterday(scene, scene.actors[0].store))
    scene.rows("BEGIN")
    scene.rows(f"SELECT 1 FROM idempotency WHERE key = '{held}' FOR UPDATE")
    store = scene.actors[0].store
    assert ok(scene.do(store.idempotency.purge())) == 1
    scene.rows("ROLLBACK")
    assert ok(scene.do(store.idempotency.purge())) == 1
