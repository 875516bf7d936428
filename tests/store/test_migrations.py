"""Migrations: applied once, in order, by whoever comes first; what does not fit is refused with what to do."""

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from uuid import UUID

import pytest

from fleetcron import __version__
from fleetcron.errors import SchemaError, StoreError, StoreUnavailable
from fleetcron.store import migrations
from fleetcron.store.engine import Script
from fleetcron.store.migrations import Migration, as_sql, known, migrate, require_current, status
from fleetcron.store.statements import ENGINES
from tests.store.engines import admin, bare, change

ROOT = Path(__file__).parents[2]
MIGRATOR = """
import asyncio, sys
from fleetcron.clock import SystemClock
from fleetcron.store.migrations import migrate
from fleetcron.store.opening import open_engine

async def run():
    engine = await open_engine(sys.argv[1], clock=SystemClock())
    print("ready", flush=True)
    sys.stdin.readline()
    print([migration.number for migration in await migrate(engine)])
    await engine.close()

asyncio.run(run())
"""


@pytest.fixture
def more(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let this program know these migrations after its own."""

    def know(*texts: str) -> None:
        def knows(engine: str) -> tuple[Migration, ...]:
            own = known(engine)
            return (*own, *(Migration(len(own) + i, f"more_{i}", text) for i, text in enumerate(texts, start=1)))

        monkeypatch.setattr(migrations, "known", knows)

    return know


def events() -> Script[list[dict[str, object]]]:
    rows = yield "events_list", {"kind": "schema_migrated", "job_id": None, "most": 100}
    return [json.loads(row["detail"]) for row in rows]


def test_an_empty_database_gets_all_of_them_once(empty_url: str) -> None:
    async def scenario() -> None:
        async with bare(empty_url) as engine:
            before = await status(engine)
            assert (before.applied, before.pending) == ((), known(engine.name))
            assert await migrate(engine) == list(known(engine.name))
            after = await status(engine)
            assert [found.number for found in after.applied] == [migration.number for migration in known(engine.name)]
            assert {found.program for found in after.applied} == {__version__}
            assert after.pending == ()
            assert await migrate(engine) == []
            assert await engine.read(events) == [
                {"number": found.number, "name": found.name, "program": __version__} for found in after.applied[::-1]
            ]
            await require_current(engine)

    asyncio.run(scenario())


def test_older_tables_are_refused_by_those_who_do_not_migrate(empty_url: str, more: Callable[..., None]) -> None:
    async def scenario() -> None:
        async with bare(empty_url) as engine:
            with pytest.raises(SchemaError, match=r"the tables do not exist, .* run `fleetcron migrate`"):
                await require_current(engine)
            await migrate(engine)
            newest = known(engine.name)[-1].number
            more("CREATE TABLE shelf (book TEXT)", "CREATE TABLE box (shoe TEXT)")
            words = f"are at version {newest}, this program needs version {newest + 2} of them; run `fleetcron migrate`"
            with pytest.raises(SchemaError, match=words):
                await require_current(engine)
            assert [migration.number for migration in await migrate(engine)] == [newest + 1, newest + 2]
            await require_current(engine)

    asyncio.run(scenario())


def test_newer_tables_are_refused(empty_url: str, more: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with bare(empty_url) as engine:
            more("CREATE TABLE shelf (book TEXT)")
            await migrate(engine)
            monkeypatch.undo()  # the older program comes back
            ours = len(known(engine.name))
            words = re.escape(f"the tables are newer ({ours + 1}) than this program ({ours}); upgrade fleetcron")
            for call in (migrate, require_current, status):
                with pytest.raises(SchemaError, match=words):
                    await call(engine)

    asyncio.run(scenario())


def test_a_migration_that_was_edited_is_noticed(empty_url: str) -> None:
    async def scenario() -> None:
        async with bare(empty_url) as engine:
            await migrate(engine)
            await change(engine, "UPDATE migrations SET checksum = 'another' WHERE number = 1")
            with pytest.raises(SchemaError, match="0001_memory of the database is not the one of this program"):
                await migrate(engine)

    asyncio.run(scenario())


def test_a_migration_that_fails_leaves_nothing_behind(empty_url: str, more: Callable[..., None]) -> None:
    async def scenario() -> None:
        async with bare(empty_url) as engine:
            more("CREATE TABLE shelf (book TEXT);", "CREATE TABLE box (shoe TEXT); CREATE TABLE box (hat TEXT);")
            with pytest.raises(StoreError, match="already exists"):
                await migrate(engine)
            assert [migration.name for migration in (await status(engine)).pending] == ["more_2"]
            more("CREATE TABLE shelf (book TEXT);", "CREATE TABLE box (hat TEXT);")  # a new release repairs it
            assert [migration.name for migration in await migrate(engine)] == ["more_2"]

    asyncio.run(scenario())


@pytest.mark.parametrize("empty_url", ["sqlite-file", "postgres16", "postgres18"], indirect=True)
def test_several_nodes_may_start_at_once(empty_url: str) -> None:
    argv = [sys.executable, "-c", MIGRATOR, empty_url]
    nodes = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    for node in nodes:
        assert node.stdout
        assert node.stdout.readline() == "ready\n"
    for node in nodes:
        assert node.stdin
        node.stdin.write("go\n")
        node.stdin.flush()
    applied = [json.loads(node.communicate(timeout=60)[0]) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0, 0]
    numbers = [migration.number for migration in known("sqlite")]
    assert sorted(number for numbers in applied for number in numbers) == numbers


def test_two_schemas_of_one_database_know_nothing_of_each_other(postgres18_database: str) -> None:
    async def scenario() -> None:
        async with bare(f"{postgres18_database}?schema=blue") as blue, bare(postgres18_database) as plain:
            assert await migrate(blue) != []
            assert (await status(plain)).applied == ()
            assert await migrate(plain) != []
            await change(blue, "DROP SCHEMA blue CASCADE")
            await require_current(plain)

    asyncio.run(scenario())


def test_a_user_who_may_not_create_schemas_can_migrate_in_one_that_was_given(postgres18_database: str) -> None:
    async def scenario() -> None:
        place = postgres18_database.partition("@")[2]
        async with admin(postgres18_database) as other:
            await other.execute("CREATE ROLE given LOGIN PASSWORD 'given'; CREATE SCHEMA fleetcron AUTHORIZATION given")
            try:
                async with bare(f"postgresql://given:given@{place}") as engine:
                    assert await migrate(engine) != []
                async with bare(f"postgresql://given:given@{place}?schema=other") as engine:
                    with pytest.raises(StoreError, match=r"permission denied for database .* grant this user"):
                        await migrate(engine)
            finally:
                await other.execute("DROP OWNED BY given CASCADE; DROP ROLE given")

    asyncio.run(scenario())


def test_a_migration_waits_for_a_table_only_so_long(postgres18_database: str, more: Callable[..., None]) -> None:
    """Whoever queues behind a waiting ALTER TABLE would wait too: it gives up after two seconds."""

    async def scenario() -> None:
        async with bare(postgres18_database) as engine, admin(postgres18_database) as other:
            await migrate(engine)
            more("ALTER TABLE jobs ADD COLUMN colour TEXT")
            await other.execute("BEGIN; SELECT count(*) FROM fleetcron.jobs")
            with pytest.raises(StoreUnavailable, match="lock timeout"):
                await migrate(engine)
            await other.execute("ROLLBACK")
            assert len(await migrate(engine)) == 1

    asyncio.run(scenario())


def test_the_text_for_those_who_migrate_by_hand_does_the_same(empty_url: str) -> None:
    async def scenario() -> None:
        if empty_url.startswith("sqlite"):
            with closing(sqlite3.connect(empty_url.removeprefix("sqlite:///"))) as file:
                file.executescript(as_sql("sqlite"))
        else:
            async with admin(empty_url) as other:
                await other.execute(as_sql("postgres"))
        async with bare(empty_url) as engine:
            found = await status(engine)
            assert found.pending == ()
            assert all(row.at_ms > 1_700_000_000_000 for row in found.applied)

    asyncio.run(scenario())


def test_both_engines_have_the_same_migrations() -> None:
    sqlite, postgres = ([(m.number, m.name) for m in known(engine)] for engine in ENGINES)
    assert sqlite == postgres
    assert [number for number, _ in sqlite] == list(range(1, len(sqlite) + 1))


def test_two_leases_of_a_job_from_before_are_no_hindrance(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Migration 8: both go on, and the first keeps the key. Jobs that may overlap, and leases without a key, stay."""
    lease = """INSERT INTO leases (run_id, attempt, node_id, job_id, tenant, pool, type, lane, kind, due_ms,
        scheduled_for_ms, overlap, claim_key, slot, claimed_ms, failures, losses, round)
        VALUES
        ({run_id}, 1, 'n1', '{job_id}', 't', 'p', 'y', 'live', 'tick', 0, 0, '{overlap}', {key}, {run_id},
        0, 0, 0, 0)"""
    before = [
        (1, 1, "skip", "a"), (2, 1, "skip", "b"), (3, 1, "queue", "c"), (4, 1, "allow", "d"),
        (5, 2, "skip", "e"), (6, 3, "skip", None), (7, 3, "skip", "f"),
    ]  # fmt: skip

    async def scenario() -> None:
        async with bare(empty_url) as engine:
            whole = known(engine.name)
            with monkeypatch.context() as older:
                older.setattr(migrations, "known", lambda name: whole[:7])
                await migrate(engine)
            for run_id, job, overlap, key in before:
                text = {"overlap": overlap, "key": "NULL" if key is None else f"'{key}'"}
                await change(engine, lease.format(run_id=run_id, job_id=UUID(int=job), **text))
            assert await migrate(engine) == list(whole[7:])

            def held() -> Script[list[str]]:
                found = yield "leases_crowds", {"keys": json.dumps(list("abcdef"))}
                return sorted(row["claim_key"] for row in found)

            assert await engine.read(held) == list("adef")

    asyncio.run(scenario())
