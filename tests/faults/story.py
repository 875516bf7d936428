"""A short life of a scheduler that passes every step, on a clock that is moved by hand. The nursery forks it (`live`).

Everything in it may be done again: a life that was cut short is followed by another one, half an hour later, which
tells the same story, and then nothing may be missing and nothing may be there twice.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import date, timedelta
from itertools import count
from typing import Any

import asyncpg  # type: ignore[import-untyped]

from fleetcron import steps
from fleetcron.clock import HandClock
from fleetcron.config.settings import CoordinationConfig, SchedulerConfig
from fleetcron.coordination.holder import Holder
from fleetcron.model.calendar import CalendarDocument
from fleetcron.model.definition import Definition
from fleetcron.model.rules import CalendarUse, EveryEntry, MisfirePolicy, MisfireRule, OnceEntry
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.loop import Scheduler
from fleetcron.store.migrations import Altering, migrate
from fleetcron.store.nodes import Node
from fleetcron.store.opening import open_engine
from fleetcron.store.store import Store
from fleetcron.times.instants import from_ms, iso
from tests.faults.jobs import RUN, cron
from tests.faults.node import Fault

BEGIN_MS = 1_800_000_000_000  # 2027-01-15T08:00:00Z
LIFE_MS = 30 * 60_000  # from the beginning of one life to the next
SHARDS = 3
TODAY = "2027-01-15"

# How the clock of PostgreSQL is taken into our hand; a template has it, so that every copy has.
CLOCK_SQL = """
CREATE TABLE fleetcron.test_clock (now_ms BIGINT NOT NULL);
INSERT INTO fleetcron.test_clock VALUES (0);
CREATE OR REPLACE FUNCTION fleetcron.db_now_us() RETURNS BIGINT LANGUAGE sql VOLATILE
    AS $$ SELECT now_ms * 1000 FROM fleetcron.test_clock $$;
