"""The checklist as far as work goes. Who works, how much at a time, and for how long a run is held."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from fleetcron.clock import SystemClock
from fleetcron.model.outcome import Succeeded
from fleetcron.model.rules import OverlapRule
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim, Taken
from fleetcron.store.ends import Ended
from fleetcron.upkeep.loop import Upkeep
from fleetcron.worker.settling import settling
from tests.worker.crew import PATIENCE_S, Crew, Hall, job
from tests.worker.plays import ENGINES, SUCCEEDED, played
from tests.worker.shop import ok, rank


def test_a_worker_has_slots_and_a_second_one_doubles_them(sqlite_memory_url: str) -> None:
    """S1-30, S3-14: five at a time and not one more; with another worker ten."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job(overlap=OverlapRule("allow")))
        made.join("w1")
        runs = [await made.trigger() for _ in range(12)]
        for each in runs[:5]:
            await hall.begun(each)
        assert await made.count("leases") == 5
        made.join("w2")
        for each in runs[5:10]:
            await hall.begun(each)
        for each in runs:
            hall.tell(each)
        await made.ended(*runs)
        assert hall.most_at_once("a") == 10

    played(sqlite_memory_url, scenario, pools=("default=5",))


@ENGINES
def test_claims_take_the_oldest_first_and_never_the_same(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-32, S3-33, S3-34, S4-38: fifty of sixty, in the order in which they are due; each is held by one, with an
    expiry, under the number of its attempt; two at once share the rest."""

    async def scenario(made: Crew) -> None:
        await made.define(job(overlap=OverlapRule("allow")))
        now_ms = await made.now_ms()
        due = {await made.tick("a", now_ms - number): now_ms - number for number in range(80)}
        for name in ("w1", "w2", "w3"):
            ok(await made.store.workers.join(name, "", {"default": 60}, 5_000))
        ok(await made.store.queue.promote(0, 100, rank))
        oldest = sorted(due, key=due.__getitem__)
        first = await claim(made, "w1", 50)
        assert [run.run_id for run in first.runs] == oldest[:50]
        assert {run.attempt for run in first.runs} == {1}
        others = await asyncio.gather(claim(made, "w2", 15), claim(made, "w3", 15))
        assert sorted(run.run_id for taken in others for run in taken.runs) == sorted(oldest[50:])
        held = await made.rows("SELECT run_id, node_id FROM leases")
        assert Counter(row["node_id"] for row in held) == {"w1": 50, "w2": 15, "w3": 15}
        assert all(each.expires_ms > now_ms for each in (await made.store.workers.list()).workers)

    played(request.getfixturevalue(f"{engine}_url"), scenario)


async def claim(made: Crew, node_id: str, room: int) -> Taken:
    taken: Taken = ok(
        await made.store.claims.claim(Claim(node_id, f"batch of {node_id}", "default", room, room), choose)
    )
    return taken


@ENGINES
def test_a_worker_that_vanishes_costs_one_attempt(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-11, S3-12, S3-15, S3-19, S3-34: it did the work, but told nobody. While its lease lasts nobody else has the
    run; then it is done once more, and not more often, under the next number; the first one is not heard any more."""
    done: list[tuple[int, str]] = []

    async def handler(ctx: Any) -> None:
        done.append((ctx.attempt, ctx.idempotency_key))

    async def scenario(made: Crew) -> None:
        await made.define(job())
        run_id = await made.trigger()
        ok(await made.store.workers.join("ghost", "", {"default": 1}, 400))
        ok(await made.store.queue.promote(0, 9, rank))
        [run] = (await claim(made, "ghost", 1)).runs
        done.append((run.attempt, (await made.line(run_id)).run.idempotency_key))
        made.join()
        assert (await made.line(run_id)).node_id == "ghost"
        stop = asyncio.Event()
        watch = Upkeep(
            made.store, "w1", ttl_ms=400, settling=lambda known: settling(known, lambda: 0), clock=SystemClock()
        )
        watching = asyncio.create_task(watch.run(stop))
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.losses, line.run.attempt) == (SUCCEEDED, 1, 2)
        assert [each.outcome for each in await made.attempts(run_id)] == ["lost", "succeeded"]
        late = ok(
            await made.store.attempts.finish(
                "ghost", [Ended(run_id, 1, Succeeded(), run.due_ms, run.due_ms)], settling({}, lambda: 0)
            )
        )
        assert (late.transitions, late.late) == ({}, (run_id,))
        stop.set()
        await watching
        assert [attempt for attempt, _ in done] == [1, 2]
        assert len({key for _, key in done}) == 1

    played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": handler})


def test_a_long_run_keeps_its_lease(sqlite_memory_url: str) -> None:
    """S3-35: three times as long as a lease, with somebody who watches for expired ones."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job())
        made.join("w1")
        run_id = await made.trigger()
        await hall.begun(run_id)
        made.join("w2")
        watch = Upkeep(
            made.store, "w2", ttl_ms=500, settling=lambda known: settling(known, lambda: 0), clock=SystemClock()
        )
        first = (await made.store.workers.list()).workers[0].expires_ms
        async with asyncio.timeout(PATIENCE_S):
            while (await made.store.workers.list()).workers[0].expires_ms < first + 1_500:
                await watch.step()
                await asyncio.sleep(0.02)
        hall.tell(run_id)
        [line] = await made.ended(run_id)
        assert (line.run.state, line.run.attempt, line.run.losses) == (SUCCEEDED, 1, 0)

    played(sqlite_memory_url, scenario, lease_ttl_s=0.5, renew_s=0.1)
