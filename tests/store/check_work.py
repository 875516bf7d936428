"""Checks of the conformance suite about work: queue, claim, end, rest, hand back, and every gate."""

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from fleetcron.model.control import Wish
from fleetcron.model.outcome import Failed, Fault, Lost, Snoozed, Succeeded
from fleetcron.model.rules import MisfireRule
from fleetcron.model.states import RunState
from fleetcron.model.writing import misfire_document
from fleetcron.policy.choose import choose
from fleetcron.policy.turns import TURN_MS
from fleetcron.store.claims import Claim, Taken
from fleetcron.store.ends import Ended
from fleetcron.store.engine import Script
from fleetcron.store.written import Ok, Refused
from tests.store.engines import change
from tests.worker.shop import BEGIN_MS as NOW
from tests.worker.shop import QUICK, TTL_MS, Job, Shop, ok, rank, settling

if TYPE_CHECKING:
    from tests.store.test_conformance import World

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
BROKEN = Failed(Fault("broken", "no", "line 1"))


def check(function: Callable[[Shop], Awaitable[None]]) -> Check:
    async def on_a_shop(w: "World") -> None:
        await function(await Shop.open(w.store, w.clock))

    CHECKS[function.__name__] = on_a_shop
    return on_a_shop


async def next_look(shop: Shop) -> tuple[int, int | None, int | None]:
    found = await shop.store.queue.next_look(["p1"])
    return found.now_ms, found.upcoming_ms, found.look_ms


@check
async def a_claim_that_finds_nothing_writes_nothing(shop: Shop) -> None:
    """Not even its id: asked again, it gets what has come meanwhile. A run in another pool is not in its way."""
    job, other = Job(1), Job(2, pool="p2")
    await shop.define(job, other)
    await shop.join("n1", p1=5)
    await shop.plan(other, NOW)
    await shop.promote()
    assert await shop.claim("n1", batch="b1") == Taken(NOW)
    assert [row["batch"] for row in await shop.rows("SELECT batch FROM workers")] == [""]
    await shop.plan(job, NOW)
    await shop.promote()
    assert [run.run_id for run in (await shop.claim("n1", batch="b1")).runs] == [2]
    assert [row["batch"] for row in await shop.rows("SELECT batch FROM workers")] == ["b1"]


@check
async def a_claim_that_is_kept_has_one_answer_also_if_that_is_nothing(shop: Shop) -> None:
    """Its first sending may arrive after its second was answered: nobody would ever hear of what it got."""
    job = Job(1)
    await shop.define(job)
    await shop.join("n1", p1=5)
    assert await shop.claim("n1", batch="b1", is_kept=True) == Taken(NOW)
    await shop.plan(job, NOW)
    await shop.promote()
    assert (await shop.claim("n1", batch="b1", is_kept=True)).runs == ()
    assert [run.run_id for run in (await shop.claim("n1", batch="b2", is_kept=True)).runs] == [1]


@check
async def no_tick_is_skipped_for_one_that_is_going_to_be(shop: Shop) -> None:
    """Run 2 waits behind a gate, and was due while run 1 ran: run 3 does not overlap it."""
    job = Job(1, overlap="skip")
    await shop.define(job)
    await shop.plan(job, NOW, NOW + 1_000, NOW + 2_000)
    await shop.promote()
    await shop.join("n1", p1=5)
    assert await shop.claimed("n1") == [1]
    await shop.clock.set(NOW + 1_001)
    await shop.promote()
    upstream = Job(9).job_id
    await change(
        shop.store.engine,
        f"UPDATE queue SET gate = 'upstream', key = '{upstream}', look_ms = {NOW} + 9000 WHERE run_id = 2",
    )
    await shop.clock.set(NOW + 1_500)
    await shop.finish("n1", 1, 1, Succeeded())
    await shop.clock.set(NOW + 2_001)
    await shop.promote()
    assert await shop.claimed("n1") == [3]


@check
async def a_tick_sees_past_one_that_was_left_out_while_another_waited(shop: Shop) -> None:
    """Run 1 was too late in the end, but not yet when run 2 was due, which will be skipped for it and waits behind a
    gate: run 3 overlaps nothing. Nobody asks for that again and again."""
    job = Job(1, overlap="skip", deadline_ms=1_500)
    await shop.define(job)
    await shop.plan(job, NOW, NOW + 1_000, NOW + 2_000)
    await shop.promote(1_000)
    await shop.join("n1", p1=5)
    gate = f"UPDATE queue SET gate = 'upstream', key = '{Job(9).job_id}', look_ms = {NOW} + 9000 WHERE run_id = %d"
    await change(shop.store.engine, gate % 2)
    await shop.clock.set(NOW + 1_600)
    assert await shop.claimed("n1") == []
    [first] = await shop.rows("SELECT state, finished_ms FROM runs WHERE run_id = 1")
    assert (first["state"], first["finished_ms"]) == ("expired", NOW + 1_501)
    await shop.clock.set(NOW + 2_001)
    await shop.promote()
    assert await shop.claimed("n1") == [3]


