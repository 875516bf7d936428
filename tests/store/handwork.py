"""The verbs of work, moved by hand on a clock that stands still: join, queue, claim, end. With the real policies."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fleetcron.model.outcome import Cancelled, Outcome, Succeeded
from fleetcron.model.queued import Control
from fleetcron.model.rules import RetryRule
from fleetcron.model.transition import Transition
from fleetcron.policy import fairness
from fleetcron.policy.choose import choose
from fleetcron.policy.late import late
from fleetcron.policy.settle import settle
from fleetcron.store.claims import Claim, Taken
from fleetcron.store.ends import Ended, Ends, Held
from fleetcron.store.queue import Coming, Place, Promoted, Shares
from fleetcron.store.store import Store
from fleetcron.store.written import Ok, Written
from tests.store.engines import DatabaseClock


@dataclass
class Handwork:
    """What a floor of the store's tests and a shop of the worker's tests have in common."""

    store: Store
    clock: DatabaseClock

    @property
    def now(self) -> int:
        return self.clock.now_ms()

    async def enlist(self, node_id: str, pools: dict[str, int], ttl_ms: int) -> None:
        ok(await self.store.workers.join(node_id, "process", pools, ttl_ms))

    async def promote(self, ahead_ms: int = 1_000, most: int = 1_000) -> Promoted:
        promoted: Promoted = ok(await self.store.queue.promote(ahead_ms, most, rank, late))
        return promoted

    async def take(self, node_id: str, pool: str, room: int, batch: str, **wish: Any) -> Taken:
        asked = Claim(node_id, batch, pool, room, wish.pop("catchup_room", room), **wish)
        taken: Taken = ok(await self.store.claims.claim(asked, choose))
        return taken

    async def write_end(self, node_id: str, ended: Ended, rule: RetryRule) -> Ends:
        ends: Ends = ok(await self.store.attempts.finish(node_id, [ended], settling(rule)))
        return ends


def ok(written: Written[Any]) -> Any:
    assert isinstance(written, Ok), written
    return written.value


def rank(coming: Sequence[Coming], shares: Shares) -> tuple[list[int], dict[Place, int]]:
    wanted = [fairness.Wanted(c.pool, c.lane, c.priority, c.tenant, c.weight) for c in coming]
    return fairness.ranks(wanted, shares)


def settling(rule: RetryRule) -> Callable[[Held, Outcome, Sequence[Control], int], Transition]:
    def decide(held: Held, outcome: Outcome, _controls: Sequence[Control], now_ms: int) -> Transition:
        if held.cancel is not None and not isinstance(outcome, Succeeded):
            outcome = Cancelled(held.cancel)
        return settle(outcome, held.budget, rule, scheduled_for_ms=held.scheduled_for_ms, now_ms=now_ms, chance=0)

    return decide
