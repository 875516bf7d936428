"""A handler that takes long to be found: its runs do not all go to the worker that looks for it."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fleetcron.errors import StoreUnavailable
from fleetcron.executors.inline import Inline
from fleetcron.model.rules import OverlapRule
from fleetcron.model.states import RunState
from fleetcron.model.target import Target
from fleetcron.store.claims import Choose, Claim, Claims, Taken
from fleetcron.store.ends import Attempts
from fleetcron.store.workers import Renewed, Workers
from fleetcron.store.written import Ok, Unknown, Written
from fleetcron.worker.hands import Hands
from fleetcron.worker.lease import WorkerLease
from fleetcron.worker.pool import Attempt
from tests.faults.fleet import until
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


def test_a_worker_that_leaves_waits_for_no_import(sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """S3-18: one that hangs would take the whole drain. Its run goes back, uses no attempt, and others may have it."""
    asked = asyncio.Event()

    async def hangs(_self: Inline, _targets: Sequence[Target]) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def scenario(made: Crew) -> None:
        monkeypatch.setattr(Inline, "learn", hangs)
        await made.define(job())
        run = await made.trigger()
        made.join(config=replace(made.config, drain_s=600))
        await asked.wait()
        async with asyncio.timeout(30):
            await made.leave()
        [line] = await made.lines(run)
        assert (line.run.state, line.run.attempt, line.run.losses) == (RunState.PLANNED, 0, 0)
        assert await made.count("leases") == 0

    played(sqlite_memory_url, scenario)


def test_what_was_found_at_the_last_moment_goes_back_though_the_drain_ends(
    sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3-18: the database is away when it is handed back, and the drain is over before it is there again."""
    found, asking, tried = asyncio.Event(), asyncio.Event(), asyncio.Event()
    knows, cancels, hand_back = Inline.knows, WorkerLease.cancels, Attempts.hand_back

    async def learn(_self: Inline, _targets: Sequence[Target]) -> None:
        found.set()

    async def asked(self: WorkerLease) -> Any:
        asking.set()
        await leaving.wait()
        return await cancels(self)

    async def away(self: Attempts, node_id: str, held: Any) -> Any:
        if not tried.is_set():
            asyncio.get_running_loop().call_later(0.5, tried.set)
            raise StoreUnavailable("the database is away")
        return await hand_back(self, node_id, held)

    async def close_pools(self: Workers, node_id: str) -> Any:
        leaving.set()
        return await close(self, node_id)

    async def scenario(made: Crew) -> None:
        monkeypatch.setattr(Inline, "learn", learn)
        monkeypatch.setattr(Inline, "knows", lambda self, target: found.is_set() and knows(self, target))
        monkeypatch.setattr(WorkerLease, "cancels", asked)
        monkeypatch.setattr(Attempts, "hand_back", away)
        monkeypatch.setattr(Workers, "close_pools", close_pools)
        await made.define(job())
        run = await made.trigger()
        made.join(config=replace(made.config, drain_s=0.1))
        await asyncio.wait_for(asking.wait(), 30)
        await made.leave()
        [line] = await made.lines(run)
        assert (line.run.state, line.run.attempt, line.run.losses) == (RunState.PLANNED, 0, 0)
        assert await made.count("leases") == 0

    async def handler(_ctx: Any) -> None:
        pass

    close, leaving = Workers.close_pools, asyncio.Event()
    played(sqlite_memory_url, scenario, {"t:f": handler})