@check
async def promote_queues_what_is_due_soon(shop: Shop) -> None:
    """S2-35: planned runs enter their queue a moment before they may start, ranked between tenants."""
    one, other = Job(1, tenant="t1"), Job(2, tenant="t2", priority=0, deadline_ms=5_000)
    await shop.define(one, other)
    await shop.plan(one, NOW + 1, NOW + 2, NOW + 1_001)
    await shop.plan(other, NOW + 3)
    assert (await shop.promote(1_000, most=2)).more
    done = await shop.promote(1_000)
    assert (done.runs, done.more) == (1, False)
    assert (await shop.promote(1_000)).runs == 0
    found = await shop.rows("SELECT run_id, rank, due_ms, deadline_ms, leased FROM queue ORDER BY run_id")
    assert [(row["run_id"], row["rank"], row["due_ms"] - NOW, row["leased"]) for row in found] == [
        (1, 0, 1, 0), (2, 1_000_000, 2, 0), (4, 0, 3, 0),
    ]  # fmt: skip
    assert [row["deadline_ms"] for row in found] == [None, None, NOW + 5_003]
    assert await next_look(shop) == (NOW, NOW + 1_001, None)


@check
async def a_burst_is_queued_from_every_tenant_in_turn(shop: Shop) -> None:
    """What does not fit into one transaction is looked at whole: nobody's few stand behind the many of another tenant,
    or of another pool."""
    noisy = [Job(number, tenant="noisy") for number in range(1, 13)]
    small, elsewhere = Job(20, tenant="small"), Job(21, tenant="noisy", pool="p2")
    await shop.define(*noisy, small, elsewhere)
    for job in noisy:
        await shop.plan(job, NOW + 1)
    await shop.plan(small, NOW + 2, NOW + 3)
    await shop.plan(elsewhere, NOW + 4)
    done = await shop.promote(1_000, most=4)
    assert (done.runs, done.more, done.in_turn) == (4, True, False)
    done = await shop.promote(1_000, most=4)
    assert (done.runs, done.more, done.in_turn) == (4, True, True)
    found = await shop.rows("SELECT run_id FROM queue ORDER BY run_id")
    assert [row["run_id"] for row in found] == [1, 2, 3, 4, 5, 6, 13, 15]
    # whoever becomes due while it goes on is seen at its end
    late, tail = Job(30, tenant="late"), [Job(number, tenant="noisy") for number in range(31, 41)]
    await shop.define(late, *tail)
    for job in tail:
        await shop.plan(job, NOW + 1)
    [latest] = await shop.plan(late, NOW + 5)
    assert (await shop.promote(1_000, most=4)).runs == 4
    assert await shop.rows(f"SELECT run_id FROM queue WHERE run_id = {latest}")
    assert [(await shop.promote(1_000, most=9)).runs for _ in range(3)] == [9, 5, 0]


@check
async def a_burst_is_noticed_after_few_runs(shop: Shop) -> None:
    """Whoever stands behind the many runs of another waits for one short transaction only: the next one sees all."""
    noisy, small = Job(1, tenant="noisy"), Job(2, tenant="small")
    await shop.define(noisy, small)
    await shop.plan(noisy, *(NOW + 1 + number for number in range(600)))
    await shop.plan(small, NOW + 700)
    done = await shop.promote(1_000, most=2_000)
    assert (done.runs, done.more) == (500, True)
    done = await shop.promote(1_000, most=2_000)
    assert (done.runs, done.more, done.in_turn) == (101, False, False)


@check
async def promote_drops_what_has_ended(shop: Shop) -> None:
    job = Job(1)
    await shop.define(job)
    [run, _] = await shop.plan(job, NOW, NOW + 1)
    ok(await shop.store.steering.cancel([run], None, actor="ann"))
    await shop.promote()
    assert await shop.gates() == {2: None}


@check
async def a_claim_is_repeated_although_another_pools_came_between(shop: Shop) -> None:
    """Over HTTP a worker claims for several pools at once. It heard that it got nothing, and its runs stayed held."""
    jobs = [Job(1), Job(2, pool="p2")]
    await shop.define(*jobs)
    await shop.plan(jobs[0], NOW)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)

    async def claimed(pool: str, batch: str) -> list[int]:
        return [run.run_id for run in (await shop.claim("n1", pool=pool, batch=batch, is_kept=True)).runs]

    assert await claimed("p1", "b1") == [1]
    assert await claimed("p2", "b2") == []
    assert await claimed("p1", "b1") == [1]
    await shop.plan(jobs[1], NOW)
    await shop.promote()
    assert await claimed("p2", "b3") == [2]
    assert await claimed("p1", "b1") == [1]
    assert await claimed("p2", "b3") == [2]


@check
async def a_claim_is_repeated_after_a_lost_reply(shop: Shop) -> None:
    """S3-32, S3-88: the same id, the same rows; another id gets others. Never two holders of a run."""
    jobs = [Job(number) for number in range(1, 4)]
    await shop.define(*jobs)
    for job in jobs:
        await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=5)
    first = await shop.claim("n1", room=2, batch="b1")
    assert [(run.run_id, run.attempt, run.name, run.covers, run.window_ms) for run in first.runs] == [
        (1, 1, "job-1", 1, None),
        (2, 1, "job-2", 1, None),
    ]
    assert (await shop.claim("n1", room=2, batch="b1")).runs == first.runs
    assert [run.run_id for run in (await shop.claim("n1", room=2, batch="b2")).runs] == [3]
    await shop.finish("n1", 1, 1)
    assert (await shop.claim("n1", room=2, batch="b3")).runs == ()


