"""One member of a fleet: the rooms that work together in a process, and the order in which they begin and end.

It knows no machine: what executes the work, where chance comes from and how time passes are given to it. A node is a
member on a real machine; a simulated one is the same code in a world of its own.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from fleetcron.clock import Clock
from fleetcron.config import Config
from fleetcron.coordination.holder import Holder
from fleetcron.errors import StoreUnavailable
from fleetcron.scheduler.adopt import Adopter
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.failing import FailureWatch
from fleetcron.scheduler.loop import Scheduler
from fleetcron.scheduler.tables import Tables
from fleetcron.store.nodes import Node as NodeRow
from fleetcron.store.store import Store
from fleetcron.upkeep.loop import Upkeep
from fleetcron.worker.hands import MakeExecutor
from fleetcron.worker.loop import Worker
from fleetcron.worker.settling import settling

log = logging.getLogger(__name__)

_AGAIN_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker works with. `process` tells others on the machine whether it is still there; `allow` is told until
    when the work may go on, on the steady clock. `refuses` is what will never be executed here, and why, which others
    are told before anybody asks (`executors/refusals.py`)."""

    make_executor: MakeExecutor
    process: str = ""
    allow: Callable[[int], None] = lambda _: None
    refuses: Mapping[str, str] = field(default_factory=dict)


class Member:
    """`tools` are asked for once, when the work begins: only a worker needs it."""

    def __init__(
        self,
        store: Store,
        row: NodeRow,
        config: Config,
        *,
        clock: Clock,
        chance: Callable[[], float],
        tools: Callable[[], Tools],
    ) -> None:
        self.store = store
        self.row = row
        self.holder = Holder(store.engine, row, config.coordination, shards=config.scheduler.shards, clock=clock)
        self.scheduler = Scheduler(
            store, self.holder.held, config.scheduler, clock=clock, trouble=lambda: self.holder.trouble
        )
        self.worker: Worker | None = None
        self._config = config
        self._clock = clock
        self._chance = chance
        self._tools = tools

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. Then planning ends, and the shards are given back; the work has its drain time meanwhile."""
        await self._bring_zones(stop)
        quiet = asyncio.Event()  # the holder stops last: whoever plans must hold
        holding = asyncio.create_task(self.holder.run(quiet))
        waking = asyncio.create_task(self._wake_when_shards_change())
        planning = [asyncio.create_task(self.scheduler.run(stop))] if "scheduler" in self.row.roles else []
        duties = [*planning, *(asyncio.create_task(each) for each in self._duties(stop))]
        try:
            await asyncio.wait([holding, *duties], return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            waking.cancel()
            if planning:
                await asyncio.wait(planning)
                if "worker" in self.row.roles:
                    self.holder.resign()  # else nobody would plan these shards for as long as the worker drains
            await asyncio.wait(duties)
            quiet.set()
            await asyncio.wait([holding, waking])
        for ended in (holding, *duties):
            ended.result()

    async def _bring_zones(self, stop: asyncio.Event) -> None:
        """Nobody plans before. A store that is away just now ends no node: it is asked again, as by every loop."""
        while not stop.is_set():
            try:
                adopted = await Adopter(self.store.almanac, Tables(self.store.almanac)).zones(self.row.node_id)
            except StoreUnavailable as error:
                log.warning("the zone tables of the fleet cannot be looked at yet: %s", error)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await stop.wait()
            else:
                for table in adopted.tables:
                    log.info("the fleet plans with %s of release %s from now on", table.part.name, table.release)
                return

    def _duties(self, stop: asyncio.Event) -> Iterator[Coroutine[Any, Any, None]]:
        """All but planning."""
        if "scheduler" in self.row.roles:
            yield FailureWatch(
                self.store, Desk(self.store, actor="pause_after_failures", shards=self._config.scheduler.shards)
            ).run(stop)
        if "worker" in self.row.roles:
            yield self._work(stop)
        yield Upkeep(
            self.store,
            self.row.node_id,
            ttl_ms=round(self._config.worker.lease_ttl_s * 1000),
            settling=lambda definitions: settling(definitions, self._chance),
            clock=self._clock,
        ).run(stop)

    async def _work(self, stop: asyncio.Event) -> None:
        tools = self._tools()
        self.worker = Worker(
            self.store,
            self.row.node_id,
            self._config.worker,
            tools.make_executor,
            process=tools.process,
            clock=self._clock,
            chance=self._chance,
            allow=tools.allow,
            refuses=tools.refuses,
        )
        await self.worker.run(stop)

    async def _wake_when_shards_change(self) -> None:
        while True:
            await self.holder.changed.wait()
            self.holder.changed.clear()
            self.scheduler.wake.set()
