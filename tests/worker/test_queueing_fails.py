"""What is due cannot be queued: what is queued already is worked on all the same."""

import asyncio
import logging
from typing import Any

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.model.rules import OverlapRule
from fleetcron.model.states import RunState
from fleetcron.store.queue import Promoted, Queue
from fleetcron.store.written import Written
from tests.store.handwork import ok, rank
from tests.worker.crew import PATIENCE_S, Crew, job
from tests.worker.plays import played

TOO_SLOW = StoreUnavailable("the store did not answer in time")


def test_what_is_queued_is_claimed(
    sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_ctx: Any) -> None:
        pass

    async def scenario(made: Crew) -> None:
        await made.define(job(overlap=OverlapRule("allow")))
        queued = [await made.trigger() for _ in range(3)]
        ok(await made.store.queue.promote(0, 100, rank))
        later = await made.trigger()
        tried, again = asyncio.Event(), asyncio.Event()

        async def promote(*_: Any) -> Written[Promoted]:
            (again if tried.is_set() else tried).set()
            raise TOO_SLOW

        with monkeypatch.context() as patched:
            patched.setattr(Queue, "promote", promote)
            worker = made.join()
            lines = await made.ended(*queued)
            assert {line.run.state for line in lines} == {RunState.SUCCEEDED}
            async with asyncio.timeout(PATIENCE_S):
                await again.wait()
            assert worker.health.trouble == str(TOO_SLOW)
            assert not (await made.line(later)).run.state.is_final
        await made.ended(later)
        async with asyncio.timeout(PATIENCE_S):
            while worker.health.trouble is not None:
                await asyncio.sleep(0.01)

    with caplog.at_level(logging.INFO):
        played(sqlite_memory_url, scenario, {"t:f": handler})
    told = [each.getMessage() for each in caplog.records if each.name == "fleetcron.worker.loop"]
    assert told == [f"queueing waits: {TOO_SLOW}", "claiming goes on"]
