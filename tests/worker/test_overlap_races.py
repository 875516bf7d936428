"""Ticks that are due at the very moment at which the run before them ends: under every overlap policy, on both stores.

Handlers end a few milliseconds before, at and after the instant of the next tick, with two workers at it, and write
down themselves when they worked. What became of the runs is judged by that and by what is stored; no policy is asked.
At the end of this file the same moment is taken apart: a clock that stands still, and one transaction inside another.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from statistics import median
from typing import Any, Literal, TypeAlias, get_args

import pytest

from fleetcron.model.queued import Choice, Facts
from fleetcron.model.rules import OverlapPolicy, OverlapRule, RetryRule
from fleetcron.model.run import Run
from fleetcron.model.states import RunState
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.store.engines import admin, bare, hand_cranked
from tests.worker.crew import Crew, Hall, crew, job, planned
from tests.worker.inspection import periods
from tests.worker.shop import BEGIN_MS, Job, Shop

ENGINES = pytest.mark.parametrize("engine", ["sqlite_memory", "postgres18"])
LEAD_MS, MOST_MS = 120, 2_000
REST_MS = 20  # between two attempts
OFFSETS = (0, -6, -3, -8, 60)
# Who is at work when a tick becomes due: a tick, one that fails once, or a run that a live tick only waits for.
Occupant: TypeAlias = Literal["tick", "retrying", "manual", "catchup", "replayed"]
CAST: tuple[Occupant, ...] = ("tick", "retrying", "manual", "catchup", "replayed", "tick", "retrying", "tick")
SUCCEEDED, CANCELLED, MERGED, SKIPPED = RunState.SUCCEEDED, RunState.CANCELLED, RunState.MERGED, RunState.SKIPPED


@dataclass
class Scene:
    """One run at work, and those that come while it is."""

    name: str
    occupant: Occupant
    first: int
    then: list[int]
    due_ms: int


@dataclass
class Stage:
    made: Crew
    hall: Hall
    policy: OverlapPolicy
    scenes: list[Scene] = field(default_factory=list)
    lead_ms: int = LEAD_MS  # so long before its instant a tick is planned here
    delay_ms: int = 0  # so long it takes until an end is written
    _last_ms: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _old_ms: int = 1_700_000_000_000

    async def instant(self, name: str, in_ms: int = 0) -> int:
        """A tick of this job that was never planned, about so long from now."""
        self._last_ms[name] = max(self._last_ms[name] + 1, await self.made.now_ms() + in_ms)
        return self._last_ms[name]

    async def late(self, name: str) -> int:
        """A run of the catch-up lane, due at once."""
        self._old_ms += 1000
        return await self.made.tick(name, self._old_ms, "catchup", await self.made.now_ms())

    async def enter(self, name: str, occupant: Occupant) -> int:
        """When it works."""
        match occupant:
            case "manual":
                run = await self.made.trigger(name)
            case "catchup":
                run = await self.late(name)
            case "tick" | "retrying" | "replayed":
                run = await self.made.tick(name, await self.instant(name))
        if occupant == "replayed":
            self.hall.tell(run, dies=True)
            await self.made.ended(run)
            self.hall.rounds[run] += 1
            assert isinstance(await self.made.store.steering.replay([run], actor="me"), Ok)
        await self.hall.begun(run)
        return run

    async def prepare(self, name: str, occupant: Occupant, *, crowded: bool) -> Scene:
        first = await self.enter(name, occupant)
        due_ms = await self.instant(name, self.lead_ms)
        then = await self.followers(name, due_ms, crowded=crowded)
        for coming in then:
            self.hall.tell(coming)
        return Scene(name, occupant, first, then, due_ms)

    async def play(self, scenes: Sequence[Scene], offset_ms: int) -> None:
        """Whoever is at work ends so long after the instant. Those who come are in the queue by then."""
        made, coming = self.made, [run for scene in scenes for run in scene.then]
        await made.until(lambda lines: all(x.queued or x.node_id or x.run.state.is_final for x in lines), *coming)
        took_ms = await made.now_ms() - min(scene.due_ms for scene in scenes) + self.lead_ms
        for place, scene in enumerate(scenes):
            end_ms = scene.due_ms + offset_ms + place - self.delay_ms
            failing = [end_ms - REST_MS - self.delay_ms] if scene.occupant == "retrying" else []
            self.hall.tell(scene.first, *failing, end_ms)
        lines = await made.ended(*(scene.first for scene in scenes), *coming)
        self.scenes += scenes
        # Aim better: plan so early that all is set at the instant, and end so early that the end is written then.
        missed = [
            (line.run.finished_ms or 0) - scene.due_ms - offset_ms - place + self.delay_ms
            for place, (line, scene) in enumerate(zip(lines, scenes, strict=False))
            if scene.occupant != "retrying"
        ]
        self.lead_ms = max(LEAD_MS, min(MOST_MS, took_ms * 3 // 2))
        if took_ms < self.lead_ms and abs(offset_ms) < LEAD_MS // 4:
            self.delay_ms = max(0, min(LEAD_MS // 2, round(median(missed))))

    async def followers(self, name: str, due_ms: int, *, crowded: bool) -> list[int]:
        """What comes meanwhile; the last one is the tick at the instant."""
        made = self.made
        found = [await made.trigger(name)] if crowded else []
        match self.policy:
            case "queue" | "allow":
                found.append(await self.late(name))
                found.append(await made.tick(name, due_ms - self.lead_ms // 2))
            case "collapse":
                found += [await self.late(name)] if crowded else []
                found.append(await made.tick(name, due_ms - self.lead_ms // 2))
        return [*found, await made.tick(name, due_ms)]


async def perform(made: Crew, hall: Hall, rule: OverlapRule, offsets: Sequence[int] = OFFSETS) -> Stage:
    """Every occupant with every offset, the jobs beside each other; when everything has its answer."""
    stage = Stage(made, hall, rule.policy)
    retry = RetryRule(max_attempts=3, backoff="fixed", delays_ms=(REST_MS,), jitter=0)
    names = [f"{occupant}-{number}" for number, occupant in enumerate(CAST)]
    await made.define(*(job(name, overlap=rule, retry=retry) for name in names))
    made.join("w1")
    made.join("w2")
    for number, offset in enumerate(offsets):
        scenes = await asyncio.gather(
            *(
                stage.prepare(name, occupant, crowded=(place + number) % 2 == 1)
                for place, (name, occupant) in enumerate(zip(names, CAST, strict=True))
            )
        )
        await stage.play(scenes, offset)
    most = rule.max_running or 1
    assert [(name, most_at_once) for name in names if (most_at_once := hall.most_at_once(name)) > most] == []
    return stage


def raced(
    request: pytest.FixtureRequest,
    engine: str,
    rule: OverlapRule,
    judge: Callable[[Stage], Awaitable[None]],
    offsets: Sequence[int] = OFFSETS,
) -> None:
    url = request.getfixturevalue(f"{engine}_url")

    async def play() -> None:
        hall = Hall()
        async with crew(url, {"t:f": hall.handler}, pools=("default=40",)) as made:
            await judge(await perform(made, hall, rule, offsets))

    asyncio.run(play())


async def history(stage: Stage) -> dict[str, list[Run]]:
    """The runs of each job, the oldest tick first."""
    names = sorted({scene.name for scene in stage.scenes})
    found = {name: [line.run for line in await stage.made.runs(name)] for name in names}
    return {name: sorted(runs, key=lambda run: (run.scheduled_for_ms, run.run_id)) for name, runs in found.items()}


def is_live(run: Run) -> bool:
    return run.kind == "tick" and run.lane == "live"


async def others_were_left_alone(stage: Stage) -> None:
    """Manual, catch-up and replayed runs are never skipped nor cancelled, whatever was due meanwhile."""
    for runs in (await history(stage)).values():
        for run in runs:
            if not is_live(run):
                assert run.state is SUCCEEDED or (run.state is MERGED and run.kind == "tick"), run


async def kept_their_places(stage: Stage) -> None:
    """A run that fails once is tried again before anybody else of its job begins (the log says so), and succeeds."""
    for scene in stage.scenes:
        if scene.occupant == "retrying":
            [line] = await stage.made.lines(scene.first)
            assert (line.run.state, line.run.failures, line.run.attempt) == (SUCCEEDED, 1, 2), line


@ENGINES
def test_skip(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-54, S2-45, S3-43, S3-45: skipped if and only if the live run before was not final at the due instant."""

    async def judge(stage: Stage) -> None:
        await others_were_left_alone(stage)
        await kept_their_places(stage)
        seen: list[RunState] = []
        for runs in (await history(stage)).values():
            ticks = [run for run in runs if is_live(run)]
            for at, tick in enumerate(ticks):
                before = [each for each in ticks[:at] if each.state is not SKIPPED][-1:]
                overlapped = any((each.finished_ms or 0) > tick.run_after_ms for each in before)
                assert tick.state is (SKIPPED if overlapped else SUCCEEDED), (tick, before)
        for scene in stage.scenes:
            [line] = await stage.made.lines(scene.then[-1])
            if scene.occupant in ("tick", "retrying"):
                seen.append(line.run.state)
            else:
                assert line.run.state is SUCCEEDED, scene  # nobody but a live run makes a tick be skipped
        assert SKIPPED in seen

    raced(request, engine, OverlapRule("skip"), judge)


