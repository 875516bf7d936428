"""What an engine promises, on every engine. (PostgreSQL 16 has its turn in the conformance suite.)"""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fleetcron.errors import SchemaError, StoreError, StoreUnavailable
from fleetcron.events import Event
from fleetcron.store.engine import Script
from fleetcron.store.events import note
from fleetcron.store.hints import LOST
from fleetcron.store.written import Ok, Refused
from tests.store.engines import bare, change, hand_cranked, opened
from tests.store.scratch import found, numbers, put

SHARED = ("sqlite-file", "postgres18")  # those that two engines can open at once


def test_what_was_written_can_be_read_at_once(engine_url: str) -> None:
    async def scenario() -> None:
        async with opened(engine_url) as engine:
            for number in range(100, 120):
                assert await engine.write(partial(put, number)) == Ok(None)
                assert (await found(engine))[-1] == number

    asyncio.run(scenario())


def test_a_script_that_raises_leaves_nothing(engine_url: str) -> None:
    def script() -> Script[None]:
        yield from put(100)
        raise LookupError("no such thing")

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            with pytest.raises(LookupError, match="no such thing"):
                await engine.write(script)
            assert await found(engine) == []
            await engine.write(lambda: put(100))
            assert await found(engine) == [100]

    asyncio.run(scenario())


def test_a_refusal_is_committed_with_its_event(engine_url: str) -> None:
    def script() -> Script[int | Refused]:
        yield from note(Event("plan_refused"))
        yield from put(100)
        return Refused("the term is over")

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            assert await engine.write(script) == Refused("the term is over")
            assert await found(engine) == [100]

    asyncio.run(scenario())


def test_a_script_may_ask_nothing(engine_url: str) -> None:
    def script() -> Script[int]:
        yield from ()
        return 7

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            assert await engine.write(script) == Ok(7)
            assert await engine.read(script) == 7

    asyncio.run(scenario())


def test_fifty_writers_at_once_lose_no_update(engine_url: str) -> None:
    def script() -> Script[int]:
        yield "migrations_lock", {}
        number = max((yield from numbers()), default=100) + 1
        yield from put(number)
        return number

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            answers = await asyncio.gather(*(engine.write(script) for _ in range(50)))
            expected = list(range(101, 151))
            assert sorted(answer.value for answer in answers if isinstance(answer, Ok)) == expected
            assert await found(engine) == expected

    asyncio.run(scenario())


def test_a_statement_wants_its_parameters_and_no_others(engine_url: str) -> None:
    def wrong(**parameters: Any) -> Script[None]:
        yield from put(100)
        yield "migrations_insert", parameters

    def unknown() -> Script[None]:
        yield "no_such_statement", {}

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            with pytest.raises(StoreError, match="migrations_insert was called without name, checksum, program"):
                await engine.write(lambda: wrong(number=101))
            with pytest.raises(StoreError, match="migrations_insert was called with nmae"):
                await engine.write(lambda: wrong(number=101, name="", checksum="", program="", nmae=""))
            with pytest.raises(StoreError, match=r"no statement no_such_statement\.sql in sql/shared or sql/"):
                await engine.write(unknown)
            assert await found(engine) == []

    asyncio.run(scenario())


def test_a_value_that_no_column_takes_is_an_error_of_the_statement(engine_url: str) -> None:
    def script(value: object) -> Script[None]:
        yield "migrations_insert", {"number": value, "name": "", "checksum": "", "program": "test"}

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            for value in (["a", "list"], {"a": "dict"}, 2**80):
                with pytest.raises(StoreError, match="statement migrations_insert") as caught:
                    await engine.write(partial(script, value))
                assert not isinstance(caught.value, StoreUnavailable)  # asking again would not help
                with pytest.raises(StoreError, match="statement migrations_insert"):
                    await engine.read(partial(script, value))
            assert await found(engine) == []

    asyncio.run(scenario())


def test_a_second_row_for_one_key_is_an_error_that_names_the_statement(engine_url: str) -> None:
    def script() -> Script[None]:
        yield from put(101)
        yield from put(100)

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            await engine.write(lambda: put(100))
            with pytest.raises(StoreError, match="statement migrations_insert") as caught:
                await engine.write(script)
            assert not isinstance(caught.value, StoreUnavailable)
            assert await found(engine) == [100]

    asyncio.run(scenario())


def test_a_read_cannot_write(engine_url: str) -> None:
    async def scenario() -> None:
        async with opened(engine_url) as engine:
            await engine.write(lambda: put(100))
            with pytest.raises(StoreError, match="migrations_insert writes, but was called in a read") as caught:
                await engine.read(lambda: put(101))
            assert not isinstance(caught.value, StoreUnavailable)
            assert await found(engine) == [100]
            await engine.write(lambda: put(102))
            assert await found(engine) == [100, 102]

    asyncio.run(scenario())