@check
async def a_lost_worker_is_refused(shop: Shop) -> None:
    """S3-34, S3-15: whatever it held belongs to others, one attempt later."""
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=5)
    await shop.claim("n1", batch="b1")
    [seen] = (await shop.store.workers.list()).workers
    assert (seen.process, dict(seen.pools), dict(seen.lacks), seen.expires_ms) == (
        "process",
        {"p1": 5},
        {},
        NOW + TTL_MS,
    )
    bury = shop.store.workers.bury
    assert await bury(seen, settling(QUICK), gone=False, by="n2") == Refused("it has renewed its lease")  # not yet over
    await shop.clock.set(NOW + TTL_MS)
    assert ok(await shop.store.workers.renew("n1", TTL_MS)).expires_ms == NOW + 2 * TTL_MS
    await shop.clock.set(NOW + 2 * TTL_MS)
    assert await bury(seen, settling(QUICK), gone=False, by="n2") == Refused("it has renewed its lease")  # it has moved
    [seen] = (await shop.store.workers.list()).workers
    done = ok(await bury(seen, settling(QUICK), gone=False, by="n2"))
    assert done.transitions[1].state is RunState.RETRYING
    assert (await shop.store.events.counts(0))["worker_lost"] == 1
    wish = Claim("n1", "b1", "p1", 5, 5)
    assert await shop.store.claims.claim(wish, choose) == Refused("this worker was declared lost")
    assert await shop.store.workers.renew("n1", TTL_MS) == Refused("this worker was declared lost")
    assert (await shop.finish("n1", 1, 1)).late == (1,)
    assert await shop.hand_back("n1", (1, 1)) == Ok(0)
    await shop.join("n2", p1=5)
    await shop.promote()
    assert [(run.run_id, run.attempt, run.losses) for run in (await shop.claim("n2")).runs] == [(1, 2, 1)]


@check
async def an_end_is_written_once_and_only_by_its_owner(shop: Shop) -> None:
    """I7, I9: guarded by run, attempt and owner. What comes late is counted and changes nothing."""
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=1)
    await shop.join("n2", p1=1)
    await shop.claim("n1")
    assert (await shop.finish("n2", 1, 1)).late == (1,)
    assert (await shop.finish("n1", 1, 2)).late == (1,)
    ended = Ended(1, 1, Succeeded(), NOW + 1, NOW + 2, '{"rows":3}', 7)
    old = Ended(1, 0, BROKEN, NOW, NOW)  # of an attempt that was: it must not stand for the other one
    done = ok(await shop.store.attempts.finish("n1", [ended, old], settling(QUICK)))
    assert (done.transitions[1].state, done.late, done.due_ms) == (RunState.SUCCEEDED, (1,), None)
    assert (await shop.finish("n1", 1, 1)).late == (1,)
    [attempt] = await shop.rows("SELECT * FROM attempts")
    assert (attempt["outcome"], attempt["node_id"], attempt["started_ms"], attempt["finished_ms"]) == (
        "succeeded", "n1", NOW + 1, NOW + 2,
    )  # fmt: skip
    assert (attempt["result"], attempt["log_bytes"], attempt["error_code"]) == ('{"rows":3}', 7, None)
    [run] = await shop.rows("SELECT * FROM runs")
    assert (run["state"], run["finished_ms"], run["attempt"], run["started_ms"]) == ("succeeded", NOW, 1, NOW + 1)
    assert await shop.rows("SELECT * FROM leases") == []
    assert (await shop.store.events.counts(0))["finish_refused"] == 4


@check
async def a_guard_sees_who_holds_a_run(shop: Shop) -> None:
    """What a handler's own transaction asks before it commits. Between two attempts nobody holds it."""
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=1)

    def script() -> Script[list[tuple[int, str | None]]]:
        return [(row["attempt"], row["node_id"]) for row in (yield "leases_guard", {"run_id": 1})]

    assert ok(await shop.store.engine.write(script)) == []
    await shop.claim("n1")
    assert ok(await shop.store.engine.write(script)) == [(1, "n1")]
    await shop.finish("n1", 1, 1, BROKEN)
    assert ok(await shop.store.engine.write(script)) == [(1, None)]


@check
async def a_run_rests_between_attempts_and_keeps_its_key(shop: Shop) -> None:
    """S3-6: no slot and no cap, but its place in the job: the next tick waits, and it is the same run that goes on."""
    job = Job(1, overlap="queue")
    await shop.define(job)
    await shop.plan(job, NOW, NOW + 500)
    await shop.limit("t1", 1)
    await shop.promote()
    await shop.join("n1", p1=5)
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [1]
    done = await shop.finish("n1", 1, 1, BROKEN)
    assert done.due_ms == NOW + 2_000
    assert ok(await shop.store.workers.renew("n1", TTL_MS)).cancels == {}
    await shop.clock.advance(1_000)
    await shop.promote(0)
    assert await shop.claimed("n1") == []
    await shop.clock.advance(1_000)
    await shop.promote(0)
    [again] = (await shop.claim("n1")).runs
    assert (again.run_id, again.attempt, again.failures, again.due_ms) == (1, 2, 1, NOW + 2_000)
    await shop.finish("n1", 1, 2, Snoozed(0))
    await shop.clock.advance(1_000)  # never at once
    await shop.promote(0)
    [again] = (await shop.claim("n1")).runs
    assert (again.run_id, again.attempt, again.failures) == (1, 3, 1)
    await shop.finish("n1", 1, 3, BROKEN, rule=QUICK)
    await shop.clock.advance(2_000)
    await shop.promote(0)
    [again] = (await shop.claim("n1")).runs
    done = await shop.finish("n1", 1, again.attempt, BROKEN)
    assert done.transitions[1].state is RunState.DEAD
    assert (await shop.store.events.counts(0))["run_dead"] == 1
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [2]  # its key was given on in the same transaction


