"""More of two sessions on PostgreSQL: rates, upstream jobs, what overlap closes, who begins anew, the safety net."""

import json
from collections.abc import Iterator, Mapping
from time import sleep
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.executors.reports import LogChunk, Progress
from fleetcron.model.control import Wish
from fleetcron.model.outcome import Failed, Fault
from fleetcron.model.rules import MisfireRule
from fleetcron.model.writing import misfire_document
from fleetcron.policy.depends import LOOK_FIRST_MS
from fleetcron.store import looking
from fleetcron.store.written import Ok
from tests.faults.actors import PATIENCE_S
from tests.faults.scene import (
    NOW,
    RULE,
    WAITING,
    Act,
    Scene,
    Stop,
    bury,
    claim,
    finish,
    finish_together,
    hand_back,
    promote,
    queued,
)  # fmt: skip
from tests.faults.work_off import to_the_end
from tests.store.engines import change
from tests.worker.inspection import Inspector, Rules
from tests.worker.shop import Job, Shop, settling


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(looking, "PAGE", 2)


# -- what there is


def three_ticks(policy: Any) -> Act:
    """The first is held, two more are due."""

    async def prepare(shop: Shop) -> Mapping[str, Job]:
        job = Job(1, overlap=policy)
        await shop.define(job)
        await shop.plan(job, NOW, NOW + 500, NOW + 1_000)
        await shop.promote()
        await shop.join("n1", p1=5, p2=5)
        await shop.join("n2", p1=5, p2=5)
        assert await shop.claimed("n1") == [1]
        await shop.clock.set(NOW + 1_001)
        return {"job": job}

    return prepare


async def two_are_held(shop: Shop) -> Mapping[str, Job]:
    """And the next ticks of their jobs are due."""
    jobs = {str(n): Job(n, overlap="queue") for n in (1, 2)}
    await queued(shop, jobs)
    assert await shop.claimed("n1") == [1, 2]
    for job in jobs.values():
        await shop.plan(job, NOW + job.number)
    await shop.clock.set(NOW + 100)
    await shop.promote()
    return jobs


async def one_rests(shop: Shop) -> Mapping[str, Job]:
    """Run 1 waits for its next attempt, and the tick that will take its place is due."""
    job = Job(1, overlap="cancel_previous")
    await shop.define(job)
    await shop.plan(job, NOW)
    await shop.promote()
    await shop.join("n1", p1=5)
    await shop.join("n2", p1=5)
    assert await shop.claimed("n1") == [1]
    await shop.finish("n1", 1, 1, Failed(Fault("broken")))
    await shop.plan(job, NOW + 1_000)
    await shop.clock.set(NOW + 1_001)
    await shop.promote()
    await shop.clock.set(NOW + 2_001)
    return {"job": job}


async def a_tenant_has_a_rate(shop: Shop) -> Mapping[str, Job]:
    """One start a second; three runs are due in two pools."""
    jobs = {str(n): Job(n, overlap="allow", max_running=0, pool=("p1", "p1", "p2")[n - 1]) for n in (1, 2, 3)}
    await shop.limit("t1", rate=1.0)
    await queued(shop, jobs)
    return jobs


async def one_depends_on_the_other(shop: Shop) -> Mapping[str, Job]:
    """The upstream run is held, the run that needs it is due."""
    up, down = Job(1, overlap="queue"), Job(2, overlap="queue")
    await shop.define(up, down)
    needs = '{"depends_on": ["job-1"], "on_upstream_failure": "skip"}'
    await change(shop.store.engine, f"UPDATE jobs SET depends = 1, definition = '{needs}' WHERE name = 'job-2'")
    await shop.plan(up, NOW - 20)
    await shop.promote()
    await shop.join("n1", p1=5)
    await shop.join("n2", p1=5)
    assert await shop.claimed("n1") == [1]
    await shop.plan(down, NOW - 10)
    await shop.promote()
    return {"up": up, "down": down}


def many_are_held_back(for_ms: int | None = None) -> Act:
    """Five runs, more than two pages. The clock is at the end of the hold, if it has one."""

    async def prepare(shop: Shop) -> Mapping[str, Job]:
        jobs = {str(n): Job(n, overlap="allow", max_running=0) for n in range(1, 6)}
        await queued(shop, jobs)
        wish = Wish("pool", "p1", percent=0, for_ms=for_ms, reason="incident")
        assert isinstance(await shop.store.controls.switch(wish, actor="ann"), Ok)
        assert await shop.claimed("n1") == []
        await shop.clock.advance(for_ms or 0)
        return jobs

    return prepare


async def a_hold_was_loosened(shop: Shop) -> Mapping[str, Job]:
    """Five runs were held back. Whoever let some of them go has died before he came to these."""
    jobs = await many_are_held_back()(shop)
    await change(shop.store.engine, "UPDATE controls SET percent = 60")
    found: Mapping[str, Job] = jobs
    return found


