"""A stage for rehearsals: a calm fleet, its database and its clock, moved on by hand. Plain calls, no loop around.

The time that it says is the time it was moved to. Whatever is due at that very instant, and takes no time, is done.
"""

import asyncio
import gc
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from random import Random  # noqa: TID251 - seeded: the same seed is the same story
from typing import Any, Final, TypeVar

from fleetcron.config import Config, ExecutorConfig, NodeConfig, SchedulerConfig, WorkerConfig
from fleetcron.errors import RefusedError
from fleetcron.ids import uuid7
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.scheduler.desk import Applied
from fleetcron.simulate.calm import CalmNode, NearEngine, patient
from fleetcron.simulate.clocks import SimulatedClock
from fleetcron.simulate.creation import BEFORE_MS, OpeningDesk
from fleetcron.simulate.database import Database
from fleetcron.simulate.rehearsed import Cast
from fleetcron.simulate.virtual import VirtualLoop
from fleetcron.store.migrations import migrate
from fleetcron.store.store import Store
from fleetcron.times.instants import LAST_MS, from_ms, iso

T = TypeVar("T")

SHARDS: Final = 1
POOL_SLOTS: Final = 10  # of each worker in a pool of which nobody says how many
TURN_S: Final = 100e-6  # that one callback takes: what a run costs a real worker, about
_MOMENT_MS: Final = 200  # in which what is due now, and takes no time, is done
_BEFORE_MS: Final = 1_100  # a worker claims a second ahead: an outage takes nothing of its first instant along
_PATIENCE_S: Final = 120
_UNWINDING: Final = 20  # awaits in the clean-up of one coroutine
# Names that begin with the time have no place for what is before 1970, and the days around an instant must exist.
_FIRST_MS: Final = 86_400_000
_LAST_MS: Final = LAST_MS - 2 * 86_400_000 + 1


class _Loop(VirtualLoop):
    """One that user code may run on. A thread has no virtual time, so whatever is given to one is done at once."""

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        del executor
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:
            done.set_exception(error)
        return done

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def create_task(self, coro: Any, **options: Any) -> "asyncio.Task[Any]":
        if self.is_closed():  # what is ended here may want to clean up, and nobody would wait for it
            coro.close()
            raise RuntimeError("this world has ended")
        return super().create_task(coro, **options)

    def let_go(self) -> None:
        """Close, and end what was killed in the middle: Python would do so at its exit, and complain."""
        self.close()
        killed = [task.get_coro() for task in asyncio.all_tasks(self)]
        around = asyncio._get_running_loop()
        asyncio._set_running_loop(self)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what they begin when they clean up is never awaited
                while killed:
                    _end(killed.pop())
                    if not killed:
                        gc.collect()
        finally:
            asyncio._set_running_loop(around)


def _end(work: Any) -> None:
    for _ in range(_UNWINDING):
        with suppress(BaseException):  # whatever it does, it is over
            work.close()
            return


def refuse_beyond(*instants_ms: int) -> None:
    if not all(_FIRST_MS <= ms <= _LAST_MS for ms in instants_ms):
        first, last = (iso(from_ms(ms)) for ms in (_FIRST_MS, _LAST_MS))
        raise RefusedError(f"time can be played from {first} to {last}")


