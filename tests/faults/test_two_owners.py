"""Two schedulers that both believe they own a shard. The defences are taken away one by one; one is always enough.

The term in the write (the fence), the compare-and-set on the cursor, the unique key of a tick. Nothing in production
can switch one off: the test hands the second scheduler the first one's term, or puts a cursor back behind all backs.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.model.shard import Held
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.gaps import fill_gaps
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import Round, tick
from fleetcron.store.cursors import Cursors
from fleetcron.store.events import Noted
from fleetcron.store.gaps import Gaps
from fleetcron.store.migrations import Altering
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.faults import truth
from tests.faults.jobs import cron
from tests.faults.story import ALL, BEGIN_MS, LATEST, SKIP
from tests.store.engines import DatabaseClock, change, hand_cranked, opened

TTL_MS = 15_000
JOBS = [cron(f"{rule.policy}-{n}", "*/10 * * * * *", "UTC", rule) for rule in (SKIP, LATEST, ALL) for n in range(5)]
EVERYTHING_BUT_EVENTS = tuple(table for table in truth.TABLES if table != "events")


class Late(Cursors):
    """A scheduler that falls asleep between its decision and its write. `meanwhile` is what happens in its sleep."""

    def __init__(self, engine: Altering, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(engine)
        self._meanwhile = meanwhile

    async def advance(self, *arguments: Any, **named: Any) -> Any:
        await self._meanwhile()
        return await super().advance(*arguments, **named)


class LateGaps(Gaps):
    """The same, with a decision about the past."""

    def __init__(self, engine: Altering, meanwhile: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(engine)
        self._meanwhile = meanwhile

    async def settle(self, *arguments: Any, **named: Any) -> Any:
        await self._meanwhile()
        return await super().settle(*arguments, **named)


class Owners:
    """Two schedulers on one PostgreSQL, with engines of their own, and its clock in our hand."""

    def __init__(self, url: str, one: Altering, other: Altering, clock: DatabaseClock) -> None:
        self.url = url
        self.one, self.other = Store(one), Store(other)
        self.clock = clock

    async def take(self, store: Store, name: str) -> list[Held]:
        answer = await store.shards.take("*", range(2), name, TTL_MS)
        assert isinstance(answer, Ok)
        return answer.value

    async def plan(self, store: Store, held: Sequence[Held], cursors: Cursors | None = None) -> Round:
        return await tick(cursors or store.cursors, Tables(store.almanac), held, lookahead_ms=60_000)

    async def plan_all(self, held: Sequence[Held]) -> Counter[str]:
        """Until nothing is left to do; what was counted on the way."""
        counts: Counter[str] = Counter()
        while True:
            done = await self.plan(self.other, held)
            filled = await fill_gaps(self.other.gaps, Tables(self.other.almanac), held, room=1_000_000)
            assert (done.refused, filled.refused) == (None, None)
            counts.update(conflicts=done.conflicts + filled.conflicts, runs=done.runs + filled.runs)
            if not (done.jobs or filled.gaps):
                return counts

    async def rewind(self, ms: int) -> None:
        """Put every cursor back, as a lost compare-and-set would."""
        await change(
            self.one.engine,
            f"UPDATE cursors SET cursor_ms = cursor_ms - {ms}, next_due_ms = next_due_ms - {ms}",
        )

    async def tables(self, *names: str) -> dict[str, list[str]]:
        found = await truth.read_postgres(self.url, names or EVERYTHING_BUT_EVENTS)
        return {name: sorted(str(tuple(row.values())) for row in found[name]) for name in found.rows}

    async def noted(self, kind: str) -> list[Noted]:
        return await self.one.events.list(kind=kind)

    async def judged(self) -> truth.Verdict:
        verdict = truth.judge(await truth.read_postgres(self.url), self.clock.now_ms())
        assert verdict.wrong == []
        return verdict


@asynccontextmanager
async def two_owners(url: str) -> AsyncIterator[Owners]:
    async with hand_cranked(url, BEGIN_MS) as (one, clock), opened(url, clock.hand) as other:
        owners = Owners(url, one, other, clock)
        applied = await Desk(owners.one, actor="test", shards=2).apply(JOBS)
        assert len(applied) == len(JOBS)
        yield owners


def test_the_fence_refuses_a_stale_owner(postgres18_url: str) -> None:
    """S4-21, S2-42: it has a plan, falls asleep, and wakes when the shard is another one's: nothing is written."""

    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            old = await owners.take(owners.one, "old")
            before: dict[str, list[str]] = {}

            async def meanwhile() -> None:
                await owners.clock.advance(TTL_MS)
                new = await owners.take(owners.other, "new")
                assert [one.term for one in new] == [2, 2]
                await owners.plan_all(new)
                before.update(await owners.tables())

            done = await owners.plan(owners.one, old, Late(owners.one.engine, meanwhile))
            assert done.refused == "the shard has another owner"
            assert (done.jobs, done.runs, done.answered) == (0, 0, 0)
            assert await owners.tables() == before
            [refused] = await owners.noted("plan_refused")
            assert refused.event.node_id == "old"
            assert refused.event.detail["lost"] == [["*", 0, 1], ["*", 1, 1]]
            assert await owners.noted("run_conflict") == []
            await owners.judged()

    asyncio.run(scenario())