@ENGINES
def test_queue(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-55, S3-44: every tick runs, one at a time, in the order of the ticks, whatever lane they are in."""

    async def judge(stage: Stage) -> None:
        await others_were_left_alone(stage)
        await kept_their_places(stage)
        for scene in stage.scenes:
            runs = [line.run for line in await stage.made.lines(*scene.then)]
            assert {run.state for run in runs} == {SUCCEEDED}
            expected = sorted(runs, key=lambda run: (run.scheduled_for_ms, run.run_id))
            assert stage.hall.in_order(scene.then) == [run.run_id for run in expected]

    raced(request, engine, OverlapRule("queue"), judge)


@ENGINES
def test_collapse(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-46: of the ticks that wait the newest that is due stays, from the instant on at which it is due, and covers
    exactly those that were merged into it; manual and replayed runs are not merged."""

    async def judge(stage: Stage) -> None:
        await others_were_left_alone(stage)
        await kept_their_places(stage)
        merged = 0
        for runs in (await history(stage)).values():
            into: dict[int, list[Run]] = defaultdict(list)
            ticks = [run for run in runs if is_live(run)]
            for tick, following in pairwise(ticks):
                claimed_ms = stage.made.claimed_ms(tick.run_id)
                if claimed_ms is None:
                    assert (tick.state, tick.finished_ms) == (MERGED, following.run_after_ms), (tick, following)
                else:
                    assert tick.state is SUCCEEDED
                    assert claimed_ms < following.run_after_ms, (tick, following)
            for run in runs:
                if run.state is MERGED:
                    assert run.covered_by is not None
                    into[run.covered_by].append(run)
                    merged += 1
            for run in runs:
                covered = sorted(everything_under(run, into), key=lambda each: each.scheduled_for_ms)
                assert run.covers == 1 + len(covered), run
                others = [(each.scheduled_for_ms, when_made(each)) for each in runs if each.kind != "manual"]
                begins = [periods(each.scheduled_for_ms, when_made(each), others) for each in covered[:1]]
                windows = {(since, run.scheduled_for_ms) for some in begins for since in some} or {None}
                assert run.window_ms in windows, run
                if run.state is SUCCEEDED:
                    assert stage.hall.stays[run.run_id, run.round].covers == run.covers
        assert merged > 0

    raced(request, engine, OverlapRule("collapse"), judge)


def when_made(run: Run) -> tuple[int, int]:
    return run.created_ms, run.run_id


def everything_under(run: Run, into: dict[int, list[Run]]) -> list[Run]:
    """Those that were merged into it, and into those."""
    found = []
    for each in into.get(run.run_id, ()):
        found += [each, *everything_under(each, into)]
    return found


@ENGINES
def test_allow(engine: str, request: pytest.FixtureRequest) -> None:
    """S3-47: as many as are allowed at a time, and really so many; nobody is skipped."""

    async def judge(stage: Stage) -> None:
        await others_were_left_alone(stage)
        await kept_their_places(stage)
        assert {run.state for runs in (await history(stage)).values() for run in runs} == {SUCCEEDED}
        assert {stage.hall.most_at_once(scene.name) for scene in stage.scenes} == {2}

    raced(request, engine, OverlapRule("allow", max_running=2), judge)


@ENGINES
def test_cancel_previous(engine: str, request: pytest.FixtureRequest) -> None:
    """S0-56: the new tick always runs, when the old attempt is over; who was final by then, and who is no live tick, is
    left alone."""

    async def judge(stage: Stage) -> None:
        await others_were_left_alone(stage)
        stopped = 0
        for scene in stage.scenes:
            first, last = (line.run for line in await stage.made.lines(scene.first, scene.then[-1]))
            assert last.state is SUCCEEDED, last
            if first.state is CANCELLED:
                assert is_live(first)
                assert (first.finished_ms or 0) >= last.run_after_ms, (first, last)
                assert f"run {last.run_id} takes its place" in (first.reason or "")
                stopped += 1
            else:
                assert first.state is SUCCEEDED, first
        assert stopped > 0

    raced(request, engine, OverlapRule("cancel_previous"), judge, (*OFFSETS[:-1], 800))


# -- the moment itself: the clock stands still

D = BEGIN_MS + 500  # when the tick is due


async def plan(shop: Shop, this: Job, at_ms: int) -> int:
    return await planned(shop.store, (this.tenant, f"job-{this.number}"), this.job_id, at_ms, at_ms)


Answer: TypeAlias = tuple[str, int | None]
Moment: TypeAlias = Callable[[Shop, int], Awaitable[None]]


async def end_first(shop: Shop, first: int) -> None:
    await shop.finish("n1", first, 1)


async def end_unseen(shop: Shop, first: int) -> None:
    """Nobody looks before the instant is over."""
    await shop.finish("n1", first, 1)


async def look_first(shop: Shop, first: int) -> None:
    await shop.claim_all("n2")
    await shop.finish("n1", first, 1)


async def look_meanwhile(shop: Shop, first: int) -> None:
    """On PostgreSQL: the claim has read its facts, and the end comes before it writes, or waits for it."""
    if shop.store.engine.name == "sqlite":  # there is one writer
        await end_first(shop, first)
        return
    url = shop.store.engine.url.dsn  # type: ignore[attr-defined]
    ending = threading.Thread(target=lambda: asyncio.run(end_elsewhere(url, shop, first)))

    def in_the_middle(facts: Facts) -> Choice:
        if ending.ident is None:
            ending.start()
            elsewhere(until_done_or_waiting(url, ending))
        return choose(facts)

    assert isinstance(await shop.store.claims.claim(Claim("n2", "middle", "p1", 9, 9), in_the_middle), Ok)
    await asyncio.to_thread(ending.join)


async def end_elsewhere(url: str, shop: Shop, first: int) -> None:
    async with bare(url, shop.clock.hand) as engine:
        await Shop(Store(engine), shop.clock, shop.fetch).finish("n1", first, 1)


async def until_done_or_waiting(url: str, other: threading.Thread) -> None:
    async with admin(url) as connection:
        waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        while other.is_alive() and not await connection.fetchval(waits):
            pass


def elsewhere(work: Coroutine[Any, Any, None]) -> None:
    """To its end, while this thread's own loop stands still."""
    helper = threading.Thread(target=lambda: asyncio.run(work))
    helper.start()
    helper.join()


async def moment(shop: Shop, policy: OverlapPolicy, happens: Moment, late_ms: int) -> list[Answer]:
    """A run ends so long after the instant of the next tick, which somebody looks at then. The states a moment later,
    and when they were reached; `held` is at work."""
    this = Job(1, overlap=policy)
    await shop.define(this)
    for node_id in ("n1", "n2"):
        await shop.join(node_id, p1=9)
    first = await plan(shop, this, BEGIN_MS)
    await shop.promote()
    assert [run.run_id for run in (await shop.claim("n1")).runs] == [first]
    for at_ms in (D - 100, D) if policy == "collapse" else (D,):
        await plan(shop, this, at_ms)
    await shop.promote()
    if happens is not look_meanwhile:  # what waits already is let go by the end of the first, and not looked at before
        await shop.claim_all("n2")
    await shop.clock.set(D + late_ms)
    await happens(shop, first)
    if happens is not end_unseen:
        await shop.claim_all("n2")
    await shop.clock.set(D + 2)
    await shop.claim_all("n2")
    held = {row["run_id"] for row in await shop.rows("SELECT run_id FROM leases")}
    rows = await shop.rows("SELECT run_id, state, finished_ms FROM runs ORDER BY run_id")
    return [("held" if row["run_id"] in held else row["state"], row["finished_ms"]) for row in rows]


def expected(policy: OverlapPolicy, happens: Moment, late_ms: int) -> list[Answer]:
    first = ("succeeded", D + late_ms)
    if policy == "collapse":
        if late_ms < 0 and happens is not end_unseen:
            return [first, ("held", None), ("planned", None)]
        return [first, ("merged", D), ("held", None)]
    return [first, ("skipped", D) if policy == "skip" and late_ms > 0 else ("held", None)]


@ENGINES
@pytest.mark.parametrize("policy", get_args(OverlapPolicy))
def test_the_moment_itself(engine: str, policy: OverlapPolicy, request: pytest.FixtureRequest) -> None:
    """S2-45, S3-43: a millisecond before, at and after the instant; whoever comes first, the facts decide, and whoever
    waits is not forgotten. Finished exactly at the instant is no overlap."""
    url = request.getfixturevalue(f"{engine}_url")

    async def scenario() -> None:
        async with hand_cranked(url, BEGIN_MS) as (opened, clock):
            for happens, late_ms in product((end_first, end_unseen, look_first, look_meanwhile), (-1, 0, 1)):
                found = await moment(await Shop.open(Store(opened), clock), policy, happens, late_ms)
                assert found == expected(policy, happens, late_ms), (happens.__name__, late_ms)

    asyncio.run(scenario())


def test_two_pools_at_one_key(postgres18_url: str) -> None:
    """S2-42, S3-43: claims of two pools do not wait for each other; the unique key lets one of them have it."""

    async def scenario() -> None:
        async with hand_cranked(postgres18_url, BEGIN_MS) as (opened, clock):
            shop = await Shop.open(Store(opened), clock)
            jobs = [Job(1, pool="p1", key="k", overlap="queue"), Job(2, pool="p2", key="k", overlap="queue")]
            await shop.define(*jobs)
            await shop.join("n1", p1=9)
            await shop.join("n2", p2=9)
            for turn in range(24):
                for each in jobs:
                    await plan(shop, each, BEGIN_MS + turn)
                await clock.set(BEGIN_MS + turn)
                await shop.promote()
                while left := await shop.rows("SELECT run_id FROM queue"):
                    taken = await asyncio.gather(shop.claim("n1", "p1"), shop.claim("n2", "p2"))
                    got = [(node, run) for node, each in zip(("n1", "n2"), taken, strict=True) for run in each.runs]
                    assert len(got) == 1, (left, taken)
                    [(node, run)] = got
                    await shop.finish(node, run.run_id, run.attempt)
            assert set((await shop.states()).values()) == {"succeeded"}

    asyncio.run(scenario())
