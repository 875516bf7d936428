"""Real processes on PostgreSQL: what a clean stop, a kill -9 and a frozen process cost."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from fleetcron.events import Event
from fleetcron.store.events import Events
from fleetcron.store.migrations import Altering
from fleetcron.store.shards import Shards
from tests.coordination.scheduler_process import QUICK
from tests.store.engines import opened

SCRIPT = Path(__file__).with_name("scheduler_process.py")
TTL_MS = round(QUICK.lease_ttl_s * 1000)
SLACK_MS = 3000  # for a machine that is busy with other things


class Scheduler:
    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process
        self.held: list[tuple[str, int, int]] = []

    async def until(self, condition: Callable[[int], bool]) -> None:
        """Read what it tells until the number of its shards is right."""
        assert self.process.stdout
        async with asyncio.timeout(30):
            while not condition(len(self.held)):
                line = await self.process.stdout.readline()
                assert line, f"{self.name} ended"
                self.held = [tuple(one) for one in json.loads(line)]

    async def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        await self.process.wait()


@asynccontextmanager
async def scheduler(url: str, name: str) -> AsyncIterator[Scheduler]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(SCRIPT), url, name, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        yield Scheduler(name, process)
    finally:
        if process.returncode is None:
            process.kill()
        assert process.stdin
        process.stdin.close()
        await process.communicate()


async def noted(engine: Altering, kind: str, node_id: str) -> tuple[int, Event]:
    """When, by the database's clock, and what: the newest."""
    found = [one for one in await Events(engine).list(kind=kind) if one.event.node_id == node_id]
    return found[0].at_ms, found[0].event


def test_sigterm_and_kill_9(postgres18_url: str) -> None:
    """S0-15, S4-13: the standby has the shards well under a second after a clean stop, and TTL + 1 s after a crash."""

    async def scenario() -> None:
        async with opened(postgres18_url) as engine, scheduler(postgres18_url, "a") as a:
            await a.until(lambda shards: shards == 4)
            async with scheduler(postgres18_url, "b") as b, scheduler(postgres18_url, "c") as c:
                await b.until(lambda shards: shards > 0)
                await c.until(lambda shards: shards > 0)
                await a.until(lambda shards: shards <= 2)
                await a.end(signal.SIGTERM)
                assert a.process.returncode == 0
                await b.until(lambda shards: shards == 2)
                await c.until(lambda shards: shards == 2)
                released_ms, event = await noted(engine, "shard_released", "a")
                taken_ms = max([(await noted(engine, "shard_taken", name))[0] for name in ("b", "c")])
                assert event.count in (1, 2)
                assert 0 <= taken_ms - released_ms < QUICK.heartbeat_s * 1000 + SLACK_MS

                before = await Shards(engine).view()
                await b.end(signal.SIGKILL)
                await c.until(lambda shards: shards == 4)
                ends_ms = [lease.expires_ms for lease in before.leases if lease.held.owner == "b"]
                over_ms, event = await noted(
                    engine, "shard_taken_over", "c"
                )  # the later one, if it took them one by one
                assert event.detail["from"] == ["b"]
                assert min(ends_ms) <= over_ms <= before.now_ms + TTL_MS + 1000 + SLACK_MS
                terms = {(lease.held.region, lease.held.shard): lease.held.term for lease in before.leases}
                assert all(term >= terms[region, shard] for region, shard, term in c.held)

    asyncio.run(scenario())


@pytest.mark.soak
def test_a_frozen_process_has_lost_its_shards_when_it_wakes(postgres18_url: str) -> None:
    async def scenario() -> None:
        async with opened(postgres18_url) as engine, scheduler(postgres18_url, "a") as a:
            await a.until(lambda shards: shards == 4)
            a.process.send_signal(signal.SIGSTOP)
            async with scheduler(postgres18_url, "b") as b:
                await b.until(lambda shards: shards == 4)
                a.process.send_signal(signal.SIGCONT)
                await a.until(lambda shards: shards == 0)
                await a.until(lambda shards: shards == 2)
                await b.until(lambda shards: shards == 2)
                assert not set(a.held) & set(b.held)
                assert (await noted(engine, "shard_lost", "a"))[1].count == 4
                await noted(engine, "node_vanished", "a")

    asyncio.run(scenario())
