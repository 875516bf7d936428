"""What people ask for, each as a life of its own that dies at a step of it; and a database in which all of it matters.

As a part of the nursery it opens the store, asks once, and says which steps it passed, in order.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fleetcron import steps
from fleetcron.clock import HandClock
from fleetcron.model.control import Wish
from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Fault
from fleetcron.model.ping import Told
from fleetcron.model.rules import EveryEntry, MisfireRule, OverlapRule, RetryRule
from fleetcron.scheduler import backfill as backfilling
from fleetcron.scheduler.backfill import backfill
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store import looking
from fleetcron.store.opening import open_engine
from fleetcron.store.steering import DeadFilter
from fleetcron.store.store import Store
from fleetcron.store.written import Refused, Unknown
from fleetcron.times.instants import LAST_MS
from tests.faults.jobs import RUN
from tests.store.engines import change
from tests.worker.inspection import Rules
from tests.worker.shop import BEGIN_MS, Job, Shop, ok

MINUTE, HOUR = 60_000, 3_600_000
NOW_MS = BEGIN_MS + 10 * MINUTE + 1
PIECE = 3  # ticks of a backfill, and runs that a changed limit lets go, in one transaction
BROKEN = Failed(Fault("broken"))

QUEUED = Job(1, overlap="queue")
FREE = Job(2, overlap="allow", max_running=0)
DEAD = Job(3, overlap="allow", max_running=0)
RESTING = Job(4, overlap="queue")
CAPPED = Job(5, tenant="capped", overlap="allow", max_running=0)
QUOTA = Job(6, pool="p2", overlap="allow", max_running=0)
HELD = Job(7, tenant="held", overlap="allow", max_running=0)
OTHER = Job(8, tenant="other", overlap="allow", max_running=0)
TICKING = Job(9, tenant="default", pool="default", overlap="allow", max_running=0)
OLD_ID = "00000000-0000-7000-8000-0000000000ff"  # in shadow: it has no runs
JOBS = {job.job_id: job for job in (QUEUED, FREE, DEAD, RESTING, CAPPED, QUOTA, HELD, OTHER, TICKING)}
POOLS = ("p1", "p2", "default")

# Where the runs of the scene are, by their ids.
RUNNING, DIED, RESTS = 1, (2, 3, 4), 5
FREED = {CAPPED: range(6, 11), QUOTA: range(11, 16), HELD: range(16, 21)}  # one of the first two is held
BEHIND, AFTER = 21, 22  # they wait for the one that runs, and for the one that rests between two attempts
READY, OTHERS, COMING, CANCELLED = 23, 24, 25, 26
LAST = 100  # runs after this one are new
NOBODY = 999


async def set_the_scene(shop: Shop) -> None:
    """Runs at every place, and some that wait for each kind of limit."""
    store = shop.store
    await _past(store, shop)
    await shop.define(*(job for job in JOBS.values() if job is not TICKING))
    await shop.join("w1", p1=50, p2=50, default=50)
    ok(await store.limits.put_tenant("capped", {"max_in_flight": 1}, actor="test"))
    ok(await store.limits.put_pool("p2", {"per_tenant": 1}, actor="test"))
    ok(await store.controls.switch(Wish("tenant", "held", percent=0, reason="test"), actor="test"))
    for job, ticks in ((QUEUED, 1), (DEAD, 3), (RESTING, 1), (CAPPED, 5), (QUOTA, 5), (HELD, 5)):
        await shop.plan(job, *(NOW_MS - 20 + number for number in range(ticks)))
    await _take(shop, {RUNNING, *DIED, RESTS, FREED[CAPPED][0], FREED[QUOTA][0]})
    for run_id in DIED:
        await shop.finish("w1", run_id, 1, BROKEN, RetryRule(max_attempts=1))
    await shop.finish("w1", RESTS, 1, BROKEN)
    assert [*await shop.plan(QUEUED, NOW_MS - 9), *await shop.plan(RESTING, NOW_MS - 9)] == [BEHIND, AFTER]
    await _take(shop, set())
    made = [await shop.plan(job, at) for job, at in ((FREE, NOW_MS), (OTHER, NOW_MS), (FREE, NOW_MS + MINUTE))]
    assert made == [[READY], [OTHERS], [COMING]]
    assert await shop.plan(DEAD, NOW_MS) == [CANCELLED]
    ok(await store.steering.cancel([CANCELLED], None, actor="test"))
    await shop.promote()
    if store.engine.name == "postgres":  # where ids are given by hand above
        await change(store.engine, f"SELECT setval(pg_get_serial_sequence('runs', 'run_id'), {LAST})")


async def _take(shop: Shop, expected: set[int]) -> None:
    await shop.promote()
    assert {run for pool in POOLS for run in await shop.claimed("w1", pool, room=50)} == expected


async def _past(store: Store, shop: Shop) -> None:
    """Ten ticks of a job that the ledger has answered, and of one in shadow."""
    desk = Desk(store, actor="test", shards=2, new_id=lambda _: TICKING.job_id)
    rule, overlap = MisfireRule("skip", grace_ms=0), OverlapRule("allow")
    await desk.create(Definition("ticking", (EveryEntry(MINUTE, 0),), RUN, misfire=rule, overlap=overlap))
    other = Desk(store, actor="test", shards=2, new_id=lambda _: OLD_ID)
    await other.create(Definition("old", (EveryEntry(MINUTE, 0),), RUN, shadow_ms=LAST_MS))
    await shop.clock.set(NOW_MS)
    held = ok(await store.shards.take("*", [0, 1], "scheduler", 10**9))
    while (await tick(store.cursors, Tables(store.almanac), held, lookahead_ms=0)).jobs:
        pass


# -- what is asked

Ask: TypeAlias = Callable[[Store], Awaitable[Any]]
SCENE = Rules(caps={"capped": 1}, per_tenant={"p2": 1})
MORE, PER_TENANT = Rules(caps={"capped": 3}, per_tenant={"p2": 1}), Rules(caps={"capped": 1}, per_tenant={"p2": 3})


@dataclass(frozen=True)
class Wanted:
    """When it is done `rules` hold, and the tenants that are `paused` have to wait (None: some of their runs).
    `pages`: it lets more runs go than one transaction does."""

    ask: Ask
    rules: Rules = field(default_factory=lambda: SCENE)
    paused: frozenset[str] | None = frozenset({"held"})
    pages: bool = False


def _tenant(fields: Mapping[str, object]) -> Ask:
    return lambda store: store.limits.put_tenant("capped", fields, actor="ann")


def _pool(fields: Mapping[str, object]) -> Ask:
    return lambda store: store.limits.put_pool("p2", fields, actor="ann")


def _switch(name: str, **wish: Any) -> Ask:
    return lambda store: store.controls.switch(Wish("tenant", name, reason="an incident", **wish), actor="ann")


EVERYWHERE = (RUNNING, *DIED[:1], RESTS, BEHIND, AFTER, READY, COMING, CANCELLED, FREED[CAPPED][1], NOBODY)
ASKS: dict[str, Wanted] = {
    "trigger": Wanted(lambda store: store.steering.trigger(("t1", "job-2"), {"n": 1}, actor="ann", key="k")),
    "cancel": Wanted(lambda store: store.steering.cancel(EVERYWHERE, "no", actor="ann")),
    "replay": Wanted(lambda store: store.steering.replay([*DIED[:2], CANCELLED, RUNNING], actor="ann")),
    "replay many": Wanted(lambda store: store.steering.replay_many(DeadFilter(), actor="ann")),
    "discard": Wanted(lambda store: store.steering.discard([*DIED[:2], READY], "known", actor="ann")),
    "backfill": Wanted(
        lambda store: backfill(store, "default", "ticking", BEGIN_MS + 1, BEGIN_MS + 7 * MINUTE, actor="ann")
    ),
    "ping": Wanted(lambda store: store.pings.note("default", "old", Told("end", 0, 500, ping_id="p", host="web1"))),
    "hand over": Wanted(lambda store: Desk(store, actor="ann", shards=2).hand_over("default", "old", NOW_MS + HOUR)),
    "take back": Wanted(lambda store: Desk(store, actor="ann", shards=2).take_back("default", "ticking")),
    "put a tenant": Wanted(_tenant({"max_in_flight": 3, "weight": 2}), MORE),
    "delete a tenant": Wanted(
        lambda store: store.limits.delete_tenant("capped", actor="ann"), Rules(per_tenant={"p2": 1}), pages=True
    ),
    "put a pool": Wanted(_pool({"per_tenant": 3}), PER_TENANT),
    "delete a pool": Wanted(lambda store: store.limits.delete_pool("p2", actor="ann"), Rules(caps={"capped": 1})),
    "hold": Wanted(_switch("other", percent=0), paused=frozenset({"held", "other"})),
    "slow": Wanted(_switch("other", attempts=1, backoff=4.0)),
    "let some go on": Wanted(_switch("held", percent=50, keeps_end=True), paused=None),
    "release": Wanted(lambda store: store.controls.release("tenant", "held", actor="ann"), paused=frozenset()),
}


# -- a life that asks


class Death:
    """At the n-th step; never if n is 0."""

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self.passed: list[str] = []

    def __call__(self, step: str) -> None:
        self.passed.append(step)
        if len(self.passed) == self._nth:
            os.kill(os.getpid(), signal.SIGKILL)


async def _ask(url: str, name: str, death: Death) -> None:
    engine = await open_engine(url, clock=HandClock(NOW_MS), connections=2)
    try:
        steps.on_step(death)
        said = await ASKS[name].ask(Store(engine))
        assert not isinstance(said, Refused | Unknown), said
    finally:
        steps.on_step(None)
        await engine.close()


def live(wish: Mapping[str, Any]) -> None:
    backfilling.PIECE = PIECE  # type: ignore[misc]
    if ASKS[wish["ask"]].pages:
        looking.PAGE = PIECE  # type: ignore[misc]
    death = Death(wish["nth"])
    asyncio.run(_ask(wish["url"], wish["ask"], death))
    print(json.dumps({"passed": death.passed}), flush=True)
