"""One process: the place where the rooms are put together. Roles so far: scheduler."""

import asyncio
import logging
import os
import signal
import socket
from contextlib import suppress
from dataclasses import replace

from fleetcron import __version__
from fleetcron.clock import Clock, SystemClock
from fleetcron.config import Config
from fleetcron.coordination.holder import Holder
from fleetcron.errors import StoreUnavailable
from fleetcron.ids import uuid7
from fleetcron.model.shard import ANYWHERE
from fleetcron.scheduler.adopt import Adopter
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.loop import Health, Scheduler
from fleetcron.scheduler.tables import Tables
from fleetcron.store.migrations import migrate
from fleetcron.store.nodes import Node as NodeRow
from fleetcron.store.store import Store
from fleetcron.times import zones

log = logging.getLogger(__name__)

_PATIENCE_MS = 2_000


class Node:
    """`await Node.start(config)`, then `await node.run(stop)`."""

    def __init__(self, store: Store, config: Config, clock: Clock) -> None:
        self.store = store
        self.config = config
        self.clock = clock
        name = config.node.named(socket.gethostname(), os.getpid())
        self.row = NodeRow(
            # a node that is started again is another one: its leases and its terms are new
            node_id=f"{name}-{uuid7(clock.now_ms())[-6:]}",
            host=socket.gethostname(),
            pid=os.getpid(),
            roles=config.node.roles,
            region=config.node.region or ANYWHERE,
            version=__version__,
            zone_release=zones.release(),
        )
        self.holder = Holder(store.engine, self.row, config.coordination, shards=config.scheduler.shards, clock=clock)
        self.scheduler = Scheduler(
            store, self.holder.held, config.scheduler, clock=clock, trouble=lambda: self.holder.trouble
        )
        self.desk = Desk(store, actor="serve", shards=config.scheduler.shards)

    @classmethod
    async def start(cls, config: Config, clock: Clock | None = None) -> "Node":
        """Connect and bring the tables to this program's version. StoreUnavailable if that is not possible now."""
        clock = clock or SystemClock()
        store = await Store.open(config.store, clock)
        try:
            for migration in await migrate(store.engine):
                log.info("the tables are now at version %d (%s)", migration.number, migration.name)
            number = await store.shards.number()
        except BaseException:
            await store.close()
            raise
        if number is not None and config.source_of("scheduler.shards") == "default":  # nobody asked for another
            config = replace(config, scheduler=replace(config.scheduler, shards=number))
        return cls(store, config, clock)

    @property
    def health(self) -> Health:
        return self.scheduler.health

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`; then planning ends first, and the shards are given back."""
        adopted = await Adopter(self.store.almanac, Tables(self.store.almanac)).zones(self.row.node_id)
        for table in adopted.tables:
            log.info("the fleet plans with %s of release %s from now on", table.part.name, table.release)
        quiet = asyncio.Event()  # the holder stops last: whoever plans must hold
        holding = asyncio.create_task(self.holder.run(quiet))
        waking = asyncio.create_task(self._wake_when_shards_change())
        planning = asyncio.create_task(self.scheduler.run(stop))
        try:
            await asyncio.wait({holding, planning}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            waking.cancel()
            await asyncio.wait({planning})
            quiet.set()
            await asyncio.wait({holding, waking})
        for ended in (holding, planning):
            ended.result()

    async def close(self) -> None:
        with suppress(StoreUnavailable):
            await self.store.close()

    async def _wake_when_shards_change(self) -> None:
        while True:
            await self.holder.changed.wait()
            self.holder.changed.clear()
            self.scheduler.wake.set()


def stop_on_signals(stop: asyncio.Event, clock: Clock | None = None) -> None:
    """SIGTERM and SIGINT ask for an orderly stop. One that comes a while later ends the process at once.

    Wrappers and terminals often send two in a row; the second must not cost the orderly stop.
    """
    loop = asyncio.get_running_loop()
    clock = clock or SystemClock()
    first_ms: int | None = None

    def asked(number: signal.Signals) -> None:
        nonlocal first_ms
        if first_ms is None:
            first_ms = clock.monotonic_ms()
            log.info("%s: stopping", number.name)
            stop.set()
        elif clock.monotonic_ms() - first_ms > _PATIENCE_MS:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked, number)
