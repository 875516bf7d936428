"""A scheduler and workers in this process, on one store, with real clocks: for tests of what a worker does.

Handlers are functions of the test (`isolation: inline`), so that they can set and wait for signals. Time passes by
itself here, so jobs are triggered, or tick every second, or the database's clock is set to where something happens;
nothing sleeps to wait for something: `ended` waits until the store has the answer.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from fleetcron.clock import Clock, SystemClock
from fleetcron.config import ExecutorConfig, SchedulerConfig, WorkerConfig
from fleetcron.executors.assembly import executors
from fleetcron.executors.context import GiveUp
from fleetcron.executors.programs import Programs
from fleetcron.executors.refusals import refusals
from fleetcron.model.definition import Definition
from fleetcron.model.rules import EveryEntry, Lane, MisfireRule, OnceEntry
from fleetcron.model.run import RunLine
from fleetcron.model.target import PythonTarget, Target
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.loop import Scheduler
from fleetcron.store.attempts import PastAttempt
from fleetcron.store.claims import Choose, Claim, Claims, Taken
from fleetcron.store.engine import Script
from fleetcron.store.history import Span, run_lines
from fleetcron.store.rows import rows
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Written
from fleetcron.worker.loop import Worker
from tests.faults.inside import Shifted
from tests.store.engines import admin, change, opened

PATIENCE_S = 30
FAR = (OnceEntry("2099-01-01T00:00:00Z"),)  # a schedule that does not come into the way
# For runs that are planned in the past on purpose: they are run whenever somebody comes.
WHENEVER = MisfireRule("all", window_ms=100 * 365 * 86_400_000, limit=10_000, lane="live")
QUICK = {"lease_ttl_s": 2.0, "renew_s": 0.4, "drain_s": 5.0, "poll_s": 1.0}

_CLOCK = """
CREATE TABLE IF NOT EXISTS test_clock (shift_ms BIGINT NOT NULL);
TRUNCATE test_clock;
INSERT INTO test_clock VALUES (0);
CREATE OR REPLACE FUNCTION db_now_us() RETURNS BIGINT LANGUAGE sql VOLATILE
AS $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + shift_ms * 1000 FROM test_clock $$
"""

Function = Callable[..., Any]


def job(name: str = "a", target: Target | str = "t:f", **fields: Any) -> Definition:
    run = PythonTarget(target) if isinstance(target, str) else target
    return Definition(name, fields.pop("schedule", FAR), run, **fields)


def every_second(name: str = "a", **fields: Any) -> Definition:
    return job(name, schedule=(EveryEntry(1000, 0),), **fields)


@dataclass
class Stay:
    """A run at work, as its handler wrote it down: from its first start to the end of its last attempt."""

    job: str
    run_id: int
    covers: int
    begin_ns: int
    end_ns: int | None = None  # None: it works
    attempts: int = 0


class Hall:
    """A handler that writes down when it works, and ends when it is told to."""

    def __init__(self) -> None:
        self.stays: dict[tuple[int, int], Stay] = {}  # by run and round
        self.rounds: Counter[int] = Counter()  # of runs that were replayed
        self._orders: defaultdict[tuple[int, int], asyncio.Future[tuple[tuple[float, ...], bool]]] = defaultdict(
            lambda: asyncio.get_running_loop().create_future()
        )
        self._begun: defaultdict[tuple[int, int], asyncio.Event] = defaultdict(asyncio.Event)

    def tell(self, run_id: int, *ends_ms: float, dies: bool = False) -> None:
        """When its attempts end, by the wall clock; all but the last one fail. `dies`: that one fails for good."""
        self._orders[run_id, self.rounds[run_id]].set_result((ends_ms or (0,), dies))

    async def begun(self, run_id: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self._begun[run_id, self.rounds[run_id]].wait()

    async def handler(self, ctx: Any) -> None:
        key = ctx.run_id, self.rounds[ctx.run_id]
        stay = self.stays.setdefault(key, Stay(ctx.job, ctx.run_id, ctx.covers, time.monotonic_ns()))
        stay.attempts += 1
        this = stay.attempts
        self._begun[key].set()
        try:
            ends_ms, dies = await asyncio.shield(self._orders[key])
            await asyncio.sleep(max(0.0, ends_ms[min(this, len(ends_ms)) - 1] / 1000 - time.time()))
        finally:
            stay.end_ns = time.monotonic_ns()
        if dies:
            raise GiveUp
        if this < len(ends_ms):
            raise ValueError("not yet")

    def most_at_once(self, job: str) -> int:
        """How many of its runs were at work at the same time. A run that rests between two attempts is at work."""
        moments = [
            moment
            for stay in self.stays.values()
            if stay.job == job
            for moment in ((stay.begin_ns, 1), (stay.end_ns or time.monotonic_ns(), -1))
        ]
        now = most = 0
        for _, step in sorted(moments):
            now += step
            most = max(most, now)
        return most

    def in_order(self, run_ids: Iterable[int]) -> list[int]:
        """Runs that were not replayed, the one that began first first."""
        return sorted(run_ids, key=lambda run_id: self.stays[run_id, 0].begin_ns)


class NotedClaims(Claims):
    """The real ones; whoever looks afterwards knows when each run was claimed first, by the database's clock."""

    def __init__(self, store: Store) -> None:
        super().__init__(store.engine)
        self.first_ms: dict[int, int] = {}

    async def claim(self, wish: Claim, choose: Choose) -> Written[Taken]:
        written = await super().claim(wish, choose)
        if isinstance(written, Ok):
            for run in written.value.runs:
                self.first_ms.setdefault(run.run_id, written.value.now_ms)
        return written


