"""One process: the place where the rooms are put together. Roles so far: scheduler."""

import asyncio
import logging
import os
import signal
import socket
from contextlib import suppress

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
        self.scheduler = Scheduler(store, self.holder.held, config.scheduler, clock=clock)
        self.desk = Desk(store, actor="serve", shards=config.scheduler.shards)

    @classmethod
    async def start(cls, config: Config, clock: Clock | None = None) -> "Node":
        """Connect and bring the tables to this program's version. Waits for a database that is not there yet."""
        clock = clock or SystemClock()
        store = await Store.open(config.store, clock)
        try:
            for migration in await migrate(store.engine):
                log.info("the tables are now at version %d (%s)", migration.number, migration.name)
        except BaseException:
            await store.close()
            raise
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


def stop_on_signals(stop: asyncio.Event) -> None:
    """SIGTERM and SIGINT ask for an orderly stop; a second one ends the process."""
    loop = asyncio.get_running_loop()

    def once(number: signal.Signals) -> None:
        log.info("%s: stopping", number.name)
        stop.set()
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, once, number)
