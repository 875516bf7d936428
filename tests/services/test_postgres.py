import asyncio

import asyncpg
import pytest


@pytest.mark.parametrize("major", [18, 16])
def test_a_row_makes_the_round_trip(major: int, request: pytest.FixtureRequest) -> None:
    async def scenario(url: str) -> None:
        connection = await asyncpg.connect(url)
        try:
            assert connection.get_server_version().major == major
            await connection.execute("CREATE TABLE ticks (name TEXT)")
            await connection.execute("INSERT INTO ticks VALUES ($1)", "nightly — Zürich")
            assert await connection.fetchval("SELECT name FROM ticks") == "nightly — Zürich"
        finally:
            await connection.close()

    asyncio.run(scenario(request.getfixturevalue(f"postgres{major}_database")))


@pytest.mark.parametrize("attempt", [1, 2])
def test_every_test_has_a_database_of_its_own(attempt: int, postgres18_database: str) -> None:
    async def scenario() -> None:
        connection = await asyncpg.connect(postgres18_database)
        try:
            await connection.execute("CREATE TABLE mine ()")  # in the first one's database the second would fail
        finally:
            await connection.close()

    asyncio.run(scenario())
