"""A shop floor for tests: ticks become runs, runs are queued, claimed and ended, with the real verbs and by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from fleetcron.model.definition import Definition
from fleetcron.model.outcome import Failed, Fault, Outcome, Succeeded
from fleetcron.model.queued import Control
from fleetcron.model.rules import CronEntry, RetryRule
from fleetcron.model.shard import Held
from fleetcron.model.target import CommandTarget
from fleetcron.model.transition import Transition
from fleetcron.policy import fairness
from fleetcron.policy.choose import choose
from fleetcron.policy.settle import settle
from fleetcron.scheduler.desk import Desk
from fleetcron.scheduler.tables import Tables
from fleetcron.scheduler.tick import tick
from fleetcron.store import ends
from fleetcron.store.claims import Claim, Claimed
from fleetcron.store.ends import Ended
from fleetcron.store.queue import Coming, Place, Shares
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Written
from tests.store.engines import DatabaseClock

MINUTE = 60_000
MINUTELY = CronEntry("* * * * *", "UTC", "skip", "both")
TWICE = RetryRule(max_attempts=2)


def ok(written: Written[Any]) -> Any:
    assert isinstance(written, Ok), written
    return written.value


@dataclass
class Floor:
    store: Store
    clock: DatabaseClock
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
        ok(await self.store.queue.promote(1000, 1000, _rank))

    async def next_minute(self) -> None:
        """Plan what is due at the next full minute, wait for it, and queue it."""
        await self.plan()
        await self.clock.set(self.clock.now_ms() // MINUTE * MINUTE + MINUTE)
        await self.queue()

    async def join(self, node_id: str, pool: str = "default", slots: int = 9) -> None:
        ok(await self.store.workers.join(node_id, "process", {pool: slots}, 3_600_000))

    async def claim(
        self, node_id: str, pool: str = "default", room: int = 9, lacks: Sequence[str] = ()
    ) -> list[Claimed]:
        wish = Claim(node_id, uuid4().hex, pool, room, room, tuple(lacks))
        return list(ok(await self.store.claims.claim(wish, choose)).runs)

    async def end(self, node_id: str, run: Claimed, outcome: Outcome, **more: Any) -> None:
        now_ms = self.clock.now_ms()
        ended = Ended(run.run_id, run.attempt, outcome, max(run.due_ms, now_ms - 1500), now_ms, **more)
        assert ok(await self.store.attempts.finish(node_id, [ended], _settle)).late == ()

    async def succeed(self, node_id: str, run: Claimed) -> None:
        await self.end(node_id, run, Succeeded(), result_json='{"rows": 3}')

    async def fail(self, node_id: str, run: Claimed) -> None:
        await self.end(node_id, run, Failed(Fault("ValueError", "no such shop", "line 1\nline 2")), log_bytes=12)


def _rank(coming: Sequence[Coming], shares: Shares) -> tuple[list[int], dict[Place, int]]:
    wanted = [fairness.Wanted(c.pool, c.lane, c.priority, c.tenant, c.weight) for c in coming]
    return fairness.ranks(wanted, shares)


def _settle(held: ends.Held, outcome: Outcome, _controls: Sequence[Control], now_ms: int) -> Transition:
    return settle(outcome, held.budget, TWICE, scheduled_for_ms=held.scheduled_for_ms, now_ms=now_ms, chance=0)