def test_without_tables_the_user_is_told_to_migrate(empty_url: str) -> None:
    async def scenario() -> None:
        async with bare(empty_url) as engine:
            with pytest.raises(SchemaError, match="run `fleetcron migrate`"):
                await engine.write(lambda: note(Event("node_joined")))
            with pytest.raises(SchemaError, match="run `fleetcron migrate`"):
                await engine.read(numbers)

    asyncio.run(scenario())


def test_the_clock_of_the_database_can_be_moved_by_hand(engine_url: str) -> None:
    def now() -> Script[int]:
        rows = yield "fleet_now", {}
        return int(rows[0][0])

    async def scenario() -> None:
        async with hand_cranked(engine_url, 1_000) as (engine, clock):
            assert await engine.read(now) == 1_000
            await clock.advance(500)
            assert await engine.write(now) == Ok(1_500)
            await clock.set(200)
            assert await engine.read(now) == 200
            assert clock.hand.monotonic_ms() == 500

    asyncio.run(scenario())


def elsewhere(work: Coroutine[Any, Any, Any]) -> threading.Thread:
    """Run it on another thread, with a loop of its own: as in another process, but a test can talk to it."""
    thread = threading.Thread(target=asyncio.run, args=[work])
    thread.start()
    return thread


@pytest.mark.parametrize("engine_url", SHARED, indirect=True)
def test_a_read_sees_one_snapshot_and_holds_up_no_writer(engine_url: str) -> None:
    reading, written = threading.Event(), threading.Event()
    seen: list[list[int]] = []

    def script() -> Script[None]:
        seen.append((yield from numbers()))
        reading.set()
        assert written.wait(10)
        seen.append((yield from numbers()))

    async def reader() -> None:
        async with bare(engine_url) as engine:
            await engine.read(script)
            seen.append(await found(engine))

    async def writer() -> None:
        async with opened(engine_url) as engine:
            await engine.write(lambda: put(100))
            thread = elsewhere(reader())
            assert reading.wait(10)
            await engine.write(lambda: put(101))
            written.set()
            thread.join()

    asyncio.run(writer())
    assert seen == [[100], [100], [100, 101]]


@pytest.mark.parametrize("engine_url", SHARED, indirect=True)
def test_a_writer_holds_up_no_read(engine_url: str) -> None:
    writing, read = threading.Event(), threading.Event()

    def script() -> Script[None]:
        yield from put(101)
        writing.set()
        assert read.wait(10)

    async def writer() -> None:
        async with bare(engine_url) as engine:
            await engine.write(script)

    async def reader() -> None:
        async with opened(engine_url) as engine:
            await engine.write(lambda: put(100))
            thread = elsewhere(writer())
            assert writing.wait(10)
            assert await found(engine) == [100]
            read.set()
            thread.join()
            assert await found(engine) == [100, 101]

    asyncio.run(reader())


@pytest.mark.parametrize("engine_url", ["sqlite-file", "sqlite-memory"], indirect=True)
def test_work_that_has_begun_is_finished_though_its_caller_is_cancelled(engine_url: str) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def script() -> Script[None]:
        yield from put(100)
        begun.set()
        assert go_on.wait(10)
        yield from put(101)

    async def scenario() -> None:
        async with opened(engine_url) as engine:
            first = asyncio.create_task(engine.write(script))
            second = asyncio.create_task(engine.write(lambda: put(200)))
            await asyncio.to_thread(begun.wait)
            first.cancel()
            second.cancel()
            for task in (first, second):
                with pytest.raises(asyncio.CancelledError):
                    await task
            go_on.set()
            await engine.write(lambda: put(102))
            assert await found(engine) == [100, 101, 102]  # the second had not begun

    asyncio.run(scenario())


def test_a_cancelled_call_to_postgres_is_rolled_back(postgres18_url: str) -> None:
    holding = asyncio.Event()

    def waits() -> Script[None]:
        yield from put(100)
        holding.set()
        yield "migrations_lock", {}

    async def scenario() -> None:
        async with opened(postgres18_url, connections=2) as engine, opened(postgres18_url) as other:
            release = await hold_the_lock(other)
            task = asyncio.create_task(engine.write(waits))
            await holding.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await release()
            for _ in range(3):  # no place among the connections was lost
                await asyncio.gather(*(engine.read(numbers) for _ in range(2)))
            assert await found(engine) == []

    asyncio.run(scenario())


async def hold_the_lock(engine: Any) -> Callable[[], Coroutine[Any, Any, None]]:
    """Take the lock of migrators in a transaction that stays open until the returned function is called."""
    held, let_go = asyncio.Event(), asyncio.Event()

    def script() -> Script[None]:
        yield "migrations_lock", {}
        held.set()
        while not let_go.is_set():
            yield "fleet_now", {}

    task = asyncio.create_task(engine.write(script))
    await held.wait()

    async def release() -> None:
        let_go.set()
        await task

    return release


