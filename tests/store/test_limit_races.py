"""A change of limits and a claim at the same moment, in two sessions of PostgreSQL. (SQLite has one writer.)"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron.model.control import Wish
from fleetcron.model.queued import Choice, Facts
from fleetcron.policy.choose import choose
from fleetcron.store.claims import Claim, Claims
from fleetcron.store.rows import rows
from fleetcron.store.store import Store
from fleetcron.store.written import Ok
from tests.store.check_limits import gates, ok, queue
from tests.store.engines import opened

CLAIM = Claim("w1", "b1", "default", 5, 5)

Change = Callable[[Store], Any]


def release(store: Store) -> Any:
    return store.controls.release("tenant", "acme", actor="bob")


def allow(store: Store) -> Any:
    return store.limits.delete_tenant("acme", actor="bob")


def widen(store: Store) -> Any:
    return store.limits.delete_pool("default", actor="bob")


async def hold(store: Store) -> None:
    ok(await store.controls.switch(Wish("tenant", "acme", 0, reason="x"), actor="ann"))


async def cap(store: Store) -> None:
    ok(await store.limits.put_tenant("acme", {"max_in_flight": 1}, actor="ann"))


async def narrow(store: Store) -> None:
    ok(await store.limits.put_pool("default", {"per_type": {"export": 1}}, actor="ann"))


@pytest.mark.parametrize(("set_it", "undo"), [(hold, release), (cap, allow), (narrow, widen)])
def test_no_run_waits_for_a_limit_that_is_gone(postgres_url: str, set_it: Change, undo: Change) -> None:
    """S3-105: a claim that has read the old limit parks by it; the change must see those runs, or the claim the change.
    Otherwise they would wait for ever: nobody opens a gate that does not exist any more."""

    async def scenario() -> dict[str, int]:
        async with opened(postgres_url) as engine:
            store = Store(engine)
            ok(await store.workers.join("w1", "p", {"default": 5}, 60_000))
            await queue(store, ("", ""), ("", ""), ("", ""))
            ok(await engine.write(level))
            await set_it(store)
            other = threading.Thread(target=lambda: asyncio.run(change(postgres_url, undo)))

            def in_the_middle(facts: Facts) -> Choice:
                """The claim has read its facts; meanwhile the change is made, or waits for the claim."""
                if other.ident is None:
                    other.start()
                    asyncio_free(lambda: until_done_or_waiting(postgres_url, other))
                return choose(facts)

            taken = await Claims(engine).claim(CLAIM, in_the_middle)
            assert isinstance(taken, Ok)
            await asyncio.to_thread(other.join)
            return {gate: count for gate, count in (await gates(store)).items() if gate}

    assert asyncio.run(scenario()) == {}


def level() -> Any:
    share = {"pool": "default", "lane": "live", "priority": 0, "tenant": "", "rank": 0}
    yield "shares_write", {"rows": rows([share])}


async def change(url: str, undo: Change) -> None:
    async with opened(url) as engine:
        ok(await undo(Store(engine)))


async def until_done_or_waiting(url: str, other: threading.Thread) -> None:
    connection = await asyncpg.connect(url)
    try:
        waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        while other.is_alive() and not await connection.fetchval(waits):
            pass
    finally:
        await connection.close()


def asyncio_free(work: Callable[[], Any]) -> None:
    """Run a coroutine to its end while this thread's own loop stands still."""
    helper = threading.Thread(target=lambda: asyncio.run(work()))
    helper.start()
    helper.join()


@pytest.mark.parametrize(
    ("set_it", "gone"), [(hold, "controls"), (cap, "tenants"), (narrow, "pools")], ids=["hold", "cap", "narrow"]
)
def test_a_claim_that_waited_for_a_change_decides_by_the_new_limits(
    postgres_url: str, set_it: Change, gone: str
) -> None:
    async def scenario() -> tuple[int, dict[str, int]]:
        async with opened(postgres_url) as engine:
            store = Store(engine)
            ok(await store.workers.join("w1", "p", {"default": 5}, 60_000))
            await queue(store, ("", ""), ("", ""), ("", ""))
            ok(await engine.write(level))
            await set_it(store)
            connection = await asyncpg.connect(postgres_url)
            try:
                async with connection.transaction():
                    await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('fleetcron:limits', 0))")
                    claiming = asyncio.create_task(Claims(engine).claim(CLAIM, choose))
                    waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                    while not claiming.done() and not await connection.fetchval(waits):
                        pass
                    await connection.execute(f"DELETE FROM fleetcron.{gone}")
            finally:
                await connection.close()
            taken = ok(await claiming)
            return len(taken.runs), {gate: count for gate, count in (await gates(store)).items() if gate}

    assert asyncio.run(scenario())[1] == {}
