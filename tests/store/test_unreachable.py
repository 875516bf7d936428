"""PostgreSQL that cannot be reached, answers late, or loses an answer: what callers are told, and that it heals."""

import asyncio
import secrets
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.store.engine import Script
from fleetcron.store.hints import LOST
from fleetcron.store.migrations import Altering, migrate
from fleetcron.store.written import Ok, Unknown
from tests.services.own_postgres import OwnPostgres
from tests.services.proxy import Fault, Proxy, proxy_to
from tests.store.engines import admin, bare
from tests.store.scratch import found, numbers, put

DEADLINE_S = 0.5  # of the engines in these tests; the default is 5
MERCY_S = 4.0  # the rest: the roll back after a failure (2 s), a slow machine


@asynccontextmanager
async def through_a_proxy(url: str, **options: Any) -> AsyncIterator[tuple[Altering, Proxy]]:
    async with proxy_to(url) as proxy, bare(proxy.url, **{"deadline_s": DEADLINE_S, **options}) as engine:
        yield engine, proxy


async def ends_in_time(call: Awaitable[Any], deadline_s: float = DEADLINE_S) -> None:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        await call
    assert time.monotonic() - began < deadline_s + MERCY_S


async def truly_written(url: str) -> list[int]:
    """Asked past the proxy."""
    async with admin(url) as other:
        rows = await other.fetch("SELECT number FROM fleetcron.migrations WHERE program = 'test' ORDER BY number")
        return [row["number"] for row in rows]