async def two_pools_without_a_cap(shop: Shop) -> Mapping[str, Job]:
    """One tenant, and a run in each."""
    jobs = {str(n): Job(n, overlap="allow", max_running=0, pool=f"p{n}") for n in (1, 2)}
    await queued(shop, jobs)
    return jobs


def ticks_that_nobody_queued(policy: Any) -> Act:
    """Three ticks were planned, and an hour has passed since; a fourth is due now."""

    async def prepare(shop: Shop) -> Mapping[str, Job]:
        job = Job(1, overlap="queue")
        await shop.define(job)
        rule = json.dumps({"misfire": misfire_document(MisfireRule(policy))})
        await change(shop.store.engine, f"UPDATE jobs SET definition = '{rule}' WHERE name = 'job-1'")
        await shop.plan(job, NOW, NOW + 1_000, NOW + 2_000, NOW + 3_600_000)
        await shop.clock.set(NOW + 3_600_001)
        await shop.join("n1", p1=5, p2=5)
        await shop.join("n2", p1=5, p2=5)
        return {"job": job}

    return prepare


# -- what they do


async def forsake(shop: Shop) -> None:
    """A worker that begins anew gives up what it held."""
    await shop.store.workers.forsake("n1", settling(RULE))


async def release(shop: Shop) -> None:
    assert isinstance(await shop.store.controls.release("pool", "p1", actor="ann"), Ok)


async def sweep(shop: Shop) -> None:
    assert isinstance(await shop.store.sweeping.sweep(0), Ok)


async def tell_log(shop: Shop) -> None:
    pieces = [LogChunk(run_id, 1, 0, "a line\n") for run_id in (2, 1)]
    assert isinstance(await shop.store.output.append("n1", pieces), Ok)


async def cap_and_claim(shop: Shop) -> None:
    """The first cap of the whole fleet, and who claims in the other pool right after it."""
    assert isinstance(await shop.store.limits.put_tenant("t1", {"max_in_flight": 1}, actor="ann"), Ok)
    await claim("n2", "p2")(shop)


def cancel(run_id: int) -> Act:
    async def act(shop: Shop) -> None:
        assert isinstance(await shop.store.steering.cancel([run_id], None, actor="ann"), Ok)

    return act


async def tell_progress(shop: Shop) -> None:
    """In the opposite order of the runs."""
    marks = [Progress(run_id, 1, 0.5, "half of it") for run_id in (2, 1)]
    assert isinstance(await shop.store.output.append("n1", [], marks), Ok)


PAIRS: dict[str, tuple[Act, Act, Act]] = {
    "collapse: claim and the end of the holder": (three_ticks("collapse"), claim("n2"), finish(1)),
    "collapse: claim and bury": (three_ticks("collapse"), claim("n2"), bury),
    "cancel_previous: claim and the end of the holder": (three_ticks("cancel_previous"), claim("n2"), finish(1)),
    "cancel_previous: claim and hand back": (three_ticks("cancel_previous"), claim("n2"), hand_back),
    "cancel_previous: claim and bury": (three_ticks("cancel_previous"), claim("n2"), bury),
    "claim that closes a resting run and promote": (one_rests, claim("n2"), promote),
    "claim and forsake": (two_are_held, claim("n2"), forsake),
    "claim of who begins anew and forsake": (two_are_held, claim("n1"), forsake),
    "bury and forsake": (two_are_held, bury, forsake),
    "sweep and claim": (two_are_held, sweep, claim("n2")),
    "sweep and an end": (two_are_held, sweep, finish(1)),
    "cancel and the release of a hold": (many_are_held_back(), cancel(2), release),
    "cancel and a sweep after a hold": (many_are_held_back(1_000), cancel(2), sweep),
    "claim and the release of a hold that is over": (many_are_held_back(1_000), claim("n2"), release),
    "claim and a sweep after a hold": (many_are_held_back(1_000), claim("n2"), sweep),
    "progress and claim": (two_are_held, tell_progress, claim("n2")),
    "progress and ends": (two_are_held, tell_progress, finish_together(1, 2)),
    "progress and bury": (two_are_held, tell_progress, bury),
    "output and ends": (two_are_held, tell_log, finish_together(1, 2)),
    "output that is sent twice": (two_are_held, tell_log, tell_log),
    "late ticks are skipped while somebody claims": (ticks_that_nobody_queued("skip"), promote, claim("n2")),
    "late ticks are covered while one is cancelled": (ticks_that_nobody_queued("latest"), promote, cancel(3)),
    "late ticks are covered while the one before is cancelled": (
        ticks_that_nobody_queued("latest"),
        promote,
        cancel(2),
    ),
    "late ticks are skipped while the second is cancelled": (ticks_that_nobody_queued("skip"), promote, cancel(2)),
    "late ticks are skipped while the third is cancelled": (ticks_that_nobody_queued("skip"), promote, cancel(3)),
    "late ticks are caught up while one is cancelled": (ticks_that_nobody_queued("all"), promote, cancel(2)),
    "late ticks are caught up while somebody promotes": (ticks_that_nobody_queued("all"), promote, promote),
}


