"""One process: the place where the rooms are put together. Roles: scheduler, worker and api, all or some."""

import asyncio
import gc
import logging
import os
import random  # noqa: TID251 - the composition root is where chance comes from
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from fleetcron import __version__
from fleetcron.clock import Clock, SystemClock
from fleetcron.config import Config
from fleetcron.errors import RefusedError, StoreUnavailable
from fleetcron.executors.assembly import executors
from fleetcron.executors.programs import Programs
from fleetcron.executors.refusals import refusals
from fleetcron.executors.vault import Vault, without_secrets
from fleetcron.ids import uuid7
from fleetcron.member import Member, Tools
from fleetcron.model.shard import ANYWHERE
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.loop import Health
from fleetcron.store.migrations import migrate
from fleetcron.store.nodes import Node as NodeRow
from fleetcron.store.opening import anchored
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.upkeep.processes import this_process
from fleetcron.worker.loop import Worker

if TYPE_CHECKING:
    from fleetcron.api.server import Server

log = logging.getLogger(__name__)

_PATIENCE_MS = 2_000


class Node:
    """`await Node.start(config)`, then `await node.run(stop)`."""

    def __init__(self, store: Store, config: Config, clock: Clock, api: "Server | None" = None) -> None:
        self.store = store
        self.api = api  # it listens already
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
        self._programs: Programs | None = None
        self.member = Member(store, self.row, config, clock=clock, chance=random.random, tools=self._tools)
        self.desk = Desk(store, actor="serve", shards=config.scheduler.shards)
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
            if number is not None and config.source_of("scheduler.shards") == "default":  # nobody asked for another
                config = replace(config, scheduler=replace(config.scheduler, shards=number))
            api = await _listening(store, config, clock) if "api" in config.node.roles else None
        except BaseException:
            await store.close()
            raise
        if api is None:
            roles = tuple(role for role in config.node.roles if role != "api")
            config = replace(config, node=replace(config.node, roles=roles))
        return cls(store, config, clock, api)

    @property
    def health(self) -> Health:
        return self.member.scheduler.health

    @property
    def worker(self) -> Worker | None:
        return self.member.worker

    async def run(self, stop: asyncio.Event) -> None:
        serving = None
        if self.api is not None:
            serving = asyncio.create_task(self.api.run(stop))
            serving.add_done_callback(lambda _: stop.set())  # a node that cannot do all that it should ends
        try:
            await self.member.run(stop)
        finally:
            stop.set()
            if serving is not None:
                await asyncio.wait([serving])
            if self._programs is not None:
                await self._programs.close()
        if serving is not None:
            serving.result()

    def _tools(self) -> Tools:
        environment = without_secrets(os.environ)
        vault = Vault(self.config.secrets.folder, dict(os.environ))
        self._programs = Programs(environment)
        url = anchored(self.config.store.url)
        return Tools(
            executors(self._programs, self.config.executor, environment, self.clock, self.functions, vault, url),
            process=this_process(os.getpid()),
            allow=self._programs.allow_until,
            refuses=refusals(self.config.executor, self.functions),
        )

    async def close(self) -> None:
        if self.api is not None:
            self.api.close()
        with suppress(StoreUnavailable):
            await self.store.close()


async def _listening(store: Store, config: Config, clock: Clock) -> "Server | None":
    """The API, which listens from now on. None if nobody has chosen its address, the usual one is taken, and there is
    something else to do: as when a second node is started on a machine."""
    # in a thread: what it imports takes half a second, in which a node has better things to do
    api, context = await asyncio.to_thread(_imported)
    try:
        server: Server = await api.Server.open(
            context.Context(
                store,
                clock,
                config.api,
                config.scheduler.shards,
                chance=random.random,
                worker_ttl_ms=round(config.worker.lease_ttl_s * 1000),
            )
        )
        return server
    except api.AddressTaken as error:
        if config.source_of("api.listen") != "default" or config.node.roles == ("api",):
            raise RefusedError(f"{error}; choose another address with --listen") from None
        log.warning("%s: this node is without the API; choose another address with --listen", error)
        return None


def _imported() -> tuple[ModuleType, ModuleType]:
    return import_module("fleetcron.api.server"), import_module("fleetcron.api.context")


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
            log.warning("%s again: ending at once, and not in order; what ran is tried again", number.name)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked, number)
