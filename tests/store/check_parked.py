"""Checks of the conformance suite about floods of runs that wait: they are looked at page by page, whoever dies."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fleetcron import steps
from fleetcron.model.control import Wish
from fleetcron.model.outcome import Failed, Fault
from fleetcron.store import claims, forgotten, handlers, looking
from fleetcron.store.sweeping import Swept
from tests.store.check_limits import gates, ok, queue
from tests.store.engines import change
from tests.worker.shop import BEGIN_MS, Job, Shop, fetcher

if TYPE_CHECKING:
    from tests.store.test_conformance import World

HOUR = 3_600_000
Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    CHECKS[function.__name__] = function
    return function


@contextmanager
def set_to(module: ModuleType, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


class Killed(BaseException):
    pass


def _die(name: str) -> None:
    if name == "limits.look":
        raise Killed


async def swept(w: "World") -> list[Swept]:
    """As the upkeep does: until a round is over."""
    found: list[Swept] = []
    while not found or found[-1].more or found[-1].next_place is not None:
        found.append(ok(await w.store.sweeping.sweep(0, found[-1].next_place if found else None)))
    return found


@check
async def who_releases_a_hold_may_die_between_two_pages(w: "World") -> None:
    """S3-105: the sweep goes on with the rest, a page each time."""
    ok(await w.store.controls.switch(Wish("pool", "default", 0, reason="incident"), actor="ann"))
    ok(await w.store.controls.switch(Wish("pool", "other", 0, reason="incident"), actor="ann"))
    await queue(w.store, *[("paused", "pool:default")] * 8, ("paused", "pool:other"))
    assert [each.let_go for each in await swept(w)] == [0]
    with set_to(looking, "PAGE", 3):
        steps.on_step(_die)
        try:
            await w.store.controls.release("pool", "default", actor="ann")
        except Killed:
            pass
        finally:
            steps.on_step(None)
        assert await gates(w.store) == {"": 3, "paused": 6}
        assert [(each.let_go, each.more) for each in await swept(w)] == [(3, True), (2, False)]
    assert await gates(w.store) == {"": 8, "paused": 1}
    assert "sweep_found" not in await w.kinds()  # nobody did anything wrong


@check
async def a_hold_that_was_loosened_lets_a_share_go(w: "World") -> None:
    """Whoever did it has died before the first page. Of those that may start every one is found, whatever their place
    is, and no other; also if somebody has given the hold an end by then."""
    ok(await w.store.controls.switch(Wish("tenant", "acme", 0, reason="incident"), actor="ann"))
    await queue(w.store, *[("paused", "tenant:acme")] * 30)
    await change(w.store.engine, "UPDATE controls SET percent = 40")
    [line] = (await w.store.controls.list()).controls
    control = line.switched.control
    with set_to(forgotten, "_SEEN", 7):
        rounds = await swept(w)
        assert len(rounds) == 5
        assert [each.let_go for each in await swept(w)] == [0] * len(await swept(w))
    found = await rows_of(w)
    assert {run_id for run_id, gate in found.items() if gate is None} == {
        run_id for run_id in found if control.lets_start(run_id, "", "allow")
    }
    assert 0 < sum(each.let_go for each in rounds) < len(found)
    await change(w.store.engine, f"UPDATE controls SET until_ms = {w.clock.now_ms() + HOUR}")
    await w.clock.advance(HOUR)
    await swept(w)
    assert await gates(w.store) == {"": 30}


@check
async def a_limit_that_is_gone_holds_nobody_back(w: "World") -> None:
    """Claims let go who has room, as long as there is something to count; without any limit they count nothing."""
    waiting = [("tenant", "acme"), ("rate", "acme"), ("quota_tenant", "default:acme"), ("quota_type", "default:export")]
    await queue(w.store, *waiting)
    await change(
        w.store.engine,
        "INSERT INTO tenants (tenant, weight, max_in_flight, rate_per_s, burst, max_payload, updated_ms)"
        " VALUES ('acme', 1, 1, 1.0, 1, 1000, 0);"
        """INSERT INTO pools VALUES ('default', NULL, 1, '{"export": 1}', 0)""",
    )
    assert [each.let_go for each in await swept(w)] == [0]
    await change(w.store.engine, "UPDATE tenants SET rate_per_s = NULL; UPDATE pools SET per_tenant = NULL")
    assert [each.let_go for each in await swept(w)] == [2]
    assert await gates(w.store) == {"": 2, "tenant": 1, "quota_type": 1}
    await change(w.store.engine, "DELETE FROM tenants; DELETE FROM pools")
    assert [each.let_go for each in await swept(w)] == [2]
    assert (await w.store.limits.tenant("acme")).usage.waiting == {"": 4}


@check
async def a_hold_that_ends_wakes_its_runs_page_by_page(w: "World") -> None:
    """However many wait, a claim touches a page of them and says that there is more; a page that is full for the last
    time costs one claim that finds nothing, and then there is rest. What has to wait for longer is not met again."""
    shop = await Shop.open(w.store, w.clock)
    job, other = Job(1, overlap="allow", max_running=0, type="x"), Job(2, overlap="allow", max_running=0, type="y")
    await shop.define(job, other)
    await shop.plan(job, *(BEGIN_MS - n for n in range(1, 10)))
    await shop.promote()
    await shop.join("n1", p1=9)
    ok(await w.store.controls.switch(Wish("pool", "p1", 0, for_ms=HOUR, reason="incident"), actor="ann"))
    assert await shop.claimed("n1") == []
    ok(await w.store.controls.switch(Wish("type", "x", 0, for_ms=2 * HOUR, reason="incident"), actor="ann"))
    await w.clock.advance(HOUR)
    await shop.plan(other, BEGIN_MS + HOUR)
    await shop.promote()
    with set_to(claims, "PAGE", 3):
        taken = [await shop.claim("n1") for _ in range(4)]
        assert [(len(each.runs), each.parked, each.more) for each in taken] == [
            (1, 3, True),
            (0, 3, True),
            (0, 3, True),
            (0, 0, False),
        ]
        await w.clock.advance(HOUR)
        taken = await shop.claim_all("n1")
        assert [(len(each.runs), each.more) for each in taken] == [(3, True), (3, True), (3, True), (0, False)]
    assert await shop.gates() == {}


@check
async def a_flood_without_a_handler_is_parked_page_by_page(w: "World") -> None:
    """S1-24: nobody looks at all of them, and they stay where they are, minute after minute. Who has the handler takes
    what he has room for, whenever he comes, and however it was that he got it."""
    shop = await Shop.open(w.store, w.clock)
    job, other = Job(1, overlap="allow", max_running=0, handler="mail"), Job(2, overlap="allow", max_running=0)
    await shop.define(job, other)
    await shop.plan(job, *(BEGIN_MS - 20 + n for n in range(8)))
    await shop.plan(other, BEGIN_MS)
    await shop.promote()
    await shop.join("n1", p1=9)
    ok(await w.store.workers.lack("n1", {"mail": "it is not here"}))
    with set_to(handlers, "PAGE", 3):
        taken = [await shop.claim("n1", lacks=("mail",)) for _ in range(3)]
    assert [([run.run_id for run in each.runs], each.more) for each in taken] == [([9], True), ([], True), ([], False)]
    assert list((await shop.gates()).values()) == ["handler mail"] * 8
    await w.clock.advance(10 * HOUR)
    assert (await shop.claim_all("n1", lacks=("mail",)))[-1].runs == ()
    assert (await shop.store.queue.next_look(["p1"])).look_ms is None
    await shop.join("n2", p2=9)
    await shop.join("n3", p1=9)
    assert (await shop.claim("n3", room=0)).runs == ()
    assert list((await shop.gates()).values()) == ["handler mail"] * 8
    with set_to(claims, "_SPARE", 1):
        assert [run.run_id for run in (await shop.claim("n3", room=2)).runs] == [1, 2]
        assert await shop.gates() == {3: None} | dict.fromkeys(range(4, 9), "handler mail")
    # the one that had it not has it now, and its word of that is on its way
    assert await shop.claimed("n1") == [3, 4, 5, 6, 7, 8]


@check
async def what_waits_for_a_handler_is_cancelled_with_its_job(w: "World") -> None:
    """Also if it was parked before; and one that rests between two attempts gives its key back."""
    shop = await Shop.open(w.store, w.clock)
    parked, later, rests = (Job(n, overlap="queue", handler="mail") for n in (1, 2, 3))
    await shop.define(parked, later, rests)
    await shop.join("n1", p1=9)
    await shop.plan(rests, BEGIN_MS)
    await shop.promote()
    assert await shop.claimed("n1") == [1]
    await shop.finish("n1", 1, 1, Failed(Fault("broken")))
    ok(await w.store.workers.lack("n1", {"mail": "it is not here any more"}))
    await w.clock.advance(10_000)
    await shop.plan(parked, BEGIN_MS + 1)
    await shop.promote()
    await shop.claim("n1", lacks=("mail",))
    assert await shop.gates() == {1: "handler mail", 2: "handler mail"}
    await shop.plan(later, BEGIN_MS + 2)
    await shop.promote()
    await change(w.store.engine, "UPDATE jobs SET deleted_ms = 1 WHERE name IN ('job-1', 'job-3')")
    await change(w.store.engine, "UPDATE jobs SET state = 'cancelled' WHERE name = 'job-2'")
    assert (await shop.claim("n1", lacks=("mail",))).closed == 1
    assert [each.let_go for each in await swept(w)] == [2]
    assert (await shop.claim("n1", lacks=("mail",))).closed == 2
    assert (await shop.gates(), await shop.rows("SELECT run_id FROM leases")) == ({}, [])
    found = await shop.rows("SELECT state, reason FROM runs ORDER BY run_id")
    assert [(row["state"], row["reason"]) for row in found] == [
        ("cancelled", "its job was deleted"),
        ("cancelled", "its job was deleted"),
        ("cancelled", "its job was cancelled"),
    ]


@check
async def many_of_a_deleted_job_are_closed_by_and_by(w: "World") -> None:
    shop = await Shop.open(w.store, w.clock)
    job = Job(1, overlap="allow", max_running=0, handler="mail")
    await shop.define(job)
    await shop.plan(job, *(BEGIN_MS - n for n in range(1, 8)))
    await shop.promote()
    await shop.join("n1", p1=9)
    await change(w.store.engine, "UPDATE jobs SET deleted_ms = 1")
    with set_to(handlers, "_ENDED", 3):
        taken = await shop.claim_all("n1", lacks=("mail",))
    assert [(each.closed, each.more) for each in taken] == [(3, True), (3, True), (1, False)]


async def rows_of(w: "World") -> dict[int, str | None]:
    [found] = await fetcher(w.store.engine)("SELECT run_id, gate FROM queue")
    return {row["run_id"]: row["gate"] for row in found}