@dataclass
class Crew:
    store: Store
    desk: Desk
    functions: dict[str, Function]
    programs: Programs
    config: WorkerConfig
    executor: ExecutorConfig
    clock: Shifted  # the database's
    workers: dict[str, Worker] = field(default_factory=dict)
    _tasks: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    _stops: dict[str, asyncio.Event] = field(default_factory=dict)
    _keys: "count[int]" = field(default_factory=count)

    def join(
        self,
        name: str = "w1",
        config: WorkerConfig | None = None,
        functions: dict[str, Function] | None = None,
        clock: Clock | None = None,
    ) -> Worker:
        """A worker begins. `clock` is that of its node."""
        clock = clock or SystemClock()
        made = self.functions if functions is None else functions
        worker = Worker(
            self.store,
            name,
            config or self.config,
            executors(self.programs, self.executor, {}, clock, made),
            process="",
            clock=clock,
            chance=random.Random(1).random,
            refuses=refusals(self.executor, made),
        )
        self._stops[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(worker.run(self._stops[name]))
        self.workers[name] = worker
        return worker

    async def leave(self, name: str = "w1") -> None:
        """It is asked to stop, and stops."""
        self._stops[name].set()
        async with asyncio.timeout(PATIENCE_S):
            await self._tasks.pop(name)

    async def set_clock(self, now_ms: int) -> None:
        """The database's clock jumps, and goes on from there. The clocks of the nodes do not."""
        self.clock.ms += now_ms - self.clock.now_ms()
        if self.store.engine.name == "postgres":
            await change(self.store.engine, f"UPDATE test_clock SET shift_ms = {self.clock.ms}")
        await self.hint()

    async def hint(self) -> None:
        """Whoever sleeps looks again."""

        def script() -> Script[None]:
            yield "notify", {"topic": "work"}

        assert await self.store.engine.write(script) == Ok(None)

    async def count(self, table: str, where: str = "true") -> int:
        """Rows of a table, past the verbs."""
        found = await self.rows(f"SELECT count(*) AS found FROM {table} WHERE {where}")
        return int(found[0]["found"])

    async def rows(self, sql: str) -> list[dict[str, Any]]:
        """Past the verbs."""
        engine: Any = self.store.engine
        if engine.name == "sqlite":
            found = await engine._reader.call(lambda session: session._open().execute(sql).fetchall())
        else:
            async with admin(engine.url.dsn) as connection:
                await connection.execute("SET search_path TO fleetcron")
                found = await connection.fetch(sql)
        return [dict(row) for row in found]

    async def now_ms(self) -> int:
        """By the database's clock."""

        def script() -> Script[int]:
            [facts] = yield "fleet_now", {}
            return int(facts["now_ms"])

        return await self.store.engine.read(script)

    async def tick(self, name: str, at_ms: int, lane: Lane = "live", due_ms: int | None = None) -> int:
        """A run for one instant, as a scheduler plans it: past the schedule of the job, but by the same statements."""
        due_ms = at_ms if due_ms is None else due_ms
        return await planned(self.store, ("default", name), self.jobs[name], at_ms, due_ms, lane)

    async def plan(self, lookahead_s: float = 60) -> None:
        """What a scheduler does, once."""
        taken = await self.store.shards.take("*", range(2), "scheduler", 3_600_000)
        assert isinstance(taken, Ok)
        config = SchedulerConfig(lookahead_s=lookahead_s)
        scheduler = Scheduler(self.store, lambda: self.held, config, clock=SystemClock())
        self.held = taken.value or self.held
        while await scheduler.step() == 0:
            pass

    async def define(self, *definitions: Definition) -> None:
        for each in await self.desk.apply(definitions):
            assert each.done != "refused", each.reason
            if each.job is not None:
                self.jobs[each.name] = each.job.job_id

    async def trigger(self, name: str = "a", payload: dict[str, Any] | None = None, tenant: str = "default") -> int:
        written = await self.store.steering.trigger((tenant, name), payload, actor="me", key=f"key-{next(self._keys)}")
        assert isinstance(written, Ok), written
        return written.value.run_id

    def claimed_ms(self, run_id: int) -> int | None:
        """When it was claimed first, by the database's clock; None: never."""
        assert isinstance(self.store.claims, NotedClaims)
        return self.store.claims.first_ms.get(run_id)

    async def line(self, run_id: int) -> RunLine:
        found = await self.store.history.run(run_id)
        assert found is not None
        return found.line

    async def ended(self, *run_ids: int) -> list[RunLine]:
        """When all of them are final."""
        return await self.until(lambda lines: all(each.run.state.is_final for each in lines), *run_ids)

    async def until(self, is_so: Callable[[Sequence[RunLine]], bool], *run_ids: int) -> list[RunLine]:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                lines = await self.lines(*run_ids)
                if is_so(lines):
                    return lines
                await asyncio.sleep(0.01)  # the end of a run is no hint to others unless somebody waits for it

    async def lines(self, *run_ids: int) -> list[RunLine]:
        """In the order in which they are asked for."""

        def script() -> Script[list[RunLine]]:
            [facts] = yield "fleet_now", {}
            return (yield from run_lines(run_ids, facts["now_ms"]))

        found = {line.run.run_id: line for line in await self.store.engine.read(script)}
        return [found[run_id] for run_id in run_ids]

    async def attempts(self, run_id: int) -> Sequence[PastAttempt]:
        return await self.store.past_attempts.of_run(run_id)

    async def runs(self, name: str = "a") -> list[RunLine]:
        """The oldest first."""
        return list(reversed(await self.store.history.runs(Span(name=name), limit=1000)))

    jobs: dict[str, str] = field(default_factory=dict)  # ids by name
    held: Any = ()


async def planned(
    store: Store, name: tuple[str, str], job_id: str, at_ms: int, due_ms: int, lane: Lane = "live"
) -> int:
    """Write the run of one tick of a job, by tenant and name."""
    run = {
        "job_id": job_id, "scheduled_for_ms": at_ms, "run_after_ms": due_ms, "window_from_ms": None,
        "window_to_ms": None, "almanac": 1, "covers": 1, "revision": 1, "kind": "tick", "lane": lane, "asked_by": None,
    }  # fmt: skip

    def script() -> Script[int]:
        [facts] = yield "fleet_now", {}
        [done] = yield "runs_insert_if_absent", {"rows": rows([run | {"created_ms": facts["now_ms"]}])}
        assert done["runs"] == 1
        yield "notify", {"topic": "work"}
        [found] = yield "runs_of_tick", {"tenant": name[0], "name": name[1], "at_ms": at_ms}
        return int(found["run_id"])

    written = await store.engine.write(script)
    assert isinstance(written, Ok)
    return written.value


@asynccontextmanager
async def crew(url: str, functions: dict[str, Function] | None = None, **settings: Any) -> AsyncIterator[Crew]:
    """`settings` are those of the worker; names of `functions` are what targets say, such as "t:f"."""
    executor = settings.pop("executor", None) or ExecutorConfig(isolation="inline", grace_s=1)
    config = WorkerConfig(**{**QUICK, **settings})
    clock = Shifted(0)
    async with opened(url, clock) as engine:
        if engine.name == "postgres":
            await change(engine, _CLOCK)
        store = Store(engine)
        store.claims = NotedClaims(store)
        await store.shards.fix(2)
        programs = Programs({})
        made = Crew(store, Desk(store, actor="me", shards=2), functions or {}, programs, config, executor, clock)
        try:
            yield made
        finally:
            for name in list(made._tasks):
                await made.leave(name)
            await programs.close()