@check
async def what_was_not_started_goes_back(shop: Shop) -> None:
    """It costs nothing: the same number of attempt, at the front. Whoever waited for its key looks again."""
    job, other = Job(1, overlap="queue"), Job(2, overlap="allow", max_running=0)
    await shop.define(job, other)
    await shop.plan(job, NOW, NOW + 1)
    await shop.plan(other, NOW)
    await shop.promote()
    await shop.join("n1", p1=5)
    assert await shop.claimed("n1", room=3) == [1, 3]
    assert (await shop.gates()) == {2: "key j:" + job.job_id}
    assert await shop.hand_back("n1", (1, 1), (3, 9)) == Ok(1)
    assert await shop.hand_back("n1", (1, 1)) == Ok(0)
    assert await shop.gates() == {1: None, 2: None}
    [first] = (await shop.claim("n1", room=1)).runs
    assert (first.run_id, first.attempt) == (1, 1)
    late = [(1, 1, "0")]  # the same request again, long after: it is about another claim
    assert first.batch != "0"
    assert await shop.store.attempts.hand_back("n1", late) == Ok(0)
    await shop.finish("n1", 1, 1, Lost(Fault("lost")))  # now it has started once
    await shop.promote(0)
    [again] = (await shop.claim("n1", room=1)).runs
    assert (again.run_id, again.attempt, again.losses) == (1, 2, 1)
    assert await shop.hand_back("n1", (1, 2)) == Ok(1)
    [lease] = [row for row in await shop.rows("SELECT * FROM leases") if row["run_id"] == 1]
    assert (lease["node_id"], lease["attempt"], lease["losses"]) == (None, 1, 1)  # it keeps its key
    [again] = (await shop.claim("n1", room=1)).runs
    assert (again.run_id, again.attempt, again.losses) == (1, 2, 1)


@check
async def a_worker_leaves_when_it_holds_nothing(shop: Shop) -> None:
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=5)
    await shop.join("n1", p1=5)  # the reply was lost
    await shop.claim("n1")
    assert await shop.store.workers.leave("n1") == Refused("it still holds runs")
    await shop.finish("n1", 1, 1)
    assert await shop.store.workers.leave("n1") == await shop.store.workers.leave("n1") == Ok(None)
    assert (await shop.store.workers.list()).workers == []


@check
async def runs_wait_for_a_key_and_are_let_go(shop: Shop) -> None:
    """S3-44: one after the other; also across pools, and also if nobody serves the pool of the first who waits."""
    one, other = Job(1, overlap="queue", key="shared"), Job(2, overlap="queue", key="shared", pool="p2")
    third = Job(3, overlap="allow", max_running=2, key="shared", pool="p2")
    await shop.define(one, other, third)
    await shop.plan(one, NOW)
    await shop.plan(third, NOW)
    await shop.plan(one, NOW + 1)
    await shop.plan(other, NOW + 2)
    await shop.promote()
    await shop.join("n1", p1=5, p2=5)
    key = "key k:t1:shared"
    assert await shop.claimed("n1") == [1]
    assert await shop.claimed("n1", "p2") == [2]  # two of that job may hold it
    assert await shop.gates() == {3: key, 4: key}
    await shop.finish("n1", 1, 1)
    assert await shop.gates() == {3: key, 4: key}  # called: the first of each queue
    assert (await shop.claim_all("n1", "p2"))[0].runs == ()  # still one holder beside
    await shop.finish("n1", 2, 1)
    assert await shop.claimed("n1", "p2") == []  # it is the turn of p1
    await shop.clock.advance(TURN_MS)
    assert await shop.claimed("n1", "p2") == [4]  # nobody served p1


@check
async def runs_wait_for_limits_and_are_let_go(shop: Shop) -> None:
    """S3-54 … S3-57: a cap of a tenant, quotas and slots of a pool; each end lets the next one go."""
    jobs = [Job(n, overlap="allow", max_running=0) for n in (1, 2, 3)]
    far = Job(4, overlap="allow", max_running=0, pool="p2", tenant="t2")
    await shop.define(*jobs, far)
    for job in (*jobs, far, far):
        await shop.plan(job, NOW + job.number * (len(await shop.states()) + 1))
    await shop.clock.advance(1_000)
    await shop.promote()
    await shop.join("n1", p1=9, p2=9)
    await shop.limit("t1", 1)
    await shop.limit_pool("p2", per_tenant=1)
    assert await shop.claimed("n1") == [1]
    assert await shop.claimed("n1", "p2") == [4]
    assert await shop.gates() == {2: "tenant t1", 3: "tenant t1", 5: "quota_tenant p2:t2"}
    await shop.finish("n1", 1, 1)
    await shop.finish("n1", 4, 1)
    assert await shop.gates() == {2: None, 3: "tenant t1", 5: None}
    assert ok(await shop.store.limits.put_tenant("t1", {"max_in_flight": None}, actor="ann")).looked == 1
    ok(await shop.store.limits.put_pool("p1", {"per_type": {"x": 1}, "slots": 5}, actor="ann"))
    assert await shop.claimed("n1") == [2]
    assert (await shop.gates())[3] == "quota_type p1:x"
    ok(await shop.store.limits.put_pool("p1", {"per_type": {}, "slots": 1}, actor="ann"))
    assert (await shop.claim_all("n1"))[-1].runs == ()  # a slot of the fleet: it waits in the open queue
    assert (await shop.gates())[3] is None
    await shop.finish("n1", 2, 1)
    assert await shop.claimed("n1") == [3]


