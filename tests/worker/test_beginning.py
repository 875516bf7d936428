"""A node that has started goes on, whatever becomes of its store in the first moments."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleetcron.cli import serve
from fleetcron.errors import StoreUnavailable
from fleetcron.node import Node
from fleetcron.store.almanac import AlmanacTables
from fleetcron.store.jobs import Jobs
from fleetcron.store.limits import LimitRecords
from tests.worker.crew import PATIENCE_S
from tests.worker.test_checklist_fleet import settings

AWAY = StoreUnavailable("the store did not answer in time", hint="look at the network")


def failing(times: int, verb: Callable[..., Any]) -> Callable[..., Any]:
    """The same verb; the first times the store is away."""
    left = times

    async def call(*arguments: Any, **named: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise AWAY
        return await verb(*arguments, **named)

    return call


def test_zone_tables_that_cannot_be_read_at_once_end_no_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(AlmanacTables, "all", failing(1, AlmanacTables.all))

    async def scenario() -> None:
        node = await Node.start(settings(f"sqlite:///{tmp_path / 'jobs.db'}", None, "scheduler"))
        stop = asyncio.Event()
        running = asyncio.create_task(node.run(stop))
        async with asyncio.timeout(PATIENCE_S):
            await node.member.holder.changed.wait()  # it holds its shard, and plans
        stop.set()
        await running
        await node.close()

    asyncio.run(scenario())
    assert "the zone tables of the fleet cannot be looked at yet: the store did not answer in time" in caplog.text


def test_a_node_that_is_stopped_while_its_store_is_away_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        node = await Node.start(settings(f"sqlite:///{tmp_path / 'jobs.db'}", None, "scheduler"))
        asked, stop = asyncio.Event(), asyncio.Event()

        async def away(*_: Any) -> None:
            asked.set()
            raise AWAY

        monkeypatch.setattr(AlmanacTables, "all", away)
        running = asyncio.create_task(node.run(stop))
        async with asyncio.timeout(PATIENCE_S):
            await asked.wait()
            stop.set()
            await running
        await node.close()

    asyncio.run(scenario())


def test_a_greeting_that_cannot_count_jobs_is_a_greeting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        node = await Node.start(settings(f"sqlite:///{tmp_path / 'jobs.db'}"))
        monkeypatch.setattr(Jobs, "count", failing(1, Jobs.count))
        monkeypatch.setattr(LimitRecords, "jobs_by_pool", failing(1, LimitRecords.jobs_by_pool))
        await serve._greet(node)
        await serve._warn(node)
        await serve._greet(node)
        await node.close()

    asyncio.run(scenario())
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in said[:3]] == [
        ["fleetcron", said[0].split()[1]],
        ["It", "plans"],
        ["Look", "at"],
    ]
    assert "There is no job yet: fleetcron apply -f jobs.yaml" in said[3:]