def _both_ways() -> Iterator[Any]:
    for pair in PAIRS:
        for turned in (False, True):
            name = f"{pair}, turned" if turned else pair
            yield pytest.param(pair, turned, 3, id=name)
            yield pytest.param(pair, turned, 1, id=f"{name}, everywhere", marks=pytest.mark.soak)


@pytest.mark.parametrize(("pair", "turned", "stride"), list(_both_ways()))
def test_two_sessions(scene: Scene, pair: str, turned: bool, stride: int) -> None:
    """S2-42, S2-45, S3-46: in `make test` stopped at every third statement and the commit, in `make soak` at each."""
    for _ in scene.everywhere(*PAIRS[pair], turned=turned, stride=stride):
        scene.do(to_the_end(Inspector(scene.first, scene.jobs, Rules()), "last", ("p1", "p2")))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("other", [claim("n2"), cancel(2), sweep], ids=["claim", "cancel", "sweep"])
def test_a_sweep_lets_some_go(scene: Scene, other: Act, turned: bool) -> None:
    """Whoever may start does, whatever others do to them meanwhile; the others are held back until the end."""

    async def started() -> set[int]:
        await sweep(scene.first)
        await scene.first.claimed("last")
        return {row["run_id"] for row in await scene.first.rows("SELECT run_id FROM leases WHERE node_id IS NOT NULL")}

    found = set()
    for _ in scene.everywhere(a_hold_was_loosened, sweep, other, turned=turned, stride=3):
        found.add(frozenset(scene.do(started())))
        scene.do(release(scene.first))
        scene.do(to_the_end(Inspector(scene.first, scene.jobs, Rules()), "last", ("p1", "p2")))
    assert len(found) == 1
    assert 0 < len(*found) < 5


@pytest.mark.parametrize("turned", [False, True])
def test_a_rate_is_exact_whoever_claims_meanwhile(scene: Scene, turned: bool) -> None:
    """S3-56: two pools ask at once; one of three starts now, and one in each second that follows, no sooner."""

    async def claimed() -> list[int]:
        return [*await scene.first.claimed("last"), *await scene.first.claimed("last", "p2")]

    for _ in scene.everywhere(a_tenant_has_a_rate, claim("n1"), claim("n2", "p2"), turned=turned, stride=2):
        assert len(scene.do(scene.first.rows("SELECT run_id FROM leases"))) == 1
        for _ in range(2):
            scene.do(scene.first.clock.advance(999))
            assert scene.do(claimed()) == []
            scene.do(scene.first.clock.advance(1))
            assert len(scene.do(claimed())) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_the_first_cap_holds_at_once(scene: Scene, turned: bool) -> None:
    """S3-56: a claim that has read that nobody has a cap does not count. Nobody counts without it then."""
    for _ in scene.everywhere(two_pools_without_a_cap, claim("n1"), cap_and_claim, turned=turned):
        assert len(scene.do(scene.first.rows("SELECT run_id FROM leases"))) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_an_end_that_misses_who_is_being_parked_costs_a_moment(scene: Scene, turned: bool) -> None:
    """S1-19, S1-20: the end of an upstream run lets go whoever waits; one who is parked at that very moment looks again
    soon, not when the next sweep comes."""
    for _ in scene.everywhere(one_depends_on_the_other, claim("n2"), finish(1), turned=turned):
        if not scene.do(scene.first.rows("SELECT run_id FROM leases")):
            scene.do(scene.first.clock.advance(LOOK_FIRST_MS))
            assert scene.do(scene.first.claimed("last")) == [2]


def test_progress_locks_leases_in_the_order_of_all(scene: Scene) -> None:
    """A third session has lease 1; a claim that wants both waits for it, and so does progress of (2, 1): whoever locked
    2 first would wait for the other for ever."""
    scene.begin(two_are_held)
    stops = Stop(scene.actors[0], -1), Stop(scene.actors[1], -1)
    for stop in stops:
        stop.install()
    engine: Any = scene.first.store.engine

    def do(work: Any) -> Any:
        return scene.actors[1].do(work).result(PATIENCE_S)

    third = do(asyncpg.connect(engine.url.dsn, server_settings={"search_path": "fleetcron"}))
    try:
        do(third.execute("BEGIN; SELECT FROM leases WHERE run_id = 1 FOR UPDATE"))
        claiming = scene.actors[0].do(claim("n2")(scene.first))
        telling = scene.actors[1].do(tell_progress(scene.second))
        while do(scene.look.fetchval(WAITING)) < 2:
            sleep(0.001)
        do(third.execute("COMMIT"))
        claiming.result(PATIENCE_S)
        telling.result(PATIENCE_S)
    finally:
        do(third.close())
        for stop in stops:
            stop.remove()
    assert [*stops[0].errors, *stops[1].errors] == []