@check
async def runs_wait_for_a_rate(shop: Shop) -> None:
    """S3-56: exactly in time, one by one; the second claim asks nobody before the instant is there."""
    job = Job(1, overlap="allow", max_running=0)
    await shop.define(job)
    await shop.limit("t1", rate=2.0, burst=1)
    await shop.plan(job, *(NOW - n for n in (4, 3, 2, 1)))
    await shop.promote()
    await shop.join("n1", p1=9)
    started = []
    for _ in range(4):
        started += [(run_id, shop.now - NOW) for run_id in await shop.claimed("n1")]
        look = (await shop.store.queue.next_look(["p1"])).look_ms
        if look is not None:
            assert await shop.claimed("n1") == []
            await shop.clock.set(look)
    assert started == [(1, 0), (2, 500), (3, 1_000), (4, 1_500)]


@check
async def a_claim_pulls_who_was_parked_while_a_place_was_freed(shop: Shop) -> None:
    job = Job(1, overlap="allow", max_running=0)
    await shop.define(job)
    await shop.limit("t1", 1)
    await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=9)
    ok(await shop.store.engine.write(lambda: _park(1, "tenant", "t1")))
    assert await shop.claimed("n1") == [1]


def _park(run_id: int, gate: str, key: str):  # type: ignore[no-untyped-def]
    text = f'[{{"run_id": {run_id}, "gate": "{gate}", "key": "{key}", "look_ms": null}}]'
    yield "queue_park", {"rows": text, "now_ms": NOW}


@check
async def runs_wait_while_their_tenant_is_held(shop: Shop) -> None:
    """S3-105: until somebody lets them go, or the time is over. The key that they do not use goes to the next."""
    job, other = Job(1, key="k", type="x"), Job(2, key="k", type="y")
    await shop.define(job, other)
    await shop.plan(job, NOW)
    await shop.plan(other, NOW + 1)
    await shop.clock.advance(2)
    await shop.promote()
    await shop.join("n1", p1=9)
    wish = Wish("type", "x", percent=0, for_ms=5_000, reason="test")
    ok(await shop.store.controls.switch(wish, actor="ann"))
    assert await shop.claimed("n1") == [2]
    assert await shop.gates() == {1: "paused type:x"}
    assert (await shop.store.queue.next_look(["p1"])).look_ms == NOW + 5_002
    await shop.finish("n1", 2, 1)
    await shop.clock.set(NOW + 5_002)
    assert await shop.claimed("n1") == [1]


@check
async def nobody_counts_on_a_worker_that_is_about_to_end(shop: Shop) -> None:
    """S3-18: it keeps what it holds, and what it lacks or has is of no use to runs that wait."""
    job, other = Job(1, handler="mail"), Job(2, handler="print")
    await shop.define(job, other)
    await shop.plan(job, NOW)
    await shop.plan(other, NOW)
    await shop.promote()
    await shop.join("n1", p1=9)
    await shop.join("n2", p1=9)
    assert [run.run_id for run in (await shop.claim("n2", lacks=("mail",))).runs] == [2]
    assert await shop.store.workers.close_pools("n2") == Ok(None)
    assert {each.node_id: dict(each.pools) for each in (await shop.store.workers.list()).workers} == {
        "n1": {"p1": 9},
        "n2": {},
    }
    known = await shop.store.situations.of_run(1)
    assert known is not None
    assert [each.node_id for each in known.workers] == ["n1"]
    await shop.claim("n1", lacks=("mail",))
    assert (await shop.gates())[1] == "handler mail"  # n2 will not look at it
    assert await shop.store.workers.leave("n2") == Refused("it still holds runs")
    await shop.finish("n2", 2, 1)
    assert await shop.store.workers.leave("n2") == Ok(None)


@check
async def runs_wait_for_a_handler(shop: Shop) -> None:
    """S1-24: nobody in the pool has it: parked, shown, and looked at again when a worker comes."""
    job, other = Job(1, handler="mail"), Job(2, handler="print")
    await shop.define(job, other)
    await shop.plan(job, NOW)
    await shop.plan(other, NOW)
    await shop.promote()
    await shop.join("n1", p1=9)
    await shop.join("n2", p1=9)
    assert await shop.store.workers.lack("n1", {"mail": "it is not here"}) == Ok(None)
    taken = await shop.claim("n1", lacks=("mail",))
    assert ([run.run_id for run in taken.runs], await shop.gates()) == ([2], {1: None})  # n2 may have it
    assert await shop.store.workers.lack("n2", {"mail": "nor here", "print": ""}) == Ok(None)
    await shop.claim("n1", lacks=("mail",))
    assert await shop.gates() == {1: "handler mail"}
    await shop.join("n3", p2=9)
    assert await shop.gates() == {1: "handler mail"}
    await shop.join("n3-again", p1=9)
    assert [run.run_id for run in (await shop.claim("n3-again")).runs] == [1]