def test_the_fence_refuses_also_before_the_new_owner_did_anything(postgres18_url: str) -> None:
    """Without the fence this plan would be written: every cursor stands where it was read."""

    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            old = await owners.take(owners.one, "old")

            async def meanwhile() -> None:
                await owners.clock.advance(TTL_MS)
                await owners.take(owners.other, "new")

            done = await owners.plan(owners.one, old, Late(owners.one.engine, meanwhile))
            assert (done.refused, done.jobs) == ("the shard has another owner", 0)
            assert (await owners.tables("runs"))["runs"] == []

    asyncio.run(scenario())


def test_the_fence_refuses_a_stale_decision_about_the_past(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            old = await owners.take(owners.one, "old")
            await owners.plan(owners.one, old)
            await owners.clock.advance(300_000)
            await owners.plan(owners.one, old)  # opens gaps
            before: dict[str, list[str]] = {}

            async def meanwhile() -> None:
                new = await owners.take(owners.other, "new")
                await owners.plan_all(new)
                before.update(await owners.tables())

            gaps = LateGaps(owners.one.engine, meanwhile)
            filled = await fill_gaps(gaps, Tables(owners.one.almanac), old, room=1_000_000)
            assert (filled.refused, filled.runs) == ("the shard has another owner", 0)
            assert await owners.tables() == before
            assert len(await owners.noted("plan_refused")) == 1
            await owners.judged()

    asyncio.run(scenario())


def test_without_the_fence_the_compare_and_set_is_enough(postgres18_url: str) -> None:
    """The second one has the current term, and the same plan; all of its jobs have moved."""

    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            held = await owners.take(owners.one, "both")
            before: dict[str, list[str]] = {}

            async def meanwhile() -> None:
                assert (await owners.plan_all(held))["runs"] > 0
                before.update(await owners.tables())

            done = await owners.plan(owners.one, held, Late(owners.one.engine, meanwhile))
            assert (done.refused, done.jobs, done.runs, done.conflicts) == (None, 0, 0, 0)
            assert await owners.tables() == before
            assert await owners.noted("run_conflict") == []

            await owners.clock.advance(300_000)
            await owners.plan(owners.one, held)  # opens gaps
            gaps = LateGaps(owners.one.engine, meanwhile)
            filled = await fill_gaps(gaps, Tables(owners.one.almanac), held, room=1_000_000)
            assert (filled.refused, filled.gaps, filled.runs, filled.conflicts) == (None, 0, 0, 0)
            assert await owners.tables() == before
            await owners.judged()

    asyncio.run(scenario())


@pytest.mark.parametrize(("first", "second"), [(1_000_000, 8), (8, 1_000_000), (8, 9), (9, 8)])
def test_a_gap_is_filled_by_one_of_two(postgres18_url: str, first: int, second: int) -> None:
    """One has room for all of it, the other for some ticks; or both for some. No fence: the gap itself is the guard.

    (Five of the places are taken by runs of the jobs under `latest`.)
    """

    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            held = await owners.take(owners.one, "both")
            await owners.plan_all(held)
            await owners.clock.advance(300_000)
            await owners.plan(owners.one, held)  # opens gaps

            async def meanwhile() -> None:
                filled = await fill_gaps(owners.other.gaps, Tables(owners.other.almanac), held, room=second)
                assert filled.runs > 0

            gaps = LateGaps(owners.one.engine, meanwhile)
            filled = await fill_gaps(gaps, Tables(owners.one.almanac), held, room=first)
            assert (filled.refused, filled.conflicts) == (None, 0)
            await owners.plan_all(held)
            assert await owners.noted("run_conflict") == []
            await owners.judged()

    asyncio.run(scenario())


def test_without_the_compare_and_set_the_unique_key_is_enough(postgres18_url: str) -> None:
    """S2-29, S2-36, S4-21: every run that exists already is counted, and noted."""

    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            held = await owners.take(owners.one, "one")
            first = await owners.plan_all(held)
            before = await owners.tables()
            await owners.rewind(20_000)  # two ticks of every job
            again = await owners.plan_all(held)
            assert first["runs"] > 0
            assert again == {"conflicts": 2 * len(JOBS), "runs": 0}
            assert await owners.tables() == before
            assert sum(noted.event.count for noted in await owners.noted("run_conflict")) == 2 * len(JOBS)
            assert (await owners.one.events.counts(0))["run_conflict"] == 2 * len(JOBS)
            await owners.judged()

    asyncio.run(scenario())


def test_without_both_the_unique_key_is_enough(postgres18_url: str) -> None:
    """No fence, and the cursors go back while the second one has its plan in its hands: it writes all of it again."""

    async def scenario() -> None:
        async with two_owners(postgres18_url) as owners:
            held = await owners.take(owners.one, "both")
            before: dict[str, list[str]] = {}

            async def meanwhile() -> None:
                await owners.plan_all(held)
                before.update(await owners.tables())
                await owners.rewind(60_000)

            done = await owners.plan(owners.one, held, Late(owners.one.engine, meanwhile))
            assert (done.runs, done.jobs) == (0, len(JOBS))
            assert done.conflicts == 6 * len(JOBS)
            assert await owners.tables() == before
            assert sum(noted.event.count for noted in await owners.noted("run_conflict")) == done.conflicts
            await owners.judged()

    asyncio.run(scenario())


async def believe(url: str, seconds: float) -> tuple[int, truth.Verdict]:
    """Four schedulers plan everything under one term, on the real clock, while cursors go back behind their backs."""
    conflicts = 0
    stop = asyncio.Event()

    async def plan(held: Sequence[Held]) -> None:
        nonlocal conflicts
        async with opened(url) as engine:
            store = Store(engine)
            tables = Tables(store.almanac)
            while not stop.is_set():
                done = await tick(store.cursors, tables, held, lookahead_ms=60_000)
                filled = await fill_gaps(store.gaps, tables, held, room=1_000_000)
                assert (done.refused, filled.refused) == (None, None)
                conflicts += done.conflicts + filled.conflicts
                await asyncio.sleep(0)

    async def put_back() -> None:
        connection = await asyncpg.connect(url, server_settings={"search_path": "fleetcron"})
        try:
            while not stop.is_set():
                # To now, not farther: what is late by then would be judged anew, and the ledger has no such key.
                with suppress(asyncpg.DeadlockDetectedError):  # the planners try again, and so do we
                    await connection.execute(
                        "UPDATE cursors SET cursor_ms = greatest(cursor_ms - 20000, db_now_ms()), next_due_ms ="
                        " next_due_ms - 20000 WHERE cursor_ms > db_now_ms() + 30000 AND random() < 0.3"
                    )
                await asyncio.sleep(0.02)
        finally:
            await connection.close()

    async with opened(url) as engine:
        store = Store(engine)
        await Desk(store, actor="test", shards=2).apply(JOBS)
        answer = await store.shards.take("*", range(2), "all", 600_000)
        assert isinstance(answer, Ok)
        planners = [asyncio.create_task(plan(answer.value)) for _ in range(4)]
        rewinder = asyncio.create_task(put_back())
        until_s = monotonic() + seconds
        while monotonic() < until_s or not conflicts:
            await asyncio.sleep(0.05)
            assert not any(task.done() for task in (*planners, rewinder))
        stop.set()
        await asyncio.gather(*planners, rewinder)
        tables = Tables(store.almanac)
        while (done := await tick(store.cursors, tables, answer.value, lookahead_ms=60_000)).jobs:
            conflicts += done.conflicts
    return conflicts, truth.judge(await truth.read_postgres(url))


def test_four_believed_owners_at_once(postgres18_url: str) -> None:
    """S2-42, S2-36: no duplicates, and every conflict is counted."""
    conflicts, verdict = asyncio.run(believe(postgres18_url, 2.0))
    print(f"\n{conflicts} conflicts; {verdict}")
    assert verdict.wrong == []
    assert conflicts == verdict.events["run_conflict"] > 0


@pytest.mark.soak
def test_four_believed_owners_for_two_minutes(postgres18_url: str) -> None:
    conflicts, verdict = asyncio.run(believe(postgres18_url, 120.0))
    print(f"\n{conflicts} conflicts; {verdict}")
    assert verdict.wrong == []
    assert conflicts == verdict.events["run_conflict"] > 0
