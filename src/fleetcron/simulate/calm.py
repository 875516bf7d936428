"""A fleet without faults, for rehearsals: the real rooms, a database next door, and patience.

Nothing gets lost here, so nobody has to say every few seconds that he lives: leases are long, and the looks of upkeep
are rare while nothing is wrong. An idle day then costs a tenth. Whoever is killed leaves the leases of an ordinary
fleet behind: a last renewal with ordinary lengths comes first, so that an outage ends as it does outside.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, TypeVar

from fleetcron import __version__
from fleetcron.config import Config, CoordinationConfig, WorkerConfig
from fleetcron.errors import StoreError, StoreUnavailable
from fleetcron.member import Member, Tools
from fleetcron.model.shard import ANYWHERE
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.failing import FailureWatch
from fleetcron.scheduler.loop import Scheduler
from fleetcron.simulate.clocks import SimulatedClock
from fleetcron.simulate.database import Database, SimulatedEngine, Trip
from fleetcron.simulate.virtual import Process, VirtualLoop
from fleetcron.store.engine import Script
from fleetcron.store.nodes import Node as NodeRow
from fleetcron.store.sqlite_session import SqliteSession
from fleetcron.store.store import Store
from fleetcron.times import zones
from fleetcron.times.instants import LAST_MS
from fleetcron.upkeep.loop import Upkeep
from fleetcron.worker.hands import MakeExecutor
from fleetcron.worker.settling import settling

T = TypeVar("T")

_OFTEN_S: Final = 2.0
_SELDOM_S: Final = 600.0  # hints wake whoever has something to do; this is for what no hint tells
_WATCHFUL_S: Final = 180.0  # after its start a node looks for what others left behind
_DAY_MS: Final = 86_400_000
_ORDINARY: Final = Config()


class NoWay:
    """What a request takes where there is no network."""

    def trip(self, process: str, verb: str) -> Trip:
        del process, verb
        return Trip(0.0, 0.0)

    def hint_s(self, process: str) -> float | None:
        del process
        return 0.0


class NearEngine(SimulatedEngine):
    """The store as somebody sees it who sits beside it: every request is answered at the instant it is asked."""

    def __init__(self, database: Database, process: Process, loop: VirtualLoop) -> None:
        super().__init__(database, NoWay(), process, loop)

    def hear(self, topic: str) -> None:
        self._process.call(self._hints.tell, topic)

    async def _ask(self, work: Callable[[SqliteSession], T], verb: str, *, writes: bool) -> T:
        del verb, writes
        if self._process.is_dead:
            raise StoreUnavailable("this process is dead")
        return self._database.carry_out(work)


def patient(config: Config) -> Config:
    return replace(
        config,
        coordination=CoordinationConfig(lease_ttl_s=3600, heartbeat_s=1200, margin_s=2, node_ttl_s=3600),
        worker=replace(config.worker, lease_ttl_s=3600, renew_s=1200, poll_s=_SELDOM_S, drain_s=0),
    )


class CalmScheduler(Scheduler):
    """It tells workers what it has planned. Outside they find it within their poll, which is shorter than the
    lookahead; here they sleep longer."""

    async def step(self) -> int:
        before = self.health.counts["runs"]
        rest_ms = await super().step()
        if self.health.counts["runs"] > before:
            await self._store.engine.write(_news)
        return rest_ms


def _news() -> Script[None]:
    yield "notify", {"topic": "work"}


class CalmMember(Member):
    """`often` says whether somebody wants to be told soon of runs that died, `deadlines` whether a run may be too late
    to start."""

    def __init__(
        self,
        store: Store,
        row: NodeRow,
        config: Config,
        *,
        often: Callable[[], bool],
        deadlines: Callable[[], bool],
        **given: Any,
    ) -> None:
        super().__init__(store, row, config, **given)
        self._often = often
        self._deadlines = deadlines
        self._look_again = asyncio.Event()
        self.scheduler = CalmScheduler(store, self.holder.held, config.scheduler, clock=self._clock)
        self.scheduler._idle_ms = round(_SELDOM_S * 1000)  # the settings allow no more than half a lookahead

    def look_again(self) -> None:
        """Somebody wants to be told soon, as of now: whoever rests for long wakes up."""
        self._look_again.set()

    def _duties(self, stop: asyncio.Event) -> Iterator[Coroutine[Any, Any, None]]:
        if "scheduler" in self.row.roles:
            yield self._watch_failures(stop)
        if "worker" in self.row.roles:
            yield self._work(stop)
        yield self._keep_up(stop)
        if "scheduler" in self.row.roles:
            yield self._keep_deadlines(stop)

    async def _watch_failures(self, stop: asyncio.Event) -> None:
        desk = Desk(self.store, actor="pause_after_failures", shards=self._config.scheduler.shards)
        watch = FailureWatch(self.store, desk)
        ends = asyncio.create_task(_told(stop, self._look_again))
        try:
            while not stop.is_set():
                with suppress(StoreError):
                    await watch.step(self._clock.now_ms() - _DAY_MS)
                if self._often():
                    await _rest(stop, _OFTEN_S)
                else:  # a job that comes later may want it before this rest is over
                    await _rest(self._look_again, _SELDOM_S)
        finally:
            ends.cancel()

    async def _keep_up(self, stop: asyncio.Event) -> None:
        upkeep = Upkeep(
            self.store,
            self.row.node_id,
            ttl_ms=round(_ORDINARY.worker.lease_ttl_s * 1000),
            settling=lambda definitions: settling(definitions, self._chance),
            clock=self._clock,
        )
        began_ms = self._clock.monotonic_ms()
        while not stop.is_set():
            with suppress(StoreError):
                await upkeep.step()
            is_new = self._clock.monotonic_ms() < began_ms + _WATCHFUL_S * 1000
            await _rest(stop, _OFTEN_S if is_new else _SELDOM_S)

    async def _keep_deadlines(self, stop: asyncio.Event) -> None:
        """What could not start in time is told so then, also if no slot gets free and nobody looks at it. Outside, a
        sweep of upkeep does that within ten seconds; here it comes once in an hour."""
        news = asyncio.Event()
        beside = [asyncio.create_task(self._hear(news)), asyncio.create_task(_told(stop, news))]
        try:
            while not stop.is_set():
                news.clear()
                rest_s = _SELDOM_S
                with suppress(StoreError):
                    rest_s = await self._next_deadline_s()
                    if rest_s <= 0:
                        await self.store.sweeping.sweep(0)
                        rest_s = _OFTEN_S
                await _rest(news, rest_s)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _hear(self, news: asyncio.Event) -> None:
        async with self.store.engine.hints() as hints:
            async for _ in hints:  # whatever is queued is told
                if self._deadlines():
                    news.set()

    async def _next_deadline_s(self) -> float:
        deadline_ms = await self.store.engine.read(_next_deadline)
        return _SELDOM_S if deadline_ms is None else (deadline_ms + 1 - self._clock.now_ms()) / 1000


def _next_deadline() -> Script[int | None]:
    found = yield "queue_expired", {"now_ms": LAST_MS, "most": 1}
    return found[0]["deadline_ms"] if found else None


async def _told(stop: asyncio.Event, news: asyncio.Event) -> None:
    await stop.wait()
    news.set()


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await stop.wait()


class CalmNode:
    """One life of a node. The first of a fleet plans and works, the others only work."""

    def __init__(
        self,
        name: str,
        loop: VirtualLoop,
        database: Database,
        *,
        clock: SimulatedClock,
        config: Config,
        chance: Callable[[], float],
        make_executor: Callable[[SimulatedClock], MakeExecutor],
        often: Callable[[], bool],
        deadlines: Callable[[], bool],
    ) -> None:
        self.name = name
        self.fault: BaseException | None = None
        self._process = loop.process(name)
        self._loop = loop
        self._store = Store(NearEngine(database, self._process, loop))
        self._stop = asyncio.Event()
        row = NodeRow(
            node_id=name,
            host=name,
            pid=1,
            roles=config.node.roles,
            region=ANYWHERE,
            version=__version__,
            zone_release=zones.release(),
        )
        self._member = CalmMember(
            self._store,
            row,
            config,
            clock=clock,
            chance=chance,
            tools=lambda: Tools(make_executor(clock)),
            often=often,
            deadlines=deadlines,
        )

    @property
    def is_gone(self) -> bool:
        return self._process.is_dead

    def start(self) -> None:
        self._process.spawn(self._run())

    def look_again(self) -> None:
        self._process.call(self._member.look_again)

    def ask_to_stop(self) -> None:
        self._process.call(self._stop.set)

    async def kill(self) -> None:
        """As the power goes. Its leases end as soon as they would in a fleet with ordinary settings."""
        worker, ordinary = WorkerConfig(), CoordinationConfig()
        await self._store.workers.renew(self.name, round(worker.lease_ttl_s * 1000))
        await self._store.nodes.heartbeat(self.name, round(ordinary.node_ttl_s * 1000), 0)
        held = self._member.holder.held()
        if held:
            await self._store.shards.renew(self.name, held, round(ordinary.lease_ttl_s * 1000))
        self._process.kill()

    def bury(self) -> None:
        """Nothing of it can come any more."""
        self._loop.forget(self._process)

    async def _run(self) -> None:
        try:
            await self._member.run(self._stop)
        except Exception as error:
            self.fault = error
        finally:
            self._process.is_dead = True
