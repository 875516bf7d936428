"""Checks of the conformance suite about tenants, pools and incident controls: what is kept, and what is refused."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from fleetcron.errors import DefinitionError, RefusedError
from fleetcron.model.control import Switched, Wish
from fleetcron.model.definition import Definition
from fleetcron.model.pool import Pool
from fleetcron.model.queued import Control
from fleetcron.model.rules import CronEntry, OnceEntry, OverlapRule
from fleetcron.model.target import CommandTarget
from fleetcron.model.tenant import Tenant
from fleetcron.scheduler.desk import Desk
from fleetcron.store import looking
from fleetcron.store.claims import Claimed
from fleetcron.store.history import Span
from fleetcron.store.looking import Changed
from fleetcron.store.rows import rows
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Refused, Written
from tests.store.engines import change
from tests.store.floor import Floor

if TYPE_CHECKING:
    from tests.store.test_conformance import World

NOW = 1_800_000_000_000
HOUR = 3_600_000
RUNS = count(1)
JOB = "00000000-0000-7000-8000-00000000000"

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


def ok(written: Written[Any]) -> Any:
    assert isinstance(written, Ok), written
    return written.value


def of(tenant: str, name: str, **fields: Any) -> Definition:
    entry = CronEntry("* * * * *", "UTC", "skip", "both")
    return Definition(name, (entry,), CommandTarget(("true",)), tenant=tenant, **fields)


async def queue(store: Store, *parked: tuple[str, str], tenant: str = "acme", pool: str = "default") -> None:
    """A run in the queue for each (gate, key); with ('', '') it waits for nothing."""
    ids = [next(RUNS) for _ in parked]
    lines = [
        {
            "run_id": run_id, "job_id": f"{JOB}1", "tenant": tenant, "pool": pool, "type": "export", "lane": "live",
            "kind": "tick", "priority": 0, "rank": 0, "due_ms": NOW, "scheduled_for_ms": NOW - run_id,
            "overlap": "allow", "max_running": 1, "handler": "x", "depends": 0,
            "attempt": 0, "failures": 0, "losses": 0, "round": 0, "leased": 0,
        }
        for run_id in ids
    ]  # fmt: skip
    gates = [
        {"run_id": run_id, "gate": gate, "key": key, "look_ms": None}
        for run_id, (gate, key) in zip(ids, parked, strict=True)
        if gate
    ]

    def script() -> Any:
        yield "queue_park", {"rows": rows(gates), "now_ms": NOW}

    await insert(store, lines)
    ok(await store.engine.write(script))


async def hold(store: Store, *, tenant: str, pool: str = "default") -> None:
    """A run in flight."""
    run_id = next(RUNS)

    line = {
        "run_id": run_id, "job_id": f"{JOB}2", "tenant": tenant, "pool": pool, "type": "export", "lane": "live",
        "kind": "tick", "priority": 0, "rank": 0, "due_ms": NOW, "scheduled_for_ms": NOW, "overlap": "allow",
        "max_running": 1, "handler": "x", "depends": 0, "attempt": 0, "failures": 0, "losses": 0, "round": 0,
        "leased": 0,
    }  # fmt: skip

    def script() -> Any:
        slot = rows([{"run_id": run_id, "slot": 0}])
        yield "leases_insert", {"rows": slot, "node_id": "w1", "batch": "b", "now_ms": NOW}
        yield "queue_delete", {"ids": f"[{run_id}]"}

    await insert(store, [line])
    ok(await store.engine.write(script))


async def insert(store: Store, lines: Sequence[dict[str, Any]]) -> None:
    """Into the queue as they are: their runs and jobs are not there."""
    for line in lines:
        values = ", ".join(f"'{value}'" if isinstance(value, str) else str(value) for value in line.values())
        await change(store.engine, f"INSERT INTO queue ({', '.join(line)}) VALUES ({values})")


async def gates(store: Store, tenant: str = "acme") -> dict[str, int]:
    return dict((await store.limits.tenant(tenant)).usage.waiting)


async def told(store: Store, kind: str) -> list[tuple[str | None, dict[str, Any]]]:
    return [(noted.event.actor, dict(noted.event.detail)) for noted in await store.events.list(kind=kind)][::-1]


# --- lanes


@check
async def catch_up_leaves_live_work_its_slots_of_the_fleet(w: "World") -> None:
    """S2-20, S2-43: two workers with four slots each, in a pool that the fleet may use with four. Live work finds one
    of them free; a pool with one slot alternates, whoever claims."""
    floor = Floor(w.store, w.clock, w.desk, w.held)
    allow = OverlapRule("allow")
    jobs = {name: await floor.define(name, overlap=allow) for name in ("old", "live")}
    numbers = count()

    async def put(name: str, lane: str, runs: int) -> None:
        for _ in range(runs):
            at_ms = NOW - 1_000_000 + next(numbers)
            await change(
                w.store.engine,
                "INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind,"
                f" lane, state) VALUES ('{jobs[name]}', {at_ms}, {NOW}, {NOW}, 1, 1, 1, 'backfill', '{lane}',"
                " 'planned');"
                " INSERT INTO upcoming (run_after_ms, run_id, job_id, lane) SELECT run_after_ms, run_id, job_id, lane"
                f" FROM runs WHERE scheduled_for_ms = {at_ms}",
            )
        await floor.promote()

    async def claimed(node_id: str, room: int, **wish: Any) -> list[str]:
        taken = await floor.take(node_id, "default", room, f"{next(numbers)}", **wish)
        held[node_id] += taken.runs
        return [run.lane for run in taken.runs]

    held: dict[str, list[Claimed]] = {"w1": [], "w2": []}
    for node_id in held:
        await floor.join(node_id, slots=4)
    ok(await w.store.limits.put_pool("default", {"slots": 4}, actor="ann"))
    await put("old", "catchup", 20)
    assert await claimed("w1", 4, catchup_room=2) == ["catchup"] * 2
    assert await claimed("w2", 4, catchup_room=3) == ["catchup"]
    assert await claimed("w2", 3, catchup_room=2) == []
    await put("live", "live", 1)
    assert await claimed("w2", 3, catchup_room=2) == ["live"]
    for node_id, runs in held.items():
        for run in runs:
            await floor.succeed(node_id, run)
        runs.clear()
    ok(await w.store.limits.put_pool("default", {"slots": 1}, actor="ann"))
    await put("live", "live", 20)
    lanes: list[str] = []
    for _ in range(6):
        for node_id in held:
            lanes += await claimed(node_id, 4, catchup_room=3, catchup_turn=lanes[-2:-1] == ["live"])
            [run] = held[node_id]
            await floor.succeed(node_id, run)
            held[node_id].clear()
    assert lanes == ["live", "live", "catchup", "catchup"] * 3


# --- tenants


@check
async def a_tenant_is_set_field_by_field(w: "World") -> None:
    """S3-9, S3-54 to S3-56: share, caps and rate; who asks twice changes once, and the event says before and after."""
    limits = w.store.limits
    assert (await limits.tenant("acme")).tenant == Tenant("acme")
    first = ok(await limits.put_tenant("acme", {"weight": 5, "rate": "100/m", "burst": 3}, actor="ann"))
    assert first == Changed(None, Tenant("acme", 5, rate_per_s=100 / 60, burst=3))
    second = ok(await limits.put_tenant("acme", {"max_jobs": 7, "max_in_flight": 2, "rate": None}, actor="bob"))
    whole = Tenant("acme", 5, 7, 2, None, 3)
    assert (second.before, second.after) == (first.after, whole)
    assert ok(await limits.put_tenant("acme", {"weight": 5}, actor="bob")) == Changed(whole, whole)
    line = await limits.tenant("acme")
    assert (line.tenant, line.updated_ms) == (whole, NOW)
    assert await told(w.store, "tenant_changed") == [
        ("ann", {"tenant": "acme", "before": None, "after": first.after.as_document()}),
        ("bob", {"tenant": "acme", "before": first.after.as_document(), "after": whole.as_document()}),
    ]


@check
async def a_tenant_goes_back_to_the_defaults(w: "World") -> None:
    limits = w.store.limits
    ok(await limits.put_tenant("acme", {"max_jobs": 0}, actor="ann"))
    assert ok(await limits.delete_tenant("acme", actor="bob")) == Changed(Tenant("acme", max_jobs=0), None)
    assert ok(await limits.delete_tenant("acme", actor="bob")) == Changed(None, None)
    assert ok(await limits.put_tenant("acme", {"weight": 1}, actor="bob")) == Changed(None, None)  # as it is by default
    assert await limits.tenants() == []
    assert [actor for actor, _ in await told(w.store, "tenant_changed")] == ["ann", "bob"]


@check
async def mistakes_change_nothing(w: "World") -> None:
    with pytest.raises(DefinitionError) as caught:
        await w.store.limits.put_tenant("Acme", {"weight": 0, "rate": "fast"}, actor="ann")
    assert [mistake.pointer for mistake in caught.value.mistakes] == ["/name", "/weight", "/rate"]
    with pytest.raises(DefinitionError):
        await w.store.limits.put_pool("p", {"slots": 0}, actor="ann")
    with pytest.raises(DefinitionError):
        await w.store.controls.switch(Wish("tenant", "acme", percent=101, reason="x"), actor="ann")
    with pytest.raises(DefinitionError):
        await w.store.controls.release("pool", "a b", actor="ann")
    assert (await w.store.limits.tenants(), await w.store.limits.pools()) == ([], [])
    assert (await w.store.controls.list()).controls == []


@check
async def tenants_are_listed_with_what_they_use(w: "World") -> None:
    """S3-74: jobs, runs in flight and runs that wait, by what they wait for."""
    for name in ("a", "b"):
        await w.desk.create(of("acme", name))
    await w.desk.cancel("acme", "b")
    await w.desk.create(of("gone", "x"))
    await w.desk.delete("gone", "x")
    ok(await w.store.limits.put_tenant("zeta", {"weight": 2}, actor="ann"))
    await queue(w.store, ("", ""), ("tenant", "acme"), ("tenant", "acme"), ("rate", "acme"))
    await hold(w.store, tenant="acme")
    await hold(w.store, tenant="other")
    acme, other, zeta = await w.store.limits.tenants()
    assert (acme.usage.jobs, acme.usage.ended, acme.usage.in_flight, acme.usage.queued) == (2, 1, 1, 4)
    assert dict(acme.usage.waiting) == {"": 1, "tenant": 2, "rate": 1}
    assert (other.tenant.name, other.usage.in_flight, other.usage.jobs) == ("other", 1, 0)
    assert (zeta.tenant.weight, zeta.updated_ms, zeta.usage.queued) == (2, NOW, 0)
    assert await w.store.limits.tenant("acme") == acme


@check
async def a_changed_tenant_lets_its_runs_be_looked_at(w: "World") -> None:
    """The runs that the old cap held back must not wait for an end that may never come."""
    await queue(w.store, ("tenant", "acme"), ("rate", "acme"), ("tenant", "other"), ("paused", "tenant:acme"))
    changed = ok(await w.store.limits.put_tenant("acme", {"max_in_flight": 9}, actor="ann"))
    assert (changed.looked, changed.rest) == (2, ())
    assert await gates(w.store) == {"": 2, "tenant": 1, "paused": 1}
    await queue(w.store, ("tenant", "acme"))
    again = ok(await w.store.limits.put_tenant("acme", {"max_in_flight": 9}, actor="ann"))  # repeated
    assert (again.before, again.looked) == (again.after, 1)
    await queue(w.store, ("rate", "acme"))
    assert ok(await w.store.limits.delete_tenant("acme", actor="ann")).looked == 1


@check
async def a_changed_rate_begins_anew(w: "World") -> None:
    """After 1/h the next start would be an hour away, also under 100/s: the old rate is no measure of the new one."""
    limits = w.store.limits

    async def next_us() -> list[int]:
        def script() -> Any:
            return [row["next_us"] for row in (yield "rates_read", {"tenants": '["acme"]'})]

        return list(await w.store.engine.read(script))

    def owe() -> Any:
        yield "rates_write", {"rows": rows([{"tenant": "acme", "next_us": NOW * 1000 + HOUR * 1000}])}

    ok(await limits.put_tenant("acme", {"rate": "1/h"}, actor="ann"))
    ok(await w.store.engine.write(owe))
    ok(await limits.put_tenant("acme", {"weight": 7}, actor="ann"))
    assert await next_us() == [NOW * 1000 + HOUR * 1000]
    ok(await limits.put_tenant("acme", {"rate": "100/s"}, actor="ann"))
    assert await next_us() == []


@check
async def a_flood_is_looked_at_page_by_page(w: "World") -> None:
    """More runs than one transaction should touch: each is met once, also one that is parked again meanwhile."""
    await queue(w.store, *[("tenant", "acme")] * 7, ("rate", "acme"))
    before, looking.PAGE = looking.PAGE, 3  # type: ignore[misc]
    try:
        changed = ok(await w.store.limits.put_tenant("acme", {"max_in_flight": 9}, actor="ann"))
    finally:
        looking.PAGE = before  # type: ignore[misc]
    assert (changed.looked, changed.rest) == (8, ())
    assert await gates(w.store) == {"": 8}


# --- pools


@check
async def a_pool_is_set_field_by_field(w: "World") -> None:
    """S3-57, S3-61, S3-62: slots of the fleet, and quotas by tenant and type."""
    limits = w.store.limits
    assert ok(await limits.put_pool("p", {"slots": None}, actor="ann")) == Changed(None, None)
    first = ok(await limits.put_pool("p", {"slots": 10, "per_type": {"export": 2, "mail": 5}}, actor="ann"))
    assert first.after == Pool("p", 10, None, {"export": 2, "mail": 5})
    second = ok(await limits.put_pool("p", {"per_tenant": 3, "per_type": {"mail": None}}, actor="bob"))
    assert second.after == Pool("p", 10, 3, {"export": 2})
    again = ok(await limits.put_pool("p", {"per_tenant": 3}, actor="bob"))
    assert again.before == again.after == second.after
    [line] = await limits.pools()
    assert (line.pool, line.updated_ms) == (second.after, NOW)
    assert ok(await limits.delete_pool("p", actor="cid")).after is None
    assert ok(await limits.delete_pool("p", actor="cid")) == Changed(None, None)
    assert await limits.pools() == []
    assert [(actor, detail["pool"]) for actor, detail in await told(w.store, "pool_changed")] == [
        ("ann", "p"),
        ("bob", "p"),
        ("cid", "p"),
    ]


@check
async def pools_are_listed_with_their_workers(w: "World") -> None:
    await w.desk.create(of("acme", "a", pool="reports"))
    ok(await w.store.limits.put_pool("idle", {"slots": 4}, actor="ann"))
    ok(await w.store.workers.join("w1", "p1", {"reports": 8, "mail": 2}, 10_000))
    ok(await w.store.workers.join("w2", "p2", {"reports": 4}, 20_000))
    await queue(w.store, ("quota_type", "reports:export"), ("", ""), pool="reports")
    await hold(w.store, tenant="acme", pool="reports")
    idle, mail, reports = await w.store.limits.pools()
    assert (reports.pool, reports.workers, reports.worker_slots) == (Pool("reports"), 2, 12)
    assert (reports.usage.jobs, reports.usage.in_flight, reports.usage.queued) == (1, 1, 2)
    assert (dict(reports.usage.by_type), dict(reports.usage.waiting)) == ({"export": 1}, {"quota_type": 1, "": 1})
    assert (reports.usage.due_ms, mail.usage.due_ms) == (NOW, None)  # of the one that waits for a slot
    assert (mail.pool.name, mail.workers, mail.worker_slots) == ("mail", 1, 2)
    assert (idle.pool.slots, idle.workers) == (4, 0)
    await w.clock.set(NOW + 10_000)
    _, reports = await w.store.limits.pools()  # the first worker is silent, and with it the pool mail
    assert (reports.workers, reports.worker_slots) == (1, 4)


@check
async def a_changed_pool_lets_its_runs_be_looked_at(w: "World") -> None:
    parked = ("quota_type", "p:export"), ("quota_tenant", "p:acme"), ("quota_type", "p2:export"), ("key", "p:acme")
    await queue(w.store, *parked)
    assert ok(await w.store.limits.put_pool("p", {"per_tenant": 9}, actor="ann")).looked == 2
    assert await gates(w.store) == {"": 2, "quota_type": 1, "key": 1}
    await queue(w.store, ("quota_type", "p:mail"))
    assert ok(await w.store.limits.delete_pool("p", actor="ann")).looked == 1


# --- incident controls


@check
async def a_tenant_is_held_and_let_go_by_and_by(w: "World") -> None:
    """S3-105: pause by tenant, resume by shares, and every step with who, why and what was before."""
    controls = w.store.controls
    held = ok(await controls.switch(Wish("tenant", "acme", 0, for_ms=HOUR, reason="it floods"), actor="ann"))
    control = Control("tenant", "acme", 0, None, 1.0, NOW + HOUR)
    assert held == Changed(None, Switched(control, "it floods", "ann", NOW))
    await queue(w.store, ("paused", "tenant:acme"), ("paused", "tenant:acme"), ("paused", "type:acme"))
    found = await controls.list()
    assert [(line.switched, line.waiting) for line in found.controls] == [(held.after, 2)]
    await w.clock.set(NOW + 5)
    part = ok(await controls.switch(Wish("tenant", "acme", 25, keeps_end=True), actor="bob"))
    assert part.after == Switched(control._replace(percent=25), "it floods", "bob", NOW + 5)
    assert part.looked == 2  # all of them: which may start is decided when they are claimed
    done = ok(await controls.release("tenant", "acme", actor="cid", reason="fixed"))
    assert (done.before, done.after) == (part.after, None)
    assert ok(await controls.release("tenant", "acme", actor="cid")) == Changed(None, None)
    assert (await controls.list()).controls == []
    assert [actor for actor, _ in await told(w.store, "control_set")] == ["ann", "bob"]
    [(actor, detail)] = await told(w.store, "control_released")
    assert (actor, detail["reason"], detail["before"]["percent"], detail["after"]) == ("cid", "fixed", 25, None)


@check
async def a_share_of_the_jobs_goes_on_for_ever(w: "World") -> None:
    """S3-105: the same ones minute by minute, whatever they do when ticks overlap; and each tick has its answer."""
    floor = Floor(w.store, w.clock, w.desk, w.held)
    for policy in ("skip", "queue", "collapse", "cancel_previous"):
        for number in range(8):
            await floor.define(f"{policy}-{number}", overlap=OverlapRule(policy))  # type: ignore[arg-type]
    await floor.join("w", slots=99)
    ok(await w.store.controls.switch(Wish("pool", "default", percent=60, reason="by and by"), actor="ann"))
    went: list[set[str]] = []
    for _ in range(5):
        await floor.next_minute()
        went.append(set())
        while runs := await floor.claim("w", room=99):
            went[-1] |= {run.name for run in runs}
            for run in runs:
                await floor.succeed("w", run)
    assert went == [went[0]] * 5
    assert 8 <= len(went[0]) < 32
    await w.clock.advance(1)  # a tick under skip is judged by what was there at its instant, so after it
    assert await floor.claim("w", room=99) == []
    for line in await w.store.history.runs(Span(), limit=500):
        if line.name.startswith("skip-") and line.name not in went[0]:
            is_first = line.run.scheduled_for_ms == NOW + 60_000
            assert line.run.state == ("waiting" if is_first else "skipped")


@check
async def a_repeated_hold_is_one_hold(w: "World") -> None:
    wish = Wish("pool", "p", 0, reason="x")
    first = ok(await w.store.controls.switch(wish, actor="ann"))
    await w.clock.set(NOW + 9)
    again = ok(await w.store.controls.switch(wish, actor="ann"))  # the reply was lost, say
    assert (again.before, again.after) == (first.after, first.after)
    assert len(await told(w.store, "control_set")) == 1


@check
async def a_type_is_slowed_down(w: "World") -> None:
    """S3-105: cap the attempts and stretch the delays of a type, beside a hold of the same name."""
    controls = w.store.controls
    slow = Wish("type", "shop.jobs:export", attempts=1, backoff=4.0, for_ms=HOUR, reason="retries explode")
    ok(await controls.switch(slow, actor="ann"))
    held = ok(await controls.switch(Wish("type", "shop.jobs:export", 0, reason="and now all of it"), actor="ann"))
    assert held.after.control == Control("type", "shop.jobs:export", 0, 1, 4.0, None)
    gone = ok(await controls.switch(Wish("type", "shop.jobs:export", 100, keeps_end=True), actor="ann"))
    assert gone.after.control == Control("type", "shop.jobs:export", 100, 1, 4.0, None)


@check
async def what_is_over_is_as_if_it_were_not_there(w: "World") -> None:
    controls = w.store.controls
    ok(await controls.switch(Wish("pool", "p", 0, for_ms=HOUR, reason="x"), actor="ann"))
    ok(await controls.switch(Wish("pool", "q", 0, for_ms=HOUR, reason="x"), actor="ann"))
    await w.clock.set(NOW + HOUR)
    assert (await controls.list()).controls == []
    assert await controls.switch(Wish("pool", "p", 50, keeps_end=True), actor="ann") == Refused("pool p is not held")
    again = ok(await controls.switch(Wish("pool", "p", attempts=2, reason="y"), actor="bob"))
    assert (again.before, again.after.control) == (None, Control("pool", "p", 100, 2, 1.0, None))
    [line] = (await controls.list()).controls
    assert line.switched == again.after
    assert await controls.names("pool") == ["p"]  # the other is forgotten


@check
async def a_control_knows_whom_it_can_mean(w: "World") -> None:
    await w.desk.create(of("acme", "a", pool="reports", type="shop.jobs:export"))
    await w.desk.create(of("gone", "x"))
    await w.desk.delete("gone", "x")
    ok(await w.store.limits.put_tenant("new", {"weight": 2}, actor="ann"))
    names = w.store.controls.names
    assert (await names("tenant"), await names("pool")) == (["acme", "new"], ["reports"])
    assert await names("type") == ["shop.jobs:export"]


# --- what a tenant may write


@check
async def a_tenant_has_so_many_jobs_at_most(w: "World") -> None:
    """S3-9, S3-54: the figure and what to do; what has ended does not count, and other tenants do not either."""
    ok(await w.store.limits.put_tenant("acme", {"max_jobs": 2}, actor="ann"))
    applied = await w.desk.apply([of("acme", name) for name in "abcd"] + [of("other", "x")])
    assert [each.done for each in applied] == ["created", "created", "refused", "refused", "created"]
    assert applied[2].reason == (
        "tenant acme has 2 of at most 2 jobs; delete or cancel some, or: fleetcron tenants set acme --max-jobs 4"
    )
    assert [each.done for each in await w.desk.apply([of("acme", "a", priority=3)])] == ["changed"]
    with pytest.raises(RefusedError, match="has 2 of at most 2 jobs"):
        await w.desk.create(of("acme", "c"))
    await w.desk.pause("acme", "a")
    with pytest.raises(RefusedError):
        await w.desk.create(of("acme", "c"))
    await w.desk.cancel("acme", "a")
    await w.desk.create(of("acme", "c"))
    await w.desk.delete("acme", "b")
    await w.desk.create(of("acme", "d"))
    ok(await w.store.limits.put_tenant("acme", {"max_jobs": 1}, actor="ann"))  # those that are there stay
    with pytest.raises(RefusedError, match="has 2 of at most 1 jobs"):
        await w.desk.create(of("acme", "e"))


@check
async def a_finished_job_that_comes_back_needs_a_place(w: "World") -> None:
    ok(await w.store.limits.put_tenant("acme", {"max_jobs": 1}, actor="ann"))
    past = replace(of("acme", "once"), schedule=(OnceEntry("2027-01-10T00:00:00Z", "UTC"),))
    [applied] = await w.desk.apply([past])
    assert applied.job is not None
    assert applied.job.state == "finished"
    await w.desk.create(of("acme", "a"))
    [back] = await w.desk.apply([of("acme", "once")])
    assert (back.done, back.reason is not None and "1 of at most 1" in back.reason) == ("refused", True)


@check
async def a_payload_has_the_size_that_the_tenant_may_have(w: "World") -> None:
    """S3-59: with both figures; an edit that leaves the payload alone is not refused for what was allowed before."""
    await w.desk.create(of("acme", "a", payload={"text": "x" * 100}))
    ok(await w.store.limits.put_tenant("acme", {"max_payload": 64}, actor="ann"))
    with pytest.raises(RefusedError) as caught:
        await w.desk.create(of("acme", "b", payload={"text": "x" * 100}))
    assert str(caught.value) == (
        "its payload has 111 bytes, and tenant acme may have 64; make it smaller,"
        " or: fleetcron tenants set acme --max-payload 111"
    )
    assert (await w.desk.edit(of("acme", "a", payload={"text": "x" * 100}, priority=1))).done == "changed"
    with pytest.raises(RefusedError):
        await w.desk.edit(of("acme", "a", payload={"text": "x" * 101}))
    assert (await w.desk.create(of("acme", "b", payload={"text": "x" * 10}))).done == "created"


@check
async def jobs_that_depend_on_a_refused_one_are_refused_too(w: "World") -> None:
    ok(await w.store.limits.put_tenant("acme", {"max_payload": 64}, actor="ann"))
    large, small = of("acme", "up", payload={"text": "x" * 100}), of("acme", "down", depends_on=("up",))
    applied = await w.desk.apply([large, small, of("acme", "alone")])
    assert [each.done for each in applied] == ["refused", "refused", "created"]


@check
async def two_who_come_at_once_do_not_pass_the_cap(w: "World") -> None:
    """S3-54: ten creators, three places, whatever the order in which they read and write."""
    ok(await w.store.limits.put_tenant("acme", {"max_jobs": 3}, actor="ann"))

    async def create(name: str) -> str:
        try:
            return (await Desk(w.store, actor=name, shards=2).create(of("acme", name))).done
        except RefusedError:
            return "refused"

    done = await asyncio.gather(*(create(f"job-{at}") for at in range(10)))
    assert sorted(done) == ["created"] * 3 + ["refused"] * 7
    assert (await w.store.limits.tenant("acme")).usage.jobs == 3
