"""Commit done, reply lost: every verb that writes can be done again, and whoever asked finds out what became of it."""

import ast
import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

import fleetcron.store
from fleetcron import steps
from fleetcron.model.definition import Definition
from fleetcron.scheduler.desk import Applied, Desk
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.migrations import Altering
from fleetcron.store.nodes import Node
from fleetcron.store.shards import set_shards
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.faults import truth
from tests.faults.jobs import cron
from tests.faults.replies import Forgetful, Repeating
from tests.faults.story import ALL, CLOCK_SQL, SHARDS, Life, life
from tests.services.postgres import execute
from tests.services.proxy import Fault, proxy_to
from tests.store.engines import bare, opened

ALL_TABLES = (
    "fleet", "jobs", "job_revisions", "timings", "timing_parts", "almanac_epoch", "almanac", "almanac_bodies",
    "cursors", "runs", "upcoming", "ledger", "gaps", "nodes", "shard_terms", "shard_leases", "events", "migrations",
)  # fmt: skip


@pytest.fixture(params=["sqlite", "postgres"])
def store_url(request: pytest.FixtureRequest) -> str:
    """A database whose clock the story moves by hand."""
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_file_url"))
    url = str(request.getfixturevalue("postgres18_url"))
    execute(url, CLOCK_SQL)
    return url


# Verbs of work are repeated in test_work_replies.py, what people ask for in test_steering_repeat.py, limits and
# controls in tests/store/check_limits.py, keys, sessions and idempotency in tests/access/test_access_repeat.py, the
# queue that follows its jobs in tests/store/check_edits.py.
ELSEWHERE = (
    "backfills", "claims", "controls", "ends", "following", "idempotency", "keys", "limits", "looking", "output",
    "pings", "queue", "sessions", "steering", "sweeping", "workers",
)  # fmt: skip


def verbs_that_write(without: Sequence[str] = ()) -> set[str]:
    """As in `Jobs.amend`: every function of the store that hands a script to `write` or `alter` of an engine."""
    found = set()
    for path in Path(fleetcron.store.__file__).parent.glob("*.py"):
        if path.stem in without:
            continue
        for outer in ast.parse(path.read_text()).body:
            functions = outer.body if isinstance(outer, ast.ClassDef) else [outer]
            for one in functions:
                if isinstance(one, ast.AsyncFunctionDef) and {"write", "alter"} & set(called_on_an_engine(one)):
                    found.add(f"{outer.name}.{one.name}" if isinstance(outer, ast.ClassDef) else one.name)
    return found


def called_on_an_engine(function: ast.AsyncFunctionDef) -> list[str]:
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    return [
        call.attr
        for call in calls
        if isinstance(call, ast.Attribute) and ast.unparse(call.value) in ("engine", "self._engine")
    ]


