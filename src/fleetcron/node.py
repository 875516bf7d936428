"""One process: the place where the rooms are put together. Roles: scheduler, worker, or both."""

import asyncio
import gc
import logging
import os
import random  # noqa: TID251 - the composition root is where chance comes from
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from fleetcron import __version__
from fleetcron.clock import Clock, SystemClock
from fleetcron.config import Config
from fleetcron.coordination.holder import Holder
from fleetcron.errors import StoreUnavailable
from fleetcron.executors.assembly import executors
from fleetcron.executors.programs import Programs
from fleetcron.ids import uuid7
from fleetcron.model.shard import ANYWHERE
from fleetcron.scheduler.adopt import Adopter
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.failing import FailureWatch
from fleetcron.scheduler.loop import Health, Scheduler
from fleetcron.scheduler.tables import Tables
from fleetcron.store.migrations import migrate
from fleetcron.store.nodes import Node as NodeRow
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.upkeep.loop import Upkeep
from fleetcron.upkeep.processes import this_process
from fleetcron.worker.loop import Worker
from fleetcron.worker.settling import settling

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
        self.worker: Worker | None = None
        self.functions: dict[str, Callable[..., object]] = {}  # that this process has already: for isolation inline

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
        """Until `stop`; then work and planning end first, and the shards are given back."""
        adopted = await Adopter(self.store.almanac, Tables(self.store.almanac)).zones(self.row.node_id)
        for table in adopted.tables:
            log.info("the fleet plans with %s of release %s from now on", table.part.name, table.release)
        quiet = asyncio.Event()  # the holder stops last: whoever plans must hold
        holding = asyncio.create_task(self.holder.run(quiet))
        waking = asyncio.create_task(self._wake_when_shards_change())
        duties = {asyncio.create_task(each) for each in self._duties(stop)}
        try:
            await asyncio.wait({holding, *duties}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            waking.cancel()
            await asyncio.wait(duties)
            quiet.set()
            await asyncio.wait({holding, waking})
        for ended in (holding, *duties):
            ended.result()

    def _duties(self, stop: asyncio.Event) -> Iterator[Coroutine[Any, Any, None]]:
        if "scheduler" in self.row.roles:
            yield self.scheduler.run(stop)
            yield FailureWatch(
                self.store, Desk(self.store, actor="pause_after_failures", shards=self.config.scheduler.shards)
            ).run(stop)
        if "worker" in self.row.roles:
            yield self._work(stop)
        ttl_ms = round(self.config.worker.lease_ttl_s * 1000)
        yield Upkeep(
            self.store,
            self.row.node_id,
            ttl_ms=ttl_ms,
            settling=lambda definitions: settling(definitions, random.random),
            clock=self.clock,
        ).run(stop)

    async def _work(self, stop: asyncio.Event) -> None:
        environment = dict(os.environ)
        programs = Programs(environment)
        try:
            self.worker = Worker(
                self.store,
                self.row.node_id,
                self.config.worker,
                executors(programs, self.config.executor, environment, self.clock, self.functions),
                process=this_process(os.getpid()),
                clock=self.clock,
                chance=random.random,
                allow=programs.allow_until,
            )
            await self.worker.run(stop)
        finally:
            await programs.close()

    async def close(self) -> None:
        with suppress(StoreUnavailable):
            await self.store.close()

    async def _wake_when_shards_change(self) -> None:
        while True:
            await self.holder.changed.wait()
            self.holder.changed.clear()
            self.scheduler.wake.set()


def tune_interpreter() -> None:
    """For a process that is only a node. A batch is tens of thousands of objects, none of them in a circle; with
    Python's own thresholds a worker spent a fifth of its time on looking at them again and again. And whatever the
    thread of SQLite does, the loop gets its turn within half a millisecond instead of five: a start may be due."""
    gc.set_threshold(20_000, 20, 20)
    gc.freeze()
    sys.setswitchinterval(0.0005)


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
