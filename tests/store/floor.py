"""A shop floor for tests: ticks become runs, runs are queued, claimed and ended, with the real verbs and by hand."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Fault, Outcome, Succeeded
from fleetcron.model.rules import CronEntry, RetryRule
from fleetcron.model.shard import Held
from fleetcron.model.target import CommandTarget
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store.claims import Claimed
from fleetcron.store.ends import Ended
from fleetcron.store.store import Store
from tests.store.engines import hand_cranked
from tests.store.handwork import Handwork, ok

__all__ = ["MINUTE", "NOW", "Floor", "ok", "on_a_floor"]

MINUTE = 60_000
NOW = 1_800_000_000_000
MINUTELY = CronEntry("* * * * *", "UTC", "skip", "both")
TWICE = RetryRule(max_attempts=2)


@dataclass
class Floor(Handwork):
    desk: Desk
    held: Sequence[Held]

    async def define(self, name: str, **fields: Any) -> str:
        fields = {"schedule": (MINUTELY,), "run": CommandTarget(("true",)), "retry": TWICE, **fields}
        applied = await self.desk.create(Definition(name, **fields))
        assert applied.job is not None
        return applied.job.job_id

    async def plan(self) -> None:
        """The ticks of the minute that comes."""
        await tick(self.store.cursors, Tables(self.store.almanac), self.held, lookahead_ms=MINUTE)

    async def queue(self) -> None:
        await self.promote()

    async def next_minute(self) -> None:
        """Plan what is due at the next full minute, wait for it, and queue it."""
        await self.plan()
        await self.clock.set(self.clock.now_ms() // MINUTE * MINUTE + MINUTE)
        await self.queue()

    async def join(self, node_id: str, pool: str = "default", slots: int = 9) -> None:
        await self.enlist(node_id, {pool: slots}, 3_600_000)

    async def claim(
        self, node_id: str, pool: str = "default", room: int = 9, lacks: Sequence[str] = ()
    ) -> list[Claimed]:
        return list((await self.take(node_id, pool, room, uuid4().hex, lacks=tuple(lacks))).runs)

    async def end(self, node_id: str, run: Claimed, outcome: Outcome, **more: Any) -> None:
        ended = Ended(run.run_id, run.attempt, outcome, max(run.due_ms, self.now - 1500), self.now, **more)
        assert (await self.write_end(node_id, ended, TWICE)).late == ()

    async def succeed(self, node_id: str, run: Claimed) -> None:
        await self.end(node_id, run, Succeeded(), result_json='{"rows": 3}')

    async def fail(self, node_id: str, run: Claimed) -> None:
        await self.end(node_id, run, Failed(Fault("ValueError", "no such shop", "line 1\nline 2")), log_bytes=12)


def on_a_floor(story: Callable[[Floor], Awaitable[None]]) -> None:
    """A story on a floor of its own, in memory, which begins at NOW: a full minute."""

    async def main() -> None:
        async with hand_cranked(":memory:", NOW) as (engine, clock):
            store = Store(engine)
            ok(await store.shards.fix(1))
            held = ok(await store.shards.take("*", [0], "scheduler", 36_000_000))
            await story(Floor(store, clock, Desk(store, actor="ann", shards=1), held))

    asyncio.run(main())
