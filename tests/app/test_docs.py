"""What docs/learn/python.md and handlers.md show on PostgreSQL is run there."""

import asyncio
import textwrap
from typing import Any

import asyncpg  # type: ignore[import-untyped]
import pytest

from fleetcron import LeaseLost
from fleetcron.store.store import Store
from tests.app.test_guarded import context, held
from tests.house.blocks import ROOT, blocks
from tests.store.engines import opened


def block(page: str, begins: str) -> str:
    [found] = [each.text for each in blocks(ROOT / "docs/learn" / page) if begins in each.text]
    return found


async def awaited(text: str, names: dict[str, Any]) -> None:
    """A block that stands in a coroutine of the reader's."""
    exec(f"async def shown():\n{textwrap.indent(text, '    ')}", names)
    await names["shown"]()


def test_asking_for_runs(postgres18_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "tests.app.shown"}
    exec(block("python.md", "class Invoice(BaseModel)"), names)

    async def scenario() -> list[str]:
        async with opened(postgres18_url) as engine, asyncpg.create_pool(postgres18_url, min_size=1) as pool:
            names["pool"], names["app"].url = pool, postgres18_url
            await names["app"].sync(Store(engine))
            await pool.execute("CREATE TABLE orders (id BIGINT GENERATED ALWAYS AS IDENTITY, customer TEXT)")
            await awaited(block("python.md", "await app.enqueue("), names)
            await awaited(block("python.md", "await app.enqueue_in("), names)
            return [
                row["asked_key"] for row in await pool.fetch("SELECT asked_key FROM fleetcron.runs ORDER BY run_id")
            ]

    assert asyncio.run(scenario()) == ["order-17", "order-1"]
    assert capsys.readouterr().out.split()[1] == "True"


def test_writes_that_only_the_holder_may_do(postgres18_url: str) -> None:
    names: dict[str, Any] = {}
    exec(block("handlers.md", "from fleetcron import guarded"), names)
    _, raising = block("handlers.md", "CREATE TABLE fleetcron_fences").split(";\n", 1)

    async def scenario() -> None:
        async with held(postgres18_url) as (_, run, outside):
            async with asyncpg.create_pool(postgres18_url, min_size=1) as names["pool"]:
                await outside.execute(
                    "CREATE TABLE accounts (id INT, balance INT); INSERT INTO accounts VALUES (1, 10)"
                )
                await names["book"](context(run), {"amount": 3, "account": 1})
                with pytest.raises(LeaseLost):
                    await names["book"](context(run, 2), {"amount": 3, "account": 1})
                assert await outside.fetchval("SELECT balance FROM accounts") == 7
            sql = raising.replace(":run_key", "$1").replace(":fence", "$2")
            raised = [bool(await outside.fetch(sql, "run", fence)) for fence in (1, 2, 2, 1)]
            assert raised == [True, True, True, False]

    asyncio.run(scenario())
