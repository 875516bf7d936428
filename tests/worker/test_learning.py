"""A handler that takes long to be found: its runs do not all go to the worker that looks for it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from fleetcron.executors.inline import Inline
from fleetcron.model.rules import OverlapRule
from fleetcron.model.states import RunState
from fleetcron.model.target import Target
from fleetcron.store.claims import Choose, Claim, Claims, Taken
from fleetcron.store.written import Ok, Written
from tests.worker.crew import Crew, job
from tests.worker.plays import played


def test_no_more_is_claimed_than_there_are_slots(sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may have the handler; and if this worker dies meanwhile, all that it holds wait for its lease."""
    found, asked_in_vain = asyncio.Event(), asyncio.Event()
    learn, knows, claim = Inline.learn, Inline.knows, Claims.claim

    async def slowly(self: Inline, targets: Sequence[Target]) -> None:
        await found.wait()
        await learn(self, targets)

    async def noted(self: Claims, wish: Claim, choose: Choose) -> Written[Taken]:
        written = await claim(self, wish, choose)
        if isinstance(written, Ok) and not written.value.runs and wish.learning:
            asked_in_vain.set()
        return written

    async def handler(_ctx: Any) -> None:
        pass

    async def scenario(made: Crew) -> None:
        monkeypatch.setattr(Inline, "learn", slowly)
        monkeypatch.setattr(Inline, "knows", lambda self, target: found.is_set() and knows(self, target))
        monkeypatch.setattr(Claims, "claim", noted)
        await made.define(job(overlap=OverlapRule("allow")))
        runs = [await made.trigger() for _ in range(12)]
        made.join()
        await asyncio.wait_for(asked_in_vain.wait(), 30)
        assert await made.count("leases") == 2
        found.set()
        await made.ended(*runs)

    played(sqlite_memory_url, scenario, {"t:f": handler}, pools=("default=2",))


def test_whoever_is_asked_to_stop_while_its_handler_is_looked_for_stops(
    sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store says it with every renewal; the first of them finds nobody who could be asked."""
    found, started = asyncio.Event(), asyncio.Event()
    learn, knows = Inline.learn, Inline.knows

    async def slowly(self: Inline, targets: Sequence[Target]) -> None:
        await found.wait()
        await learn(self, targets)

    async def handler(ctx: Any) -> None:
        started.set()
        await asyncio.sleep(3600)

    async def scenario(made: Crew) -> None:
        monkeypatch.setattr(Inline, "learn", slowly)
        monkeypatch.setattr(Inline, "knows", lambda self, target: found.is_set() and knows(self, target))
        await made.define(job(overlap=OverlapRule("allow")))
        run_id = await made.trigger()
        made.join()
        await made.until(lambda lines: lines[0].run.state is RunState.RUNNING, run_id)
        assert isinstance(await made.store.steering.cancel([run_id], "wrong data", actor="me"), Ok)
        await asyncio.sleep(2 * made.config.renew_s)  # it has heard of it by now
        found.set()
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.CANCELLED

    played(sqlite_memory_url, scenario, {"t:f": handler})
