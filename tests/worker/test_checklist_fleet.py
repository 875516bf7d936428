"""The checklist as far as work goes. A fleet: who plans, who works, who takes over; an app that starts and stops."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fleetcron import Fleetcron
from fleetcron.app.running import lend_functions
from fleetcron.config import Config, ExecutorConfig, WorkerConfig
from fleetcron.config.settings import CoordinationConfig, NodeConfig, SchedulerConfig, StoreConfig
from fleetcron.model.rules import MisfireRule, OverlapRule
from fleetcron.model.states import RunState
from fleetcron.node import Node
from fleetcron.store.history import Span
from tests.worker.crew import PATIENCE_S, Function, every_second, job
from tests.worker.plays import SECOND, Seen, at


def settings(url: str, name: str | None = None, *roles: str, shards: int = 1) -> Config:
    return Config(
        store=StoreConfig(url=url),
        scheduler=SchedulerConfig(lookahead_s=2, idle_poll_s=0.5, shards=shards),
        coordination=CoordinationConfig(lease_ttl_s=2, heartbeat_s=0.5, margin_s=0.3, node_ttl_s=2),
        node=NodeConfig(name=name, roles=roles or ("scheduler", "worker")),
        worker=WorkerConfig(pools=("default=20",), lease_ttl_s=2, renew_s=0.4, drain_s=5, poll_s=1),
        executor=ExecutorConfig(isolation="inline", handlers=("t:f",)),
    )


class Member:
    """A whole node in this process."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self._stop = asyncio.Event()
        self._work = asyncio.create_task(node.run(self._stop))

    def ask_to_stop(self) -> None:
        self._stop.set()

    async def leave(self) -> None:
        self.ask_to_stop()
        async with asyncio.timeout(PATIENCE_S):
            await self._work
        await self.node.close()


@asynccontextmanager
async def node(config: Config, functions: dict[str, Function]) -> AsyncIterator[Member]:
    made = await Node.start(config)
    made.functions.update(functions)
    member = Member(made)
    try:
        yield member
    finally:
        await member.leave()


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():
            await asyncio.sleep(0.01)


def test_a_fleet_runs_every_tick_once_and_others_are_ready_to_take_over(postgres18_url: str) -> None:
    """S0-1, S0-2, S0-6, S0-8, S0-14, S0-15, S1-1, S1-2, S1-46, S3-13, S3-14: 45 jobs, two schedulers (one leads, the
    other one stands by), three workers; the leader and a worker leave in the middle; every tick runs exactly once."""
    names = [f"job-{number:02}" for number in range(45)]
    every = {"overlap": OverlapRule("allow"), "misfire": MisfireRule("all", lane="live")}

    async def scenario() -> tuple[list[tuple[str, str]], set[str]]:
        seen = Seen()
        functions = {"t:f": seen.handler}
        async with (
            node(settings(postgres18_url, "s1", "scheduler"), functions) as s1,
            node(settings(postgres18_url, "s2", "scheduler"), functions) as s2,
            node(settings(postgres18_url, "w1", "worker"), functions) as w1,
            node(settings(postgres18_url, "w2", "worker"), functions) as w2,
            node(settings(postgres18_url, "w3", "worker"), functions) as w3,
        ):
            await s1.node.desk.apply([every_second(name, **every) for name in names])
            await seen.until(lambda: len({name for name, _ in seen.calls}) == 45)
            held = [len(each.node.member.holder.held()) for each in (s1, s2, w1, w2, w3)]
            assert sorted(held) == [0, 0, 0, 0, 1]
            leader, other = (s1, s2) if s1.node.member.holder.held() else (s2, s1)
            assert leader.node.worker is None  # whoever decides when has nothing to do with how
            await asyncio.gather(leader.leave(), w1.leave())
            done = len(seen.calls)
            await seen.until(lambda: len(seen.calls) >= done + 3 * 45)
            assert other.node.member.holder.held()
            runs = [line.run.run_id for line in await w2.node.store.history.runs(Span(), limit=400)]
            by = {each.node_id for run in runs for each in await w2.node.store.past_attempts.of_run(run)}
            await asyncio.gather(w2.leave(), w3.leave())
            return seen.calls, {name.rpartition("-")[0] for name in by}

    calls, workers = asyncio.run(scenario())
    assert [call for call, times in Counter(calls).items() if times != 1] == []
    for name in names:
        ticks = sorted(at(tick) for each, tick in calls if each == name)
        assert ticks == list(range(ticks[0], ticks[-1] + 1, SECOND))
    assert workers == {"w1", "w2", "w3"}


