"""A node inside the test's own process, with jobs that are due all the time."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from fleetcron.clock import Clock, SystemClock
from fleetcron.config import Config
from fleetcron.errors import StoreUnavailable
from fleetcron.model.definition import Definition
from fleetcron.model.rules import MisfireRule
from fleetcron.node import Node
from tests.faults.jobs import cron

# Two ticks a second at most, and under every policy: an outage of seconds leaves something to decide.
JOBS = [
    cron(f"{policy}-{number}", "* * * * * *", zone, MisfireRule(policy, grace_ms=200))
    for policy in ("skip", "latest", "all")
    for number, zone in enumerate(("UTC", "Asia/Kolkata", "Europe/Berlin"))
]


@asynccontextmanager
async def running(config: Config, clock: Clock | None = None, jobs: Sequence[Definition] = JOBS) -> AsyncIterator[Node]:
    """A node at work; it is stopped in an orderly way at the end."""
    node = await Node.start(config, clock)
    stop = asyncio.Event()
    work: asyncio.Task[None] | None = None
    try:
        await apply(node, jobs)
        work = asyncio.create_task(node.run(stop))
        yield node
        stop.set()
        await work
    finally:
        stop.set()
        if work:
            await asyncio.wait([work])
        await node.close()


async def apply(node: Node, jobs: Sequence[Definition]) -> None:
    """However slow the machine is for the short deadlines of these tests."""
    for _ in range(20):
        with suppress(StoreUnavailable):
            await node.desk.apply(jobs)
            return
    raise AssertionError("the store is never available")


class Shifted:
    """A machine whose clock is wrong; it measures time rightly. `ms` may change while it runs."""

    def __init__(self, ms: int) -> None:
        self._clock = SystemClock()
        self.ms = ms

    def now_ms(self) -> int:
        return self._clock.now_ms() + self.ms

    def now_us(self) -> int:
        return self._clock.now_us() + self.ms * 1000

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms()
