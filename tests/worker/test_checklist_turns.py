"""The checklist as far as work goes. Whose turn it is: dependencies, tenants, limits, pools, lanes and slots."""

import asyncio

import pytest

from fleetcron.errors import RefusedError
from fleetcron.model.rules import OverlapRule
from tests.worker.crew import PATIENCE_S, Crew, Hall, job
from tests.worker.plays import DEAD, ENGINES, MINUTE, MINUTELY, NOON, SECOND, SKIPPED, SUCCEEDED, played
from tests.worker.shop import ok


@ENGINES
def test_what_depends_on_others_waits_for_them(engine: str, request: pytest.FixtureRequest) -> None:
    """S1-9, S1-19, S1-20: it waits for the run of the same period, without an attempt, and goes on in the moment in
    which that has succeeded; if that is dead, it is skipped and says why."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.set_clock(NOON + 59 * SECOND)
        await made.define(
            job("load", schedule=MINUTELY),
            job("report", schedule=MINUTELY, depends_on=("load",)),
            job("broken", schedule=MINUTELY),
            job("after", schedule=MINUTELY, depends_on=("broken",)),
        )
        await made.plan(lookahead_s=5)
        runs = {name: (await made.runs(name))[0].run.run_id for name in ("load", "report", "broken", "after")}
        for name in ("report", "after"):
            hall.tell(runs[name])
        made.join()
        await hall.begun(runs["load"])
        [line] = await made.until(lambda lines: lines[0].waiting is not None, runs["report"])
        assert line.waiting is not None
        assert (line.waiting.gate, line.waiting.key, line.run.attempt) == ("upstream", made.jobs["load"], 0)
        hall.tell(runs["load"])
        hall.tell(runs["broken"], dies=True)
        lines = await made.ended(*runs.values())
        assert [line.run.state for line in lines] == [SUCCEEDED, SUCCEEDED, DEAD, SKIPPED]
        assert hall.in_order([runs["load"], runs["report"]]) == [runs["load"], runs["report"]]
        assert hall.most_at_once("after") == 0
        assert "broken" in (lines[3].run.reason or "")

    played(request.getfixturevalue(f"{engine}_url"), scenario)


@ENGINES
def test_tenants_share_and_limits_hold(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-9, S3-16, S3-54, S3-55, S3-57 … S3-60: a tenant with many runs does not keep others waiting; one that is at
    its cap is passed over and the slots go to those with capacity; so is a type at its quota; what matters more comes
    first; jobs and payloads beyond the limit are refused."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        free = OverlapRule("allow")
        ok(await made.store.limits.put_tenant("capped", {"max_in_flight": 1, "max_jobs": 1}, actor="me"))
        ok(await made.store.limits.put_tenant("small", {"max_payload": 64}, actor="me"))
        ok(await made.store.limits.put_pool("default", {"per_type": {"export": 1}}, actor="me"))
        await made.define(
            job("many", tenant="big", overlap=free),
            job("few", tenant="small", overlap=free),
            job("exports", tenant="big", type="export", overlap=free),
            job("capped", tenant="capped", overlap=free),
            job("urgent", tenant="big", priority=50, overlap=free),
        )
        with pytest.raises(RefusedError, match="at most 1"):
            await made.desk.create(job("second", tenant="capped"))
        with pytest.raises(RefusedError, match="may have 64"):
            await made.desk.create(job("large", tenant="small", payload={"text": "x" * 100}))
        waiting = [(name, tenant) for name, tenant, count in PARTS for _ in range(count)]
        runs = {
            name: [await made.trigger(each, tenant=tenant) for each, tenant in waiting if each == name]
            for name, _, _ in PARTS
        }
        every = [run for some in runs.values() for run in some]
        for run in every:
            hall.tell(run)
        made.join()
        await made.ended(*every)
        order = hall.in_order(every)
        assert set(order[:2]) == set(runs["urgent"])
        assert max(order.index(run) for run in runs["few"]) < len(order) - 8  # the many are not all before the few
        assert (hall.most_at_once("capped"), hall.most_at_once("exports")) == (1, 1)

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=("default=2",))


PARTS = (("many", "big", 20), ("few", "small", 3), ("exports", "big", 3), ("capped", "capped", 3), ("urgent", "big", 2))


@ENGINES
def test_a_slow_export_does_not_starve_billing(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-61, S3-62: pools have slots of their own, so has every profile: email, reports, billing, exports, webhooks."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(*(job(name, pool=name, overlap=OverlapRule("allow")) for name in POOLS))
        made.join()
        exports = [await made.trigger("export") for _ in range(6)]
        for run in exports[:2]:
            await hall.begun(run)
        others = [await made.trigger(name) for name in POOLS if name != "export" for _ in range(3)]
        for run in others:
            hall.tell(run)
        lines = await made.ended(*others)
        assert {line.run.state for line in lines} == {SUCCEEDED}
        assert hall.most_at_once("export") == 2  # and these still run
        for run in exports:
            hall.tell(run)
        await made.ended(*exports)

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=tuple(f"{name}=2" for name in POOLS))


POOLS = ("email", "report", "billing", "export", "webhook")


@ENGINES
def test_a_storm_of_catch_up_leaves_room_for_live_ticks(engine: str, request: pytest.FixtureRequest) -> None:
    """S2-43: of four slots catch-up may have three, and has them as long as there is catch-up, without waiting for a
    poll; a tick that is due now starts at once."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job("late", overlap=OverlapRule("allow")), job("live"))
        now_ms = await made.now_ms()
        storm = [await made.tick("late", now_ms - number * MINUTE, "catchup", now_ms) for number in range(1, 21)]
        made.join()
        async with asyncio.timeout(PATIENCE_S):
            while len(hall.stays) < 3:
                await asyncio.sleep(0.01)
        live = await made.tick("live", await made.now_ms())
        await hall.begun(live)
        for run in (live, *storm):
            hall.tell(run)
        await made.ended(live, *storm)
        assert hall.most_at_once("late") == 3

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=("default=4",), poll_s=3 * PATIENCE_S)


@ENGINES
def test_slots_that_are_free_are_used_at_once(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-5, S3-14: runs that no slot could be promised to a moment early begin when the first of the others ends, not
    when somebody happens to look."""

    async def scenario(made: Crew) -> None:
        hall = Hall()
        made.functions["t:f"] = hall.handler
        await made.define(job(overlap=OverlapRule("allow")))
        made.join()
        due_ms = await made.now_ms() + 900
        runs = [await made.tick("a", due_ms)]
        await made.until(lambda lines: lines[0].node_id is not None, *runs)  # it is held until its instant
        runs += [await made.tick("a", due_ms + number) for number in range(1, 6)]
        for run in runs:
            hall.tell(run)
        await made.ended(*runs)
        assert hall.most_at_once("a") <= 3

    played(request.getfixturevalue(f"{engine}_url"), scenario, pools=("default=3",), poll_s=3 * PATIENCE_S)