@pytest.mark.parametrize(("role", "shards"), [("worker", 0), ("scheduler", 1)])
def test_whoever_only_works_leaves_the_shards_to_schedulers(sqlite_memory_url: str, role: str, shards: int) -> None:
    """S0-14, S0-15: the jobs of a shard that a worker held would be planned by nobody."""

    async def scenario() -> None:
        made = await Node.start(settings(sqlite_memory_url, "n1", role))
        assert len(await made.member.holder.beat()) == shards
        await made.member.holder.release()
        await made.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_who_drains_leaves_its_shards_to_others_at_once(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """S0-15, S3-18, S4-13: a deploy delays no tick, however long the runs of the node that stops go on."""
    on_disk = f"sqlite:///{tmp_path / 'jobs.db'}"
    url = on_disk if engine == "sqlite" else str(request.getfixturevalue("postgres18_url"))

    def patient(name: str) -> Config:
        made = settings(url, name, shards=2)
        return replace(made, worker=replace(made.worker, drain_s=600))

    async def scenario() -> None:
        begun, may_end, is_over, seen = asyncio.Event(), asyncio.Event(), asyncio.Event(), Seen()

        async def handler(ctx: Any) -> None:
            if ctx.job == "long":
                begun.set()
                await may_end.wait()
                is_over.set()
            else:
                await seen.handler(ctx)

        async with node(patient("n1"), {"t:f": handler}) as n1:
            await n1.node.desk.apply([job("long")])
            await n1.node.store.steering.trigger(("default", "long"), None, actor="me", key="k")
            async with asyncio.timeout(PATIENCE_S):
                await begun.wait()
            async with node(patient("n2"), {"t:f": handler}) as n2:
                first, second = n1.node.member, n2.node.member
                await until(lambda: len(first.holder.held()) == len(second.holder.held()) == 1)
                n1.ask_to_stop()
                await until(lambda: len(second.holder.held()) == 2)
                names = [f"job-{number}" for number in range(8)]
                await n2.node.desk.apply([every_second(name) for name in names])
                await seen.until(lambda: {name for name, _ in seen.calls} == set(names))
                assert not is_over.is_set()
                nodes = {each.node.node_id: each.node.roles for each in await n2.node.store.nodes.list()}
                assert nodes == {first.row.node_id: ("worker",), second.row.node_id: ("scheduler", "worker")}
                assert first.worker is not None
                assert first.worker.lease.is_held  # to the end
                may_end.set()
                await n1.leave()
                [line] = await n2.node.store.history.runs(Span(name="long"))
                assert (line.run.state, line.run.losses) == (RunState.SUCCEEDED, 0)
                assert [each.node.node_id for each in await n2.node.store.nodes.list()] == [second.row.node_id]

    asyncio.run(scenario())


COUNTED: Counter[str] = Counter()


async def count(ctx: Any) -> None:
    COUNTED[ctx.job] += 1


def test_an_app_registers_starts_and_stops(tmp_path: Path) -> None:
    """S1-12, S1-15, S1-16: what is registered and enabled is scheduled from start to stop; hostname-pid ran it."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    app = Fleetcron(url, name="shop")
    app.job(every="1s", name="enabled")(count)
    app.job(every="1s", name="disabled")(count)
    COUNTED.clear()

    async def scenario() -> None:
        made = await Node.start(settings(url))
        lend_functions(app, made)
        assert [each.done for each in await app.sync(made.store, shards=1)] == ["created", "created"]
        await made.desk.pause("default", "disabled")
        member = Member(made)
        async with asyncio.timeout(PATIENCE_S):
            while not (lines := await made.store.history.runs(Span(name="enabled"), state="succeeded")):
                await asyncio.sleep(0.02)
        [attempt] = await made.store.past_attempts.of_run(lines[0].run.run_id)
        assert attempt.node_id.startswith(f"{socket.gethostname()}-{os.getpid()}-")
        await member.leave()

    asyncio.run(scenario())
    assert set(COUNTED) == {"enabled"}
    stopped = COUNTED["enabled"]

    async def look() -> None:
        other = await Node.start(settings(url))
        assert len(await other.store.history.runs(Span(name="enabled"), state="succeeded")) == stopped
        await other.close()

    asyncio.run(look())