def test_a_deadlock_is_nobodys_business(postgres18_url: str) -> None:
    runs: list[str] = []
    has: set[str] = set()

    def script(first: str, second: str) -> Script[str]:
        runs.append(first)
        yield first, {}
        has.add(first)
        while len(has) < 2:
            yield "fleet_now", {}
        yield second, {}
        return first

    async def scenario() -> None:
        locks = ("migrations_lock", "almanac_lock")
        async with opened(f"{postgres18_url}?deadlock_timeout=20ms") as engine:
            answers = await asyncio.gather(
                engine.write(lambda: script(*locks)), engine.write(lambda: script(*reversed(locks)))
            )
            assert list(answers) == [Ok(locks[0]), Ok(locks[1])]
            assert len(runs) > 2

    asyncio.run(scenario())


def test_a_migration_of_others_is_not_noticed_by_prepared_statements(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with opened(postgres18_url, connections=1) as engine, opened(postgres18_url) as other:
            await engine.write(lambda: put(100))
            assert await found(engine) == [100]
            await change(other, "ALTER TABLE migrations ALTER COLUMN number TYPE BIGINT")
            assert await found(engine) == [100]

    asyncio.run(scenario())


def test_a_hint_is_heard_after_the_commit_and_never_after_a_rollback(engine_url: str) -> None:
    def says(topic: str, number: int, fails: bool = False) -> Script[None]:
        yield "notify", {"topic": topic}
        yield from put(number)
        if fails:
            raise LookupError

    async def scenario() -> None:
        async with opened(engine_url) as engine, engine.hints() as hints:
            if engine.name == "postgres":
                assert await anext(hints) == LOST  # what was said before anybody listened
            with suppress(LookupError):
                await engine.write(lambda: says("shards", 100, fails=True))
            await engine.write(lambda: says("jobs", 101))
            assert await anext(hints) == "jobs"
            assert await found(engine) == [101]
            await engine.write(lambda: says("jobs", 102))
            await engine.write(lambda: says("jobs", 103))
            await engine.write(lambda: says("nodes", 104))
            heard = [await anext(hints), await anext(hints)]
            assert set(heard) <= {"jobs", "nodes"}

    asyncio.run(scenario())


@pytest.mark.parametrize("engine_url", SHARED, indirect=True)
def test_hints_reach_other_engines(engine_url: str) -> None:
    def says() -> Script[None]:
        yield "notify", {"topic": "jobs"}
        yield from put(100)

    async def scenario() -> None:
        async with opened(engine_url) as engine, bare(engine_url) as other, engine.hints() as hints:
            if engine.name == "postgres":
                assert await anext(hints) == LOST
            await other.write(says)
            assert await anext(hints) == ("jobs" if engine.name == "postgres" else LOST)

    asyncio.run(scenario())


def test_a_commit_right_after_somebody_listens_is_heard(tmp_path: Path) -> None:
    """Nothing of the engine has run between the two: it must have looked at the file before it said go."""
    path = tmp_path / "jobs.db"

    async def scenario() -> None:
        async with opened(f"sqlite:///{path}") as engine:
            for _ in range(2):
                async with engine.hints() as hints:
                    commit_from_outside(path)
                    assert await anext(hints) == LOST

    asyncio.run(scenario())


def test_another_file_in_the_place_of_the_first_is_heard_of(tmp_path: Path) -> None:
    """SQLite's count of changes begins anew with each connection: two connections' counts are easily the same."""
    path, other = tmp_path / "jobs.db", tmp_path / "other.db"

    async def scenario() -> None:
        async with opened(f"sqlite:///{other}"):
            pass
        async with opened(f"sqlite:///{path}") as engine, engine.hints() as hints:
            os.replace(other, path)
            assert await anext(hints) == LOST

    asyncio.run(scenario())


def commit_from_outside(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS outside (id)")
        connection.execute("INSERT INTO outside VALUES (1)")
        connection.commit()


def test_closing_finishes_what_was_asked_for(engine_url: str) -> None:
    async def scenario() -> None:
        async with opened(engine_url) as engine:
            writes = [asyncio.create_task(engine.write(partial(put, number))) for number in range(100, 120)]
            await asyncio.gather(*writes)
            await engine.close()
            await engine.close()
            with pytest.raises(StoreError, match="was closed by this process"):
                await engine.write(lambda: put(200))

    asyncio.run(scenario())


def test_it_is_known_which_statements_ran(engine_url: str) -> None:
    async def scenario() -> None:
        async with opened(engine_url) as engine:
            await engine.write(lambda: put(100))
            assert "migrations_insert" in engine.statements_run
            assert "fleet_now" not in engine.statements_run

    asyncio.run(scenario())


def test_a_commit_to_sqlite_survives_power_loss(tmp_path: Any) -> None:
    """WAL and synchronous=FULL (2): the WAL is synced at every commit."""

    async def scenario() -> None:
        from fleetcron.clock import SystemClock
        from fleetcron.store.sqlite_session import SqliteSession

        session = SqliteSession(str(tmp_path / "jobs.db"), SystemClock(), busy_ms=10)
        session.changes_of_others()
        connection = session._connection
        assert isinstance(connection, sqlite3.Connection)
        asked = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")}
        session.close()
        assert asked == {"journal_mode": "wal", "synchronous": 2}

    asyncio.run(scenario())