@check
async def a_tick_is_skipped_by_facts(shop: Shop) -> None:
    """S0-37, S3-45: looked at late, the answers are those of the due instants, one after the other."""
    job = Job(1, deadline_ms=60_000)
    await shop.define(job)
    await shop.plan(job, *(NOW + n * 1_000 for n in range(5)))
    await shop.promote(0)
    await shop.join("n1", p1=9)
    await shop.claim("n1")
    await shop.clock.set(NOW + 1_500)
    await shop.finish("n1", 1, 1)  # the tick at 1 s overlaps, the one at 2 s does not
    await shop.clock.set(NOW + 10_000)
    await shop.promote()
    assert await shop.claimed("n1") == [3]
    assert await shop.states() == {1: "succeeded", 2: "skipped", 3: "planned", 4: "skipped", 5: "skipped"}
    found = {row["run_id"]: row for row in await shop.rows("SELECT * FROM runs")}
    assert found[2]["finished_ms"] == NOW + 1_000
    assert (found[2]["reason"], found[4]["reason"]) == (
        "overlap: run 1 was not finished",
        "overlap: run 3 had not started",
    )


@check
async def a_job_that_is_always_busy_catches_up_all_the_same(shop: Shop) -> None:
    """Every run ends a moment before the next tick, which is queued by then. What waits takes turns with the ticks, and
    none of them is skipped because of it."""
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW - 9_000, NOW - 8_000, lane="catchup")
    await shop.plan(job, NOW, NOW + 10_000, NOW + 30_000)
    await shop.promote(0)
    await shop.join("n1", p1=9)
    assert await shop.claimed("n1") == [3]
    order = [3]
    for at_ms in (9_500, 19_400, 29_300, 39_200):
        await shop.clock.set(NOW + at_ms)
        await shop.promote()
        await shop.finish("n1", order[-1], 1)
        order += await shop.claimed("n1")
    assert order == [3, 1, 4, 2, 5]


async def ruled(shop: Shop, job: Job, rule: MisfireRule) -> None:
    text = json.dumps({"misfire": misfire_document(rule)})
    await change(shop.store.engine, f"UPDATE jobs SET definition = '{text}' WHERE job_id = '{job.job_id}'")


@check
async def what_was_planned_before_an_outage_falls_under_the_misfire_rule(shop: Shop) -> None:
    """S0-6, S2-5: the minute that was planned when everybody went away is not run late, or skipped as an overlap."""
    jobs = {rule: Job(number, overlap="skip") for number, rule in enumerate(("skip", "latest", "all"), start=1)}
    for policy, job in jobs.items():
        await shop.define(job)
        await ruled(shop, job, MisfireRule(policy))  # type: ignore[arg-type]
        await shop.plan(job, *(NOW + n * 20_000 for n in range(1, 4)), NOW + 170_000)
    await shop.clock.set(NOW + 180_000)
    await shop.promote(0, most=4)  # also if it takes several transactions
    while (await shop.promote(0, most=4)).runs:
        pass
    await shop.join("n1", p1=9)
    assert sorted(await shop.claimed("n1")) == [4, 8, 12]  # what is in time comes first
    states = await shop.states()
    assert [states[run_id] for run_id in (1, 2, 3)] == ["skipped"] * 3
    assert [states[run_id] for run_id in (5, 6)] == ["merged"] * 2
    found = {row["run_id"]: row for row in await shop.rows("SELECT * FROM runs")}
    assert (found[7]["covers"], found[7]["window_from_ms"], found[7]["lane"]) == (3, NOW + 20_000, "catchup")
    assert found[1]["finished_ms"] == NOW + 40_000  # when the next one was due
    await shop.finish("n1", 8, 1)
    assert await shop.claimed("n1") == [7]
    for ended, follows in ((12, 9), (9, 10), (10, 11)):
        await shop.finish("n1", ended, 1)
        assert await shop.claimed("n1") == [follows]


@check
async def runs_of_a_job_that_was_ended_do_not_start(shop: Shop) -> None:
    """Neither those that are due, nor those that wait, nor one that rests between two attempts."""
    kept, ended, deleted = Job(1, overlap="queue"), Job(2, overlap="queue"), Job(3, overlap="allow", max_running=0)
    await shop.define(kept, ended, deleted)
    for job in (kept, ended, deleted):
        await shop.plan(job, NOW - 2_000, NOW - 1_000)
    await shop.promote(0)
    await shop.join("n1", p1=9)
    assert sorted(await shop.claimed("n1")) == [1, 3, 5, 6]
    await change(shop.store.engine, f"UPDATE jobs SET state = 'cancelled' WHERE job_id = '{ended.job_id}'")
    await change(shop.store.engine, f"UPDATE jobs SET deleted_ms = 1 WHERE job_id = '{deleted.job_id}'")
    await shop.finish("n1", 1, 1)
    await shop.finish("n1", 3, 1)  # what runs may end
    await shop.finish("n1", 5, 1, Failed(Fault("ValueError")))  # it would be tried again
    await shop.clock.set(NOW + 60_000)
    await shop.promote(0)
    assert await shop.claimed("n1") == [2]
    reasons = {row["run_id"]: (row["state"], row["reason"]) for row in await shop.rows("SELECT * FROM runs")}
    assert reasons[4] == ("cancelled", "its job was cancelled")
    assert reasons[5] == ("cancelled", "its job was deleted")
    assert not await shop.rows("SELECT 1 FROM leases WHERE run_id IN (4, 5)")