class Search:
    """Handlers that are found when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found, self.started = asyncio.Event(), asyncio.Event()
        learn, knows = Inline.learn, Inline.knows

        async def slowly(inline: Inline, targets: Sequence[Target]) -> None:
            await self.found.wait()
            await learn(inline, targets)

        monkeypatch.setattr(Inline, "learn", slowly)
        monkeypatch.setattr(Inline, "knows", lambda inline, target: self.found.is_set() and knows(inline, target))

    async def handler(self, _ctx: Any) -> None:
        self.started.set()
        await asyncio.sleep(3600)


async def cancelled_meanwhile(made: Crew) -> int:
    """A run that somebody asks to stop while its handler is looked for. The worker has heard of it, and knew nobody
    who could be asked."""
    await made.define(job(overlap=OverlapRule("allow")))
    run_id = await made.trigger()
    made.join()
    await made.until(lambda lines: lines[0].run.state is RunState.RUNNING, run_id)
    assert isinstance(await made.store.steering.cancel([run_id], "wrong data", actor="me"), Ok)
    await asyncio.sleep(2 * made.config.renew_s)
    return run_id


def test_whoever_is_asked_to_stop_while_its_handler_is_looked_for_does_not_start(
    sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Search(monkeypatch)

    async def scenario(made: Crew) -> None:
        run_id = await cancelled_meanwhile(made)
        search.found.set()
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.CANCELLED
        assert not search.started.is_set()

    played(sqlite_memory_url, scenario, {"t:f": search.handler})


def test_nor_does_it_start_if_the_answers_get_lost(sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again until somebody answers."""
    search, renew, answers = Search(monkeypatch), Workers.renew, ["lost", "unknown", "lost"]

    async def badly(self: Workers, node_id: str, ttl_ms: int) -> Written[Renewed]:
        if search.found.is_set() and answers:
            if answers.pop() == "lost":
                raise StoreUnavailable("the line is cut")
            await renew(self, node_id, ttl_ms)
            return Unknown("the line was cut")
        return await renew(self, node_id, ttl_ms)

    async def scenario(made: Crew) -> None:
        run_id = await cancelled_meanwhile(made)
        monkeypatch.setattr(Workers, "renew", badly)
        search.found.set()
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.CANCELLED
        assert not answers
        assert not search.started.is_set()

    played(sqlite_memory_url, scenario, {"t:f": search.handler})


def test_nor_if_the_lease_is_lost_meanwhile(sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody answers until the lease is over: the attempt is lost, and the run ends as it was asked to."""
    search, renew, is_cut = Search(monkeypatch), Workers.renew, True

    async def badly(self: Workers, node_id: str, ttl_ms: int) -> Written[Renewed]:
        if search.found.is_set() and is_cut:
            raise StoreUnavailable("the line is cut")
        return await renew(self, node_id, ttl_ms)

    async def scenario(made: Crew) -> None:
        nonlocal is_cut
        run_id = await cancelled_meanwhile(made)
        monkeypatch.setattr(Workers, "renew", badly)
        search.found.set()
        await until(lambda: made.workers["w1"].health.counts["lost"] > 0)
        is_cut = False
        [line] = await made.ended(run_id)
        assert line.run.state is RunState.CANCELLED
        assert not search.started.is_set()

    played(sqlite_memory_url, scenario, {"t:f": search.handler}, lease_ttl_s=1.0, renew_s=0.2)


def test_a_worker_that_ends_meanwhile_gives_it_back(sqlite_memory_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    search, take_held, is_closed = Search(monkeypatch), Hands.take_held, asyncio.Event()

    def noted(self: Hands) -> list[Attempt]:
        is_closed.set()
        return take_held(self)

    async def scenario(made: Crew) -> None:
        monkeypatch.setattr(Hands, "take_held", noted)
        await made.define(job(overlap=OverlapRule("allow")))
        run_id = await made.trigger()
        made.join()
        await made.until(lambda lines: lines[0].run.state is RunState.RUNNING, run_id)
        leaving = asyncio.create_task(made.leave())
        await asyncio.wait_for(is_closed.wait(), 30)
        search.found.set()
        await leaving
        line = await made.line(run_id)
        assert (line.run.state, line.run.attempt) == (RunState.PLANNED, 0)
        assert not search.started.is_set()

    played(sqlite_memory_url, scenario, {"t:f": search.handler})
