"""kill -9 at every step of what people ask for; then somebody else asks again: it is done once, and nothing by half."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from signal import SIGKILL
from typing import Any, TypeAlias

import pytest

from fleetcron.store.store import Store
from tests.faults.asking import ASKS, JOBS, LAST, NOW_MS, POOLS, Wanted, set_the_scene
from tests.faults.copies import Copy, postgres_copies, sqlite_copies
from tests.faults.marks import ASKED, PLANNING, STORE, WORK, marked
from tests.faults.nursery import Nursery, nursery
from tests.faults.work_off import ROOM, to_the_end, work_off
from tests.services.guard import Guard
from tests.store.conftest import give_it_tables
from tests.store.engines import DatabaseClock, change, hand_cranked, opened
from tests.worker.inspection import Inspector
from tests.worker.shop import BEGIN_MS, Shop, fetcher, ok

TABLES = (
    "runs", "upcoming", "queue", "leases", "attempts", "ledger", "gaps", "cursors", "jobs", "job_revisions", "workers",
    "shares", "tenants", "pools", "controls", "rates", "shard_leases", "events", "pings",
)  # fmt: skip
GIVEN = ("event_id", "entry_id")  # numbers that a transaction which is rolled back may use up
COMMITTED = "store.committed"
State: TypeAlias = Mapping[str, Sequence[str]]


@dataclass
class Stage:
    """A database with runs at every place, as often as a test needs it."""

    cradle: Nursery
    copy: Copy
    kills: int = 0
    passed: dict[str, list[str]] = field(default_factory=dict)  # by what a life asks for that is left in peace

    def asks(self, url: str, ask: str) -> None:
        """A whole life."""
        passed = self.cradle.lived(url=url, ask=ask, nth=0).said["passed"]
        self.passed.setdefault(ask, passed)

    def dies(self, url: str, ask: str, nth: int) -> None:
        assert self.cradle.lived(url=url, ask=ask, nth=nth).signal == SIGKILL, f"it has no step {nth}"
        self.kills += 1


@pytest.fixture(scope="module")
def cradle(guard: Guard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery(guard, tmp_path_factory.mktemp("lives"), "tests.faults.asking", waits=True) as found:
        yield found


@pytest.fixture(scope="module")
def sqlite_stage(cradle: Nursery, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(cradle, sqlite_copies(tmp_path_factory.mktemp("sqlite"), prepare))


@pytest.fixture(scope="module")
def postgres_stage(cradle: Nursery, postgres18_server: str) -> Iterator[Stage]:
    def with_tables(url: str) -> None:
        give_it_tables(url)
        prepare(url)

    with postgres_copies(postgres18_server, with_tables) as copy:
        yield Stage(cradle, copy)


@pytest.fixture(params=["sqlite", "postgres"])
def stage(request: pytest.FixtureRequest) -> Stage:
    found = request.getfixturevalue(f"{request.param}_stage")
    assert isinstance(found, Stage)
    return found


def prepare(url: str) -> None:
    async def scene() -> None:
        async with hand_cranked(url, BEGIN_MS) as (engine, clock):
            await set_the_scene(await Shop.open(Store(engine), clock))

    asyncio.run(scene())


@asynccontextmanager
async def visited(url: str, wanted: Wanted) -> AsyncIterator[Inspector]:
    """Somebody who looks at a copy, and may work there."""
    clock = DatabaseClock(NOW_MS)
    async with opened(url, clock.hand) as engine:
        await change(engine, "DROP TABLE IF EXISTS test_clock")
        await clock.take_over(engine)
        shop = Shop(Store(engine), clock, fetcher(engine))
        yield Inspector(shop, JOBS, wanted.rules, set(wanted.paused or ()))


async def state(inspector: Inspector) -> State:
    """All rows, but for numbers that are given away once; and no run is at two places, or at none."""
    await inspector.look()
    found = await inspector.shop.fetch(*(f"SELECT * FROM {table}" for table in TABLES))
    rows = dict(zip(TABLES, found, strict=True))
    made = sorted(row["run_id"] for row in rows["runs"] if row["run_id"] > LAST)
    names = {run_id: f"new {number}" for number, run_id in enumerate(made)}
    return {table: sorted(json.dumps(_plain(row, names), sort_keys=True) for row in rows[table]) for table in TABLES}


def _plain(row: Mapping[str, Any], names: Mapping[int, str]) -> dict[str, Any]:
    if "detail" in row:
        row = {**row, "detail": _plain(json.loads(row["detail"]), names)}
    return {
        key: names.get(value, value) if key in ("run", "run_id") else value
        for key, value in row.items()
        if key not in GIVEN
    }


async def alone(stage: Stage, ask: str) -> State:
    """What a life leaves that is left in peace."""
    with stage.copy() as url:
        stage.asks(url, ask)
        async with visited(url, ASKS[ask]) as inspector:
            return await state(inspector)


async def goes_on(inspector: Inspector, wanted: Wanted) -> None:
    """What may start does, and what is held back waits; when nothing is, everything comes to its end."""
    shop = inspector.shop
    await shop.join("last", p1=ROOM, p2=ROOM, default=ROOM)
    if wanted.paused is not None:
        tables = await work_off(inspector, "last", POOLS)
        assert {row["tenant"] for row in tables.queue.values()} == wanted.paused
    for tenant in ("held", "other"):
        ok(await shop.store.controls.release("tenant", tenant, actor="test"))
    inspector.paused.clear()
    await to_the_end(inspector, "last", POOLS)


Deaths: TypeAlias = list[tuple[int, str]]


def lives(passed: Sequence[str], wanted: Wanted) -> Iterator[Deaths]:
    """Deaths by step, for one copy after the other. Whoever asks again passes the same steps, unless pages are left."""
    deaths = list(enumerate(passed, 1))
    first = passed.index(COMMITTED) + 1 if wanted.pages else len(passed)
    yield deaths[:first]
    yield from ([death] for death in deaths[first:])


async def killed_everywhere(stage: Stage, ask: str) -> None:
    """The state only changes with a commit, from the first death to the last."""
    done = await alone(stage, ask)
    wanted, now = ASKS[ask], None
    for deaths in lives(stage.passed[ask], wanted):
        with stage.copy() as url:
            async with visited(url, wanted) as inspector:
                first = now is None
                now = now or await state(inspector)
                assert not first or now != done, "it does nothing"
                for nth, step in deaths:
                    stage.dies(url, ask, nth)
                    found = await state(inspector)
                    assert found == now or step == COMMITTED, step
                    now = found
                stage.asks(url, ask)
                assert await state(inspector) == done, deaths
                if first:
                    await goes_on(inspector, wanted)
    assert now == done


@pytest.mark.parametrize("ask", ASKS)
def test_killed_at_every_step_and_asked_again(stage: Stage, ask: str) -> None:
    """S4-3, S3-4, S3-8, S0-61: whoever dies before its commit has done nothing, whoever dies after it everything; what
    somebody else asks for again is done once, to the last row of every table. Then the work goes on."""
    asyncio.run(killed_everywhere(stage, ask))


def test_no_step_is_left_out(stage: Stage) -> None:
    """A step that nobody reaches is a place where nobody was ever killed; and no step of any verb is nobody's."""
    for ask in ASKS.keys() - stage.passed.keys():
        with stage.copy() as url:
            stage.asks(url, ask)
    passed = {step for some in stage.passed.values() for step in some}
    assert passed == marked(*ASKED, "amend", "desk", STORE)  # jobs are changed at the desk
    assert marked() == marked(*PLANNING, *WORK, *ASKED, STORE)
    print(f"\n{stage.kills} kills")
