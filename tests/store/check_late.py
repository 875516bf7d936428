"""Checks of the conformance suite about ticks that nobody queued, when there are more of them than one transaction may
read."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetcron.model.rules import MisfireRule
from fleetcron.model.writing import misfire_document
from fleetcron.policy.late import late
from fleetcron.store.engine import Script
from fleetcron.store.queue import Promoted, Queue
from fleetcron.store.written import Written
from tests.store.engines import change
from tests.worker.shop import BEGIN_MS as NOW
from tests.worker.shop import Job, Shop, ok, rank

if TYPE_CHECKING:
    from tests.store.test_conformance import World

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
STEP = 20_000
RULES = {
    1: MisfireRule("skip"),
    2: MisfireRule("latest"),
    3: MisfireRule("all", limit=4),
    4: MisfireRule("all", limit=7, lane="live"),
    5: MisfireRule("latest", window_ms=9 * STEP),
}


def check(function: Callable[[Shop], Awaitable[None]]) -> Check:
    async def on_a_shop(w: "World") -> None:
        await function(await Shop.open(w.store, w.clock))

    CHECKS[function.__name__] = on_a_shop
    return on_a_shop


class Counting:
    """Counts the rows of each statement."""

    def __init__(self, shop: Shop) -> None:
        self._engine = shop.store.engine
        self.rows: dict[str, int] = {}

    async def write(self, script: Callable[[], Script[Any]]) -> Written[Any]:
        def counted() -> Script[Any]:
            going = script()
            call = next(going)
            while True:
                found = yield call
                self.rows[call[0]] = max(len(found), self.rows.get(call[0], 0))
                try:
                    call = going.send(found)
                except StopIteration as end:
                    return end.value

        return await self._engine.write(counted)


async def plan(shop: Shop, rules: Mapping[int, MisfireRule], ticks_ms: Sequence[int]) -> dict[int, Job]:
    jobs = {number: Job(number, overlap="allow", max_running=0) for number in rules}
    for number, job in jobs.items():
        await shop.define(job)
        text = json.dumps({"misfire": misfire_document(rules[number])})
        await change(shop.store.engine, f"UPDATE jobs SET definition = '{text}' WHERE job_id = '{job.job_id}'")
        await shop.plan(job, *ticks_ms)
    return jobs


async def promote_all(shop: Shop, most: int, late_most: int) -> list[int]:
    """How many runs were answered in each transaction, until there is nothing left."""
    counting = Counting(shop)
    queue = Queue(counting)  # type: ignore[arg-type]
    closed = []
    while True:
        before = await answered(shop)
        done: Promoted = ok(await queue.promote(0, most, rank, late, late_most))
        assert done.runs or not done.more  # each of them gets on
        closed.append(await answered(shop) - before)
        if not done.more:
            read = max(late_most, 3 * len(RULES))
            assert counting.rows.get("runs_unqueued_first", 0) <= read
            assert counting.rows.get("runs_unqueued_last", 0) <= max(read, 8)
            assert await shop.rows(f"SELECT * FROM upcoming WHERE run_after_ms <= {shop.now}") == []
            return closed


async def answered(shop: Shop) -> int:
    [row] = await shop.rows("SELECT count(*) AS runs FROM runs WHERE finished_ms IS NOT NULL")
    return int(row["runs"])


async def answers(shop: Shop) -> list[dict[str, Any]]:
    """What became of each run, and what is queued."""
    sql = (
        "SELECT r.run_id, r.state, r.reason, r.finished_ms, r.covered_by, r.lane, r.covers, r.window_from_ms,"
        " r.window_to_ms, q.lane AS queued FROM runs AS r LEFT JOIN queue AS q ON q.run_id = r.run_id ORDER BY r.run_id"
    )
    return await shop.rows(sql)


@check
async def a_backlog_is_answered_in_parts(shop: Shop) -> None:
    """The answers are those that it gets at once, whatever fits into a transaction."""
    ticks_ms = [NOW + number * STEP for number in range(1, 31)]
    now_ms = ticks_ms[-2] + 1  # the last one but one is in its grace, the last one is to come
    found = []
    for most, late_most in ((1_000, 1_000), (1_000, 15), (7, 15), (1_000, 4), (3, 40)):
        again = await Shop.open(shop.store, shop.clock)
        await plan(again, RULES, ticks_ms)
        await again.clock.set(now_ms)
        closed = await promote_all(again, most, late_most)
        found.append(await answers(again))
        if late_most == 1_000:
            assert len(closed) == 1
        else:  # what is whole when its newest ones are seen is decided with these
            assert max(closed) <= 2 * max(late_most, 3 * len(RULES))
            assert len(closed) > 1
    for each in found[1:]:
        assert [pair for pair in zip(found[0], each, strict=True) if pair[0] != pair[1]] == []
    [stands] = [row for row in found[0] if row["covers"] == 28]
    assert (stands["run_id"], stands["lane"], stands["window_from_ms"]) == (30 + 28, "catchup", ticks_ms[0])
    queued = {row["run_id"] for row in found[0] if row["queued"]}
    assert queued == {29, *range(58, 60), *range(85, 90), *range(112, 120), *range(148, 150)}


@check
async def one_job_with_a_backlog_of_its_own(shop: Shop) -> None:
    """Others that have little are not kept waiting by it."""
    long = [NOW + number * 1_000 for number in range(1, 201)]
    await plan(shop, {1: MisfireRule()}, long)
    await plan(shop, {2: MisfireRule()}, long[-1:])
    await shop.clock.set(long[-1] + 61_000)
    ok(await shop.store.queue.promote(0, 1_000, rank, late, 20))
    assert [row["run_id"] for row in await shop.rows("SELECT run_id FROM queue")] == [201]
    closed = await promote_all(shop, 1_000, 20)
    assert max(closed) <= 22
    assert sorted(row["run_id"] for row in await shop.rows("SELECT run_id FROM queue")) == [200, 201]
    [stands] = await shop.rows("SELECT * FROM runs WHERE run_id = 200")
    assert (stands["covers"], stands["window_from_ms"], stands["window_to_ms"]) == (200, long[0], long[-1])
    assert {row["covered_by"] for row in await shop.rows("SELECT * FROM runs WHERE run_id < 200")} == {200}


@check
async def the_newest_are_not_decided_before_the_oldest(shop: Shop) -> None:
    """In a burst the newest ticks of somebody else are taken in their turn. Each would be the latest of its job."""
    ticks_ms = [NOW + number * 1_000 for number in range(1, 31)]
    await plan(shop, dict.fromkeys(range(1, 13), MisfireRule()), ticks_ms)
    other = Job(13, tenant="other", overlap="allow", max_running=0)
    await shop.define(other)
    await change(
        shop.store.engine,
        f"UPDATE jobs SET definition = (SELECT definition FROM jobs WHERE tenant <> 'other' LIMIT 1)"
        f" WHERE job_id = '{other.job_id}'",
    )
    await shop.plan(other, *ticks_ms)
    await shop.clock.set(ticks_ms[-1] + 61_000)
    await promote_all(shop, 6, 18)
    queued = await shop.rows("SELECT q.run_id, r.covers FROM queue AS q JOIN runs AS r ON r.run_id = q.run_id")
    assert [row["covers"] for row in queued] == [30] * 13


@check
async def a_backlog_that_grows_while_it_is_answered(shop: Shop) -> None:
    """A run that was to stand for the others is merged in its turn, with all that it stands for."""
    ticks_ms = [NOW + number * STEP for number in range(1, 25)]
    jobs = await plan(shop, {1: MisfireRule(), 2: MisfireRule("all", limit=2)}, ticks_ms[:20])
    for ticks in (20, 21, 22, 23):
        await shop.clock.set(ticks_ms[ticks - 1] + 61_000)
        ok(await shop.store.queue.promote(0, 1_000, rank, late, 8))
        await shop.clock.set(ticks_ms[ticks] - 1)
        for job in jobs.values():
            await shop.plan(job, ticks_ms[ticks])
    await shop.clock.set(ticks_ms[-1] + 61_000)
    await promote_all(shop, 1_000, 8)
    by = {row["run_id"]: row for row in await shop.rows("SELECT * FROM runs")}
    merged = [row for row in by.values() if row["state"] == "merged"]
    assert len(merged) == 23
    assert len({row["covered_by"] for row in merged}) > 1
    queued = await shop.rows("SELECT q.run_id, r.covers FROM queue AS q JOIN runs AS r ON r.run_id = q.run_id")
    assert sorted(row["covers"] for row in queued) == [1, 1, 24]


@check
async def what_is_left_open_is_decided_in_the_end(shop: Shop) -> None:
    """The newest ticks were late when they were planned, and tell nothing: these jobs are looked at one by one."""
    ticks_ms = [NOW + number * STEP for number in range(1, 9)]
    found = []
    for late_most in (1_000, 20, 3):
        again = await Shop.open(shop.store, shop.clock)
        jobs = await plan(again, {1: MisfireRule(lane="live"), 2: MisfireRule("all", limit=3)}, ticks_ms[:1])
        await again.clock.set(NOW + 1_000 * STEP)
        for job in jobs.values():
            await again.plan(job, *ticks_ms[1:])
        await again.clock.set(NOW + 1_001 * STEP)
        await promote_all(again, 1_000, late_most)
        found.append(await answers(again))
    assert found[0] == found[1]
    assert all(row["queued"] for answers in found for row in answers)


@check
async def many_jobs_that_run_all_are_answered_many_at_once(shop: Shop) -> None:
    """The newest ticks of only some of them can be looked at: of these more is answered, not two of each."""
    ticks_ms = [NOW + number * STEP for number in range(1, 41)]
    await plan(shop, dict.fromkeys(range(1, 31), MisfireRule("all", limit=9)), ticks_ms)
    await shop.clock.set(ticks_ms[-1] + 61_000)
    closed = await promote_all(shop, 1_000, 90)
    assert sum(closed) == 30 * 31
    assert len(closed) <= 30  # with two ticks of nine jobs in each it would be 60
    assert len(await shop.rows("SELECT run_id FROM queue WHERE lane = 'catchup'")) == 30 * 9


@check
async def what_only_a_newer_release_can_answer_is_left_to_it(shop: Shop) -> None:
    """The others are answered and queued; the oldest of them, too, when a page was full of what is left."""
    late_ms = [NOW + STEP * n for n in range(6)]
    jobs = await plan(shop, {1: MisfireRule("latest"), 2: MisfireRule("latest"), 3: MisfireRule("skip")}, late_ms)
    text = json.dumps({"misfire": {**misfire_document(RULES[2]), "policy": "newest_two"}})
    newer = f"job_id = '{jobs[1].job_id}'"
    await change(shop.store.engine, f"UPDATE jobs SET definition = '{text}' WHERE {newer}")
    await shop.clock.set(NOW + 100 * STEP)
    queue = Queue(shop.store.engine)
    while ok(await queue.promote(0, 6, rank, late)).more:
        pass
    assert await answered(shop) == 5 + 6
    assert (await queue.next_look(["p1"])).upcoming_ms is None
    assert (await shop.store.queue.next_look(["p1"])).upcoming_ms == NOW  # as others see it
    await change(
        shop.store.engine, f"UPDATE jobs SET definition = '{text.replace('newest_two', 'latest')}' WHERE {newer}"
    )
    await shop.clock.set(NOW + 101 * STEP)  # it is tried again
    while ok(await queue.promote(0, 6, rank, late)).more:
        pass
    assert await answered(shop) == 5 + 6 + 5
