"""Checks of the conformance suite about jobs that are edited while runs of theirs are open."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from fleetcron.model.definition import Definition
from fleetcron.model.errand import Errand
from fleetcron.model.queued import Queued
from fleetcron.model.rules import OverlapRule, RetryRule
from fleetcron.model.situation import Situation
from fleetcron.model.states import RunState
from fleetcron.model.target import CommandTarget, PythonTarget
from fleetcron.policy.why import why
from fleetcron.store import following
from fleetcron.store.claims import Claimed
from fleetcron.store.following import Followed
from fleetcron.store.job_pages import JobFilter
from tests.store.engines import change
from tests.store.floor import MINUTE, Floor, ok

if TYPE_CHECKING:
    from tests.store.test_conformance import World

Check = Callable[["World"], Awaitable[None]]
CHECKS: dict[str, Check] = {}
OLD, NEW = PythonTarget("shop:reprot"), PythonTarget("shop:report")


def check(function: Callable[[Floor], Awaitable[None]]) -> Check:
    async def on_a_floor(w: "World") -> None:
        await function(Floor(w.store, w.clock, w.desk, w.held))

    CHECKS[function.__name__] = on_a_floor
    return on_a_floor


async def edit(f: Floor, name: str, **fields: Any) -> None:
    applied = await f.desk.edit(replace(await definition(f, name), **fields))
    assert applied.done == "changed", applied


async def definition(f: Floor, name: str) -> Definition:
    [line] = await f.store.jobs.list(JobFilter(name=name), 1)
    return line.job.definition


async def errand(f: Floor, run: Claimed) -> Errand:
    return (await f.store.definitions.read([(run.job_id, run.revision)]))[run.job_id, run.revision]


async def situation(f: Floor, run_id: int) -> Situation:
    found = await f.store.situations.of_run(run_id)
    assert found is not None
    return found


async def gate(f: Floor, run_id: int) -> tuple[str, str] | None:
    """What it waits for, if anything."""
    waiting = (await situation(f, run_id)).line.waiting
    return None if waiting is None else (waiting.gate, waiting.key)


async def retrying(f: Floor, name: str, **fields: Any) -> int:
    """A run that has failed once and is due again; of a worker `w1` that serves the pool `default`."""
    await f.define(name, **fields)
    await f.join("w1")
    await f.next_minute()
    [run] = await f.claim("w1")
    await f.fail("w1", run)
    await f.clock.set(f.now + 3_600_000)
    await f.queue()
    return run.run_id


@check
async def an_attempt_does_what_its_job_says_now(f: Floor) -> None:
    run_id = await retrying(f, "a", run=OLD)
    rule = RetryRule(max_attempts=7)
    await edit(f, "a", run=NEW, payload={"kind": "full"}, timeout_ms=5_000, retry=rule)
    [run] = await f.claim("w1")
    assert (run.run_id, run.attempt) == (run_id, 2)
    now = Errand(NEW, {"kind": "full"}, 5_000, rule)
    assert await errand(f, run) == now
    assert await f.store.definitions.held_by("w1") == {run_id: now}
    assert (await situation(f, run_id)).line.run.revision == 1  # which planned it


@check
async def a_run_that_nobody_can_do_is_looked_at_once_and_then_waits(f: Floor) -> None:
    """The function was renamed, and the worker has only the old one: it declines the run once, not for ever."""
    await retrying(f, "a", run=OLD)
    await edit(f, "a", run=NEW)
    [run] = await f.claim("w1")
    lacks = ["python:shop:report"]
    ok(await f.store.workers.lack("w1", {lacks[0]: "no such function"}))
    ok(await f.store.attempts.hand_back("w1", [(run.run_id, run.attempt, run.batch)]))
    assert await f.claim("w1", lacks=lacks) == []
    assert await gate(f, run.run_id) == ("handler", lacks[0])


@check
async def the_worker_that_has_the_new_function_gets_the_run(f: Floor) -> None:
    """Another program with the new function comes; the old one had parked the run for want of nothing."""
    run_id = await retrying(f, "a", run=OLD)
    assert await f.claim("w1", lacks=["python:shop:reprot"]) == []  # parked for want of the typo
    await edit(f, "a", run=NEW)
    [run] = await f.claim("w1", lacks=["python:shop:reprot"])
    assert run.run_id == run_id


@check
async def a_replay_does_what_the_job_says_now(f: Floor) -> None:
    await retrying(f, "a", run=CommandTarget(("flase",)))
    [run] = await f.claim("w1")
    await f.fail("w1", run)
    assert (await situation(f, run.run_id)).line.run.state == RunState.DEAD
    await edit(f, "a", run=CommandTarget(("true",)))
    ok(await f.store.steering.replay([run.run_id], actor="ann"))
    await f.queue()
    [again] = await f.claim("w1")
    assert (again.run_id, (await errand(f, again)).run) == (run.run_id, CommandTarget(("true",)))


@check
async def what_a_run_was_given_itself_is_its_own(f: Floor) -> None:
    await f.define("a", payload={"of": "job"})
    await f.join("w1")
    ok(await f.store.steering.trigger(("default", "a"), {"of": "run"}, actor="ann", key="k"))
    await f.queue()
    await edit(f, "a", payload={"of": "job", "new": True})
    [run] = await f.claim("w1")
    assert run.payload == '{"of":"run"}'


async def queued(f: Floor, runs: int, name: str = "a", **fields: Any) -> list[int]:
    """Runs of a job that stand in the queue of its pool."""
    await f.define(name, **fields)
    found = []
    for at in range(runs):
        job = fields.get("tenant", "default"), name
        asked = ok(await f.store.steering.trigger(job, None, actor="ann", key=f"{name}{at}"))
        found.append(asked.run_id)
    await f.queue()
    return found


@check
async def queued_runs_follow_their_job_to_another_pool(f: Floor) -> None:
    """Nobody serves the pool with the typo: without this the run stood there for ever, and the job with it."""
    [run_id] = await queued(f, 1, pool="defualt", retry=RetryRule(max_attempts=3))
    await f.join("w1")
    assert await f.claim("w1") == []
    await edit(f, "a", pool="default", priority=7, type="mail", start_deadline_ms=MINUTE)
    row = (await situation(f, run_id)).queued
    assert row is not None
    assert (row.pool, row.priority, row.type, row.deadline_ms) == ("default", 7, "mail", None)
    assert [run.run_id for run in await f.claim("w1")] == [run_id]


@check
async def a_tick_that_is_queued_has_the_start_deadline_of_now(f: Floor) -> None:
    await f.define("a", pool="elsewhere")
    await f.next_minute()
    await edit(f, "a", start_deadline_ms=30_000)
    assert (await first_queued(f)).deadline_ms == f.now + 30_000
    await edit(f, "a", start_deadline_ms=None, overlap=OverlapRule("queue"), depends_on=())
    row = await first_queued(f)
    assert (row.deadline_ms, row.overlap) == (None, "queue")


async def first_queued(f: Floor) -> Queued:
    row = (await situation(f, 1)).queued
    assert row is not None
    return row


@check
async def there_may_be_more_queued_runs_than_a_page(f: Floor) -> None:
    mine = await queued(f, 5, pool="defualt", overlap=OverlapRule("allow"))
    await queued(f, 1, "other", pool="defualt")
    await f.join("w1")
    with patch.object(following, "PAGE", 2):
        await edit(f, "a", pool="default")
    assert sorted(run.run_id for run in await f.claim("w1")) == mine


@check
async def whoever_left_a_run_behind_is_followed_by_upkeep(f: Floor) -> None:
    """The node of the edit died before the queue could follow."""
    mine = await queued(f, 3, pool="defualt", overlap=OverlapRule("allow"))
    await change(f.store.engine, "UPDATE jobs SET pool = 'default', handler = 'python:t:f'")
    with patch.object(following, "_STRETCH", 2):
        assert ok(await f.store.following.sweep(0)) == Followed(2, mine[1])
        assert ok(await f.store.following.sweep(mine[1])) == Followed(1, 0)
        assert ok(await f.store.following.sweep(0)) == Followed(0, mine[1])
        assert ok(await f.store.following.sweep(mine[2])) == Followed(0, 0)
    await f.join("w1")
    assert sorted(run.run_id for run in await f.claim("w1")) == mine


@check
async def who_comes_from_another_pool_does_not_stand_before_everybody(f: Floor) -> None:
    mine = await queued(f, 3, pool="defualt", overlap=OverlapRule("allow"), tenant="flood")
    others = await queued(f, 3, "other", overlap=OverlapRule("allow"))
    await edit(f, "a", pool="default")
    await f.join("w1")
    first = {run.run_id for run in await f.claim("w1", room=2)}
    assert (len(first & set(mine)), len(first & set(others))) == (1, 1)


@check
async def whoever_waits_for_a_key_does_not_wait_for_one_that_went_another_way(f: Floor) -> None:
    """The key became free, and the run whose turn it was wants another one now: the next has its turn."""
    shared = OverlapRule("queue", concurrency_key="db")
    [held] = await queued(f, 1, "x", overlap=shared)
    await f.join("w1")
    [run] = await f.claim("w1")
    assert run.run_id == held
    [mine] = await queued(f, 1, "a", overlap=shared)
    [next_one] = await queued(f, 1, "b", overlap=shared)
    assert await f.claim("w1") == []
    await f.succeed("w1", run)
    assert (await gate(f, mine), await gate(f, next_one)) == (
        ("key", "k:default:db"),
        ("key", "k:default:db"),
    )  # called
    await edit(f, "a", overlap=OverlapRule("queue"), pool="elsewhere")
    assert [each.run_id for each in await f.claim("w1")] == [next_one]


@check
async def whoever_waits_for_an_upstream_job_is_looked_at_when_there_is_another_one(f: Floor) -> None:
    await f.define("load")
    await f.define("a", depends_on=("load",))
    await f.join("w1")
    await f.next_minute()
    [upstream] = await f.claim("w1")
    [waits] = [run_id for run_id in (1, 2) if run_id != upstream.run_id]
    assert (await gate(f, waits) or ("",))[0] == "upstream"
    await edit(f, "a", depends_on=())
    assert [run.run_id for run in await f.claim("w1")] == [waits]


EDITS = {
    "a key is added": ({}, {"concurrency_key": "db"}),
    "a key is changed": ({"concurrency_key": "db"}, {"concurrency_key": "file"}),
    "a key is removed": ({"concurrency_key": "db"}, {}),
}


async def asked(f: Floor, key: str, name: str = "a") -> int:
    run_id: int = ok(await f.store.steering.trigger(("default", name), None, actor="ann", key=key)).run_id
    await f.queue()
    return run_id


@check
async def a_job_does_not_overlap_itself_when_its_key_changes(f: Floor) -> None:
    """Whatever its policy: what waits does so until the run that holds the old key is final, and no longer."""
    await f.join("w1")
    for number, (edited, policy) in enumerate(product(EDITS, ("skip", "queue", "collapse", "cancel_previous"))):
        before, after = EDITS[edited]
        name = f"j{number}"
        await f.define(name, overlap=OverlapRule(policy, **before))
        await asked(f, "1", name)
        [first] = await f.claim("w1")
        await edit(f, name, overlap=OverlapRule(policy, **after))
        second, third = await asked(f, "2", name), await asked(f, "3", name)
        assert await f.claim("w1") == [], (edited, policy)
        assert await gate(f, second) == ("former", first.job_id), (edited, policy)
        assert f"which was edited meanwhile: run {first.run_id} runs since" in why(await situation(f, second))
        await f.succeed("w1", first)
        [run] = await f.claim("w1")
        assert run.run_id == second, (edited, policy)
        await f.succeed("w1", run)
        [run] = await f.claim("w1")
        assert run.run_id == third, (edited, policy)
        await f.succeed("w1", run)


@check
async def a_job_does_not_overlap_what_ran_while_it_was_allowed(f: Floor) -> None:
    await f.join("w1")
    mine = await queued(f, 3, overlap=OverlapRule("allow"))
    runs = await f.claim("w1")
    assert sorted(run.run_id for run in runs) == mine
    await edit(f, "a", overlap=OverlapRule("allow", max_running=2))
    more = [await asked(f, "x"), await asked(f, "y")]
    assert await f.claim("w1") == []
    await f.succeed("w1", runs[0])
    assert await f.claim("w1") == []
    await f.succeed("w1", runs[1])
    [run] = await f.claim("w1")
    await f.succeed("w1", runs[2])
    assert [run.run_id, *[each.run_id for each in await f.claim("w1")]] == more


@check
async def a_run_that_rests_keeps_the_key_that_it_had(f: Floor) -> None:
    first = await retrying(f, "a", overlap=OverlapRule("queue"))
    await edit(f, "a", overlap=OverlapRule("queue", concurrency_key="db"))
    second = await asked(f, "2")
    [again] = await f.claim("w1")
    assert (again.run_id, await gate(f, second)) == (first, ("former", again.job_id))
    ok(await f.store.attempts.hand_back("w1", [(again.run_id, again.attempt, again.batch)]))
    [again] = await f.claim("w1")
    assert again.run_id == first
    await f.succeed("w1", again)
    assert [run.run_id for run in await f.claim("w1")] == [second]


@check
async def who_shares_the_new_key_does_not_wait_for_the_old_one(f: Floor) -> None:
    shared = OverlapRule("queue", concurrency_key="db")
    await f.join("w1")
    await f.define("a")
    await asked(f, "1")
    [first] = await f.claim("w1")
    await f.define("b", overlap=shared)
    held = await asked(f, "1", "b")
    [other] = await f.claim("w1")
    assert other.run_id == held
    await edit(f, "a", overlap=shared)
    mine, next_one = await asked(f, "2"), await asked(f, "2", "b")
    assert await f.claim("w1") == []
    await f.succeed("w1", other)
    taken = await f.take("w1", "default", 5, "b")
    assert (taken.runs, taken.more) == ((), True)  # it has locked the lease of the first, and looks at nothing else
    assert [run.run_id for run in await f.claim("w1")] == [next_one]
    assert await gate(f, mine) == ("former", first.job_id)


@check
async def a_tick_takes_the_place_of_one_that_holds_the_old_key(f: Floor) -> None:
    """It asks it to stop, and waits for that."""
    first = await retrying(f, "a", overlap=OverlapRule("cancel_previous"))
    await edit(f, "a", overlap=OverlapRule("cancel_previous", concurrency_key="db"))
    [again] = await f.claim("w1")
    assert again.run_id == first
    await change(
        f.store.engine,
        "INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind, lane,"
        f" state) SELECT job_id, {f.now}, {f.now}, {f.now}, 1, 1, 2, 'tick', 'live', 'planned' FROM jobs",
    )
    await change(
        f.store.engine,
        f"INSERT INTO upcoming SELECT run_after_ms, run_id, job_id, lane FROM runs WHERE scheduled_for_ms = {f.now}",
    )
    await f.queue()
    assert (await f.take("w1", "default", 5, "b")).cancels.keys() == {first}


@check
async def whoever_is_replaced_between_two_attempts_gives_its_old_key_back(f: Floor) -> None:
    """The tick that takes its place wants another key: those who wait for the old one go on in the same claim."""
    shared = OverlapRule("queue", concurrency_key="db")
    await f.define("a", overlap=OverlapRule("cancel_previous", concurrency_key="db"))
    await f.join("w1")
    await f.next_minute()
    [first] = await f.claim("w1")
    await f.fail("w1", first)
    await f.define("b", overlap=shared)
    waits = await asked(f, "1", "b")
    assert await f.claim("w1") == []
    assert await gate(f, waits) == ("key", "k:default:db")
    await edit(f, "a", overlap=OverlapRule("cancel_previous"))
    await f.clock.set(f.now + 1_000)
    await change(
        f.store.engine,
        "INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind, lane,"
        f" state) SELECT job_id, {f.now}, {f.now}, {f.now}, 1, 1, 2, 'tick', 'live', 'planned' FROM jobs"
        " WHERE name = 'a'",
    )
    await change(
        f.store.engine,
        f"INSERT INTO upcoming SELECT run_after_ms, run_id, job_id, lane FROM runs WHERE scheduled_for_ms = {f.now}",
    )
    await f.queue()
    got = [run.run_id for _ in range(3) for run in await f.claim("w1")]
    assert waits in got
    assert (await situation(f, first.run_id)).line.run.state is RunState.CANCELLED


@check
async def limits_count_a_run_where_it_is_tried_again(f: Floor) -> None:
    """Its job has another pool by now, which has one slot in the whole fleet."""
    first = await retrying(f, "a", overlap=OverlapRule("allow"))
    ok(await f.store.limits.put_pool("small", {"slots": 1}, actor="ann"))
    await edit(f, "a", pool="small")
    await f.join("w2", pool="small")
    [again] = await f.claim("w2", pool="small")
    assert again.run_id == first
    await asked(f, "2")
    assert await f.claim("w2", pool="small") == []
    await f.succeed("w2", again)
    assert len(await f.claim("w2", pool="small")) == 1
