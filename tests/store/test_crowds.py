"""Many runs that wait for one job: others get their turn, and all of them get through. Counted in claims."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count

import pytest

from fleetcron.model.rules import OverlapRule
from fleetcron.scheduler.desk import Desk
from fleetcron.store.claims import Claimed
from fleetcron.store.history import Span
from fleetcron.store.store import Store
from tests.store.engines import change, hand_cranked
from tests.store.floor import NOW, Floor, ok

WAITING = 2_000
LOOKS = 72  # of a claim with one free slot: eight times nine
CLAIM_MS = 250  # so long is a claim: with a look every 5 s nobody would ever have got past those that wait
ALLOW = OverlapRule("allow")


@pytest.fixture(params=("sqlite_memory", "postgres18"))
def crowded_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def on_floors(url: str, story: Callable[[Floor], Awaitable[None]]) -> None:
    async def main() -> None:
        async with hand_cranked(url, NOW) as (engine, clock):
            store = Store(engine)
            ok(await store.shards.fix(1))
            held = ok(await store.shards.take("*", [0], "scheduler", 36_000_000))
            await story(Floor(store, clock, Desk(store, actor="ann", shards=1), held))

    asyncio.run(main())


class Crowd:
    """`down` depends on `up`; runs of both, and of `other`, are put in as rows of a backfill."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.ids: dict[str, str] = {}
        self.started: Counter[str] = Counter()

    async def open(self, *dependants: str) -> None:
        for name in ("up", "other"):
            self.ids[name] = await self.floor.define(name, overlap=ALLOW)
        for name in dependants or ("down",):
            self.ids[name] = await self.floor.define(name, overlap=ALLOW, depends_on=("up",))
        await self.floor.join("w", slots=1)

    async def put(self, name: str, first: int, runs: int, *, queued: bool = True) -> None:
        """A run for every second before now; without a queue somebody else has them."""
        ticks = [NOW - 10 * WAITING * 1_000 + n * 1_000 for n in range(first, first + runs)]
        for page in (ticks[at : at + 500] for at in range(0, len(ticks), 500)):
            values = ", ".join(
                f"('{self.ids[name]}', {tick}, {NOW - 1}, {NOW}, 1, 1, 1, 'backfill', 'catchup', 'planned')"
                for tick in page
            )
            await change(
                self.floor.store.engine,
                "INSERT INTO runs (job_id, scheduled_for_ms, run_after_ms, created_ms, almanac, covers, revision, kind,"
                f" lane, state) VALUES {values}",
            )
        if queued:
            await change(
                self.floor.store.engine,
                "INSERT INTO upcoming (run_after_ms, run_id, job_id, lane) SELECT run_after_ms, run_id, job_id, lane"
                f" FROM runs WHERE job_id = '{self.ids[name]}' AND scheduled_for_ms >= {ticks[0]}",
            )
            while (await self.floor.promote(most=2_000)).more:
                pass

    async def claim(self, room: int = 1) -> list[Claimed]:
        await self.floor.clock.advance(CLAIM_MS)
        taken = await self.floor.claim("w", room=room)
        self.started.update(run.name for run in taken)
        return taken

    async def work(self, until: Callable[[], bool], most: int, room: int = 1) -> None:
        """Claim and end, so many times at most."""
        for _ in range(most):
            for run in await self.claim(room):
                await self.floor.succeed("w", run)
            if until():
                return
        raise AssertionError(f"after {most} claims: {self.started}")

    async def let_wait(self) -> None:
        """`down`, for runs of `up` that somebody else has; its first run has no period, and waits for nothing."""
        await self.open()
        await self.put("up", 0, WAITING, queued=False)
        await self.put("down", 0, WAITING)
        await self.work(lambda: self.started["down"] == 1, most=1)

    async def say_that_up_succeeded(self) -> None:
        """Past the verbs: nobody is let go."""
        done = f"UPDATE runs SET state = 'succeeded', finished_ms = {NOW} WHERE job_id = '{self.ids['up']}'"
        await change(self.floor.store.engine, done)


