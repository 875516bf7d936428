"""A worker leaves in an orderly way: nobody is told that something was lost."""

import logging
from typing import Any

import pytest

from fleetcron.model.states import RunState
from fleetcron.store.workers import Workers
from tests.worker.crew import Crew, job
from tests.worker.plays import ENGINES, played


async def noop(_ctx: Any) -> None:
    pass


@ENGINES
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_renewal_that_comes_when_the_worker_has_left_is_no_loss(
    engine: str,
    when: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """S3-18: the lease is renewed until the worker has left, so one renewal may find nobody. Who drains and loses
    nothing does not say that everything was stopped, nor that it holds its lease again."""
    leave, beaten = Workers.leave, []

    async def leaving(self: Workers, node_id: str) -> Any:
        if when == "before":
            beaten.append(await worker.lease.beat())
        written = await leave(self, node_id)
        if when == "after":
            beaten.append(await worker.lease.beat())
        return written

    async def scenario(made: Crew) -> None:
        nonlocal worker
        await made.define(job())
        worker = made.join("w1")
        [line] = await made.ended(await made.trigger())
        assert line.run.state is RunState.SUCCEEDED
        await made.leave("w1")
        assert beaten == [False]
        assert not worker.lease.is_held
        assert (await made.store.workers.list()).workers == []

    worker: Any = None
    monkeypatch.setattr(Workers, "leave", leaving)
    with caplog.at_level(logging.INFO, "fleetcron"):
        played(request.getfixturevalue(f"{engine}_url"), scenario, {"t:f": noop})
    assert "everything is stopped" not in caplog.text