"""

SKIP, LATEST = MisfireRule("skip", grace_ms=1000), MisfireRule("latest", grace_ms=1000)
ALL, BOUNDED = MisfireRule("all", grace_ms=1000), MisfireRule("all", grace_ms=0, limit=7, window_ms=600_000)


def definitions(life: int) -> list[Definition]:
    """What is wished for; every life changes its mind about some of them."""
    other = ("*/20 * * * * *", "*/30 * * * * *")[life % 2]
    return [
        cron("skip", "*/10 * * * * *", "Asia/Kolkata", SKIP),
        cron("latest", "*/10 * * * * *", "America/New_York", LATEST),
        cron("all", "*/30 * * * * *", "UTC", ALL),
        cron("bounded", "*/15 * * * * *", "UTC", BOUNDED),
        cron("jittered", "* * * * *", "Europe/Berlin", ALL, jitter_ms=20_000),
        cron("edited", other, "UTC", ALL),
        cron("paused", "*/15 * * * * *", "UTC", LATEST),
        cron("deleted", "*/20 * * * * *", "UTC", ALL),
        cron("cancelled", "*/20 * * * * *", "UTC", SKIP),
        cron("calendar", "*/30 * * * * *", "UTC", ALL, calendars=(CalendarUse("days"),)),
        Definition("every", (EveryEntry(7000),), RUN, misfire=LATEST),
        Definition("counted", (EveryEntry(11_000),), RUN, misfire=ALL, max_ticks=40),
        Definition("once", (OnceEntry(iso(from_ms(BEGIN_MS + life * LIFE_MS + 100_000))),), RUN, misfire=ALL),
    ]


class Life:
    def __init__(self, store: Store, clock: HandClock, number: int, tell: asyncpg.Connection | None) -> None:
        self.store = store
        self.clock = clock
        self.number = number
        ids = (f"01900000-0000-7000-8000-{number:06}{place:06}" for place in count())  # the same story every time
        self.desk = Desk(store, actor="story", shards=SHARDS, new_id=lambda _: next(ids))
        self.first, self.second = self._holder("first"), self._holder("second")
        self.scheduler = self._scheduler(self.first)
        self._tell = tell

    def _holder(self, name: str) -> Holder:
        row = Node(f"{name}-{self.number}", "host", os.getpid(), ("scheduler", "worker"))
        return Holder(self.store.engine, row, CoordinationConfig(), shards=SHARDS, clock=self.clock)

    def _scheduler(self, holder: Holder) -> Scheduler:
        config = SchedulerConfig(lookahead_s=30, batch_rows=50, catch_up_room=1_000_000)
        return Scheduler(self.store, holder.held, config, clock=self.clock)

    async def pass_time(self, ms: int) -> None:
        self.clock.advance(ms)
        await self.set_database_clock()

    async def set_database_clock(self) -> None:
        if self._tell:
            await self._tell.execute(f"UPDATE fleetcron.test_clock SET now_ms = {self.clock.now_ms()}")

    async def plan(self) -> None:
        """Until there is nothing left to do now."""
        for _ in range(200):
            if await self.scheduler.step() not in (0, 1):
                return
        raise AssertionError("the scheduler does not come to rest")

    async def wish(self) -> None:
        choices: list[MisfirePolicy] = ["skip", "latest", "all"]
        far = (date(2030, 1, 1) + timedelta(days=self.number)).isoformat()  # so that every life changes the calendar
        holidays = (TODAY, far) if self.number % 2 else (far,)
        await self.desk.put_calendar(CalendarDocument("days", timezone="UTC", holidays=holidays))
        await self.desk.apply([one for one in definitions(self.number) if one.name != "cancelled" or not self.number])
        await self.plan()
        await self.pass_time(1_234)
        await self.desk.pause("default", "paused", choices[self.number % 3])
        await self.desk.delete("default", "deleted")
        if not self.number:
            await self.desk.cancel("default", "cancelled")
        await self.pass_time(45_000)
        await self.desk.resume("default", "paused")
        await self.plan()

    async def change_hands(self) -> None:
        """Another node comes, gets its share, gives it back to drain, and leaves."""
        await self.first.beat()
        await self.second.beat()
        await self.first.settle()
        await self.second.settle()
        await self.plan()
        self.second.resign()
        await self.second.settle()
        await self.second.release()
        await self.first.settle()

    async def tell(self) -> None:
        await self.first.beat()
        await self.plan()  # what a life before has missed
        await self.wish()
        await self.change_hands()
        await self.pass_time(200_000)  # nobody plans: ticks are late
        await self.first.beat()
        await self.plan()
        await self.pass_time(10_000)
        await self.first.beat()
        await self.plan()
        await self.first.release()


def as_it_is(engine: Altering) -> Altering:
    return engine


@asynccontextmanager
async def life(url: str, number: int, through: Callable[[Altering], Altering] = as_it_is) -> AsyncIterator[Life]:
    """`through` may put something in front of the engine."""
    clock = HandClock(BEGIN_MS + number * LIFE_MS)
    tell = await asyncpg.connect(url) if url.startswith("postgres") else None
    try:
        engine = through(await open_engine(url, clock=clock, connections=2))
        try:
            found = Life(Store(engine), clock, number, tell)
            await found.set_database_clock()
            await migrate(engine)
            yield found
        finally:
            await engine.close()
    finally:
        if tell:
            await tell.close()


async def tell(url: str, number: int) -> int:
    """When it ended, by its clock."""
    async with life(url, number) as one:
        await one.tell()
        return one.clock.now_ms()


def live(wish: Mapping[str, Any]) -> None:
    """It dies where its `fault` says (`kill tick.written 3`), or tells how often it passed each step."""
    fault = Fault.parsed(wish["fault"])
    steps.on_step(fault)
    now_ms = asyncio.run(tell(wish["url"], wish["number"]))
    print(json.dumps({"passed": fault.seen, "now_ms": now_ms}), flush=True)


def warm_up() -> None:
    """What is parsed and computed once is there for every life."""
    asyncio.run(tell(":memory:", 0))