async def until_done(call: Callable[[], Awaitable[Any]]) -> Any:
    """Ask until the database is available, as every loop of fleetcron does."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()
            except StoreUnavailable:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("fault", "written"),
    [
        (Fault.LOSE_REPLY, [100]),
        (Fault.HOLE_REPLY, [100]),
        (Fault.LOSE_REQUEST, []),
        (Fault.HOLE_REQUEST, []),
    ],
)
def test_a_commit_whose_answer_is_lost_is_unknown(postgres18_url: str, fault: Fault, written: list[int]) -> None:
    async def scenario() -> None:
        async with through_a_proxy(postgres18_url) as (engine, proxy):
            proxy.at(b"COMMIT", fault)
            assert isinstance(await engine.write(lambda: put(100)), Unknown)
            await proxy.struck.wait()
            assert await truly_written(postgres18_url) == written
            assert await engine.write(lambda: put(101)) == Ok(None)
            if fault is Fault.HOLE_REQUEST:  # the server still has our half of it, and its locks, but not for long
                assert await until_done(lambda: engine.write(lambda: put(100))) == Ok(None)
                assert await truly_written(postgres18_url) == [100, 101]

    asyncio.run(scenario())


@pytest.mark.parametrize("fault", Fault)
def test_before_the_commit_nothing_was_written(postgres18_url: str, fault: Fault) -> None:
    ran: list[int] = []

    def script() -> Script[None]:
        ran.append(len(ran))
        yield from put(100)

    async def scenario() -> None:
        async with through_a_proxy(postgres18_url) as (engine, proxy):
            proxy.at(b"INSERT INTO migrations", fault)
            if fault in (Fault.LOSE_REQUEST, Fault.LOSE_REPLY):  # the connection was reset: a new one does it
                assert await engine.write(script) == Ok(None)
                assert len(ran) == 2
                assert await truly_written(postgres18_url) == [100]
            else:
                with pytest.raises(StoreUnavailable, match="did not answer in time"):
                    await engine.write(script)
                assert await truly_written(postgres18_url) == []

    asyncio.run(scenario())


CALLS: dict[str, Callable[[Altering], Awaitable[Any]]] = {
    "read": lambda engine: engine.read(numbers),
    "write": lambda engine: engine.write(lambda: put(100)),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("fails", [Proxy.hole, Proxy.cut])
def test_every_call_ends_in_time_and_the_next_one_works(
    postgres18_url: str, call: str, fails: Callable[[Proxy], None]
) -> None:
    """S0: a connection that leads nowhere looks like silence; both drivers would wait for ever."""

    async def scenario() -> None:
        async with through_a_proxy(postgres18_url, connections=3) as (engine, proxy):
            # three idle connections, however long a busy machine takes to open them
            await until_done(lambda: asyncio.gather(*(engine.read(numbers) for _ in range(3))))
            fails(proxy)
            # more calls than connections: some wait for a connection, some for an answer
            await asyncio.gather(*(ends_in_time(CALLS[call](engine)) for _ in range(6)))
            await ends_in_time(CALLS[call](engine))  # now by connecting anew
            proxy.heal()
            assert await engine.write(lambda: put(200)) == Ok(None)
            assert await found(engine) == [200]

    asyncio.run(scenario())


@pytest.mark.soak
def test_every_call_ends_in_ten_seconds_by_default(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with through_a_proxy(postgres18_url, deadline_s=5.0) as (engine, proxy):
            proxy.hole()
            began = time.monotonic()
            await asyncio.gather(*(ends_in_time(call(engine), 5.0) for call in CALLS.values()))
            await ends_in_time(CALLS["write"](engine), 5.0)
            assert time.monotonic() - began < 2 * 10
            began = time.monotonic()
        assert time.monotonic() - began < 10  # closing too

    asyncio.run(scenario())


def test_a_failing_script_on_a_dead_line_ends_in_time(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with through_a_proxy(postgres18_url) as (engine, proxy):

            def script() -> Script[None]:
                yield from put(100)
                proxy.hole()
                raise LookupError("the cause")

            began = time.monotonic()
            with pytest.raises(LookupError, match="the cause"):  # not what came of the roll back
                await engine.write(script)
            assert time.monotonic() - began < DEADLINE_S + MERCY_S
            proxy.heal()
            assert await found(engine) == []

    asyncio.run(scenario())


def test_a_restart_of_the_server_needs_no_human(own_postgres: OwnPostgres) -> None:
    """Killed at once, as `pg_ctl -m immediate` does, under load: nothing that was confirmed is lost."""
    confirmed: list[int] = []

    async def scenario() -> None:
        numbers_to_put = iter(range(100, 1_000_000))

        async def writes() -> None:
            while not stop.is_set():
                number = next(numbers_to_put)
                try:
                    if await engine.write(partial(put, number)) == Ok(None):
                        confirmed.append(number)
                except StoreUnavailable:
                    await asyncio.sleep(0.01)

        stop = asyncio.Event()
        async with bare(own_postgres.url) as engine, engine.hints() as hints:
            await migrate(engine)
            writers = [asyncio.create_task(writes()) for _ in range(4)]
            while len(confirmed) < 20:
                await asyncio.sleep(0.01)
            own_postgres.kill()
            assert await anext(hints) == LOST
            before = len(confirmed)
            own_postgres.start()
            began = time.monotonic()
            while len(confirmed) <= before:
                await asyncio.sleep(0.01)
            assert time.monotonic() - began < 5
            stop.set()
            await asyncio.gather(*writers)
            assert set(confirmed) <= set(await found(engine))

    asyncio.run(scenario())


def test_sessions_that_the_server_ended_are_replaced_unnoticed(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with bare(postgres18_url) as engine:
            await asyncio.gather(*(engine.read(numbers) for _ in range(8)))
            async with admin(postgres18_url) as other:
                ended = await other.fetchval(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                    " WHERE application_name = 'fleetcron' AND datname = current_database()"
                )
            assert ended == 8
            assert await engine.write(lambda: put(100)) == Ok(None)
            assert await asyncio.gather(*(found(engine) for _ in range(8))) == [[100]] * 8

    asyncio.run(scenario())


def test_a_lock_that_another_holds_is_waited_for_only_so_long(postgres18_url: str) -> None:
    def script() -> Script[None]:
        yield from put(100)
        yield "almanac_lock", {}

    async def scenario() -> None:
        async with bare(postgres18_url, deadline_s=DEADLINE_S) as engine, admin(postgres18_url) as other:
            await other.execute("BEGIN; SELECT * FROM fleetcron.almanac_epoch FOR UPDATE")
            with pytest.raises(StoreUnavailable, match="needed too long in the statement almanac_lock"):
                await engine.write(script)
            await other.execute("ROLLBACK")
            assert await engine.write(script) == Ok(None)

    asyncio.run(scenario())


def test_a_server_that_takes_no_writes_is_unavailable(postgres18_url: str) -> None:
    async def scenario() -> None:
        url = f"{postgres18_url}?default_transaction_read_only=on"
        async with bare(url) as engine:
            assert await found(engine) == []
            with pytest.raises(StoreUnavailable, match="takes no writes"):
                await engine.write(lambda: put(100))

    asyncio.run(scenario())


@pytest.mark.parametrize("fails", [Proxy.hole, Proxy.cut])
def test_hints_say_that_they_are_lost_and_come_back(postgres18_url: str, fails: Callable[[Proxy], None]) -> None:
    def says(number: int) -> Script[None]:
        yield "notify", {"topic": "jobs"}
        yield from put(number)

    async def scenario() -> None:
        async with through_a_proxy(postgres18_url) as (engine, proxy), engine.hints() as hints:
            assert await anext(hints) == LOST
            await engine.write(lambda: says(100))
            assert await anext(hints) == "jobs"
            fails(proxy)
            assert [await anext(hints), await anext(hints)] == [LOST, LOST]
            proxy.heal()
            heard, number = LOST, 101
            while heard == LOST:  # at most a few: it listens again within about a second
                await engine.write(partial(says, number))
                number += 1
                heard = await anext(hints)
            assert heard == "jobs"

    asyncio.run(scenario())


def test_a_closed_port(postgres18_url: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"postgresql://jobs:s3cr3t@127.0.0.1:{taken.getsockname()[1]}/jobs"

        async def scenario() -> None:
            with pytest.raises(
                StoreUnavailable, match=r"cannot be reached .* is it running, and is the address"
            ) as caught:
                async with bare(url):
                    pass
            assert "s3cr3t" not in str(caught.value)
            assert "jobs:***@127.0.0.1" in str(caught.value)

        asyncio.run(scenario())


def test_a_wrong_password_is_refused_and_not_shown(postgres18_url: str) -> None:
    user, _, place = postgres18_url.partition("@")
    assert place

    async def scenario() -> None:
        with pytest.raises(StoreError, match="refuses the user or the password") as caught:
            async with bare(f"postgresql://postgres:wr0ng@{place}"):
                pass
        assert not isinstance(caught.value, StoreUnavailable)  # trying again would not help
        assert "wr0ng" not in str(caught.value)
        with pytest.raises(StoreError, match="does not exist") as caught:
            async with bare(f"{user}@{place.partition('/')[0]}/nowhere"):
                pass
        assert not isinstance(caught.value, StoreUnavailable)

    asyncio.run(scenario())


def test_who_was_let_in_before_waits_to_be_let_in_again(postgres18_url: str) -> None:
    """A password is changed under a fleet that runs: nobody gives up what he has to write."""
    user, place = f"guest_{secrets.token_hex(4)}", postgres18_url.partition("@")[2]

    async def scenario() -> None:
        async with admin(postgres18_url) as connection:
            await connection.execute(f"CREATE ROLE {user} LOGIN SUPERUSER PASSWORD 'first'")
            try:
                async with bare(f"postgresql://{user}:first@{place}") as engine:
                    assert await engine.write(lambda: put(100)) == Ok(None)
                    await connection.execute(f"ALTER ROLE {user} PASSWORD 'second'")
                    ended = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = $1"
                    await connection.fetch(ended, user)
                    with pytest.raises(StoreUnavailable, match="refuses the user or the password"):
                        await engine.write(lambda: put(101))
                    await connection.execute(f"ALTER ROLE {user} PASSWORD 'first'")
                    assert await engine.write(lambda: put(101)) == Ok(None)
            finally:
                await connection.execute(f"REASSIGN OWNED BY {user} TO postgres; DROP ROLE {user}")

    asyncio.run(scenario())