class Stage:
    """`slots` by pool, for each of the workers; `shared` are slots of all of them together, dealt out evenly. It is
    `start_ms`; its time begins a moment before (creation.py)."""

    def __init__(
        self,
        cast: Cast,
        start_ms: int,
        *,
        slots: dict[str, int] | None = None,
        shared: Mapping[str, int] | None = None,
        workers: int = 1,
        seed: int = 0,
    ) -> None:
        refuse_beyond(start_ms)
        self.cast = cast
        self.now_ms = start_ms
        begin_ms = self._begin_ms = start_ms - BEFORE_MS
        self._chance = Random(seed)
        self._loop = _Loop(self._chance.randrange, lambda: TURN_S)
        self._clock = SimulatedClock(self._loop.time, begin_ms)
        self._database = Database(self._loop, self._clock)
        self._slots = slots or {"default": POOL_SLOTS}
        self._shared = shared or {}
        self._workers = workers
        self._nodes: list[CalmNode] = []
        self._lives = 0
        self._often = self._deadlines = False
        self._is_down = True
        self._outages: list[tuple[int, int]] = []
        self.store = Store(NearEngine(self._database, self._loop.process("people"), self._loop))
        self.desk = OpeningDesk(self.store, start_ms, actor="rehearsal", shards=SHARDS, new_id=self._new_id)
        self.do(migrate(self.store.engine))
        self.do(self.store.shards.fix(SHARDS))

    @property
    def is_down(self) -> bool:
        return self._is_down

    @property
    def turns(self) -> int:
        return self._loop.turns

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Something that people do, now. Also where another event loop runs around: nothing of it is waited for."""
        if self._loop.is_closed():
            work.close()
            raise RefusedError("this world is closed")
        around = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            return self._loop.run_until_complete(work)
        finally:
            asyncio._set_running_loop(around)

    def apply(self, definitions: Sequence[Definition], calendars: Sequence[CalendarDocument] = ()) -> list[Applied]:
        """Jobs and calendars. A home region means nothing here: there is one fleet, and it is everywhere."""

        async def work() -> list[Applied]:
            for calendar in calendars:
                await self.desk.put_calendar(calendar)
            return await self.desk.apply([replace(each, region=None) for each in definitions])

        self._serve({each.pool for each in definitions})
        if not self._often and any(each.pause_after_failures is not None for each in definitions):
            self._often = True
            for node in self._nodes:
                node.look_again()
        self._deadlines |= any(each.start_deadline_ms is not None for each in definitions)
        return self.do(work())

    def up(self) -> None:
        """The fleet starts."""
        if not self._is_down:
            return
        self._is_down = False
        self._lives += 1

        async def work() -> None:
            for number in range(1, self._workers + 1):
                if not self._slots_of(number):
                    continue  # there are fewer slots than workers
                node = self._node(number)
                self._nodes.append(node)
                node.start()
            await asyncio.sleep(0)

        self.do(work())

    def down(self) -> None:
        """Every node is killed."""
        if self._is_down:
            return
        self._is_down = True

        async def work() -> None:
            for node in self._nodes:
                await node.kill()

        self.do(work())
        self._forget_nodes()

    def plan_outage(self, from_ms: int, to_ms: int) -> None:
        """Every node is dead in [from, to)."""
        if from_ms < self.now_ms:
            raise RefusedError("an outage that begins in the past cannot be planned")
        if any(from_ms < other_to and other_from < to_ms for other_from, other_to in self._outages):
            raise RefusedError("two outages overlap; make them one")
        self._outages = sorted([*self._outages, (from_ms, to_ms)])

    def move_to(self, to_ms: int) -> None:
        """Time passes. A fault of our own that ended a node is raised: nothing after it would mean anything."""
        refuse_beyond(to_ms)
        while self._outages and self._outages[0][0] <= to_ms:
            began_ms, ends_ms = self._outages[0]
            if not self._is_down:
                self._pass(began_ms - _BEFORE_MS)
                self.down()
            if ends_ms > to_ms:
                break
            self._pass(ends_ms)
            self._outages.pop(0)
            if not self._outages or self._outages[0][0] > ends_ms:
                self.up()
        self._pass(to_ms + _MOMENT_MS if to_ms > self.now_ms else to_ms)
        self.now_ms = max(to_ms, self.now_ms)
        for node in self._nodes:
            if node.fault is not None:
                raise node.fault

    def _pass(self, to_ms: int) -> None:
        self.do(self._until(to_ms))

    def close(self) -> None:
        if self._loop.is_closed():
            return
        if not self._is_down:
            self.do(self._stopped())
        self._loop.let_go()
        self._database.session.close()

    async def _until(self, to_ms: int) -> None:
        seconds = (to_ms - self._begin_ms) / 1000 - self._loop.time()
        if seconds > 0:
            await asyncio.sleep(seconds)

    async def _stopped(self) -> None:
        for node in self._nodes:
            node.ask_to_stop()
        give_up_s = self._loop.time() + _PATIENCE_S
        while not all(node.is_gone for node in self._nodes) and self._loop.time() < give_up_s:
            await asyncio.sleep(0.05)

    def _forget_nodes(self) -> None:
        for node in self._nodes:
            node.bury()
        self._nodes.clear()

    def _serve(self, pools: set[str]) -> None:
        missing = sorted(pools - self._slots.keys() - self._shared.keys())
        if missing and not self._is_down:
            raise RefusedError(f"no worker serves the pool {missing[0]}; name it when the world is made")
        self._slots |= dict.fromkeys(missing, POOL_SLOTS)

    def _slots_of(self, number: int) -> dict[str, int]:
        dealt = {
            pool: slots // self._workers + (number <= slots % self._workers) for pool, slots in self._shared.items()
        }
        return {pool: slots for pool, slots in {**self._slots, **dealt}.items() if slots}

    def _node(self, number: int) -> CalmNode:
        roles = ("scheduler", "worker") if number == 1 else ("worker",)
        pools = tuple(f"{pool}={slots}" for pool, slots in sorted(self._slots_of(number).items()))
        config = Config(
            scheduler=SchedulerConfig(shards=SHARDS),
            node=NodeConfig(roles=roles),
            worker=WorkerConfig(pools=pools),
            executor=ExecutorConfig(),
        )
        return CalmNode(
            f"node-{number}" if self._lives == 1 else f"node-{number}-{self._lives}",
            self._loop,
            self._database,
            clock=SimulatedClock(self._loop.time, self._begin_ms),
            config=patient(config),
            chance=self._chance.random,
            make_executor=self.cast.executor,
            often=lambda: self._often,
            deadlines=lambda: self._deadlines,
        )

    def _new_id(self, now_ms: int) -> str:
        return uuid7(now_ms, self._chance.randbytes)