@check
async def whoever_queues_behind_a_held_back_run_is_not_stuck(shop: Shop) -> None:
    """The sweep is an alarm: what an operator has held back must not set it off."""
    job = Job(1, overlap="queue")
    await shop.define(job)
    await shop.plan(job, NOW - 2_000, NOW - 1_000)
    control = "INSERT INTO controls (scope, name, percent, backoff, reason, actor, updated_ms) VALUES"
    await change(shop.store.engine, f"{control} ('pool', 'p1', 0, 1, 'test', 'test', 0)")
    await shop.promote(0)
    await shop.join("n1", p1=9)
    assert await shop.claimed("n1") == []
    await shop.clock.set(NOW + 120_000)
    assert ok(await shop.store.sweeping.sweep(0)).stuck == 0


@check
async def a_tick_that_waits_until_it_is_due_is_looked_at_then(shop: Shop) -> None:
    job = Job(1)
    await shop.define(job)
    await shop.plan(job, NOW, NOW + 1_000)
    await shop.promote()
    await shop.join("n1", p1=9)
    await shop.claim_all("n1")
    assert await shop.gates() == {2: "key j:" + job.job_id}
    assert await next_look(shop) == (NOW, None, NOW + 1_001)
    await shop.clock.set(NOW + 1_000)
    await shop.finish("n1", 1, 1)  # exactly then is no overlap
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [2]


@check
async def ticks_collapse_into_the_newest(shop: Shop) -> None:
    """S3-46: one run stands for all that waited, and says for which."""
    job = Job(1, overlap="collapse")
    await shop.define(job)
    await shop.plan(job, NOW - 50, lane="catchup")
    await shop.plan(job, *(NOW + n * 1_000 for n in range(1, 4)))
    await shop.clock.set(NOW + 2_000)
    await shop.promote(0)
    await shop.join("n1", p1=9)
    [first] = (await shop.claim("n1")).runs
    assert (first.run_id, first.covers, first.window_ms) == (3, 3, (NOW - 50, NOW + 2_000))
    assert await shop.states() == {1: "merged", 2: "merged", 3: "planned", 4: "planned"}
    await shop.plan(job, NOW + 4_000)
    await shop.clock.set(NOW + 3_000)
    await shop.promote(0)
    await shop.claim("n1")
    await shop.clock.set(NOW + 4_000)
    await shop.promote(0)
    await shop.claim("n1")
    await shop.finish("n1", 3, 1)
    [last] = (await shop.claim("n1")).runs
    assert (last.run_id, last.covers, last.window_ms) == (5, 2, (NOW + 2_000, NOW + 4_000))


@check
async def a_tick_cancels_the_one_before(shop: Shop) -> None:
    """S0-56: the running one is asked, the waiting one ends, and so does one that rests between two attempts."""
    job = Job(1, overlap="cancel_previous")
    await shop.define(job)
    await shop.plan(job, *(NOW + n * 1_000 for n in range(4)))
    await shop.promote(0)
    await shop.join("n1", p1=9)
    await shop.claim("n1")
    await shop.clock.set(NOW + 1_000)
    await shop.promote(0)
    taken = await shop.claim("n1")
    assert (taken.runs, taken.cancels) == ((), {1: "cancel_previous: run 2 takes its place"})
    assert ok(await shop.store.workers.renew("n1", TTL_MS)).cancels == {(1, 1): taken.cancels[1]}
    await shop.clock.set(NOW + 2_000)
    await shop.promote(0)
    await shop.claim("n1")
    assert (await shop.states())[2] == "cancelled"
    done = await shop.finish("n1", 1, 1, BROKEN)
    assert done.transitions[1].state is RunState.CANCELLED
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [3]
    await shop.clock.set(NOW + 2_500)
    await shop.finish("n1", 3, 1, BROKEN)  # it rests until 4.5 s
    await shop.clock.set(NOW + 3_000)
    await shop.promote(0)
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [4]
    assert (await shop.states())[3] == "cancelled"
    assert await shop.rows("SELECT * FROM upcoming") == []
    assert (await shop.store.queue.promote(60_000, 10, rank)) is not None


@check
async def a_tick_that_comes_after_a_newer_one_cancels_nothing(shop: Shop) -> None:
    """A stretch that an edit has left undecided is decided when the ticks after it are planned, and may run already.
    The older tick asked the newer one to stop, or ended one that rested between two attempts."""
    job = Job(1, overlap="cancel_previous")
    await shop.define(job)
    await shop.plan(job, NOW)
    await shop.promote(0)
    await shop.join("n1", p1=9)
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [1]
    await shop.plan(job, NOW - 3_000)
    await shop.promote(0)
    taken = await shop.claim("n1")
    assert (taken.runs, taken.cancels) == ((), {})
    assert (await shop.states())[2] == "cancelled"
    await shop.finish("n1", 1, 1, BROKEN)
    await shop.plan(job, NOW - 2_000)
    await shop.promote(0)
    assert (await shop.claim("n1")).runs == ()
    assert (await shop.states())[3] == "cancelled"
    assert [row["run_id"] for row in await shop.rows("SELECT run_id FROM leases")] == [1]


