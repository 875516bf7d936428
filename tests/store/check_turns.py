"""Checks of the conformance suite about keys that several jobs share: everybody has a turn, in whatever pool it is."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fleetcron.model.control import Wish
from fleetcron.model.outcome import Failed, Fault
from fleetcron.policy.turns import TURN_MS
from tests.worker.shop import BEGIN_MS as NOW
from tests.worker.shop import Job, Shop, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Callable[[Shop], Awaitable[None]]) -> Check:
    async def on_a_shop(w: "World") -> None:
        await function(await Shop.open(w.store, w.clock))

    CHECKS[function.__name__] = on_a_shop
    return on_a_shop


@check
async def a_shared_key_goes_round_the_pools(shop: Shop) -> None:
    """S3-44: the pool whose run has ended asks first, always. Whoever waits in another pool has its turn all the same,
    before all that were due after it."""
    busy, seldom = Job(1, overlap="queue", key="k"), Job(2, overlap="queue", key="k", pool="p2")
    await shop.define(busy, seldom)
    await shop.join("n1", p1=9, p2=9)
    ran: list[int] = []
    due: dict[int, int] = {}
    for second in range(0, 30, 3):  # a tick takes 3 s, and one comes every 2 s
        ticks = [NOW + each * 1000 for each in range(second, second + 3) if each % 2 == 0]
        due |= dict(zip(await shop.plan(busy, *ticks), ticks, strict=True))
        if second % 9 == 3:
            due |= dict(zip(await shop.plan(seldom, NOW + second * 1000), [NOW + second * 1000], strict=True))
        await shop.clock.advance(3_000)
        await shop.promote()
        if ran:
            await shop.finish("n1", ran[-1], 1)
        got = [*await shop.claimed("n1", "p1"), *await shop.claimed("n1", "p2")]
        assert len(got) == 1
        ran += got
    assert [due[run_id] for run_id in ran] == sorted(due.values())[: len(ran)]
    jobs = {row["run_id"]: row["job_id"] for row in await shop.rows("SELECT run_id, job_id FROM runs")}
    assert sum(jobs[run_id] == seldom.job_id for run_id in ran) == 2


@check
async def a_shared_key_is_not_kept_for_a_pool_without_workers(shop: Shop) -> None:
    """It is left to the one that comes first, for a moment and once, and not at every end."""
    here, away = Job(1, overlap="queue", key="k"), Job(2, overlap="queue", key="k", pool="p2")
    await shop.define(here, away)
    await shop.plan(here, NOW)
    await shop.plan(away, NOW + 1, NOW + 2)
    await shop.plan(here, NOW + 3, NOW + 4)
    await shop.clock.advance(10)
    await shop.promote()
    await shop.join("n1", p1=9, p2=9)
    assert await shop.claimed("n1") == [1]
    assert await shop.claimed("n1", "p2") == []
    await shop.finish("n1", 1, 1)
    looked = (await shop.store.queue.next_look(["p2"])).look_ms
    assert looked == shop.now
    assert await shop.store.queue.has_work("p2")
    assert await shop.claimed("n1") == []  # nobody asks for p2 from here on
    assert (await shop.store.queue.next_look(["p1"])).look_ms == shop.now + TURN_MS
    await shop.clock.advance(TURN_MS)
    for run_id in (4, 5):
        assert await shop.claimed("n1") == [run_id]
        await shop.finish("n1", run_id, 1)
    await shop.clock.advance(120_000)
    assert ok(await shop.store.sweeping.sweep(0)).stuck == 0  # they wait for a worker, and not for the key
    assert await shop.claimed("n1", "p2") == [2]


@check
async def whoever_is_called_and_has_to_wait_for_something_else_passes_the_turn_on(shop: Shop) -> None:
    """Its type is held back, or no worker has its handler: the next one is called in the same claim."""
    here, paused = Job(1, overlap="queue", key="k"), Job(2, overlap="queue", key="k", pool="p2", type="y")
    lost = Job(3, overlap="queue", key="k", pool="p2", handler="gone")
    await shop.define(here, paused, lost)
    await shop.plan(here, NOW)
    await shop.plan(paused, NOW + 1)
    await shop.plan(lost, NOW + 2)
    await shop.plan(here, NOW + 3)
    await shop.clock.advance(10)
    await shop.promote()
    await shop.join("n1", p1=9)
    await shop.join("n2", p2=9)
    assert await shop.claimed("n1") == [1]
    assert await shop.claimed("n2", "p2") == []
    ok(await shop.store.controls.switch(Wish("type", "y", percent=0, reason="theirs is down"), actor="ann"))
    ok(await shop.store.workers.lack("n2", {"gone": "it was deleted"}))
    await shop.finish("n1", 1, 1)
    assert await shop.claimed("n1") == []  # it is the turn of run 2
    for _ in range(2):
        await shop.claim_all("n2", "p2", lacks=("gone",))
    gates = await shop.gates()
    assert (gates[2], gates[3]) == ("paused type:y", "handler gone")
    assert await shop.claimed("n1") == [4]


@check
async def one_that_wants_a_shared_key_for_itself_gets_it(shop: Shop) -> None:
    """S3-44: others that may hold it beside each other do not come beside them for ever: not before an older one."""
    many, alone = Job(1, overlap="allow", max_running=3, key="k"), Job(2, overlap="queue", key="k")
    await shop.define(many, alone)
    await shop.plan(many, NOW, NOW + 1, NOW + 2)
    await shop.plan(alone, NOW + 3)
    await shop.plan(many, NOW + 4, NOW + 5, NOW + 6)
    await shop.clock.advance(10)
    await shop.promote()
    await shop.join("n1", p1=9)
    assert await shop.claimed("n1") == [1, 2, 3]
    for run_id in (1, 2):
        await shop.finish("n1", run_id, 1)
        assert await shop.claimed("n1") == []
    await shop.finish("n1", 3, 1)
    assert await shop.claimed("n1") == [4]
    await shop.finish("n1", 4, 1)
    assert await shop.claimed("n1") == [5, 6, 7]  # nobody is kept out now


@check
async def nobody_waits_behind_a_line_for_a_shared_key(shop: Shop) -> None:
    """S3-44: the runs of a job that is held back stand in line behind its first one. However long that line is, and if
    its newest is looked at in the same claim, the key goes to the next that may have it."""
    held_back, other = Job(1, overlap="queue", key="k", type="y"), Job(2, overlap="queue", key="k")
    await shop.define(held_back, other)
    ok(await shop.store.controls.switch(Wish("type", "y", percent=0, reason="theirs is down"), actor="ann"))
    await shop.join("n1", p1=9)
    await shop.plan(held_back, *range(NOW, NOW + 100))
    first, *others = await shop.plan(other, NOW + 200, NOW + 201, NOW + 202)
    await shop.clock.advance(1_000)
    await shop.promote()
    assert await shop.claimed("n1") == [first]
    running = first
    for run_id in others:
        await shop.plan(held_back, shop.now)
        await shop.clock.advance(1)
        await shop.promote()
        await shop.finish("n1", running, 1)
        found = await shop.claim_all("n1")
        assert ([run.run_id for taken in found for run in taken.runs], len(found) <= 2) == ([run_id], True)
        running = run_id


@check
async def nobody_leaves_a_shared_key_to_others_because_of_one_that_rests(shop: Shop) -> None:
    """Who wants it for itself cannot have it before that one is tried again, which may be in hours."""
    many, alone = Job(1, overlap="allow", max_running=3, key="k"), Job(2, overlap="queue", key="k")
    await shop.define(many, alone)
    await shop.join("n1", p1=9)
    for job, got in ((many, [1]), (alone, []), (many, [])):
        await shop.plan(job, shop.now)
        await shop.clock.advance(1)
        await shop.promote()
        assert await shop.claimed("n1") == got
    await shop.finish("n1", 1, 1, Failed(Fault("ValueError", "no such shop")))
    assert await shop.claimed("n1") == [3]