class Dumps:
    """Every row of every table; of events what they say, not when."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: asyncpg.Connection | None = None

    async def __call__(self) -> dict[str, list[tuple[str, ...]]]:
        rows = await self._postgres() if self._url.startswith("postgres") else self._sqlite()
        return {table: sorted(map(_without_time if table == "events" else _whole, rows[table])) for table in ALL_TABLES}

    def _sqlite(self) -> dict[str, Any]:
        with closing(sqlite3.connect(self._url.removeprefix("sqlite:///"))) as file:
            file.row_factory = sqlite3.Row
            return {table: file.execute(f"SELECT * FROM {table}").fetchall() for table in ALL_TABLES}

    async def _postgres(self) -> dict[str, Any]:
        if self._connection is None:
            self._connection = await asyncpg.connect(self._url, server_settings={"search_path": "fleetcron"})
        return {table: await self._connection.fetch(f"SELECT * FROM {table}") for table in ALL_TABLES}

    async def close(self) -> None:
        if self._connection:
            await self._connection.close()


def _whole(row: Any) -> tuple[str, ...]:
    return tuple(map(str, row))


def _without_time(event: Any) -> tuple[str, ...]:
    return tuple(str(event[key]) for key in event.keys() if key not in ("event_id", "at_ms"))  # noqa: SIM118


def test_every_verb_that_writes_may_be_repeated(store_url: str) -> None:
    """The whole story, and what it leaves out, with every write done twice: the second time changes nothing."""
    different: list[str] = []
    repeating: list[Repeating] = []
    dumps = Dumps(store_url)

    def differs(verb: str, once: dict[str, Any], twice: dict[str, Any]) -> None:
        tables = [table for table in ALL_TABLES if once[table] != twice[table]]
        match verb:
            case "set_shards" if set(tables) <= {"shard_terms", "events"}:
                return  # terms only say that nobody who held a shard before may write: they may rise once more
            case "Cursors.advance" if all(set(once[table]) < set(twice[table]) for table in ("runs", "upcoming")):
                return  # the rest of a plan that was too long for one transaction
        different.append(f"{verb}: {', '.join(tables)}")

    def through(engine: Altering) -> Altering:
        repeating.append(Repeating(engine, dumps, differs))
        return repeating[-1]

    async def scenario() -> None:
        for number in range(2):
            async with life(store_url, number, through) as one:
                await one.tell()
                if number == 0:
                    await the_rest(one)
                verdict = truth.judge(await tables_of(store_url), one.clock.now_ms())
                assert verdict.wrong == []
        await dumps.close()

    asyncio.run(scenario())
    # each call of migrate applies the next migration, so the second one goes on where the first one ended
    assert [each for each in different if not each.startswith("migrate:")] == []
    done = set().union(*(one.verbs for one in repeating))
    done = {"Nodes.give_up_silent" if verb == "give_up_silent" else verb for verb in done}
    # A database on PostgreSQL is the copy of one that has its tables already.
    assert verbs_that_write(ELSEWHERE) - done == (set() if store_url.startswith("sqlite") else {"migrate"})
    assert done <= verbs_that_write(ELSEWHERE)


async def the_rest(one: Life) -> None:
    """Verbs that the story does not need."""
    await one.store.shards.fix(SHARDS)
    await one.store.nodes.announce(Node("silent", "host", 1, ("scheduler",)), 1000, shards=SHARDS)
    await one.pass_time(1000)
    assert await one.store.nodes.give_up_silent() == Ok(["silent"])
    assert isinstance(await set_shards(one.store.engine, SHARDS), Ok)


async def tables_of(url: str) -> truth.Tables:
    return await asyncio.to_thread(truth.read, url)


@pytest.mark.parametrize(
    "number",
    [pytest.param(0, id="in the first life", marks=pytest.mark.soak), pytest.param(1, id="in the second life")],
)
def test_the_reply_to_any_write_may_be_lost(tmp_path: Path, number: int) -> None:
    """Whoever gets no reply looks what became of it; the story ends the same, whichever reply was lost.

    The first and the last time that each verb writes.
    """
    path = tmp_path / "jobs.db"

    async def scenario(number: int, nth: int) -> tuple[Forgetful, truth.Verdict]:
        weak: list[Forgetful] = []

        def through(engine: Altering) -> Altering:
            weak.append(Forgetful(engine, nth))
            return weak[-1]

        async with life(f"sqlite:///{path}", number, through) as one:
            await one.tell()
        return weak[-1], truth.judge(await tables_of(f"sqlite:///{path}"), one.clock.now_ms())

    if number:
        asyncio.run(scenario(0, 0))
        shutil.copyfile(path, tmp_path / "base.db")
    whole, expected = asyncio.run(scenario(number, 0))
    wished = [kind for kind in expected.events if kind.startswith(("job_", "calendar_")) and kind != "job_finished"]
    for nth in whole.first_and_last():
        path.unlink()
        if number:
            shutil.copyfile(tmp_path / "base.db", path)
        weak, verdict = asyncio.run(scenario(number, nth))
        assert weak.lost
        assert verdict.wrong == [], weak.lost
        assert verdict.ticks == expected.ticks, weak.lost
        assert [verdict.events[kind] for kind in wished] == [expected.events[kind] for kind in wished], weak.lost


WISHES: dict[str, Callable[[Desk], Awaitable[Applied]]] = {
    "created": lambda desk: desk.create(a_job("new")),
    "changed": lambda desk: desk.edit(a_job("old", "*/20 * * * * *")),
    "paused": lambda desk: desk.pause("default", "old"),
    "resumed": lambda desk: desk.resume("default", "sleeping"),
    "cancelled": lambda desk: desk.cancel("default", "old"),
    "deleted": lambda desk: desk.delete("default", "old"),
}


def a_job(name: str, expression: str = "*/10 * * * * *") -> Definition:
    return cron(name, expression, "UTC", ALL)


@asynccontextmanager
async def with_jobs(url: str) -> AsyncIterator[Altering]:
    async with opened(url) as engine:
        desk = Desk(Store(engine), actor="test", shards=SHARDS)
        await desk.apply([a_job("old"), a_job("sleeping")])
        await desk.pause("default", "sleeping", "all")
        yield engine


@pytest.mark.parametrize("done", WISHES)
def test_a_wish_whose_reply_was_lost_is_answered_all_the_same(sqlite_file_url: str, done: str) -> None:
    """It was done, and by us: that is the answer, not a refusal because it is done already."""

    async def scenario() -> None:
        async with with_jobs(sqlite_file_url) as engine:
            weak = Forgetful(engine, 1)
            applied = await WISHES[done](Desk(Store(weak), actor="test", shards=SHARDS))
            assert weak.lost == "Jobs.amend"
            assert applied.done == done

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
@pytest.mark.parametrize("done", WISHES)
def test_the_line_is_cut_at_the_commit_of_a_change(postgres18_url: str, done: str, fault: Fault) -> None:
    """The reply is lost, or the request: nobody knows, so the desk looks, and does it if it was not done."""

    async def scenario() -> None:
        async with with_jobs(postgres18_url), proxy_to(postgres18_url) as proxy, bare(proxy.url) as engine:
            steps.on_step(cut_once(proxy.at, "amend.written", fault))
            try:
                applied = await WISHES[done](Desk(Store(engine), actor="test", shards=SHARDS))
            finally:
                steps.on_step(None)
            assert proxy.struck.is_set()
            assert applied.done == done
        assert applied.job is not None
        revisions = (await truth.read_postgres(postgres18_url)).by_job("job_revisions")[applied.job.job_id]
        assert len(revisions) == {"created": 1, "resumed": 3}.get(done, 2)  # it was done once

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", [Fault.LOSE_REPLY, Fault.LOSE_REQUEST])
def test_the_line_is_cut_at_the_commit_of_a_plan(postgres18_url: str, fault: Fault) -> None:
    """S4-3: it is not known whether the plan was written; the next round finds out, and every tick has one answer."""

    async def scenario() -> None:
        async with with_jobs(postgres18_url) as direct, proxy_to(postgres18_url) as proxy, bare(proxy.url) as engine:
            answer = await Store(direct).shards.take("*", range(SHARDS), "n", 600_000)
            assert isinstance(answer, Ok)
            store = Store(engine)
            steps.on_step(cut_once(proxy.at, "advance.write", fault))
            try:
                first = await tick(store.cursors, Tables(store.almanac), answer.value, lookahead_ms=60_000)
            finally:
                steps.on_step(None)
            assert proxy.struck.is_set()
            assert first.unknown is not None
            second = await tick(store.cursors, Tables(store.almanac), answer.value, lookahead_ms=60_000)
            assert second.jobs == (0 if fault is Fault.LOSE_REPLY else 1)
            assert (second.conflicts, second.unknown) == (0, None)
        verdict = truth.judge(await truth.read_postgres(postgres18_url))
        assert verdict.wrong == []
        assert verdict.runs >= 6

    asyncio.run(scenario())


def cut_once(arm: Callable[[bytes, Fault], None], at: str, fault: Fault) -> Callable[[str], None]:
    """A hook that lets the fault strike at the COMMIT after a step, the first time."""
    passed: list[str] = []

    def hook(step: str) -> None:
        if step == at and not passed:
            arm(b"COMMIT", fault)
            passed.append(step)

    return hook