def test_others_start_while_many_wait(crowded_url: str) -> None:
    """Each of those that wait is looked at once before the others. From then on it is the turn of others at nearly
    every claim, although all of them are looked at again by and by."""

    async def story(floor: Floor) -> None:
        crowd = Crowd(floor)
        await crowd.let_wait()
        await crowd.put("other", 0, 40)
        await crowd.work(lambda: crowd.started["other"] == 40, most=2 * WAITING // LOOKS + 2 * 40)
        assert crowd.started["down"] == 1

    on_floors(crowded_url, story)


def test_they_do_not_starve_what_they_wait_for(crowded_url: str) -> None:
    """S1-20: `up` stands behind all of them. Each end lets go who waits for it, also when the first ones wait for
    something that does not come: hardly a slot stays free."""

    async def story(floor: Floor) -> None:
        crowd = Crowd(floor)
        await crowd.open()
        await crowd.put("up", 0, 100, queued=False)
        await crowd.put("down", 0, 600)
        await crowd.put("up", 100, 500)
        done = {"up": 500, "down": 501}
        await crowd.work(lambda: crowd.started == done, room=9, most=1_001 // 9 + 30)

    on_floors(crowded_url, story)


@pytest.mark.parametrize("fan_out", [30, 300])
def test_one_end_lets_all_jobs_through_that_wait_for_it(crowded_url: str, fan_out: int) -> None:
    """Also if they are more than an end lets go at once: whoever gets through lets others follow. The clock stands
    still, so nobody is looked at because of the time."""

    async def story(floor: Floor) -> None:
        crowd = Crowd(floor)
        await crowd.open(*(f"down{n:03}" for n in range(fan_out)))
        await floor.next_minute()
        assert await all_that_start(floor, "first") == ["other", "up"]
        assert len(await all_that_start(floor, "then")) == fan_out

    on_floors(crowded_url, story)


def test_all_are_looked_at_by_and_by(crowded_url: str) -> None:
    """Nobody tells them that what they wait for has succeeded: only looks can find it, and they find all of them."""

    async def story(floor: Floor) -> None:
        crowd = Crowd(floor)
        await crowd.let_wait()
        for _ in range(WAITING // LOOKS + 2):
            assert not await crowd.claim()
        await crowd.say_that_up_succeeded()
        await crowd.work(lambda: crowd.started["down"] == WAITING, room=9, most=3 * WAITING // 9)

    on_floors(crowded_url, story)


def test_the_first_are_looked_at_soonest(crowded_url: str) -> None:
    """The first 200 every 5 s, and all of them, 2,000, every 20 s."""

    async def story(floor: Floor) -> None:
        crowd = Crowd(floor)
        await crowd.let_wait()
        for _ in range(4 * 20):  # until the first looks are behind them
            assert not await crowd.claim()
        now_ms, looks = await looks_of(floor)
        assert len(looks) == WAITING - 1
        assert max(looks[:200]) <= now_ms + 5_000
        assert min(looks[200:]) > now_ms
        assert now_ms + 15_000 < max(looks) <= now_ms + 20_000
        for at in range(20):  # however they came in, they are spread
            assert sum(now_ms + 1_000 * at < look <= now_ms + 1_000 * (at + 1) for look in looks[200:]) <= 2 * 100

    on_floors(crowded_url, story)


async def all_that_start(floor: Floor, batch: str) -> list[str]:
    """Claim as long as there is more; then they end."""
    found: list[Claimed] = []
    for number in count():
        taken = await floor.take("w", "default", 9, f"{batch}-{number}")
        found += taken.runs
        if not taken.more and not taken.runs:
            break
    for run in found:
        await floor.succeed("w", run)
    return sorted(run.name for run in found)


async def looks_of(floor: Floor) -> tuple[int, list[int]]:
    """When each that waits for an upstream job is looked at, in the order of their ticks."""
    found = await floor.store.history.runs(Span(), limit=10_000)
    waiting = sorted((line.run.scheduled_for_ms, line.waiting.look_ms) for line in found if line.waiting is not None)
    assert all(look_ms is not None for _, look_ms in waiting)
    return floor.now, [look_ms for _, look_ms in waiting if look_ms is not None]
