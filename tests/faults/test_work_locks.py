"""Somebody who stands still with locks in its hands does not keep them."""

import asyncio

import asyncpg  # type: ignore[import-untyped]

from fleetcron.store.postgres import PostgresEngine

LOCK = "SELECT pg_advisory_xact_lock(42)"
DEADLINE_S = 0.5


def test_a_statement_that_is_only_described_keeps_no_locks(postgres18_url: str) -> None:
    """A worker was stopped, or its machine, between the two halves of a statement: for the server it is neither idle
    nor busy, and none of the usual timeouts ends it. All claims of its pool would wait for it."""

    async def scenario() -> None:
        engine = await PostgresEngine.open(postgres18_url, deadline_s=DEADLINE_S)
        sleeper, _ = await engine._connections.take()
        await sleeper.execute(f"BEGIN{engine._connector.settings_of(sleeper, DEADLINE_S)}")
        await sleeper.fetch(LOCK)
        await sleeper.prepare("SELECT count(*) FROM runs")  # and not a word more
        other = await asyncpg.connect(postgres18_url)
        await asyncio.wait_for(other.execute(LOCK), 2 * DEADLINE_S + 4)
        await other.close()
        engine._connections.discard(sleeper)
        await engine.close()

    asyncio.run(scenario())