@check
async def a_run_expires_at_its_deadline(shop: Shop) -> None:
    """S0-21: no first start after the start deadline."""
    job = Job(1, overlap="allow", max_running=0, deadline_ms=1_000)
    await shop.define(job)
    await shop.plan(job, NOW, NOW + 1)
    await shop.promote()
    await shop.join("n1", p1=9)
    await shop.clock.set(NOW + 1_001)
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [2]
    [run, _] = await shop.rows("SELECT * FROM runs ORDER BY run_id")
    assert (run["state"], run["finished_ms"]) == ("expired", NOW + 1_001)


@check
async def a_run_that_comes_back_too_late_ends_when_it_comes_back(shop: Shop) -> None:
    """Its worker heard of it after its start deadline (the reply to the claim was lost). Run 2 was due meanwhile, and
    skipped, because nobody could know that run 1 had not started: so run 1 was there until it came back. One that came
    back in time is queued."""
    job, other = Job(1, overlap="skip", deadline_ms=1_000), Job(2, overlap="skip", deadline_ms=1_000)
    await shop.define(job, other)
    await shop.plan(job, NOW, NOW + 1_500)
    await shop.plan(other, NOW + 600)
    await shop.promote(1_000)
    await shop.join("n1", p1=5)
    assert await shop.claimed("n1") == [1, 3]
    await shop.clock.set(NOW + 1_550)
    await shop.promote()
    assert await shop.claimed("n1") == []
    assert await shop.hand_back("n1", (1, 1), (3, 1)) == Ok(2)
    first, second, third = await shop.rows("SELECT state, finished_ms, reason FROM runs ORDER BY run_id")
    assert (second["state"], second["reason"]) == ("skipped", "overlap: run 1 was not finished")
    assert (first["state"], first["finished_ms"]) == ("expired", NOW + 1_550)
    assert first["reason"] == "start_deadline: it could not start in time"
    assert third["state"] == "planned"
    assert await shop.rows("SELECT * FROM leases") == []
    assert await shop.gates() == {3: None}
    assert await shop.hand_back("n1", (1, 1), (3, 1)) == Ok(0)
    await shop.plan(job, NOW + 2_000)
    await shop.clock.set(NOW + 2_000)
    await shop.promote()
    assert await shop.claimed("n1") == [4]


@check
async def runs_that_are_due_in_a_moment_do_not_hide_one_that_is_due(shop: Shop) -> None:
    """No slot stays idle while something may run: many early runs stand before it in the fair order."""
    early, due = Job(1, overlap="allow", max_running=99), Job(2, overlap="allow", max_running=99)
    await shop.define(early, due)
    await shop.plan(early, *(NOW + 500 + n for n in range(30)))
    await shop.promote(1_000)
    [run] = await shop.plan(due, NOW)
    await shop.promote(1_000)
    await shop.join("n1")
    taken = await shop.claim("n1", room=2, early_room=0)
    assert [each.run_id for each in taken.runs] == [run]
    assert len((await shop.claim("n1", room=2, early_room=1)).runs) == 1


@check
async def who_stands_for_others_has_a_turn_in_a_pool_that_never_empties(shop: Shop) -> None:
    """Each tick gives way to the next before its turn comes, and a backlog of another job grows before all of them."""
    for overlap in ("collapse", "cancel_previous"):
        shop = await Shop.open(shop.store, shop.clock)
        busy, sync = Job(1, overlap="allow", max_running=0), Job(2, overlap=overlap)  # type: ignore[arg-type]
        await shop.define(busy, sync)
        await shop.join("n1", p1=1)
        await shop.plan(busy, *(NOW + number * 3_000 for number in range(40)))
        ticks = await shop.plan(sync, *(NOW + 1 + number * 3_000 for number in range(40)))
        ran = []
        for number in range(20):  # a run takes four seconds
            await shop.clock.set(NOW + 12_000 + number * 4_000)
            await shop.promote()
            [run_id] = await shop.claimed("n1", room=1)
            ran.append(run_id)
            await shop.finish("n1", run_id, 1)
        assert sum(run_id in ticks for run_id in ran) >= 3, (overlap, ran)


@check
async def a_place_is_handed_on_only_within_a_queue(shop: Shop) -> None:
    """What was caught up stood in another line."""
    job, other = Job(1, overlap="collapse"), Job(2, overlap="allow", max_running=0)
    await shop.define(job, other)
    await shop.plan(job, NOW - 9_000, lane="catchup")
    await shop.plan(other, *(NOW - 8_000 + number for number in range(5)))
    await shop.plan(job, NOW - 2_000, NOW - 1_000)
    await shop.join("n1", p1=1)
    await shop.promote()
    ranks = {row["run_id"]: row["rank"] for row in await shop.rows("SELECT run_id, rank FROM queue")}
    await shop.claim("n1", room=0)
    left = {row["run_id"]: row["rank"] for row in await shop.rows("SELECT run_id, rank FROM queue")}
    assert left == {run_id: rank for run_id, rank in ranks.items() if run_id not in (1, 7)} | {8: ranks[7]}
